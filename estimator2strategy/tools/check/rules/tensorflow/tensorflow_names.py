"""Names of TensorFlow: refused, removed, newer than TF 1.15, private."""

import ast
import difflib

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.tensorflow.unknown_symbol import LINEAR
from estimator2strategy.tools.names import tables, tensorflow2_homes
from estimator2strategy.tools.reader import symbol_uses, unreached


def refused(source, context):
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
            is_private = use.row.name != use.name and _last(use.name).startswith("_")
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


def _unknown(use, times):
    """The hit for a name of contrib that is in no table."""
    nearest = tables.contrib().nearest(use.name) or ""
    last, near = _last(use.name), _last(nearest)
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


def _last(name):
    return name.rpartition(".")[2]


def _private_home(name):
    """The module of TF 1.15 that has a private name of contrib, with TensorFlow's full name."""
    module = name.rpartition(".")[0]
    return (_module_of_that_name(module) or module).replace("tf.", "tensorflow.", 1)


def _module_of_that_name(name):
    """The module of TF 1.15 with the last part of a name that is none, in the same contrib."""
    root, last = ".".join(name.split(".")[:3]), _last(name)
    modules = tables.contrib().modules
    if name in modules or name == root:
        return None
    found = [m for m in modules if m.startswith(f"{root}.") and m.endswith(f".{last}")]
    return min(found, key=lambda m: (".python." not in m, len(m), m), default=None)


def _copied(module):
    """The advice to copy what lies in a module of TF 1.15."""
    path = module.replace(".", "/")
    return f"If the program needs it, copy it from TensorFlow 1.15's {path}, with what it calls."


_ELSEWHERE = (symbol_uses.Flavour.FACADE, symbol_uses.Flavour.V2)
_GONE = "is not in TensorFlow 2.16 or newer"
_ON_TF2 = (
    "`e2s migrate` rewrites what it can; until then `e2s run` runs the program, or "
    "`import estimator2strategy.tf1 as tf`."
)


def removed(source, context):
    """Names of TF 1.15 that TensorFlow 2.16 does not have and this package does."""
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if use.row is None or use.row.status == "refused" or use.flavour in _ELSEWHERE:
            continue
        if use.in_tensorflow is not False or use.needs_keras_2:
            continue
        on_tf2 = context.runs_on_tensorflow2(source, use.flavour)
        times = f", used {use.count} times here," if use.count > 1 else ""
        home = tensorflow2_homes.home(use.name, use.row.advice)
        instead = f"On TensorFlow 2: {home}." if home else None
        gone = f"is not in TensorFlow: {use.row.left}" if use.row.left else _GONE
        yield Hit(
            use.node,
            f"{use.name}{times} {gone}" + ("" if on_tf2 else "; this package has it"),
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
            fix=instead or (_ON_TF2 if on_tf2 else None),
        )


def newer(source, context):
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


def private(source, context):
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


def _says_so(node):
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
