"""Names of TensorFlow: those that are gone, refused, private, newer, or were never there."""

import ast
import os
import re
import sys
from collections.abc import Iterator

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import tables
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import symbol_uses, unreached
from estimator2strategy.tools.reader.source import Source

# Such programs were told to copy the repository into TensorFlow's folder.
_MODELS = (
    "The models have a repository of their own, tensorflow/models: put the folder that is meant on "
    "PYTHONPATH, as research/slim, and import from there: `from nets import vgg`."
)
# TensorFlow 0.x had a few in itself, and modules that passed names of its own on.
_OLD_MODELS = ("tf.models.embedding", "tf.models.image", "tf.models.rnn")
_PASSED_ON = {
    "tf.models.rnn.linear": "tf.contrib.layers.linear",
    "tf.models.rnn.rnn": "tf.nn.static_rnn and tf.nn.dynamic_rnn",
    "tf.models.rnn.rnn_cell": "tf.nn.rnn_cell",
    "tf.models.rnn.seq2seq": "tf.contrib.legacy_seq2seq",
}
# Arguments that have other names since TensorFlow 1.0.
_ARGUMENTS = {
    "tf.audio_summary": "tag is name",
    "tf.batch_matmul": "adj_x and adj_y are adjoint_a and adjoint_b",
    "tf.histogram_summary": "tag is name",
    "tf.image_summary": "tag is name, max_images is max_outputs",
    "tf.scalar_summary": "tags is name, values is tensor",
    "tf.select": "t and e are x and y",
    "tf.split_v": "size_splits is num_or_size_splits, split_dim is axis",
}
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
# Private modules of tensorflow.python that are written so, too, by their folder.
_FOLDERS = {
    "framework": "common_shapes constant_op function importer ops random_seed tensor_shape "
    "tensor_util",
    "ops": "array_ops check_ops clip_ops control_flow_ops data_flow_ops embedding_ops "
    "functional_ops gradients_impl image_ops init_ops io_ops linalg_ops logging_ops lookup_ops "
    "math_ops nn_impl nn_ops parsing_ops partitioned_variables random_ops resource_variable_ops "
    "script_ops sparse_ops state_ops string_ops tensor_array_ops",
    "training": "basic_session_run_hooks checkpoint_management moving_averages saver "
    "session_manager slot_creator training_util",
}
_FOLDER_OF = {f"tf.{name}": folder for folder, names in _FOLDERS.items() for name in names.split()}
# Names of Python's logging, and how TensorFlow calls them.
_MEANT = {"tf.logging.WARNING": "tf.logging.WARN", "tf.logging.CRITICAL": "tf.logging.FATAL"}
# Classes that are lists of names -> what they have; programs take one for the other.
_MEMBERS = {
    "tf.estimator.ModeKeys": ("EVAL", "PREDICT", "TRAIN"),
    "tf.contrib.learn.ModeKeys": ("EVAL", "INFER", "TRAIN"),
}
LINEAR = (
    "In a program that is run by this package: `from "
    "tensorflow.contrib.rnn.python.ops.core_rnn_cell import _linear`; for its scope, put `with "
    "tf.variable_scope(...)` around the call, and for its bias_start give a bias_initializer. Else "
    "copy the function."
)

# The end of a name that means another thing than the name without it; a version does not.
_WORD_MORE = re.compile(r"_[a-z]{3,}")


def unknown_symbol(source: Source, context: Context) -> Iterator[Hit]:
    yield from _no_members(source)
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if use.name in tables.BEFORE_1_15 and not unreached.is_tried(use.node, unreached.ANY):
            written = use.name.replace("tf.python.", "tensorflow.python.")
            yield Hit(use.node, f"{written} is neither in TensorFlow 1.15 nor in 2", fix=LINEAR)
        if use.name == _LOGGER and not unreached.is_tried(use.node, unreached.ANY):
            message = f"{_LOGGER} is neither in TensorFlow 1.15 nor in 2"
            yield Hit(use.node, message, fix='Today: logging.getLogger("tensorflow").')
            continue
        if (
            use.row is not None
            or use.flavour is symbol_uses.Flavour.V2
            or not _is_in_tables(use.name)
            or use.name.endswith("__")  # `__dict__` and the like are any module's
        ):
            continue
        if unreached.is_tried(use.node, unreached.ANY):
            continue
        if tables.exists(use.name, "v1") is False and tables.exists(use.name, "v2") is False:
            now = facade.since_1_0().get(use.name)
            if now and not _leads_deeper(use, source):
                fix = f"Use {'; '.join(filter(None, [now, _ARGUMENTS.get(use.name)]))}."
                yield Hit(use.node, f"{use.name} is gone since TensorFlow 1.0", fix=fix)
                continue
            module, _, last = use.name.rpartition(".")
            reducing = f"{module}.reduce_{last}"
            nearest = reducing if tables.exists(reducing, "v1") else _nearest(use.name)
            nearest = _MEANT.get(use.name, nearest)
            # A name that is only alike, and of another module, is not what was meant.
            near = nearest.rpartition(".")[0] == module or nearest.rpartition(".")[2] == last
            near = near and not _leads_deeper(use, source)
            near = near and not _WORD_MORE.fullmatch(use.name.removeprefix(nearest))
            hint = f"Did you mean {nearest}?" if near else None
            if use.name == "tf.models":
                hint = _of_models(use, source)
            elif use.name in _PRIVATE or use.name in _FOLDER_OF:
                hint = _of_private(use, source)
            elif use.is_import and _lies_beside(use, source):
                hint = f"A file of this name lies beside this one: write `import {_last(use)}`."
            elif module == "tf" and not near and last in sys.stdlib_module_names:
                hint = f"Python has a module of this name: write `import {last}`."
            yield Hit(use.node, f"{use.name} is neither in TensorFlow 1.15 nor in 2", fix=hint)


def _no_members(source: Source) -> Iterator[Hit]:
    """Yields a hit for each attribute that a class of `_MEMBERS` has not."""
    for node, scope in source.chains:
        name = source.name(node, scope) or ""
        module, _, last = name.rpartition(".")
        members = _MEMBERS.get(module)
        if members is None or last in members or last.startswith("__"):
            continue
        if not unreached.is_tried(node, unreached.ANY):
            from estimator2strategy.engine.spelling import did_you_mean

            fix = did_you_mean(last, members, f"It has {', '.join(members)}.")
            yield Hit(node, f"{module} has no {last}", fix=fix)


def _nearest(name: str) -> str:
    """The name that is alike, or else the only one that goes on from it; "" if there is none."""
    module, _, last = name.rpartition(".")
    longer = [n for n in facade.names().get(module, ()) if n.startswith(f"{last}_")]
    longer = longer or [n for n in facade.names().get(module, ()) if n.startswith(last)]
    begun = f"{module}.{longer[0]}" if len(longer) == 1 else ""
    return facade.nearest(name) or begun


def _is_in_tables(name: str) -> bool:
    """True if all names of its module are known."""
    module = name.rpartition(".")[0]
    return not name.startswith("tf.contrib.") and (module == "tf" or module in facade.names())


def _full_name(use: symbol_uses.Use, source: Source) -> str:
    """The name at the place of a use, with what is below the use's own name."""
    for target, _ in source.imports:
        if target.node is use.node:
            return source.canonical(f"{target.module}.{target.name or ''}".rstrip("."))
    return source.name(use.node, source.scope_of(use.node)) or use.name


def _of_models(use: symbol_uses.Use, source: Source) -> str:
    """The advice for a name in `tensorflow.models`."""
    name = _full_name(use, source)
    passed_on = next((old for old in _PASSED_ON if f"{name}.".startswith(f"{old}.")), None)
    if passed_on:
        return f"It passed on the names of {_PASSED_ON[passed_on]}: take them from there."
    if not f"{name}.".startswith(tuple(f"{old}." for old in _OLD_MODELS)):
        return _MODELS
    folder = "/".join(name.split(".")[1:4])
    return (
        f"Copy tensorflow/{folder} from a wheel of TensorFlow 0.12.1, which is a zip file, to the "
        "program, and import it from there."
    )


def _of_private(use: symbol_uses.Use, source: Source) -> str:
    """The advice for a private module, and for a name that its public place lacks."""
    home = _PRIVATE.get(use.name, "tf")
    last = _full_name(use, source).removeprefix(use.name).strip(".")
    if not last or _is_served(f"{home}.{last}"):
        return f"Its names are in {home}."
    if folder := _FOLDER_OF.get(use.name):
        return (
            f"It is a private module: write `from tensorflow.python.{folder} import {_last(use)}` "
            f"and {_last(use)}.{last}."
        )
    return (
        f"Its names are in {home}, which has no {last}: mend the spelling, or import the name from "
        "the file that has it."
    )


def _is_served(name: str) -> bool:
    row = tables.served(name)
    return row is not None and (row.status != "refused" or row.name == name)


def _last(use: symbol_uses.Use) -> str:
    return use.name.rpartition(".")[2]


def _lies_beside(use: symbol_uses.Use, source: Source) -> bool:
    """True for `from tensorflow import iris_data` beside iris_data.py."""
    path = os.path.join(os.path.dirname(source.path), f"{_last(use)}.py")
    return use.name.count(".") == 1 and os.path.isfile(path)


def _leads_deeper(use: symbol_uses.Use, source: Source) -> bool:
    """True if it is a module that others are imported from: `tensorflow.models.rnn.translate`."""
    modules = [target.module for target, _ in source.imports if target.node is use.node]
    return any(source.canonical(module).startswith(f"{use.name}.") for module in modules)


def refused(source: Source, context: Context) -> Iterator[Hit]:
    """Names of TF 1.15 that neither TensorFlow 2.16 nor this package has."""
    uses = symbol_uses.uses(source, context.runs_on_tensorflow2(source))
    for use in uses:
        if use.is_import and any(other.name.startswith(f"{use.name}.") for other in uses):
            continue
        if tables.is_in_contrib(use.name) or unreached.is_tried(use.node, unreached.ANY):
            continue  # importing a module is no error, and the names in it are uses of their own
        times = f" ({use.count} times here)" if use.count > 1 else ""
        if use.row is not None and use.row.status == "refused":
            left = f": {use.row.left}" if use.row.left else ""
            is_private = use.row.name != use.name and _last_part(use.name).startswith("_")
            fix = _copied(_private_home(use.name)) if is_private else use.row.advice
            yield Hit(use.node, f"{use.name} is not supported{times}{left}", fix=fix)
        elif (
            use.row is None
            and use.name.startswith("tf.contrib.")
            and not use.name.endswith("__")  # `__dict__` and the like are any module's
            and use.flavour is not symbol_uses.Flavour.V2
        ):
            yield _unknown(use, times)
        elif use.row is None and use.name.startswith("tf.python.estimator."):
            if use.is_import and use.count == 1:
                continue  # nothing is done with it, and its import is no error
            message = f"{use.name} was private to tensorflow_estimator{times}"
            module = use.name.rpartition(".")[0].replace("tf.", "tensorflow_estimator.", 1)
            yield Hit(use.node, message, severity=Severity.WARNING, fix=_copied(module))


def _unknown(use: symbol_uses.Use, times: str) -> Hit:
    """The hit for a name of contrib that is in no table."""
    nearest = tables.contrib().nearest(use.name) or ""
    last, near = _last_part(use.name), _last_part(nearest)
    import difflib  # few names are misspelt

    alike = difflib.get_close_matches(last, [near], cutoff=0.9)
    meant = nearest if alike else _module_of_that_name(use.name)
    if last == "_linear":
        fix = LINEAR
    elif meant:
        fix = f"Did you mean {meant}?"
    elif (module := ".".join(use.name.split(".")[:3])) not in tables.contrib().modules:
        fix = (
            f"{module} is of a fork of TensorFlow, or of a release before 1.15: leave out what "
            "needs it, or take that from elsewhere."
        )
    else:
        fix = _copied(_private_home(use.name))
    message = f"{use.name} is not among the names that are carried over{times}"
    return Hit(use.node, message, fix=fix)


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _private_home(name: str) -> str:
    """The module of TF 1.15 that has a private name of contrib, with TensorFlow's full name."""
    module = name.rpartition(".")[0]
    return (_module_of_that_name(module) or module).replace("tf.", "tensorflow.", 1)


def _module_of_that_name(name: str) -> str | None:
    """The module of TF 1.15 with the last part of a name that is none, in the same contrib."""
    root, last = ".".join(name.split(".")[:3]), _last_part(name)
    modules = tables.contrib().modules
    if name in modules or name == root:
        return None
    found = [m for m in modules if m.startswith(f"{root}.") and m.endswith(f".{last}")]
    return min(found, key=lambda m: (".python." not in m, len(m), m), default=None)


def _copied(module: str) -> str:
    """The advice to copy what lies in a module of TF 1.15."""
    path = module.replace(".", "/")
    return f"If the program needs it, copy it from TensorFlow 1.15's {path}, with what it calls."


_ELSEWHERE = (symbol_uses.Flavour.FACADE, symbol_uses.Flavour.V2)
_GONE = "is not in TensorFlow 2.16 or newer"
_ON_TF2 = (
    "`e2s migrate` rewrites what it can; until then `e2s run` runs the program, or "
    "`import estimator2strategy.tf1 as tf`."
)


def removed(source: Source, context: Context) -> Iterator[Hit]:
    """Names of TF 1.15 that TensorFlow 2.16 does not have and this package does."""
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if use.row is None or use.row.status == "refused" or use.flavour in _ELSEWHERE:
            continue
        if use.in_tensorflow is not False or use.needs_keras_2:
            continue
        on_tf2 = context.runs_on_tensorflow2(source, use.flavour)
        times = f", used {use.count} times here," if use.count > 1 else ""
        home = tables.home(use.name, use.row.advice)
        instead = f"On TensorFlow 2: {home}." if home else None
        gone = f"is not in TensorFlow: {use.row.left}" if use.row.left else _GONE
        yield Hit(
            use.node,
            f"{use.name}{times} {gone}" + ("" if on_tf2 else "; this package has it"),
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
            fix=instead or (_ON_TF2 if on_tf2 else None),
        )


def newer(source: Source, context: Context) -> Iterator[Hit]:
    """Names that only TensorFlow 2 has, in a file that is run as one of TF 1.15."""
    if context.runs_on_tensorflow2(source):
        return
    for use in symbol_uses.uses(source, False):
        if use.row is not None or use.flavour is symbol_uses.Flavour.V2:
            continue
        # Of private modules and of `tf.contrib` other rules know more.
        if use.name.startswith(("tf.contrib.", "tf.python.", "tf.compat.", "tf.core.")):
            continue
        if tables.exists(use.name, "v1") is not False or not tables.exists(use.name, "v2"):
            continue
        reached = unreached.is_reached(use.node, source, on_tensorflow_2=False)
        if reached and not unreached.is_tried(use.node, unreached.ANY):
            fix = None
            if use.flavour is symbol_uses.Flavour.V1:
                newer = use.name.replace("tf.", "tf.compat.v2.", 1)
                fix = f"TensorFlow 2 has it outside of compat.v1 only: write {newer}."
            yield Hit(use.node, f"{use.name} is in TensorFlow 2, and not in 1.15", fix=fix)
            return


def private(source: Source, context: Context) -> Iterator[Hit]:
    """Imports from TensorFlow's inside."""
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if use.is_import and use.name.startswith("tf.python.") and use.in_tensorflow is not False:
            if use.name.startswith("tf.python.keras"):
                continue  # E2S507
            if unreached.is_expendable(use.node) or not _says_so(use.node):
                continue
            on_tf2 = context.runs_on_tensorflow2(source, use.flavour)
            private = f"{use.name.replace('tf.', 'tensorflow.', 1)} is private to TensorFlow"
            severity, fix = Severity.WARNING, None
            first = use.name.split(".")[2]
            if on_tf2 and first not in _HELD and not first.startswith("_"):
                private = f"tensorflow.python.{first} is not in TensorFlow 2.21"
                severity, fix = Severity.ERROR, _NOT_HELD
            yield Hit(use.node, private, severity=severity if on_tf2 else Severity.INFO, fix=fix)


def _says_so(node: ast.AST) -> bool:
    """True if an import names TensorFlow, and not a module of the program that brings its names."""
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").startswith("tensorflow")
    return True


# The modules of tensorflow.python in 2.21. In 1.15 it had most public names, too.
_HELD = {
    "autograph", "checkpoint", "client", "compat", "compiler", "data", "debug", "distribute",
    "dlpack", "eager", "feature_column", "flags_pybind", "framework", "grappler", "kernel_tests",
    "layers", "lib", "module", "ops", "platform", "profiler", "proto_exports",
    "pywrap_dlopen_global_flags", "pywrap_mlir", "pywrap_sanitizers", "pywrap_tensorflow",
    "pywrap_tfe", "saved_model", "summary", "tf2", "tools", "tpu", "trackable", "training",
    "types", "user_ops", "util",
}  # fmt: skip
_NOT_HELD = "Use the public name, or the TensorFlow of the vendor whose module it is."


_ROOTS = {"tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"}


def star_import(source: Source, context: Context) -> Iterator[Hit]:
    for star in source.stars:
        if star.level == 0 and star.module.partition(".")[0] == "tensorflow":
            # Names of a module inside of TensorFlow are not those of `tf`.
            named = f"`from {star.module} import ` and the names that the file uses"
            fix = None if star.module in _ROOTS else f"Write {named}."
            message = f"`from {star.module} import *` hides which names are meant"
            yield Hit(star.node, message, fix=fix)
