"""Runs when an interpreter starts that a legacy program started; see `legacy/children.py`."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path


def _next_sitecustomize() -> None:
    """Runs the sitecustomize that this one hides, if there is one."""
    here = str(Path(__file__).parent)
    path = [entry for entry in sys.path if entry != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_next_sitecustomize()

from estimator2strategy.legacy import children  # noqa: E402

children.adopt()
