// The search of this site runs in a Worker, which browsers refuse to pages of a folder (file:).
// There this class takes its place: it runs the same script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      const url = new URL(address, location.href).href
      frame.hidden = true
      frame.srcdoc = `<script>
        postMessage = data => parent.postMessage(data, "*")
        importScripts = (...addresses) => addresses.reduce((before, address) => before.then(() =>
          new Promise((done, failed) => {
            const script = document.createElement("script")
            script.src = address
            script.onload = done
            script.onerror = failed
            document.body.appendChild(script)
          })), Promise.resolve())
      <\/script><script src="${url}"><\/script>`
      this.ready = new Promise(done => frame.addEventListener("load", done, { once: true }))
      this.frame = frame
      window.addEventListener("message", event => {
        if (event.source !== frame.contentWindow) return
        const told = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(told)
        if (this.onmessage) this.onmessage(told)
      })
      document.body.appendChild(frame)
    }

    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
