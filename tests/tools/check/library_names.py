"""Writes estimator2strategy/tools/check/libraries.json: what other libraries have dropped.

    OLD=/tmp/old; pip install --target $OLD keras==2.2.4 scipy==1.1.0 pandas==0.24.2 \
        scikit-learn==0.20.4 matplotlib==2.2.5
    PYTHONPATH=$OLD python3.7 tests/tools/check/library_names.py --old > old.json
    python tests/tools/check/library_names.py old.json

The same with other libraries, which are then named at the end; what the table has of those that are
not named, it keeps:

    pip install pillow==5.4.1 nltk==3.4 gensim==3.8.3 networkx==2.2 \
        opencv-python-headless==4.1.2.30 scikit-image==0.15.0 librosa==0.6.3 h5py==2.10.0 \
        gym==0.12.5 moviepy==1.0.3 seaborn==0.9.1 flask==1.0.4 werkzeug==0.15.6 jinja2==2.10.3 \
        imageio==2.5.0 statsmodels==0.10.2 tensorflow-hub==0.7.0 gin-config==0.1.4
    python3.7 tests/tools/check/library_names.py --old PIL nltk ... > old.json
    python tests/tools/check/library_names.py old.json PIL nltk ...

The names and arguments that the releases of TensorFlow 1.15's day have, are tried on those that are
installed: a name is gone if it cannot be had, an argument if the call says so. It runs on both
Pythons.
"""

import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import re
import sys
import warnings
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "pandas", "sklearn", "matplotlib", "keras")
TABLE = Path(__file__).resolve().parents[3] / "estimator2strategy/tools/check/libraries.json"
_INNER = re.compile(
    r"^gin\.tf\b|^pandas\.(core|io)\.(?!json)|\.(_|tests?\b|testing\b|conftest|setup|f2py|distutils|core\.[a-z]*_api|backends?\.|tools\."
    r"|plotting\.|externals|util\.|compat|sphinxext|cbook\.|applications\.)"
)


def old(libraries):
    """Module -> name -> the arguments that it takes, and how many at positions; None if unknown."""
    found = {}
    for library in libraries:
        package = _module(library)
        path = getattr(package, "__path__", [])
        names = [m.name for m in pkgutil.walk_packages(path, library + ".", _ignore)]
        for name in [library, *names]:
            module = None if _INNER.search(name) else _module(name)
            if module is not None:
                found[name] = {key: _arguments(value) for key, value in _own(module, library)}
    return found


def _ignore(name):
    pass


def _module(name):
    try:
        return importlib.import_module(name)
    except Exception:  # whatever a module of theirs needs
        return None


def _own(module, library):
    for name in dir(module):
        value = getattr(module, name, None)
        home = getattr(value, "__module__", None) or library
        if name.startswith("_"):
            continue
        if (library not in LIBRARIES and isinstance(value, (int, str)) and name.isupper()) or (
            callable(value)
            and isinstance(home, str)
            and (home.partition(".")[0] == library or module.__name__ in ("scipy", "pandas"))
        ):
            yield name, value


def _arguments(value):
    """[names of the arguments, how many of them may stand at positions]."""
    function = value.__init__ if inspect.isclass(value) else value
    function = getattr(function, "_original_function", function)
    if not inspect.isfunction(inspect.unwrap(function)):
        return None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    parameters = parameters[inspect.isclass(value) :]
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return [names, 99 if any(p.kind == p.VAR_POSITIONAL for p in parameters) else len(placed)]


# Arguments that these of Keras took through **kwargs.
_BY_KEYWORDS = {
    "keras.layers": ("batch_input_shape", "batch_size", "weights", "input_dtype"),
    "keras.optimizers": ("lr", "decay"),
}


def table(before, libraries):
    gone, arguments, most = {}, {}, {}
    for path, names in sorted(before.items()):
        module = _module(path)
        if module is None:
            parent = path.rpartition(".")[0]
            if parent not in before or _module(parent) is not None:
                gone.setdefault(parent, []).append(path.rpartition(".")[2])
            continue
        for name, known in sorted(names.items()):
            if _is_gone(path, name):
                gone.setdefault(path, []).append(name)
                continue
            value = getattr(module, name)
            if known is None or not callable(value):
                continue
            now = _arguments(value) or [known[0], known[1]]
            tried = [a for a in known[0] if a not in now[0] and not a.startswith("_")]
            if inspect.isclass(value):
                tried += [a for a in _BY_KEYWORDS.get(path, ()) if a not in now[0]]
            refused = [a for a in tried if _refuses(value, (), {a: None})]
            if refused:
                arguments[path + "." + name] = " ".join(dict.fromkeys(refused))
            if now[1] < known[1] < 99 and _refuses(value, (None,) * (now[1] + 1), {}):
                most[path + "." + name] = now[1]
    return {
        "releases": {library: _release(library) for library in libraries},
        # Some come with the import of others.
        "gone": {
            path: " ".join(n for n in names if _is_gone(path, n)) for path, names in gone.items()
        },
        "arguments": arguments,
        "most": most,
    }


def _is_gone(path, name):
    try:
        getattr(_module(path), name)
    except (AttributeError, ImportError):
        return _module(path + "." + name) is None
    return False


def _release(library):
    version = getattr(_module(library), "__version__", None)
    if version is None:
        from importlib import metadata  # not in Python 3.7

        version = metadata.version(metadata.packages_distributions()[library][0])
    return ".".join(version.split(".")[:2])


_REFUSALS = (
    r"unexpected keyword|[Uu]nrecognized keyword|not recognized|takes .*positional argument|"
    r"got multiple values"
)


def _refuses(value, args, kwargs):
    if kwargs and inspect.isclass(value):
        kwargs = {**_required(value), **kwargs}
    try:
        value(*args, **kwargs)
    except (TypeError, ValueError) as error:
        return re.search(_REFUSALS, str(error)) is not None
    except (Exception, SystemExit):
        return False
    return False


def _required(value):
    with contextlib.suppress(TypeError, ValueError):
        every = list(inspect.signature(value.__init__).parameters.values())[1:]
        return {
            p.name: 1
            for p in every
            if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
    return {}


def _kept(libraries):
    """What the table has of other libraries."""
    if not TABLE.exists():
        return {}
    return {
        part: {k: v for k, v in entries.items() if k.partition(".")[0] not in libraries}
        for part, entries in json.loads(TABLE.read_text(encoding="utf-8")).items()
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = tuple(sys.argv[2:]) or LIBRARIES
    with contextlib.redirect_stdout(io.StringIO()):
        if sys.argv[1] == "--old":
            made = old(asked)
        else:
            made = table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), asked)
            for part, entries in _kept(asked).items():
                made[part].update(entries)
    text = json.dumps(made, indent=0, sort_keys=True) + "\n"
    if sys.argv[1] == "--old":
        sys.stdout.write(text)
    else:
        TABLE.write_text(text, encoding="utf-8")
