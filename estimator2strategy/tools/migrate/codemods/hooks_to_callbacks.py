"""Hooks: a Keras callback beside each of the program's own, and what stands for TensorFlow's.

The tensors that a hook fetches, as what a Keras callback finds in their place.

    fetches = HookFetches(module, class_node)
    node, text = fetches.results(read)     # `run_values.results`, and what stands for it

A callback has the global step and the loss of the step. Anything else that a hook fetches has to
become a metric of the model, which is for the user to do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.module import Module, is_docstring, parent_of

STEP = "self.model.global_step"
LOSS = 'logs["loss"]'
_STEPS = ("tf.train.get_global_step", "tf.train.get_or_create_global_step")
_LOSSES = ("tf.losses.get_total_loss",)
_ARGS = ("tf.train.SessionRunArgs", "tf.estimator.SessionRunArgs")
# Names that a program's hook looks up in the graph.
_NAMED = {"global_step:0": STEP, "loss:0": LOSS, "total_loss:0": LOSS}


class UnknownFetchError(Exception):
    """A fetch that a callback cannot have.

    Attributes:
        what: The fetch, as it is written.
    """

    def __init__(self, what: Any):
        super().__init__(what)
        self.what = what


class HookFetches:
    """The fetches of a hook.

    Attributes:
        statements: The statements that ask for them, which a callback does without.
        uses_loss: True if the loss is among them.
    """

    def __init__(self, module: Module, node: Any):
        self._module, self._class = module, node
        self.statements: list[Any] = []
        self.uses_loss = False
        self._attributes: dict[Any, Any] = {}
        for statement in ast.walk(node):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                name = _of_self(statement.targets[0])
                if name:
                    self._attributes.setdefault(name, []).append(statement)
        self._fetched = self._asked_for()
        if self._fetched is not None:
            self.text(self._fetched)

    def _asked_for(self) -> Any:
        """The node of what before_run asks for; None if it asks for nothing."""
        for method in self._class.body:
            if isinstance(method, ast.FunctionDef) and method.name == "before_run":
                for statement in method.body:
                    if isinstance(statement, ast.Return) and statement.value is not None:
                        self.statements.append(statement)
                        return self._argument(statement.value)
        return None

    def _argument(self, value: Any) -> Any:
        if isinstance(value, ast.Constant) and value.value is None:
            return None
        if not isinstance(value, ast.Call) or self._module.name(value.func) not in _ARGS:
            raise UnknownFetchError(self._module.written(value))
        first = value.args[:1] or [k.value for k in value.keywords if k.arg == "fetches"]
        if len(value.args) + len(value.keywords) != 1 or not first:
            raise UnknownFetchError(self._module.written(value))
        return first[0]

    def _assigned(self, node: Any) -> Any:
        """The value of a node: itself, or what is assigned to the attribute that it reads."""
        name = _of_self(node)
        values = self._attributes.get(name, []) if name else []
        if len(values) != 1:
            return node
        if values[0] not in self.statements:
            self.statements.append(values[0])
        return values[0].value

    def text(self, node: Any) -> Any:
        """The expression that a callback has for a fetch."""
        node = self._assigned(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [self.text(part) for part in node.elts]
            return ", ".join(parts) if len(parts) > 1 else f"({parts[0]},)"
        if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
            pairs: Any = zip(node.keys, node.values, strict=True)
            written = (f"{key.value!r}: {self.text(value)}" for key, value in pairs)
            return f"{{{', '.join(written)}}}"
        name = isinstance(node, ast.Call) and self._module.name(node.func)
        if name in _STEPS:
            return STEP
        if name in _LOSSES:
            self.uses_loss = True
            return _total_loss(self._module)
        if _named(node) == LOSS:
            self.uses_loss = True
            return LOSS
        if _named(node):
            return _named(node)
        raise UnknownFetchError(self._module.written(node))

    def results(self, node: Any) -> Any:
        """The text for `run_values.results`, or for an item of it, and the node that it is for."""
        fetched = self._fetched
        outer = node.parent
        if isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant):
            item = self._item(self._assigned(fetched), outer.slice.value)
            if item is not None:
                return outer, self.text(item)
        text = self.text(fetched)
        alone = isinstance(outer, ast.Assign) or not text.count(", ")
        return node, text if alone or text[0] in "{(" else f"({text})"

    def _item(self, node: Any, key: Any) -> Any:
        if isinstance(node, (ast.List, ast.Tuple)) and isinstance(key, int):
            return node.elts[key] if -len(node.elts) <= key < len(node.elts) else None
        if isinstance(node, ast.Dict):
            pairs: Any = zip(node.keys, node.values, strict=True)
            return next((v for k, v in pairs if getattr(k, "value", None) == key), None)
        return None


def _total_loss(module: Module) -> Any:
    """The loss that a hook gets of `tf.losses.get_total_loss()`, in those of the callback.

    An Estimator adds the spec's loss to the losses of tf.losses, so that a hook sees both. They
    are equal where the spec's loss is all of the others.
    """
    calls = [module.name(call.node.func, call.scope) or "" for call in module.calls()]
    kinds = [name for name in calls if name.startswith("tf.losses.")]
    added = [name for name in kinds if "get_" not in name and not name.startswith("tf.losses.R")]
    is_regularized = any(
        k.arg and "regularizer" in k.arg for c in module.calls() for k in c.node.keywords
    )
    totals = len(kinds) - len(added)  # one of them is the hook's
    if not added and not is_regularized:
        return LOSS
    if totals > 1 or (len(added) == 1 and not is_regularized):
        return f"2 * {LOSS}"
    raise UnknownFetchError("tf.losses.get_total_loss()")


def _named(node: Any) -> Any:
    """The expression for a tensor that is named in the graph: "loss:0"."""
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]  # graph.get_tensor_by_name("loss:0")
    return _NAMED.get(str(node.value)) if isinstance(node, ast.Constant) else None


def _of_self(node: Any) -> Any:
    """The name in `self.name`."""
    is_self = isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "self"
    return node.attr if is_self else None


_BASES = ("tf.train.SessionRunHook", "tf.estimator.SessionRunHook")
# Method of a hook -> that of a callback, and its arguments.
_METHODS = {
    "begin": ("on_train_begin", "logs=None"),
    "before_run": ("on_train_batch_begin", "batch, logs=None"),
    "after_run": ("on_train_batch_end", "batch, logs=None"),
    "end": ("on_train_end", "logs=None"),
}
# Names that a hook uses of its session; a callback has no session.
_SESSION = {"SessionRunArgs", "results", "session", "run_values", "get_collection"}
_RESET = "self.model.reset_metrics()  # the loss of this step alone"
_STOP = "run_context.request_stop()"
_STOCK = {
    "CheckpointSaverHook": "callbacks.ModelCheckpoint(path, save_freq=save_steps)",
    "FinalOpsHook": "what stands behind fit",
    "LoggingTensorHook": "the progress bar: log what it logs as metrics; verbose=2 prints lines",
    "NanTensorHook": "callbacks.TerminateOnNaN()",
    "ProfilerHook": "callbacks.TensorBoard(log_dir, profile_batch=...)",
    "StepCounterHook": "the progress bar of fit",
    "StopAtStepHook": "fit(steps_per_epoch=..., epochs=...)",
    "SummarySaverHook": "callbacks.TensorBoard(log_dir, update_freq=save_steps)",
    "stop_if_no_decrease_hook": "callbacks.EarlyStopping(mode='min', patience=...)",
    "stop_if_no_increase_hook": "callbacks.EarlyStopping(mode='max', patience=...)",
}
_MODULES = ("tf.train.", "tf.estimator.", "tf.estimator.experimental.", "tf.contrib.estimator.")


@codemod("hooks-to-callbacks", stage=7, tier=SafetyTier.REVIEW, words=("Hook", "hook"))
def find(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    for call in module.calls():
        name = module.name(call.node.func, call.scope) or ""
        module_of, last = name.rpartition(".")[0] + ".", name.rpartition(".")[2]
        if module_of in _MODULES and last in _STOCK:
            yield Todo(call.node, f"beside fit, this is {_STOCK[last]}")
    for node, _ in module.source.classes:
        if not any(module.name(base, module.source.scope) in _BASES for base in node.bases):
            continue
        if f"{node.name}Callback" in module.source.scope.bindings:
            continue
        if not isinstance(parent_of(node), ast.Module):
            yield Todo(node, "move it to the top of the file, where a callback can stand beside it")
            continue
        try:
            text = _callback(module, node)
        except UnknownFetchError as unknown:
            yield Todo(
                node,
                f"it uses {unknown.what}, which fit does not have: make it a metric of the model, "
                "which a callback reads in logs",
            )
        else:
            yield module.append_after(node, f"\n\n{text}")


def _callback(module: Module, node: Any) -> Any:
    """The callback that does what a hook does.

    Raises:
        fetched.UnknownFetchError: That takes a session.
    """
    fetches = HookFetches(module, node)
    parts = dict(_results(module, node, fetches))
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    for method in methods:
        if method.name == "after_create_session":
            raise UnknownFetchError("after_create_session")
        _check(module, method, fetches, parts)
    indent = " " * (node.body[0].col_offset - node.col_offset)
    lines = [
        f"class {node.name}Callback({module.tf}.keras.callbacks.Callback):",
        f"{indent}{_docstring(module, node)}",
    ]
    before = next((method for method in methods if method.name == "before_run"), None)
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            lines += _method(module, statement, indent, fetches, parts)
        elif not is_docstring(statement):
            lines += ["", indent + module.written(statement)]
    if fetches.uses_loss and before is None:
        lines += ["", *_head("before_run", indent), indent * 2 + _RESET]
    return "\n".join(lines) + "\n"


def _docstring(module: Module, node: Any) -> Any:
    """The hook's own docstring; or one that names the hook."""
    if is_docstring(node.body[0]):
        return module.written(node.body[0])
    return f'"""`{node.name}`, for `fit`."""'


def _results(module: Module, node: Any, fetches: Any) -> Iterator[Any]:
    """(node, text) of what a hook reads of its results."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr == "results":
            yield fetches.results(part)


def _check(module: Module, method: Any, fetches: Any, parts: Any) -> None:
    """Raises UnknownFetchError if a method needs a session for more than its fetches."""
    kept = {id(inner) for part in parts for inner in ast.walk(part)}
    kept |= {id(inner) for gone in fetches.statements for inner in ast.walk(gone)}
    for statement in method.body:
        for part in ast.walk(statement):
            name = getattr(part, "attr", getattr(part, "id", None))
            if name in _SESSION and id(part) not in kept:
                raise UnknownFetchError(module.written(part))


def _head(name: Any, indent: Any) -> Any:
    name, arguments = _METHODS[name]
    return [f"{indent}def {name}(self, {arguments}):"]


def _method(module: Module, method: Any, indent: Any, fetches: Any, parts: Any) -> Any:
    """The lines of a method, under the name and with the arguments that it has in a callback."""
    begin = []
    if method.name == "before_run" and fetches.uses_loss:
        begin = [" " * method.body[0].col_offset + _RESET]
    kept = [s for s in method.body if s not in fetches.statements]
    if not kept and not begin:
        return []
    if method.name == "__init__" and "super" not in module.written(method):
        begin = [" " * method.body[0].col_offset + "super().__init__()"]
    body = []
    for before, statement in zip([None, *method.body], method.body, strict=False):
        if statement not in fetches.statements:
            body += _statement(module, before or method, statement, parts)
    if method.name in _METHODS:
        head = _head(method.name, indent)
    else:
        head = [f"{indent}def {method.name}({ast.unparse(method.args)}):"]
    return ["", *head, *begin, *body]


def _statement(module: Module, before: Any, statement: Any, parts: Any) -> Any:
    """The lines of a statement of a method, and the comments between it and the one before."""
    last = before.end_lineno if before.lineno < statement.lineno else statement.lineno - 1
    first = statement.lineno
    if isinstance(before, ast.FunctionDef):
        last = before.body[0].lineno - 1
    above = [line.rstrip("\r\n") for line in module.lines[last : first - 1]]
    inside = {part: text for part, text in parts.items() if statement in _parents(part)}
    text = module.written_with(statement, inside)
    text = text.replace(_STOP, "self.model.stop_training = True")
    end = module.lines[statement.end_lineno - 1].encode()[statement.end_col_offset :].decode()
    return [*above, *f"{' ' * statement.col_offset}{text}{end}".rstrip().splitlines()]


def _parents(node: Any) -> Iterator[Any]:
    while hasattr(node, "parent"):
        node = node.parent
        yield node
