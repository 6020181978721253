"""The public names of `tf.contrib`, as TF 1.15 has them; under TF 1.15 it writes the list.

    python3.7 tests/tf1/contrib/contrib_names.py   # writes tests/goldens/contrib_names.json

A name of a deep file is public if the file, or one that it collects names from, defines it: the
functions of TensorFlow that a file only uses are not listed.
"""

import importlib
import json
import sys
import types
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[2] / "goldens" / "contrib_names.json"

_ROOT = "tensorflow.contrib"
_WRAPPERS = tuple("tensorflow.python.ops.gen_" + kind + "_ops" for kind in ("array", "math", "nn"))
# Files that only declare names for others, and the ways of scripts.
_HELPERS = {
    "DESCRIPTOR",
    "FLAGS",
    "deprecated",
    "deprecated_alias",
    "deprecated_arg_values",
    "deprecated_args",
    "estimator_export",
    "experimental",
    "main",
    "make_all",
    "remove_undocumented",
    "tf_export",
    "xrange",
}


def read():
    """The names by module: {"tf.contrib.crf": ["crf_decode", ...], ...}."""
    return {module: line.split() for module, line in json.loads(GOLDEN.read_text()).items()}


def _files(package):
    """The modules below the folder of `package`, without tests and generated wrappers."""
    root = Path(package.__file__).parent
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        is_test = any("test" in part and part != "testing" for part in parts)
        if parts and not is_test and not parts[-1].startswith("gen_"):
            yield ".".join((_ROOT, *parts))


def _imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None  # one file of 1.15 expects another tensorflow_estimator


def _values(module):
    for name in dir(module):
        if not name.startswith("_") and name not in _HELPERS and _is_said(name):
            value = getattr(module, name, None)
            is_import = type(value).__name__ == "_Feature"  # from __future__
            if not is_import and not _is_wrapper(name, _owner(value)):
                yield name, value


def _is_wrapper(name, owner):
    """True for a kernel under its own name, and for all that `quantization` brought along."""
    return owner in _WRAPPERS or (".gen_" in owner and name[:1].isupper())


def _is_said(name):
    return not (name.startswith("gen_") or name.endswith("_eager_fallback"))


def _names(module):
    values = {n: v for n, v in _values(module) if _is_of_tensorflow(v)}
    own = {n for n, v in values.items() if ".contrib." in _owner(v)}
    if hasattr(module, "__path__") or not own:
        return set(values)  # it only collects names
    constants = {n for n, v in values.items() if not _owner(v)}
    return own | constants | (set(getattr(module, "__all__", ())) & values.keys())


def _owner(value):
    """The module that defines a function or class; "" for another value."""
    is_definition = isinstance(value, type) or callable(value)
    return str(getattr(value, "__module__", None) or "") if is_definition else ""


def _is_of_tensorflow(value):
    if isinstance(value, types.ModuleType):
        return False
    return not _owner(value) or _owner(value).startswith("tensorflow")


def _submodules(module):
    """The modules of a package that have their own names in it, by name."""
    for name, value in _values(module):
        if isinstance(value, types.ModuleType) and name == value.__name__.rpartition(".")[2]:
            top = ".".join(module.__name__.split(".")[:3])
            if name != "python" and (value.__name__ + ".").startswith(top + "."):
                yield name, value


def _walk(path, module, found):
    if path in found:
        return
    found[path] = _names(module)
    if hasattr(module, "__path__"):
        for name, value in _submodules(module):
            if value is not module:
                found[path].add(name)
                _walk(path + "." + name, value, found)


def _main():
    import tensorflow as tf

    if not tf.__version__.startswith("1.15"):
        raise SystemExit("The list is made by TensorFlow 1.15, and this is " + tf.__version__)
    found = {}
    for name in _files(importlib.import_module(_ROOT)):
        module = _imported(name)
        path = "tf" + name[len("tensorflow") :]
        if module is not None and ".python" in name:
            found[path] = _names(module)
        elif module is not None:
            _walk(path, module, found)
    lines = [
        json.dumps(path) + ": " + json.dumps(" ".join(sorted(names)))
        for path, names in sorted(found.items())
        if names
    ]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(sum(map(len, found.values())), "names in", len(found), "modules", file=sys.stderr)


if __name__ == "__main__":
    _main()
