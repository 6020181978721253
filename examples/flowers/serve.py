"""Serves an exported model in the way of TensorFlow Serving's REST API, and asks it once.

    python serve.py --export_dir=/tmp/flowers/exported --jpeg=jpegs/test/flower/0004.jpg

(TensorFlow Serving itself takes the folder as it is: `--model_base_path=/tmp/flowers/exported`.)
"""

import argparse
import base64
import glob
import http.server
import json
import os
import threading
import urllib.request

import tensorflow as tf

CLASSES = ("china", "flower")


def load(export_dir):
    """The serving signature of the newest model in a folder."""
    newest = max(glob.glob(os.path.join(export_dir, "[0-9]*")))
    loaded = tf.saved_model.load(newest)
    function = loaded.signatures["serving_default"]
    function.model = loaded  # or its variables would go
    return function


def server(function, port=0):
    """An HTTP server on loopback that answers POSTs of `{"instances": [{"b64": ...}]}`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            images = [base64.b64decode(one["b64"]) for one in request["instances"]]
            answer = function(image_bytes=tf.constant(images))
            rows = zip(*(answer[name].numpy().tolist() for name in sorted(answer)))
            predictions = [dict(zip(sorted(answer), row)) for row in rows]
            body = json.dumps({"predictions": predictions}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)


def ask(address, jpeg):
    """The prediction for one file."""
    with open(jpeg, "rb") as file:
        instance = {"b64": base64.b64encode(file.read()).decode()}
    body = json.dumps({"instances": [instance]}).encode()
    url = f"http://{address[0]}:{address[1]}/v1/models/flowers:predict"
    with urllib.request.urlopen(urllib.request.Request(url, body)) as response:
        return json.loads(response.read())["predictions"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export_dir", required=True)
    parser.add_argument("--jpeg", required=True)
    args = parser.parse_args()
    serving = server(load(args.export_dir))
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    answer = ask(serving.server_address, args.jpeg)
    serving.shutdown()
    print(f"{args.jpeg} shows: {CLASSES[answer['class']]} ({max(answer['probabilities']):.1%})")


if __name__ == "__main__":
    main()
