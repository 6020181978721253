"""Runs programs one after the other in one process, as TensorFlow takes long to start.

    python run_programs.py PROGRAM=MODEL_DIR...

Each runs as `__main__`, without the flags of the one before.
"""

import runpy
import sys

from absl import flags


def run(program: str, model_dir: str) -> None:
    sys.argv = [program, f"--model_dir={model_dir}"]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as stop:
        if stop.code:
            raise
    for name in ("model_dir", "steps", "use_tpu"):
        delattr(flags.FLAGS, name)
    flags.FLAGS.unparse_flags()


if __name__ == "__main__":
    for given in sys.argv[1:]:
        run(*given.split("="))
