"""A regression that mesh_tensorflow computes in two parts of the batch, trained by an Estimator.

    python mesh.py MODEL_DIR

Prints the losses of two evaluations: before the last 40 steps of training, and after them.
"""

import json
import sys

import mesh_tensorflow as mtf
import tensorflow as tf

BATCH = mtf.Dimension("batch", 8)
INPUTS = mtf.Dimension("inputs", 4)
HIDDEN = mtf.Dimension("hidden", 16)


def model_fn(features, labels, mode, params):
    graph = mtf.Graph()
    mesh = mtf.Mesh(graph, "mesh")
    x = mtf.import_tf_tensor(mesh, features, mtf.Shape([BATCH, INPUTS]))
    y = mtf.import_tf_tensor(mesh, labels, mtf.Shape([BATCH]))
    hidden = mtf.layers.dense(
        x, [HIDDEN], reduced_dims=[INPUTS], activation=mtf.relu, name="hidden"
    )
    output = mtf.layers.dense(hidden, [], reduced_dims=[HIDDEN], name="output")
    loss = mtf.reduce_mean(mtf.square(output - y))
    updates = []
    if mode == tf.estimator.ModeKeys.TRAIN:
        variables = graph.trainable_variables
        gradients = mtf.gradients([loss], [variable.outputs[0] for variable in variables])
        updates = mtf.optimize.SgdOptimizer(0.05).apply_grads(gradients, variables)
    # Two parts of the mesh, on one device.
    placed = mtf.placement_mesh_impl.PlacementMeshImpl("rows:2", "batch:rows", ["", ""])
    lowering = mtf.Lowering(graph, {mesh: placed})
    tf_loss = tf.to_float(lowering.export_to_tf_tensor(loss))
    restore = mtf.MtfRestoreHook(lowering)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"mean_loss": tf.metrics.mean(tf_loss)}
        return tf.estimator.EstimatorSpec(
            mode, loss=tf_loss, evaluation_hooks=[restore], eval_metric_ops=metrics
        )
    step = tf.train.get_global_step()
    ops = [lowering.lowered_operation(update) for update in updates]
    saver = tf.train.Saver(tf.global_variables(), sharded=True, save_relative_paths=True)
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    saving = tf.train.CheckpointSaverHook(
        params["model_dir"],
        save_steps=20,
        saver=saver,
        listeners=[mtf.MtfCheckpointSaverListener(lowering)],
    )
    return tf.estimator.EstimatorSpec(
        mode,
        loss=tf_loss,
        train_op=tf.group([*ops, tf.assign_add(step, 1)]),
        training_chief_hooks=[restore, saving],
    )


def input_fn():
    x = tf.random_uniform([64, 4], -1, 1, seed=1)
    data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keep_dims=True)[:, 0]))
    return data.repeat().batch(8, drop_remainder=True)


def main(argv):
    model = tf.estimator.Estimator(model_fn, argv[1], params={"model_dir": argv[1]})
    losses = []
    for steps in (20, 60):
        model.train(input_fn, max_steps=steps)
        losses.append(float(model.evaluate(input_fn, steps=8)["mean_loss"]))
    print(json.dumps(losses))


if __name__ == "__main__":
    tf.app.run(main, sys.argv)
