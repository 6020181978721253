"""A mesh-tensorflow model in a model_fn, lowered onto a mesh of one CPU."""

import json
import tempfile

import mesh_tensorflow as mtf
import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
rows = random.rand(64, 4).astype(np.float32)
labels = (rows.sum(1) > 2).astype(np.int32)


def input_fn():
    dataset = tf.data.Dataset.from_tensor_slices(({"x": rows}, labels))
    return dataset.batch(16, drop_remainder=True).repeat()


def start(units):
    return tf.constant_initializer(np.linspace(-1, 1, units))


def model_fn(features, labels, mode):
    graph = mtf.Graph()
    mesh = mtf.Mesh(graph, "mesh")
    batch, width = mtf.Dimension("batch", 16), mtf.Dimension("in", 4)
    hidden, classes = mtf.Dimension("hidden", 8), mtf.Dimension("classes", 2)
    x = mtf.import_tf_tensor(mesh, features["x"], mtf.Shape([batch, width]))
    y = mtf.import_tf_tensor(mesh, labels, mtf.Shape([batch]))
    x = mtf.layers.dense(x, hidden, activation=mtf.relu, kernel_initializer=start(32), name="first")
    logits = mtf.layers.dense(x, classes, kernel_initializer=start(16), name="logits")
    loss = mtf.reduce_mean(
        mtf.layers.softmax_cross_entropy_with_logits(logits, mtf.one_hot(y, classes), classes)
    )
    updates = []
    if mode == tf.estimator.ModeKeys.TRAIN:
        variables = graph.trainable_variables
        gradients = mtf.gradients([loss], [variable.outputs[0] for variable in variables])
        updates = mtf.optimize.SgdOptimizer(0.05).apply_grads(gradients, variables)
    layout = mtf.placement_mesh_impl.PlacementMeshImpl("all:1", "batch:all", [""])
    lowering = mtf.Lowering(graph, {mesh: layout})
    tf_loss = tf.to_float(lowering.export_to_tf_tensor(loss))
    restore = mtf.MtfRestoreHook(lowering)
    with mtf.utils.outside_all_rewrites():
        if mode != tf.estimator.ModeKeys.TRAIN:
            predicted = tf.argmax(lowering.export_to_tf_tensor(logits), 1)
            metrics = {"accuracy": tf.metrics.accuracy(labels, predicted)}
            return tf.estimator.EstimatorSpec(
                mode, loss=tf_loss, eval_metric_ops=metrics, evaluation_hooks=[restore]
            )
        lowered = [lowering.lowered_operation(op) for op in updates]
        lowered.append(tf.assign_add(tf.train.get_global_step(), 1))
        return tf.estimator.EstimatorSpec(
            mode, loss=tf_loss, train_op=tf.group(lowered), training_chief_hooks=[restore]
        )


config = tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp())
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn, steps=8)
print(
    "RESULT",
    json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(input_fn, steps=4).items())}),
)
