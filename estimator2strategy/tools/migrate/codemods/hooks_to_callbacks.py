"""Hooks: a Keras callback beside each of the program's own, and what stands for TensorFlow's."""

import ast

from estimator2strategy.tools.migrate import fetched
from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Todo,
    codemod,
)
from estimator2strategy.tools.migrate.module import is_docstring

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


@codemod(
    "hooks-to-callbacks",
    stage=7,
    tier=SafetyTier.REVIEW,
    words=("Hook", "hook"),
    title="A Keras callback beside each SessionRunHook of the program",
    why="The hook stays for the Estimator, the callback is for `fit`: `after_run` becomes "
    "`on_train_batch_end`, `request_stop()` sets `model.stop_training`. The global step and the "
    "total loss that a hook fetches, a callback finds in the model and in `logs`; a hook that "
    "fetches other tensors is marked. TensorFlow's own hooks are marked with the callback that "
    "does the same.",
    proof="With steps_per_execution a callback sees executions, as a hook did on a TPU. Steps are "
    "counted from 0 in each epoch.",
)
def find(module):
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
        if not isinstance(node.parent, ast.Module):
            yield Todo(node, "move it to the top of the file, where a callback can stand beside it")
            continue
        try:
            text = _callback(module, node)
        except fetched.UnknownFetchError as unknown:
            yield Todo(
                node,
                f"it uses {unknown.what}, which fit does not have: make it a metric of the model, "
                "which a callback reads in logs",
            )
        else:
            yield module.append_after(node, f"\n\n{text}")


def _callback(module, node):
    """The callback that does what a hook does.

    Raises:
        fetched.UnknownFetchError: That takes a session.
    """
    fetches = fetched.HookFetches(module, node)
    parts = dict(_results(module, node, fetches))
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    for method in methods:
        if method.name == "after_create_session":
            raise fetched.UnknownFetchError("after_create_session")
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


def _docstring(module, node):
    """The hook's own docstring; or one that names the hook."""
    if is_docstring(node.body[0]):
        return module.written(node.body[0])
    return f'"""`{node.name}`, for `fit`."""'


def _results(module, node, fetches):
    """(node, text) of what a hook reads of its results."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr == "results":
            yield fetches.results(part)


def _check(module, method, fetches, parts):
    """Raises UnknownFetchError if a method needs a session for more than its fetches."""
    kept = {id(inner) for part in parts for inner in ast.walk(part)}
    kept |= {id(inner) for gone in fetches.statements for inner in ast.walk(gone)}
    for statement in method.body:
        for part in ast.walk(statement):
            name = getattr(part, "attr", getattr(part, "id", None))
            if name in _SESSION and id(part) not in kept:
                raise fetched.UnknownFetchError(module.written(part))


def _head(name, indent):
    name, arguments = _METHODS[name]
    return [f"{indent}def {name}(self, {arguments}):"]


def _method(module, method, indent, fetches, parts):
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


def _statement(module, before, statement, parts):
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


def _parents(node):
    while hasattr(node, "parent"):
        node = node.parent
        yield node
