"""RunConfig and TPUConfig: what stands for them in a Keras training loop."""

import ast

from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Sample,
    Todo,
    codemod,
)

_CONFIGS = (
    "tf.estimator.RunConfig",
    "tf.estimator.tpu.RunConfig",
    "tf.estimator.tpu.TPUConfig",
    "tf.contrib.tpu.RunConfig",
    "tf.contrib.tpu.TPUConfig",
)
# Argument -> what does the same beside Model.fit.
_KERAS = {
    "cluster": "make_strategy(cluster)",
    "iterations_per_loop": "compile(steps_per_execution=...)",
    "keep_checkpoint_max": "CheckpointManager(max_to_keep=...)",
    "log_step_count_steps": "the progress bar of fit",
    "master": "make_strategy(resolver)",
    "num_shards": "strategy.num_replicas_in_sync",
    "per_host_input_for_training": "distribute_datasets_from_function",
    "save_checkpoints_steps": "callbacks.ModelCheckpoint(save_freq=...)",
    "save_summary_steps": "callbacks.TensorBoard(update_freq=...)",
    "session_config": "tf.config",
    "tf_random_seed": "tf.random.set_seed",
    "train_distribute": "with strategy.scope()",
}
_NAME = "make_strategy"
_FUNCTION = '''

def make_strategy(resolver=None):
    """The strategy of a TPU, or without one that of this machine's GPUs, or of its CPU."""
    if resolver is None:
        return {tf}.compat.v2.distribute.MirroredStrategy()
    {tf}.compat.v2.config.experimental_connect_to_cluster(resolver)
    {tf}.compat.v2.tpu.experimental.initialize_tpu_system(resolver)
    return {tf}.compat.v2.distribute.TPUStrategy(resolver)
'''


@codemod(
    "run-config",
    stage=7,
    tier=SafetyTier.REVIEW,
    title="Adds `make_strategy` beside a TPUEstimator, and says what its options become",
    why="The Estimator still runs as it did; nothing uses the strategy yet. Each RunConfig and "
    "TPUConfig is marked with what does the same beside `fit`.",
    proof="With several hosts, one program runs on all of them; a TPUStrategy is made once in a "
    "process, before anything else is put on a TPU.",
    samples=[
        Sample(
            "import tensorflow as tf\n\n\n"
            "def main(cluster):\n"
            "    config = tf.estimator.tpu.RunConfig(\n"
            "        cluster=cluster, model_dir='m', save_checkpoints_steps=100)\n"
            "    tf.estimator.tpu.TPUEstimator(model_fn, config=config)\n",
            "import tensorflow as tf\n\n\n"
            "def main(cluster):\n"
            "    # TODO(e2s): run-config: beside fit, cluster is make_strategy(cluster); "
            "save_checkpoints_steps is callbacks.ModelCheckpoint(save_freq=...)\n"
            "    config = tf.estimator.tpu.RunConfig(\n"
            "        cluster=cluster, model_dir='m', save_checkpoints_steps=100)\n"
            "    tf.estimator.tpu.TPUEstimator(model_fn, config=config)\n"
            + _FUNCTION.format(tf="tf"),
        ),
    ],
    unchanged=[
        "import tensorflow as tf\n\nx = tf.estimator.Estimator(model_fn, 'dir')\n",
        "import tensorflow as tf\n\nconfig = tf.estimator.RunConfig(model_dir='dir')\n",
    ],
)
def find(module):
    if module.tf is None:
        return
    for call in module.calls(*_CONFIGS):
        said = [f"{k.arg} is {_KERAS[k.arg]}" for k in call.node.keywords if k.arg in _KERAS]
        if said:
            yield Todo(call.node, f"beside fit, {'; '.join(said)}")
    estimators = [*module.calls("tf.estimator.tpu.TPUEstimator", "tf.contrib.tpu.TPUEstimator")]
    if estimators and _NAME not in module.source.scope.bindings:
        statement = estimators[-1].node
        while not isinstance(statement.parent, ast.Module):
            statement = statement.parent
        if isinstance(statement, ast.FunctionDef):
            yield module.append_after(statement, _FUNCTION.format(tf=module.tf))
