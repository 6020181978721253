"""Imports TensorFlow and this package, and forks a process for each connection to a socket.

The process is what a Python with the same arguments, environment, folder and standard files would
be, but for what is imported. When the connection is closed the process is killed, with its group.
The server ends when its standard input is closed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import types
from typing import Any

# By name, so that no module of the tests holds the facade: whoever imports it is looked at.
_IMPORTED = ("tensorflow", "keras", "tf_keras", "estimator2strategy.estimator.tpu")


@dataclasses.dataclass(frozen=True)
class Start:
    """How a process starts.

    Attributes:
        arguments: Those of Python: `-c CODE ...`, `-m MODULE ...` or `FILE ...`.
        directory: Its current folder.
        environment: All of its environment.
        hears_ctrl_c: False if it ignores SIGINT, as what a shell starts in the background does.
        executable: Its `sys.executable`.
        files: Its stdin, stdout and stderr.
    """

    arguments: list[str]
    directory: str
    environment: dict[str, str]
    hears_ctrl_c: bool
    executable: str
    files: tuple[int, ...]


def serve(address: str) -> Start:
    """Forks until standard input is closed. Comes back in the processes that were asked for."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address + ".new")
        listener.listen()
        os.rename(address + ".new", address)  # the sign that all is imported
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            _take_leave()
            if 0 in ready:
                os._exit(0)
            connection, _ = listener.accept()
            if not os.fork():
                break
            connection.close()
    return _keep(connection)


def _take_leave() -> None:
    """Waits for the children that have ended: their processor time is this process's then."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep(connection: socket.socket) -> Start:
    """Forks a process, reports its end, and ends it if nobody wants to know."""
    start = _received(connection)
    pid = os.fork()
    if not pid:
        os.setsid()
        connection.close()
        return start
    for file in start.files:
        os.close(file)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % pid)
    process = os.pidfd_open(pid)
    ready, _, _ = select.select([process, connection], [], [])
    if process not in ready:
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _received(connection: socket.socket) -> Start:
    length, files, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as stream:
        request = json.loads(stream.read(int.from_bytes(length, "big")))
    return Start(**request, files=tuple(files))


def become(start: Start) -> None:
    """Makes this process the one that was asked for, just before its first line runs."""
    for number, file in enumerate(start.files):
        os.dup2(file, number)
        os.close(file)
    handler = signal.default_int_handler if start.hears_ctrl_c else signal.SIG_IGN
    signal.signal(signal.SIGINT, handler)
    os.chdir(start.directory)
    os.environ.clear()
    os.environ.update(start.environment)
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdout.reconfigure(line_buffering=os.isatty(1), write_through=unbuffered)  # type: ignore
    sys.executable = start.executable
    sys.orig_argv = [start.executable, *start.arguments]
    sys.path[:] = [
        *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
        *_INSTALLED,
    ]
    importlib.import_module("numpy").random.seed()  # Python has seeded its own generator anew
    # The package reads this variable while it is imported.
    importlib.import_module("estimator2strategy.engine.runtime.devices").emulate_tpu_if_asked()


def run(arguments: list[str]) -> None:
    """Runs as `__main__` what Python would run."""
    main: Any = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = main
    first, *rest = arguments
    if first == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv = ["-m", *rest[1:]]
        runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined]
        return
    if first == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *rest[1:]]
        code = compile(rest[0], "<string>", "exec")
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(first)))
        sys.argv = arguments
        main.__file__ = first
        with open(first, "rb") as source:
            code = compile(source.read(), first, "exec")
    exec(code, vars(main))


def run_to_its_end(arguments: list[str]) -> None:
    """`run`; an error is shown without the lines of this file, and the code is 1."""
    try:
        run(arguments)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error, trace)
        sys.exit(1)


if __name__ == "__main__":
    _OWN = {os.path.dirname(os.path.abspath(__file__)), *os.environ["PYTHONPATH"].split(os.pathsep)}
    for name in _IMPORTED:
        importlib.import_module(name)
    _INSTALLED = [entry for entry in sys.path if entry not in _OWN]
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page
    start = serve(sys.argv[1])
    become(start)
    run_to_its_end(start.arguments)
