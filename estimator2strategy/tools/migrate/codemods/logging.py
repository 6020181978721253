"""`tf.logging` to absl."""

import ast

from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Todo,
    codemod,
)

# absl.logging.fatal ends the process; tf.logging.fatal did not.
_NAMES = {
    name: name
    for name in (
        "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "debug", "error", "flush", "get_verbosity",
        "info", "log", "log_every_n", "log_first_n", "log_if", "vlog", "warning",
    )
} | {"warn": "warning", "fatal": "error"}  # fmt: skip


@codemod(
    "logging",
    stage=2,
    tier=SafetyTier.REVIEW,
    title="`tf.logging` to `absl.logging`",
    why="TensorFlow 2 has no logger for programs. The lines look otherwise "
    "(`I1122 10:00:00 12 train.py:7] text` for `INFO:tensorflow:text`), and absl has a verbosity "
    "of its own; where the program sets it, TensorFlow's is still set too, for the lines of the "
    "training loop. tf.logging.fatal becomes error, because absl's fatal ends the process.",
    proof="Scripts that read the log see other lines.",
)
def find(module):
    if module.tf is None:
        return
    bound, imported = module.needed("absl", "logging", "absl_logging")
    verbosities = [*module.calls("tf.logging.set_verbosity")]
    found = [_set_verbosity(module, call, bound, imported) for call in verbosities]
    yield from found
    inside = {node for call in verbosities for node in ast.walk(call.node)}
    open_levels = any(isinstance(f, Todo) for f in found)
    for node, name in module.uses("tf.logging"):
        last = name.removeprefix("tf.logging.")
        part = module.part(node, name)
        if part is None or part in inside or (open_levels and last.isupper()):
            continue
        if last in _NAMES:
            yield module.replace(part, f"{bound}.{_NAMES[last]}", [imported])


def _set_verbosity(module, call, bound, imported):
    """Sets both verbosities, where the level is given by its name."""
    statement = module.statement(call.node)
    level = module.name(call.node.args[0], call.scope) if call.node.args else None
    last = (level or "").removeprefix("tf.logging.")
    alone = isinstance(statement, ast.Expr) and statement.value is call.node
    if last not in _NAMES or not alone or not module.is_alone(statement):
        return Todo(call.node, "absl counts levels otherwise (INFO is 0); set them by name")
    python = {"WARN": "WARNING", "FATAL": "CRITICAL"}.get(last, last)
    text = f"{bound}.set_verbosity({bound}.{last})\n{module.tf}.get_logger().setLevel('{python}')"
    return module.replace_statement(statement, text, [imported])
