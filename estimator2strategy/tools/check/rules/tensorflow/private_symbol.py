"""Imports from TensorFlow's inside."""

import ast

from estimator2strategy.tools.check import symbol_uses, unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
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
