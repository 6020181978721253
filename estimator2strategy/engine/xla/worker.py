"""Compiles one program for one TPU in this process, which may hang, or die; see `tpu_compiler`.

    python -m estimator2strategy.engine.xla.worker FOLDER

FOLDER has `request.json` and `module.hlo`, and gets `result.json`. TensorFlow is not imported.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from estimator2strategy.engine.xla.pjrt import Compiler, PjrtError


def main(folder: Path) -> None:
    """Compiles what is in `folder`."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    result = _compile(request, (folder / "module.hlo").read_bytes())
    # Renamed when it is whole: a process that dies here leaves no half of it.
    written = folder / "written.json"
    written.write_text(json.dumps(result), encoding="utf-8")
    written.rename(folder / "result.json")


def _compile(request: dict[str, Any], module: bytes) -> dict[str, Any]:
    started, before = time.monotonic(), time.process_time()
    answer = _answer(request, module)
    seconds, cpu_seconds = time.monotonic() - started, time.process_time() - before
    return {**answer, "seconds": seconds, "cpu_seconds": cpu_seconds}


def _answer(request: dict[str, Any], module: bytes) -> dict[str, Any]:
    try:
        compiler = Compiler(Path(request["libtpu"]))
        topology = compiler.topology(request["topology"], request["options"])
        devices = compiler.num_devices(topology)
        if request["replicas"] > devices:
            raise PjrtError(
                3, f"{request['topology']} has {devices} devices, fewer than the replicas"
            )
        executable = compiler.compile(topology, module, request["replicas"])
    except PjrtError as error:
        return {"code": error.code, "text": error.text}
    except OSError as error:
        return {"code": "UNAVAILABLE", "text": str(error)}
    return {"code": "OK", "memory": executable.memory, "costs": executable.costs}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
