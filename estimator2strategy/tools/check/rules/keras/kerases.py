"""Keras 2 and Keras 3 in one program."""

import ast
from collections.abc import Iterator

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import symbol_uses, unreached
from estimator2strategy.tools.reader.source import Source, parents

_FLAG = "TF_USE_LEGACY_KERAS"


def late_legacy_keras(source: Source, context: Context) -> Iterator[Hit]:
    if _FLAG not in source.text:
        return
    libraries = ("tensorflow", "keras", "tf_keras")
    imports = [
        t.node.lineno
        for t, _ in source.imports
        if not t.level and t.module.partition(".")[0] in libraries and t.node.col_offset == 0
    ]
    first = min(imports, default=None)
    setters: list[ast.Assign | ast.Call] = source.all_of(ast.Assign, ast.Call)
    for node in setters:
        if first is not None and _sets_flag(node) and node.lineno > first:
            yield Hit(node, f"{_FLAG} is set after the import in line {first}")


def _sets_flag(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return any(_is_flag(t) for t in node.targets)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    first = node.args[0]
    is_setter = node.func.attr in ("setdefault", "putenv")
    return is_setter and isinstance(first, ast.Constant) and first.value == _FLAG


def _is_flag(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == _FLAG
    )


def layers_need_keras2(source: Source, context: Context) -> Iterator[Hit]:
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if not use.needs_keras_2:
            continue
        on_tf2 = context.runs_on_tensorflow2(source, use.flavour)
        yield Hit(
            use.node,
            f"{use.name} of compat.v1 needs Keras 2",
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
        )


def two_kerases(source: Source, context: Context) -> Iterator[Hit]:
    if not {"keras", "tf_keras"} <= source.modules:
        return
    imports = [
        (target, scope)
        for target, scope in source.imports
        if not target.level and target.module.partition(".")[0] in ("keras", "tf_keras")
    ]
    if any(type(outer).__name__ in ("Try", "If") for t, _ in imports for outer in parents(t.node)):
        return
    yield Hit(imports[-1][0].node, "both keras and tf_keras are imported here")


def keras3_in_model_fn(source: Source, context: Context) -> Iterator[Hit]:
    if "keras" not in source.modules:
        return
    for model in context.project.model_functions:
        if model.source is not source:
            continue
        for call in context.project.calls_of(model.definition):
            name = call.name or ""
            if name.startswith(("keras.layers.", "keras.optimizers.", "keras.models.")):
                yield Hit(call.node, f"{name} is Keras 3's")


def keras_optimizer_minimize(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        if call.last not in ("minimize", "apply_gradients") or call.argument("global_step") is None:
            continue
        made = source.call(getattr(call.node.func, "value", None), call.scope)
        if made is not None and (made.name or "").startswith(
            ("tf.keras.optimizers.", "tf.optimizers.", "keras.optimizers.", "tf_keras.optimizers.")
        ):
            yield Hit(call.node, f"{made.name} takes no global_step")


def private_keras(source: Source, context: Context) -> Iterator[Hit]:
    for target, _ in source.imports:
        module = f"{target.module}.{target.name or ''}"
        if not target.level and module.startswith("tensorflow.python.keras"):
            if unreached.is_expendable(target.node):
                continue
            on_tf2 = context.runs_on_tensorflow2(source)
            yield Hit(
                target.node,
                "tensorflow.python.keras is a private copy of Keras",
                severity=Severity.WARNING if on_tf2 else Severity.INFO,
            )
