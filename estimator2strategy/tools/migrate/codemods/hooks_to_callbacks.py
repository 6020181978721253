"""Hooks: a Keras callback beside each of the program's own, and what stands for TensorFlow's."""

import ast

from estimator2strategy.tools.check.source import names_in
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
    "`on_train_batch_end`, `request_stop()` sets `model.stop_training`. A hook that fetches "
    "tensors is marked: a callback finds metrics in `logs`. TensorFlow's own hooks are marked with "
    "the callback that does the same.",
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
            "class Recorder(tf.train.SessionRunHook):\n"
            "    def before_run(self, run_context):\n"
            "        return tf.train.SessionRunArgs(self.loss)\n",
            "import tensorflow as tf\n\n\n"
            "# TODO(e2s): hooks-to-callbacks: it fetches tensors; write a callback that reads "
            "logs, with these as metrics of the model\n"
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
        text = _callback(module, node)
        if text is not None and isinstance(node.parent, ast.Module):
            yield module.append_after(node, f"\n\n{text}")
        else:
            message = "it fetches tensors; write a callback that reads logs, with these as metrics"
            yield Todo(node, f"{message} of the model")


def _callback(module, node):
    """The callback that does what a hook does; None if that takes a session."""
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    used = set().union(*(names_in(statement) for m in methods for statement in m.body))
    if used & _SESSION or any(m.name in ("after_create_session", "before_run") for m in methods):
        return None
    indent = " " * (node.body[0].col_offset - node.col_offset)
    lines = [
        f"class {node.name}Callback({module.tf}.keras.callbacks.Callback):",
        f'{indent}"""`{node.name}`, for `fit`."""',
    ]
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            lines += ["", *_method(module, statement, indent)]
        elif not is_docstring(statement):
            lines += ["", indent + module.written(statement)]
    return "\n".join(lines) + "\n"


def _method(module, method, indent):
    """The lines of a method, under the name and with the arguments that it has in a callback."""
    name, arguments = _METHODS.get(method.name, (None, None))
    body = method.body
    first = module.lines[body[0].lineno - 1 : method.end_lineno]
    lines = [line.rstrip("\r\n") for line in first]
    if name is None:
        head = f"def {method.name}({ast.unparse(method.args)}):"
    else:
        head = f"def {name}(self, {arguments}):"
    begin = []
    if method.name == "__init__" and not any("super" in line for line in lines):
        begin = [" " * body[0].col_offset + "super().__init__()"]
    stopped = (line.replace(_STOP, "self.model.stop_training = True") for line in lines)
    return [indent + head, *begin, *stopped]
