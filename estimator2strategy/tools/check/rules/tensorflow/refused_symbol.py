"""Names of TF 1.15 that neither TensorFlow 2.16 nor this package has."""

import difflib

from estimator2strategy.tools.check import symbol_uses, tables, unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.tensorflow.unknown_symbol import LINEAR


def find(source, context):
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
