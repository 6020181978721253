"""`from tensorflow import *`."""

from estimator2strategy.tools.check.rule import Hit

_ROOTS = {"tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"}


def find(source, context):
    for star in source.stars:
        if star.level == 0 and star.module.partition(".")[0] == "tensorflow":
            # Names of a module inside of TensorFlow are not those of `tf`.
            named = f"`from {star.module} import ` and the names that the file uses"
            fix = None if star.module in _ROOTS else f"Write {named}."
            message = f"`from {star.module} import *` hides which names are meant"
            yield Hit(star.node, message, fix=fix)
