"""The constructors of canned Estimators, as TF 1.15 and 2.15 have them; under each it adds its own.

    python3.7 tests/estimator/canned_signatures.py    # TF 1.15: with tf.contrib
    python3.11 tests/estimator/canned_signatures.py   # TF 2.15: with the classes of TF 2

Both write into tests/goldens/canned_signatures.json.
"""

import inspect
import json
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "goldens" / "canned_signatures.json"

_KINDS = ("Classifier", "Estimator", "Regressor")
_FAMILIES = ("Baseline", "DNN", "DNNLinearCombined", "Linear")
_CLASSES = [family + kind for family in _FAMILIES for kind in _KINDS]
_OF_CONTRIB = [
    *("tf.contrib.learn." + name for name in _CLASSES if not name.startswith("Baseline")),
    "tf.contrib.learn.SVM",
    "tf.contrib.learn.DynamicRnnEstimator",
    "tf.contrib.estimator.RNNClassifier",
    "tf.contrib.estimator.RNNEstimator",
]
_OF_TF_1 = ["tf.compat.v1.estimator." + name for name in _CLASSES]
_OF_TF_2 = [
    *("tf.estimator." + name for name in _CLASSES),
    "tf.estimator.experimental.RNNClassifier",
    "tf.estimator.experimental.RNNEstimator",
]


def read():
    """{"2.15": {"tf.estimator.DNNClassifier": "hidden_units, model_dir=None, ...", ...}, ...}."""
    return json.loads(GOLDEN.read_text())


def written(function):
    """The arguments of a constructor: `hidden_units, model_dir=None, activation_fn=relu`."""
    spec = inspect.getfullargspec(inspect.unwrap(function))
    defaults = dict(zip(reversed(spec.args), reversed(spec.defaults or ())))
    return ", ".join(
        name + "=" + _shown(defaults[name]) if name in defaults else name for name in spec.args[1:]
    )


def _shown(value):
    """A function by its name, and an object that is only told from others as USE_DEFAULT."""
    if type(value) is object:
        return "USE_DEFAULT"
    return getattr(value, "__name__", None) or repr(value)


def _recorded(tf):
    found = {}
    for name in _OF_CONTRIB + _OF_TF_1 if tf.__version__.startswith("1.") else _OF_TF_1 + _OF_TF_2:
        value = tf
        for part in name.split(".")[1:]:
            value = getattr(value, part)
        found[name] = written(value.__init__)
    return found


if __name__ == "__main__":
    import tensorflow

    known = read() if GOLDEN.exists() else {}
    known[tensorflow.__version__.rpartition(".")[0]] = _recorded(tensorflow)
    GOLDEN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
