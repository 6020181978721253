"""Names that TensorFlow never had."""

import os
import re

from estimator2strategy.tf1.facade import name_table as facade
from estimator2strategy.tools.check import symbol_uses, tables, unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

# Such programs were told to copy the repository into TensorFlow's folder.
_MODELS = (
    "The models have a repository of their own, tensorflow/models: put the folder that is meant on "
    "PYTHONPATH, as research/slim, and import from there: `from nets import vgg`."
)
# The one name with an underscore that many programs read; tables have the public ones.
_LOGGER = "tf.logging._logger"
# Private modules that are written as if they were in `tf` -> the public names.
_PRIVATE = {
    "tf.array_ops": "tf",
    "tf.backend_config": "tf.keras.backend",
    "tf.control_flow_ops": "tf",
    "tf.math_ops": "tf.math",
    "tf.nn.seq2seq": "tf.contrib.legacy_seq2seq",
    "tf.nn_ops": "tf.nn",
    "tf.rnn_cell": "tf.nn.rnn_cell",
    "tf.tpu_config": "tf.contrib.tpu",
    "tf.tpu_estimator": "tf.contrib.tpu",
    "tf.tpu_optimizer": "tf.contrib.tpu",
}
# Names of Python's logging, and how TensorFlow calls them.
_MEANT = {"tf.logging.WARNING": "tf.logging.WARN", "tf.logging.CRITICAL": "tf.logging.FATAL"}
_LINEAR = (
    "In a program that is run by this package: `from "
    "tensorflow.contrib.rnn.python.ops.core_rnn_cell import _linear`. Else copy the function."
)

# The end of a name that means another thing than the name without it; a version does not.
_WORD_MORE = re.compile(r"_[a-z]{3,}")


@rule(
    "E2S105",
    "unknown-symbol",
    Severity.WARNING,
    title="A name that neither TensorFlow 1.15 nor TensorFlow 2 has",
    why="It is an AttributeError on each: misspelt, of a fork, or from before 1.15.",
    fix="Mend its spelling. If it is of a fork of TensorFlow, or of another package, import that, "
    "or write with today's names what it did.",
    bad="import tensorflow as tf\n\nx = tf.redcue_mean([1.0])\n",
    good="import tensorflow as tf\n\nx = tf.reduce_mean([1.0])\n",
)
def find(source, context):
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if use.name in tables.BEFORE_1_15 and not unreached.is_tried(use.node, unreached.ANY):
            written = use.name.replace("tf.python.", "tensorflow.python.")
            yield Hit(use.node, f"{written} is neither in TensorFlow 1.15 nor in 2", fix=_LINEAR)
        if use.name == _LOGGER and not unreached.is_tried(use.node, unreached.ANY):
            message = f"{_LOGGER} is neither in TensorFlow 1.15 nor in 2"
            yield Hit(use.node, message, fix='Today: logging.getLogger("tensorflow").')
            continue
        if (
            use.row is not None
            or use.flavour is symbol_uses.Flavour.V2
            or not _is_in_tables(use.name)
        ):
            continue
        if unreached.is_tried(use.node, unreached.ANY):
            continue
        if tables.exists(use.name, "v1") is False and tables.exists(use.name, "v2") is False:
            now = facade.SINCE_1_0.get(use.name)
            if now and not _leads_deeper(use, source):
                yield Hit(use.node, f"{use.name} is gone since TensorFlow 1.0", fix=f"Use {now}.")
                continue
            module, _, last = use.name.rpartition(".")
            reducing = f"{module}.reduce_{last}"
            nearest = reducing if tables.exists(reducing, "v1") else facade.nearest(use.name) or ""
            nearest = _MEANT.get(use.name, nearest)
            # A name that is only alike, and of another module, is not what was meant.
            near = nearest.rpartition(".")[0] == module or nearest.rpartition(".")[2] == last
            near = near and not _leads_deeper(use, source)
            near = near and not _WORD_MORE.fullmatch(use.name.removeprefix(nearest))
            hint = f"Did you mean {nearest}?" if near else None
            if use.name == "tf.models":
                hint = _MODELS
            elif use.name in _PRIVATE:
                hint = f"Its names are in {_PRIVATE[use.name]}."
            elif use.is_import and _lies_beside(use, source):
                hint = f"A file of this name lies beside this one: write `import {_last(use)}`."
            yield Hit(use.node, f"{use.name} is neither in TensorFlow 1.15 nor in 2", fix=hint)


def _is_in_tables(name: str) -> bool:
    """True if all names of its module are known."""
    module = name.rpartition(".")[0]
    return not name.startswith("tf.contrib.") and (module == "tf" or module in facade.names())


def _last(use):
    return use.name.rpartition(".")[2]


def _lies_beside(use, source):
    """True for `from tensorflow import iris_data` beside iris_data.py."""
    path = os.path.join(os.path.dirname(source.path), f"{_last(use)}.py")
    return use.name.count(".") == 1 and os.path.isfile(path)


def _leads_deeper(use, source):
    """True if it is a module that others are imported from: `tensorflow.models.rnn.translate`."""
    modules = [target.module for target, _ in source.imports if target.node is use.node]
    return any(source.canonical(module).startswith(f"{use.name}.") for module in modules)
