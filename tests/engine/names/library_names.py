"""Writes estimator2strategy/engine/names/read_off/: what other libraries have dropped.

    OLD=/tmp/old; pip install --target $OLD keras==2.2.4 scipy==1.1.0 pandas==0.24.2 \
        scikit-learn==0.20.4 matplotlib==2.2.5
    PYTHONPATH=$OLD python3.7 tests/engine/names/library_names.py --old > old.json
    python tests/engine/names/library_names.py old.json

The same with other libraries, which are then named at the end; what the table has of those that are
not named, it keeps:

    pip install pillow==5.4.1 nltk==3.4 gensim==3.8.3 networkx==2.2 \
        opencv-python-headless==4.1.2.30 scikit-image==0.15.0 librosa==0.6.3 h5py==2.10.0 \
        gym==0.12.5 moviepy==1.0.3 seaborn==0.9.1 flask==1.0.4 werkzeug==0.15.6 jinja2==2.10.3 \
        imageio==2.5.0 statsmodels==0.10.2 tensorflow-hub==0.7.0 gin-config==0.1.4
    python3.7 tests/engine/names/library_names.py --old PIL nltk ... > old.json
    python tests/engine/names/library_names.py old.json PIL nltk ...

The names and arguments that the releases of TensorFlow 1.15's day have, are tried on those that are
installed: a name is gone if it cannot be had, an argument if the call says so. What objects of a
class have lost is read off the class, as methods cannot be tried without an object. It runs on both
Pythons.
"""

import contextlib
import csv
import importlib
import importlib.util
import inspect
import io
import json
import pkgutil
import re
import sys
import warnings
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "pandas", "sklearn", "matplotlib", "keras")
TABLES = Path(__file__).resolve().parents[3] / "estimator2strategy/engine/names/read_off"
SCRIPT = "tests/engine/names/library_names.py"
_INNER = re.compile(
    r"^gin\.tf\b|^pandas\.(core|io)\.(?!json)|\.(_|tests?(?:_|\b)|testing\b|conftest|setup|f2py|distutils|core\.[a-z]*_api|backends?\.|tools\."
    r"|plotting\.|externals|util\.|compat|sphinxext|cbook\.|applications\.)"
)


def old(libraries):
    """Module, class -> name -> its arguments, and how many may be at positions, if known."""
    modules = {}
    for library in libraries:
        package = _module(library)
        path = getattr(package, "__path__", [])
        names = [m.name for m in pkgutil.walk_packages(path, library + ".", _ignore)]
        for name in [library, *names]:
            if _INNER.search(name):
                continue
            module = _module(name)
            # One that needs what is not here, a display for example, is told by its name alone.
            own = () if module is None else _own(module, library)
            modules[name] = {key: _arguments(value) for key, value in own}
    objects = {
        path: {member: _taken(_class(path), member) for member in _members(_class(path))}
        for path in OBJECTS
        if path.partition(".")[0] in libraries
    }
    return {"modules": modules, "objects": objects}


def _members(of):
    """The public methods and attributes that all objects of a class have, or had."""
    older = " ".join(names for of_these, names in _OLDER.items() if of.__name__ in of_these).split()
    return [name for name in dir(of) + older if not name.startswith("_")]


def _taken(of, member):
    """As `_arguments`, for a call of a method of an object."""
    taken = _arguments(inspect.getattr_static(of, member, None))
    if taken is None or taken[0][:1] != ["self"]:
        return None
    return [taken[0][1:], taken[1] if taken[1] == 99 else taken[1] - 1]


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
        if (
            (library not in LIBRARIES and isinstance(value, (int, str)) and name.isupper())
            or (module.__name__ == "scipy" and isinstance(value, float))
            or (module.__name__ == library and _is_passed_on(value, library))
            or (
                callable(value)
                and isinstance(home, str)
                and (home.partition(".")[0] == library or module.__name__ in ("scipy", "pandas"))
            )
        ):
            yield name, value


def _is_passed_on(value, library):
    """True for another library's module, which a package only imported: `numpy.math`."""
    return inspect.ismodule(value) and value.__name__.partition(".")[0] != library


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
    for parameter in parameters:
        if parameter.kind == parameter.VAR_KEYWORD:
            names += _looked_up(inspect.unwrap(function), parameter.name)
    return [names, 99 if any(p.kind == p.VAR_POSITIONAL for p in parameters) else len(placed)]


def _looked_up(function, keywords):
    """The arguments that a function takes through its **keywords, as its source says.

    Those of Keras are in `_BY_KEYWORDS`: `keras.Model` takes `inputs` with `outputs` only.
    """
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return []
    if function.__module__.startswith("keras."):
        return []
    taken = rf"\b{keywords}(?:\[|\.(?:get|pop)\()\s*['\"](\w+)['\"](?!\]\s*=[^=])"
    asked = rf"['\"](\w+)['\"] (?:not )?in {keywords}\b"
    found = [one or other for one, other in re.findall(f"{taken}|{asked}", source)]
    return sorted(set(found))


# The classes whose objects `check` knows in a program.
OBJECTS = (
    "PIL.Image.Image",
    "PIL.ImageDraw.ImageDraw",
    "PIL.ImageFont.FreeTypeFont",
    "gensim.models.Doc2Vec",
    "gensim.models.FastText",
    "gensim.models.KeyedVectors",
    "gensim.models.Word2Vec",
    "gym.Env",
    "h5py.Dataset",
    "keras.Model",
    "keras.Sequential",
    "matplotlib.axes.Axes",
    "matplotlib.figure.Figure",
    "networkx.DiGraph",
    "networkx.Graph",
    "networkx.MultiDiGraph",
    "networkx.MultiGraph",
    "numpy.matrix",
    "numpy.ndarray",
    "pandas.DataFrame",
    "pandas.DatetimeIndex",
    "pandas.Index",
    "pandas.Series",
    "pandas.Timestamp",
    "scipy.sparse.csr_matrix",
    "sklearn.compose.ColumnTransformer",
    "sklearn.ensemble.GradientBoostingClassifier",
    "sklearn.ensemble.GradientBoostingRegressor",
    "sklearn.feature_extraction.DictVectorizer",
    "sklearn.feature_extraction.text.CountVectorizer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.naive_bayes.BernoulliNB",
    "sklearn.naive_bayes.MultinomialNB",
    "sklearn.pipeline.FeatureUnion",
    "sklearn.preprocessing.OneHotEncoder",
    "sklearn.preprocessing.PolynomialFeatures",
)
# Attributes that objects of these had before the old releases that are tried.
_OLDER = {
    ("DiGraph", "Graph", "MultiDiGraph", "MultiGraph"): "adjacency_iter degree_iter edges_iter "
    "in_degree_iter in_edges_iter neighbors_iter nodes_iter out_degree_iter out_edges_iter "
    "predecessors_iter successors_iter",
    ("DataFrame", "Series"): "icol iget iget_value irow order sort sortlevel",
}
# The class of `keras.Model(inputs, outputs)` today.
_MADE = {"keras.Model": "keras.src.models.functional.Functional"}
# Arguments that these of Keras took through **kwargs.
_BY_KEYWORDS = {
    "keras.layers": ("batch_input_shape", "batch_size", "weights", "input_dtype"),
    "keras.optimizers": ("lr", "decay"),
}


def table(before, libraries):
    gone, arguments, most, by_name = _of_objects(before["objects"])
    before = before["modules"]
    for path, names in sorted(before.items()):
        module = _module(path)
        if module is None:
            parent = path.rpartition(".")[0]
            above = parent not in before or _module(parent) is not None
            if above and not _has_file(path):
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
                by_name[path + "." + name] = _further(known, now)
    return {
        # Some come with the import of others.
        "gone": {
            path: " ".join(n for n in names if path.endswith("()") or _is_gone(path, n))
            for path, names in gone.items()
        },
        "refused": arguments,
        "most": most,
        "further": by_name,
    }


def rows(library, found):
    """The rows of a library's table: name, fact, value."""
    return [
        ("name", "fact", "value"),
        (library, "made by", SCRIPT),
        (library, "release", _release(library)),
        *sorted(
            (name, fact, str(value))
            for fact, values in found.items()
            for name, value in values.items()
            if name.partition(".")[0] == library
        ),
    ]


def _of_objects(classes):
    """The losses of objects, by names like "pandas.Series().ix", as `table` has them."""
    gone, arguments, most, by_name = {}, {}, {}, {}
    for path, members in classes.items():
        of = _class(_MADE.get(path, path))
        given = _given(of)
        lost = [m for m in sorted(members) if not hasattr(of, m) and m not in given]
        if lost:
            gone[path + "()"] = lost
        for member, known in members.items():
            now = _taken(of, member) if known and hasattr(of, member) else None
            if now is None or _takes_any_keyword(of, member):
                continue
            name = path + "()." + member
            refused = [a for a in known[0] if a not in now[0] and not a.startswith("_")]
            if refused:
                arguments[name] = " ".join(refused)
            if now[1] < known[1] < 99:
                most[name] = now[1]
                by_name[name] = _further(known, now)
    return gone, arguments, most, by_name


def _further(known, now):
    """The names of the arguments that stood at further positions, "-" for those that are gone."""
    return " ".join(a if a in now[0] else "-" for a in known[0][now[1] : known[1]])


def _class(path):
    """The class of this name; None if there is none."""
    home, _, name = path.rpartition(".")
    found = getattr(_module(home), name, None)
    return found if inspect.isclass(found) else None


def _given(of):
    """The attributes that a class says its objects have, or that its code gives them."""
    found = set()
    for each in of.__mro__[:-1]:
        found |= set(getattr(each, "__annotations__", ()))
        with contextlib.suppress(OSError, TypeError):
            found |= set(re.findall(r"\bself\.(\w+)\b[^=\n]*=(?!=)", inspect.getsource(each)))
    return found


def _takes_any_keyword(of, member):
    """True for a method with **kwargs, or with a decorator that may take what it does not."""
    method = inspect.getattr_static(of, member)
    return any(
        f.__code__.co_flags & inspect.CO_VARKEYWORDS for f in (method, inspect.unwrap(method))
    )


def _is_gone(path, name):
    try:
        getattr(_module(path), name)
    except (AttributeError, ImportError):
        return _module(path + "." + name) is None
    return False


def _has_file(path):
    """True if there is a module of this name, though its import may fail."""
    try:
        return importlib.util.find_spec(path) is not None
    except Exception:  # as in _module
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = tuple(sys.argv[2:]) or LIBRARIES
    with contextlib.redirect_stdout(io.StringIO()):
        if sys.argv[1] == "--old":
            made = old(asked)
        else:
            made = table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), asked)
    if sys.argv[1] == "--old":
        sys.stdout.write(json.dumps(made, indent=0, sort_keys=True) + "\n")
    else:
        for library in asked:
            with (TABLES / f"{library}.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows(library, made))
