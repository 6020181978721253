"""`CrossShardOptimizer`: the sum over the cores becomes the strategy's."""

import ast

from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Sample,
    Todo,
    codemod,
)


@codemod(
    "cross-shard-optimizer",
    stage=5,
    tier=SafetyTier.REVIEW,
    title="Takes `CrossShardOptimizer` away",
    why="It wraps optimizers of tf.train only. Under a strategy a Keras optimizer sums the "
    "gradients of the replicas by itself.",
    proof="From here on the Estimator trains on one core (use_tpu=False): with several it refuses "
    "a model_fn without the sum. CrossShardOptimizer gave the mean over the cores, a Keras "
    "optimizer under a strategy gives the sum: divide the loss by strategy.num_replicas_in_sync "
    "there.",
    samples=[
        Sample(
            "import tensorflow as tf\n\n\n"
            "def model_fn(loss, use_tpu):\n"
            "    optimizer = tf.train.AdamOptimizer(0.1)\n"
            "    if use_tpu:\n"
            "        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)\n"
            "    return optimizer.minimize(loss)\n",
            "import tensorflow as tf\n\n\n"
            "def model_fn(loss, use_tpu):\n"
            "    optimizer = tf.train.AdamOptimizer(0.1)\n"
            "    return optimizer.minimize(loss)\n",
        ),
        Sample(
            "import tensorflow as tf\n\n"
            "a = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))\n"
            "b = tf.tpu.CrossShardOptimizer(opt, reduction=tf.losses.Reduction.SUM)\n",
            "import tensorflow as tf\n\n"
            "a = tf.train.AdamOptimizer(0.1)\n"
            "# TODO(e2s): cross-shard-optimizer: this one sums: under a strategy leave the loss of "
            "a replica undivided\n"
            "b = tf.tpu.CrossShardOptimizer(opt, reduction=tf.losses.Reduction.SUM)\n",
        ),
    ],
    unchanged=["import tensorflow as tf\n\noptimizer = tf.train.AdamOptimizer(0.1)\n"],
)
def find(module):
    for call in module.calls("tf.tpu.CrossShardOptimizer", "tf.contrib.tpu.CrossShardOptimizer"):
        optimizer = call.argument("opt", 0)
        if optimizer is None or len(call.node.args) + len(call.node.keywords) > 1:
            message = "this one sums: under a strategy leave the loss of a replica undivided"
            yield Todo(call.node, message)
            continue
        statement = module.statement(call.node)
        if not _assigns_to_itself(statement, call.node, optimizer):
            yield module.replace(call.node, module.written(optimizer))
            continue
        outer = statement.parent
        if isinstance(outer, ast.If) and outer.body == [statement] and not outer.orelse:
            statement = outer
        if module.is_alone(statement):
            yield module.replace_statement(statement, "")
        else:
            yield Todo(call.node, "take this statement away")


def _assigns_to_itself(statement, call, optimizer):
    """True if it is `optimizer = CrossShardOptimizer(optimizer)`."""
    return (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and isinstance(optimizer, ast.Name)
        and [getattr(target, "id", None) for target in statement.targets] == [optimizer.id]
    )
