"""Stands where a Python was started: asks the server for a fork, hands signals on, ends as it does.

This is the source of an executable, and imports little: it has to start at once.
"""

import json
import os
import signal
import socket
import sys

_NOT_HANDED_ON = {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP}


def main(address: str, real_python: str) -> None:
    """Runs the process that `sys.argv` asks for, and ends with its code or signal."""
    arguments = sys.argv[1:]
    if not _can_be_a_fork(arguments):
        os.execv(real_python, [real_python, *arguments])
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        status = _status(server, arguments)
    if status < 0:
        if -status != signal.SIGKILL:  # which nobody can handle
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _can_be_a_fork(arguments: list) -> bool:
    """False for what only a real start does: options of Python, `sitecustomize`, more pipes."""
    if not arguments or "E2S_LEGACY_SCOPE" in os.environ:
        return False
    if "--multiprocessing-fork" in arguments or "multiprocessing" in arguments[-1]:
        return False
    return arguments[0] in ("-c", "-m") or not arguments[0].startswith("-")


def _status(server: socket.socket, arguments: list) -> int:
    request = {
        "arguments": arguments,
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "hears_ctrl_c": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
        "executable": os.path.abspath(sys.argv[0]),
    }
    text = json.dumps(request).encode()
    socket.send_fds(server, [len(text).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(text)
    answers = server.makefile()
    pid = int(answers.readline())
    for number in signal.valid_signals() - _NOT_HANDED_ON:
        try:
            signal.signal(number, lambda number, frame: os.kill(pid, number))
        except (OSError, ValueError):
            continue  # one that the C library keeps for itself
    return int(answers.readline())
