"""Hooks: a Keras callback beside each of the program's own, and what stands for TensorFlow's."""

import ast

from estimator2strategy.tools.migrate import fetched
from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Sample,
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
    title="A Keras callback beside each SessionRunHook of the program",
    why="The hook stays for the Estimator, the callback is for `fit`: `after_run` becomes "
    "`on_train_batch_end`, `request_stop()` sets `model.stop_training`. The global step and the "
    "total loss that a hook fetches, a callback finds in the model and in `logs`; a hook that "
    "fetches other tensors is marked. TensorFlow's own hooks are marked with the callback that "
    "does the same.",
    proof="With steps_per_execution a callback sees executions, as a hook did on a TPU. Steps are "
    "counted from 0 in each epoch.",
    samples=[
        Sample(
            "import tensorflow as tf\n\n\n"
            "class Stopper(tf.train.SessionRunHook):\n"
            "    seen = 0\n\n"
            "    def __init__(self, steps):\n"
            "        self.steps = steps\n\n"
            "    def begin(self):\n"
            "        self.seen = 0\n\n"
            "    def after_run(self, run_context, run_values):\n"
            "        self.seen += 1\n"
            "        if self.seen == self.steps:\n"
            "            run_context.request_stop()\n\n\n"
            "hook = tf.train.NanTensorHook(loss)\n",
            "import tensorflow as tf\n\n\n"
            "class Stopper(tf.train.SessionRunHook):\n"
            "    seen = 0\n\n"
            "    def __init__(self, steps):\n"
            "        self.steps = steps\n\n"
            "    def begin(self):\n"
            "        self.seen = 0\n\n"
            "    def after_run(self, run_context, run_values):\n"
            "        self.seen += 1\n"
            "        if self.seen == self.steps:\n"
            "            run_context.request_stop()\n\n\n"
            "class StopperCallback(tf.keras.callbacks.Callback):\n"
            '    """`Stopper`, for `fit`."""\n\n'
            "    seen = 0\n\n"
            "    def __init__(self, steps):\n"
            "        super().__init__()\n"
            "        self.steps = steps\n\n"
            "    def on_train_begin(self, logs=None):\n"
            "        self.seen = 0\n\n"
            "    def on_train_batch_end(self, batch, logs=None):\n"
            "        self.seen += 1\n"
            "        if self.seen == self.steps:\n"
            "            self.model.stop_training = True\n\n\n"
            "# TODO(e2s): hooks-to-callbacks: beside fit, this is callbacks.TerminateOnNaN()\n"
            "hook = tf.train.NanTensorHook(loss)\n",
        ),
        Sample(
            "import tensorflow as tf\n\n\n"
            "class Printer(tf.train.SessionRunHook):\n"
            "    def begin(self):\n"
            "        self._fetches = [tf.train.get_global_step(), tf.losses.get_total_loss()]\n\n"
            "    def before_run(self, run_context):\n"
            "        return tf.train.SessionRunArgs(self._fetches)\n\n"
            "    def after_run(self, run_context, run_values):\n"
            "        step, loss = run_values.results\n"
            "        print(step, loss)\n",
            "import tensorflow as tf\n\n\n"
            "class Printer(tf.train.SessionRunHook):\n"
            "    def begin(self):\n"
            "        self._fetches = [tf.train.get_global_step(), tf.losses.get_total_loss()]\n\n"
            "    def before_run(self, run_context):\n"
            "        return tf.train.SessionRunArgs(self._fetches)\n\n"
            "    def after_run(self, run_context, run_values):\n"
            "        step, loss = run_values.results\n"
            "        print(step, loss)\n\n\n"
            "class PrinterCallback(tf.keras.callbacks.Callback):\n"
            '    """`Printer`, for `fit`."""\n\n'
            "    def on_train_batch_begin(self, batch, logs=None):\n"
            f"        {_RESET}\n\n"
            "    def on_train_batch_end(self, batch, logs=None):\n"
            '        step, loss = self.model.global_step, logs["loss"]\n'
            "        print(step, loss)\n",
        ),
        Sample(
            "import tensorflow as tf\n\n\n"
            "class Recorder(tf.train.SessionRunHook):\n"
            "    def before_run(self, run_context):\n"
            "        return tf.train.SessionRunArgs(self.loss)\n",
            "import tensorflow as tf\n\n\n"
            "# TODO(e2s): hooks-to-callbacks: it uses self.loss, which fit does not have: make it "
            "a metric of the model, which a callback reads in logs\n"
            "class Recorder(tf.train.SessionRunHook):\n"
            "    def before_run(self, run_context):\n"
            "        return tf.train.SessionRunArgs(self.loss)\n",
        ),
    ],
    unchanged=[
        "import tensorflow as tf\n\n\n"
        "class Mine(tf.keras.callbacks.Callback):\n    def on_train_begin(self, logs=None):\n"
        "        pass\n",
        "class Hook:\n    def begin(self):\n        pass\n",
    ],
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
