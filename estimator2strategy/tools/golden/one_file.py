"""The recorder as one file without dependencies, to copy to where the program runs today.

e2s record --print > record.py
"""

from __future__ import annotations

import ast
from pathlib import Path

from estimator2strategy import __version__

_PACKAGE = Path(__file__).parents[2]
# Each needs only those before it.
_MODULES = (
    "engine/spelling",
    "engine/command_line",
    *(
        f"tools/golden/recorder/{name}"
        for name in (
            "folder",
            "options",
            "structures",
            "batches",
            "draws",
            "again",
            "feeds",
            "exports",
            "recorder",
            "programs",
            "command",
        )
    ),
)
_HEAD = f'''\
"""Records what a model does here: a golden, for `e2s verify` to hold another TensorFlow against.

    python record.py --out golden --program train.py --data_dir=/data
    python record.py --out golden trainer.model:model_fn --input trainer.model:input_fn

Runs wherever there is an Estimator: Python 3.6 or newer, TensorFlow 1.13 to 2.15, nothing else but
numpy. Made from estimator2strategy {__version__} by `e2s record --print`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
'''


def source() -> str:
    """The recorder's modules, one after the other, with all imports at the top."""
    imports: set[str] = set()
    bodies = [_body(_PACKAGE / f"{name}.py", imports) for name in _MODULES]
    return "\n\n".join([_HEAD + "\n".join(sorted(imports)), *bodies])


def _body(path: Path, imports: set[str]) -> str:
    """A module without its docstring and imports, which are added to `imports` unless ours."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        is_import = isinstance(node, (ast.Import, ast.ImportFrom))
        if is_import or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if is_import and "estimator2strategy" not in source:
                imports.add(source)
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines).strip() + "\n"
