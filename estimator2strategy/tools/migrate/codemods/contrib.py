"""`tf.contrib` to where its names live now."""

import ast
import functools

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import tables
from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Todo,
    codemod,
)

# Modules that hold what a legacy name is, and how a program says them.
_HOMES = {
    "tensorflow.compat.v1": "tf",
    "estimator2strategy.tf1": "tf",
    "estimator2strategy.estimator": "tf.estimator",
    "estimator2strategy.estimator.tpu": "tf.estimator.tpu",
    "estimator2strategy.estimator.experimental": "tf.estimator.experimental",
}
# Written differently, and equal (tests/tools/migrate/test_proofs.py).
_EQUAL = {
    "tf.contrib.layers.xavier_initializer": "tf.glorot_uniform_initializer",
    "tf.contrib.layers.xavier_initializer_conv2d": "tf.glorot_uniform_initializer",
}


@codemod(
    "contrib",
    stage=2,
    tier=SafetyTier.SAFE,
    title="`tf.contrib` names to their homes in TensorFlow",
    why="By the table that the facade is made from (contrib.md). What lives on only in tf-slim or "
    "in this package stays as it is, and works; what is refused is marked.",
    proof="The same object under both names; xavier_initializer draws the same numbers "
    "(tests/tools/migrate/test_proofs.py).",
)
def find(module):
    if module.tf is None:
        return
    called = {call.node.func: call for call in module.calls()}
    for node, name in module.uses("tf.contrib"):
        row = tables.contrib().find(name)
        part = module.part(node, row.name if row else name)
        if row is None or part is None:
            continue
        if row.status == "refused":
            message = f"{name} is gone. {row.advice}"
            yield Todo(node, message)
        now = _EQUAL.get(row.name) if _is_plain(called.get(part)) else None
        now = now or home(row)
        if now is not None:
            yield module.replace(part, module.tf + now.removeprefix("tf"))


@functools.cache
def _by_home():
    """Names of the facade's own table outside of contrib, by what they are."""
    return {row.home: name for name, row in facade.rows().items() if ":" in row.home}


def home(row):
    """The name outside of contrib that is the same object; None if there is none."""
    module, _, attribute = row.home.partition(":")
    if module not in _HOMES or not attribute:
        return _by_home().get(row.home)
    name = f"{_HOMES[module]}.{attribute}"
    known = facade.find(name)
    if known is None or known.status == "refused":
        return None
    same = known.home == row.home or module.startswith("estimator2strategy")
    return name if same else None


def _is_plain(call):
    """True if an initializer is made as the one that it stands for would be."""
    if call is None or call.node.args:
        return False
    return all(
        keyword.arg in ("seed", "dtype")
        or (keyword.arg == "uniform" and ast.unparse(keyword.value) == "True")
        for keyword in call.node.keywords
    ) and not any(keyword.arg == "uniform" for keyword in call.node.keywords)
