"""Names that TensorFlow 2 has only in `tf.compat.v1`, or has for something else."""

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import tables
from estimator2strategy.tools.check.rules.tensorflow.changed_calls import differences
from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod


@codemod(
    "compat-v1",
    stage=8,
    tier=SafetyTier.SAFE,
    title="`tf.get_variable` to `tf.compat.v1.get_variable`, where TensorFlow 2 has no such name",
    why="Also where a call gives arguments that TensorFlow 2 takes for others. What is in neither "
    "(tf.contrib, tf.layers, tf.estimator) stays: see drop-facade.",
    proof="The facade's tf.compat.v1 is the facade itself (tests/tools/migrate/test_proofs.py).",
)
def find(module):
    if module.tf is None or module.bound("estimator2strategy.tf1") != module.tf:
        return
    called = {call.node.func: call for call in module.calls()}
    for node, name in module.uses():
        symbol = tables.public(name)
        part = module.part(node, symbol)
        if part is None or not _is_only_in_v1(symbol, called.get(part)):
            continue
        if not module.written(part).startswith(f"{module.tf}.compat."):
            yield module.replace(part, f"{module.tf}.compat.v1.{symbol.removeprefix('tf.')}")


def _is_only_in_v1(name, call):
    """True if TensorFlow 2 has a name only there, or would take a call of it for another."""
    row = facade.find(name)
    if row is None or row.home != f"tensorflow.compat.v1:{name.removeprefix('tf.')}":
        return False
    if tables.exists(name, "v2") is False:
        return True
    change = tables.changed(name)
    return change is not None and (call is None or bool(differences(call, change)))
