"""Names and arguments that the libraries around TensorFlow have dropped since TF 1.15's day.

    gone("keras.layers.CuDNNLSTM")       # ("keras.layers.CuDNNLSTM", "keras 3.15")
    today("scipy.integrate.simps")       # what has its place
    refused("keras.optimizers.Adam")     # {"lr"}: arguments that it has no more
    most("sklearn.svm.SVC")              # 0: none of its arguments may stand at a position

    gone("pandas.Series().ix")           # an attribute that objects of a class have lost
    of_objects()                         # {"ix", ...}: the names of all that such tables tell of

    of_python("itertools.izip")          # ("itertools.izip", "3"): no Python 3 has it

`libraries.json` is made by tests/engine/names/library_names.py, which tries every name and call of
the old releases on the new ones; `python.json` by tests/engine/names/python_names.py.
`libraries_today.json` is written by hand.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path


@functools.cache
def table() -> dict:
    """The whole table: `releases`, `gone`, `arguments`, `most` and `by_name`."""
    return json.loads((Path(__file__).parent / "libraries.json").read_text(encoding="utf-8"))


@functools.cache
def _gone(module: str) -> frozenset[str]:
    return frozenset(table()["gone"].get(module, "").split())


def release(name: str) -> str:
    """The release that was tried: "keras 3.15"."""
    library = name.partition(".")[0]
    return f"{library} {table()['releases'][library]}"


# The releases of TensorFlow 1.15's day that library_names.py took the names from.
_OLD = {
    "PIL": "Pillow 5.4",
    "cv2": "OpenCV 4.1",
    "flask": "Flask 1.0",
    "gensim": "gensim 3.8",
    "gin": "gin-config 0.1",
    "gym": "gym 0.12",
    "h5py": "h5py 2.10",
    "imageio": "imageio 2.5",
    "jinja2": "Jinja 2.10",
    "keras": "Keras 2.2",
    "librosa": "librosa 0.6",
    "matplotlib": "Matplotlib 2.2",
    "moviepy": "MoviePy 1.0",
    "networkx": "NetworkX 2.2",
    "nltk": "NLTK 3.4",
    "numpy": "NumPy 1.18",
    "pandas": "pandas 0.24",
    "scipy": "SciPy 1.1",
    "seaborn": "seaborn 0.9",
    "skimage": "scikit-image 0.15",
    "sklearn": "scikit-learn 0.20",
    "statsmodels": "statsmodels 0.10",
    "tensorflow_hub": "tensorflow-hub 0.7",
    "werkzeug": "Werkzeug 0.15",
}


def release_of_old(name: str) -> str:
    """A release that had a dropped name: "SciPy 1.1"."""
    return _OLD[name.partition(".")[0]]


@functools.cache
def _today() -> dict[str, dict[str, str]]:
    path = Path(__file__).parent / "libraries_today.json"
    return json.loads(path.read_text(encoding="utf-8"))


def today(name: str) -> str | None:
    """The text that says what to write for a dropped name; None if the table has none."""
    module, _, last = name.rpartition(".")
    return _today().get(module, {}).get(last)


@functools.cache
def gone(name: str) -> tuple[str, str] | None:
    """(the dropped name that `name` is or lies in, the release without it); None if it is there."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        module = ".".join(parts[:end])
        if parts[end] in _gone(module):
            return f"{module}.{parts[end]}", release(name)
    return None


@functools.cache
def refused(name: str) -> frozenset[str]:
    """The arguments that a function or class took once, and refuses today."""
    return frozenset(table()["arguments"].get(name, "").split())


def most(name: str) -> int | None:
    """How many arguments may stand at positions, where more could once; None if all still may."""
    return table()["most"].get(name)


def further(name: str) -> list[str]:
    """The names of the arguments that once stood after `most(name)`; "-" for one that is gone."""
    return table()["by_name"].get(name, "").split()


@functools.cache
def of_objects() -> frozenset[str]:
    """The attributes of objects that are gone, or whose arguments are other ones."""
    gone, *calls = (table()[part] for part in ("gone", "arguments", "most"))
    lost = " ".join(names for of, names in gone.items() if of.endswith("()")).split()
    methods = (name.partition("().")[2] for part in calls for name in part)
    return frozenset(lost) | set(filter(None, methods))


@functools.cache
def _python() -> dict[str, dict[str, str]]:
    """Module -> dropped name -> the release that dropped it, "" for those before 3.10."""
    text = (Path(__file__).parent / "python.json").read_text(encoding="utf-8")
    return {
        module: dict(entry.partition(":")[::2] for entry in names.split())
        for module, names in json.loads(text).items()
    }


@functools.cache
def of_python(name: str) -> tuple[str, str] | None:
    """(the name of Python's library that `name` is or lies in, the release without it), or None."""
    parts = name.split(".")
    if parts[0] == "distutils":
        return None  # setuptools brings it back
    for end, last in enumerate(parts):
        since = _python().get(".".join(parts[:end]), {}).get(last)
        if since is not None:
            return ".".join(parts[: end + 1]), since or "3"
    return None
