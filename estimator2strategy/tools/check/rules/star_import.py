"""`from tensorflow import *`."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_ROOTS = {"tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"}


@rule(
    "E2S106",
    "star-import",
    Severity.WARNING,
    title="All names of TensorFlow imported at once",
    why="Which names these are depends on the release, and `sum`, `range`, `abs`, `print` and more "
    "then mean TensorFlow's. The check cannot tell which names of the file are TensorFlow's.",
    fix="Write `import tensorflow as tf`, also in files that take TensorFlow's names from this "
    "one.",
    bad="from tensorflow import *\n",
    good="import tensorflow as tf\n",
)
def find(source, context):
    for star in source.stars:
        if star.level == 0 and star.module.partition(".")[0] == "tensorflow":
            # Names of a module inside of TensorFlow are not those of `tf`.
            named = f"`from {star.module} import ` and the names that the file uses"
            fix = None if star.module in _ROOTS else f"Write {named}."
            message = f"`from {star.module} import *` hides which names are meant"
            yield Hit(star.node, message, fix=fix)
