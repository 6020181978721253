"""One sentence for a library that cannot be imported, with the command that mends it.

    missing("tensorflow_ranking")
    # 'tensorflow_ranking is not installed: pip install --no-deps tensorflow-ranking==0.5.5 ...'

Of a library that the table does not know nothing is said: Python's own message has to do.
"""

from __future__ import annotations

from estimator2strategy.engine.libraries import table
from estimator2strategy.engine.libraries.table import Library

# Module -> what pip installs it from, where that has another name.
_DISTRIBUTIONS = {
    "attr": "attrs",
    "pkg_resources": "setuptools<82",
    "sklearn": "scikit-learn",
    "tensorflow_serving": "tensorflow-serving-api",
}
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
    row = table.find(module, release) or table.known(module)[-1]
    name = f"{module} {release}".strip()
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    if isinstance(error, ModuleNotFoundError):
        lacked = str(error.name).partition(".")[0]
        if lacked not in (module, "tensorflow", "tensorflow_estimator"):
            return f"{name} needs {lacked}, which is not installed: {_install(lacked, row)}"
    for words, (fate, remedy) in _LOADING.items():
        if words in str(error):
            of = _owner(error, module)
            remedy = remedy.format(distribution=_distribution(of))
            return f"{name if of == module else of} {fate} ({reason}): {remedy}"
    if isinstance(error, (ImportError, AttributeError)) and release != row.release:
        return f"{name} does not import here ({reason}); {row.release} does: {row.install}"
    return None


def _owner(error: Exception, module: str) -> str:
    """The package whose file raised an error: a library's own, or one that it imports."""
    owner, traceback = module, error.__traceback__
    while traceback is not None:
        owner = str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if owner != module and owner in _DISTRIBUTIONS:
            return owner
        traceback = traceback.tb_next
    return module


def _distribution(module: str) -> str:
    known = table.known(module)
    return known[0].distribution if known else _DISTRIBUTIONS.get(module, module.replace("_", "-"))


def _install(module: str, row: Library) -> str:
    requirement = _distribution(module)
    if requirement in row.beside:
        return f"pip install --no-deps {requirement}"
    return table.pip_install(requirement)
