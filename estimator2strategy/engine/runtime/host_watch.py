"""Watches the processes of a job, each from a process of its own, and names one that has ended.

    python -I -S host_watch.py '{"names": [...], "number": 0, "parent": PID, "chief": null}'

When a process of the job ends, JAX may end the others within milliseconds, or let them wait for
good. So this is said, and done, from outside. The chief's watch listens, and says on stdout at
which port; the others' connect to it (`chief`: its host and port). A connection that closes without
a word is a process that has ended. It imports little: it has to start at once.

Lines from the parent: `busy` (it needs the others now), `idle`, `end` (it ends by itself). Lines to
it: the name of each process that has ended while it needs it.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time

# Seconds that a process has to end by itself, when another one that it needs has ended.
GRACE = 10.0
# Seconds that a watch whose process has gone listens for the reason.
_LAST_WORDS = 2.0
# After so many seconds a silent machine is asked, every so many, so often.
_KEEPALIVE = (10, 5, 4)
ENDED = (
    "%s has ended in the middle of the job. Start all processes again: training goes on from the "
    "latest checkpoint."
)


class HostWatch:
    """The watch of one process; see above for the arguments."""

    def __init__(
        self,
        names: list[str],
        number: int,
        parent: int,
        chief: tuple[str, int] | None,
        grace: float = GRACE,
    ):
        self._names, self._number, self._parent, self._grace = names, number, parent, grace
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, socket.socket] = {}  # number of a process -> its connection
        self._unsaid: dict[int | socket.socket, bytes] = {}  # file -> what came of a line
        self._gone: dict[int, bool] = {}  # number of a process -> True if it has said that it goes
        self._told: set[int] = set()
        self._is_busy = self._has_parted = False
        self._deadline: float | None = None
        self._until: float | None = None
        self._selector.register(0, selectors.EVENT_READ, self._from_parent)
        if chief is None:
            listener = socket.create_server(("", 0), backlog=len(names))
            self._selector.register(listener, selectors.EVENT_READ, self._accept)
            self._say(str(listener.getsockname()[1]))
        else:
            host, port = chief
            connection = socket.create_connection((host, port), timeout=60)
            self._add(connection)
            self._peers[0] = connection
            connection.sendall(b"hello %d\n" % number)

    def run(self) -> None:
        """Comes back when nothing is left to watch."""
        while not self._is_done():
            for key, _ in self._selector.select(0.5):
                key.data(key.fileobj)
            if self._deadline and time.monotonic() > self._deadline:
                with contextlib.suppress(OSError):
                    os.kill(self._parent, signal.SIGKILL)
                self._deadline = None

    def _is_done(self) -> bool:
        if self._until is not None and time.monotonic() > self._until:
            return True
        others = len(self._names) - 1 if self._number == 0 else 1
        return self._has_parted and len(self._gone) >= others

    def _from_parent(self, _: object) -> None:
        lines = self._lines(0)
        for line in lines or ():
            if line == "end":
                self._has_parted, self._is_busy, self._deadline = True, False, None
                self._tell_all(f"gone {self._number} 1")
            else:
                self._is_busy = line == "busy"
                self._react()
        if lines is None:
            self._selector.unregister(0)
            if not self._has_parted:
                self._tell_all(f"gone {self._number} 0")
                self._parent, self._deadline = 0, None
                self._is_busy = True  # was it for another one's end?
                self._react()
                self._until = time.monotonic() + _LAST_WORDS

    def _accept(self, listener: socket.socket) -> None:
        self._add(listener.accept()[0])

    def _add(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        options = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        for name, value in zip(options, _KEEPALIVE):  # noqa: B905
            if hasattr(socket, name):  # not everywhere
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._selector.register(connection, selectors.EVENT_READ, self._from_peer)

    def _from_peer(self, connection: socket.socket) -> None:
        lines = self._lines(connection)
        for line in lines or ():
            word, number, *more = line.split(" ")
            if word == "hello":
                self._peers[int(number)] = connection
                for gone, properly in self._gone.items():  # before it came
                    self._send(connection, f"gone {gone} {int(properly)}")
            elif word == "gone":
                self._went(int(number), more == ["1"])
        if lines is None:
            self._selector.unregister(connection)
            connection.close()
            for ended, peer in list(self._peers.items()):
                if peer is connection:
                    del self._peers[ended]
                    self._went(ended, False)

    def _went(self, number: int, properly: bool) -> None:
        if number in self._gone or number == self._number:
            return
        self._gone[number] = properly
        if self._number == 0:
            self._tell_all(f"gone {number} {int(properly)}")
        self._react()

    def _react(self) -> None:
        """Names those that have ended and are needed."""
        if not self._is_busy:
            self._deadline = None
            return
        new = set(self._gone) - self._told
        if not self._parent:  # those that have ended after it did so because of it
            new = {number for number in new if not self._gone[number]}
        self._told |= new
        for number in sorted(new):
            name = self._names[number]
            sys.stderr.write(f"e2s: {ENDED % name}\n")
            sys.stderr.flush()
            self._say(name)
        if self._told and self._deadline is None and self._parent:
            self._deadline = time.monotonic() + self._grace

    def _tell_all(self, line: str) -> None:
        for connection in self._peers.values():
            self._send(connection, line)

    def _send(self, connection: socket.socket, line: str) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(f"{line}\n".encode())

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):
            os.write(1, f"{line}\n".encode())

    def _lines(self, file: int | socket.socket) -> list[str] | None:
        """The whole lines that have come; None: there will be no more."""
        try:
            data = os.read(file, 4096) if isinstance(file, int) else file.recv(4096)
        except OSError:
            data = b""
        if not data:
            return None
        *whole, rest = (self._unsaid.get(file, b"") + data).split(b"\n")
        self._unsaid[file] = rest
        return [line.decode("ascii", "replace") for line in whole]


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # which the parent has got too
        signal.signal(number, signal.SIG_IGN)
    HostWatch(**json.loads(sys.argv[1])).run()
