"""One sentence for a library that cannot be imported, with the command that mends it.

    missing("tensorflow_ranking")
    # 'tensorflow_ranking is not installed: pip install --no-deps tensorflow-ranking==0.5.5 ...'

Of other libraries nothing is said, but that one was compiled for another TensorFlow.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

from estimator2strategy.engine.libraries import table
from estimator2strategy.engine.libraries.table import Library

# Module -> what pip installs it from, where that has another name.
_DISTRIBUTIONS = {
    "attr": "attrs",
    "pkg_resources": "setuptools<82",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "tensorflow_serving": "tensorflow-serving-api",
    "tfx_bsl": "tfx-bsl==1.16.1",
}
# Libraries with ops, each release of which is compiled for one TensorFlow.
COMPILED = frozenset(
    {
        "tensorflow_compression",
        "tensorflow_decision_forests",
        "tensorflow_io",
        "tensorflow_text",
    }
)
# Libraries that print an ImportError of theirs and go on, without the names that programs use.
_GO_ON = frozenset({"tensorflow_model_analysis"})
# Packages in which an error may be raised that is not theirs.
_OF_OTHERS = {"ctypes", "estimator2strategy", "google", "importlib", "tensorflow"}
# Words of an error -> what is the matter, and what to do.
_LOADING = {
    "Descriptors cannot": (
        "has files that were made for an older protobuf",
        "export PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python",
    ),
    "Detected incompatible Protobuf": (
        "has files that were made for another protobuf",
        "pip install --no-deps --upgrade {distribution}",
    ),
    "undefined symbol": (
        "was compiled for another TensorFlow",
        "pip install --no-deps --upgrade {distribution}",
    ),
    ".so: cannot open shared object file": (
        "was compiled for another TensorFlow",
        "pip install --no-deps --upgrade {distribution}",
    ),
}


def missing(module: str) -> str:
    """The sentence for a library of the table that is not installed."""
    return f"{module} is not installed: {table.known(module)[-1].install}"


def dropped(name: str, release: str) -> str | None:
    """The sentence for a name that this release of a library lacks; None if that is not why."""
    row = table.lost(name, release)
    if row is None:
        return None
    return f"{row.distribution} {release} has dropped {name}; {row.release} has it: {row.install}"


def failed(module: str, release: str, error: Exception) -> str | None:
    """The sentence for an installed library whose import failed; None if the error says it all."""
    if _is_said(error) and not isinstance(error, ModuleNotFoundError):
        return None  # of a library that this one imports, with its command
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    for words, (fate, remedy) in _LOADING.items():
        if words in str(error):
            of = _owner(error, module)
            name = f"{of} {release}".strip() if of == module else of
            return f"{name} {fate} ({reason}): {remedy.format(distribution=_distribution(of))}"
    if isinstance(error, ModuleNotFoundError):
        lacked = lacking(module, release, str(error.name).partition(".")[0])
        if lacked is not None:
            return lacked
    row, name = table.find(module, release), f"{module} {release}".strip()
    if row is None or not isinstance(error, (ImportError, AttributeError)):
        return None
    if release != row.release:
        return f"{name} does not import here ({reason}); {row.release} does: {row.install}"
    pinned = _DISTRIBUTIONS.get(str(error.name).partition(".")[0])
    if pinned in row.beside:
        return f"{name} needs {pinned} ({reason}): pip install --no-deps {pinned}"
    return None


def printed(module: ModuleType) -> ImportError | None:
    """The ImportError that an imported library has only printed; None if it has all its names."""
    if module.__name__ not in _GO_ON or hasattr(module, "__version__") or not module.__file__:
        return None
    for node in ast.walk(ast.parse(Path(module.__file__).read_bytes())):
        if isinstance(node, ast.ImportFrom):
            try:
                exec(compile(ast.Module([node], []), module.__file__, "exec"), {})
            except ImportError as error:
                return error
    return None


def lacking(module: str, release: str, lacked: str) -> str | None:
    """The sentence for a library that needs another one; None if the table does not say so."""
    rows = table.known(module)
    command = _install(lacked, table.find(module, release) or rows[-1]) if rows else None
    name = f"{module} {release}".strip()
    return f"{name} needs {lacked}, which is not installed: {command}" if command else None


def _is_said(error: Exception) -> bool:
    """True if the message is one of ours already."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    last = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
    return last.startswith(__name__.rpartition(".")[0])


def _owner(error: Exception, module: str) -> str:
    """The package in which an error was raised: a library, or one that it imports."""
    owner, traceback = module, error.__traceback__
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0]
        owner = owner if name.strip("_") in _OF_OTHERS else name
        traceback = traceback.tb_next
    return owner


def _distribution(module: str) -> str:
    known = table.known(module)
    return known[0].distribution if known else _DISTRIBUTIONS.get(module, module.replace("_", "-"))


def _install(module: str, row: Library) -> str | None:
    """The command for a module that a library needs; None if the table does not name it."""
    every = (*row.beside, *row.needs)
    named = {re.split("[=<]", r)[0].lower().replace("_", "-"): r for r in every}
    requirement = named.get(_distribution(module).lower(), _DISTRIBUTIONS.get(module))
    if requirement in row.beside:
        return f"pip install --no-deps {requirement}"
    return table.pip_install(requirement) if requirement else None
