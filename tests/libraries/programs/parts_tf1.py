"""Tries parts of libraries of TensorFlow 1 that the programs here do not use, in an Estimator.

python parts_tf1.py NAME

Prints for each part the metrics of an evaluation after four steps, or the error.
"""

import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

rows = np.linspace(-1, 1, 96).astype(np.float32).reshape(16, 6)
labels = (rows[:, 0] > 0).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((rows, labels)).batch(4, drop_remainder=True)


def start(shape, dtype=None, partition_info=None):
    """The first values of a variable."""
    return tf.constant(np.linspace(-1, 1, np.prod(shape)).reshape(shape), tf.float32)


def dense(inputs, units, name=None):
    return tf.layers.dense(inputs, units, kernel_initializer=start, name=name)


def trained(network, loss_of=None, minimize=None):
    """The metrics of an Estimator whose loss and train op these functions make."""

    def model_fn(features, labels, mode):
        outputs = network(features)
        loss = loss_of(outputs, labels) if loss_of else _cross_entropy(outputs, labels)
        train_op = (minimize or _descent)(loss)
        metrics = {"output": tf.metrics.mean(outputs)}
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops=metrics
        )

    estimator = tf.estimator.Estimator(model_fn, config=_config())
    estimator.train(input_fn, steps=4)
    return estimator.evaluate(input_fn)


def _cross_entropy(logits, labels):
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def _descent(loss):
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = tf.train.get_global_step()
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)


def _config(config=tf.estimator.RunConfig):
    return config(tf_random_seed=1, model_dir=tempfile.mkdtemp())


def _noise(mode=None, params=None):
    return tf.data.Dataset.from_tensor_slices((rows[:, :2], 1 + rows[:, 2:4])).batch(
        4, drop_remainder=True
    )


def _gan():
    import tensorflow_gan as tfgan

    return {
        "discriminator_fn": lambda inputs, _: dense(tf.tanh(dense(inputs, 4, "first")), 1, "last"),
        "generator_optimizer": tf.train.GradientDescentOptimizer(0.1),
        "discriminator_optimizer": tf.train.GradientDescentOptimizer(0.1),
        "generator_loss_fn": tfgan.losses.wasserstein_generator_loss,
        "discriminator_loss_fn": tfgan.losses.wasserstein_discriminator_loss,
        "generator_fn": lambda noise: dense(noise, 2),
    }


def tpu_gan_estimator():
    import tensorflow_gan as tfgan

    estimator = tfgan.estimator.TPUGANEstimator(
        **_gan(),
        joint_train=False,  # TF 1.15 does not order the two updates of a joint step
        use_tpu=False,
        train_batch_size=4,
        eval_batch_size=4,
        config=_config(tf.compat.v1.estimator.tpu.RunConfig),
    )
    estimator.train(lambda params: _noise().repeat(), steps=4)
    return estimator.evaluate(lambda params: _noise(), steps=4)


def gan_estimator_with_two_discriminator_steps():
    import tensorflow_gan as tfgan

    estimator = tfgan.estimator.GANEstimator(
        **_gan(),
        get_hooks_fn=tfgan.get_sequential_train_hooks(tfgan.GANTrainSteps(1, 2)),
        config=_config(),
    )
    estimator.train(lambda: _noise().repeat(), steps=4)
    return estimator.evaluate(_noise, steps=4)


def _registered(kfac, layer, features, logits, labels):
    collection = kfac.LayerCollection()
    collection.register_fully_connected((layer.kernel, layer.bias), features, logits)
    collection.register_categorical_predictive_distribution(logits, seed=1, targets=labels)
    return collection


def _of_kfac(minimize, **options):
    import kfac

    made = {}

    def network(features):
        made["layer"] = tf.layers.Dense(2, kernel_initializer=start)
        made["features"] = features
        return made["layer"](features)

    def loss_of(logits, labels):
        collection = _registered(kfac, made["layer"], made["features"], logits, labels)
        made["options"] = dict(
            learning_rate=0.1, layer_collection=collection, damping=0.01, **options
        )
        return _cross_entropy(logits, labels)

    def train_op(loss):
        return minimize(kfac, made["options"], loss)

    return trained(network, loss_of, train_op)


def kfac_optimizer():
    def minimize(kfac, options, loss):
        optimizer = kfac.KfacOptimizer(momentum=0.9, estimation_mode="empirical", **options)
        covariances, inverses = optimizer.make_vars_and_create_op_thunks()
        step = tf.train.get_global_step()
        with tf.control_dependencies([thunk() for thunk in covariances]):
            updated = tf.cond(
                tf.equal(tf.mod(step, 2), 0),
                lambda: tf.group([thunk() for thunk in inverses]),
                tf.no_op,
            )
        with tf.control_dependencies([updated]):
            return optimizer.minimize(loss, global_step=step)

    return _of_kfac(minimize)


def weight_decay_and_a_norm_constraint():
    def minimize(kfac, options, loss):
        optimizer = kfac.PeriodicInvCovUpdateKfacOpt(
            cov_update_every=1,
            invert_every=1,
            estimation_mode="empirical",
            use_weight_decay=True,
            weight_decay_coeff=0.01,
            norm_constraint=0.01,
            **options,
        )
        return optimizer.minimize(loss, global_step=tf.train.get_global_step())

    return _of_kfac(minimize)


def _on_mesh(network, optimizer):
    """An Estimator of a mesh network: mtf tensors in and out."""
    import mesh_tensorflow as mtf

    def model_fn(features, labels, mode):
        graph = mtf.Graph()
        mesh = mtf.Mesh(graph, "mesh")
        batch, classes = mtf.Dimension("batch", 4), mtf.Dimension("classes", 2)
        x = mtf.import_tf_tensor(mesh, features, mtf.Shape([batch, mtf.Dimension("in", 6)]))
        y = mtf.one_hot(mtf.import_tf_tensor(mesh, labels, mtf.Shape([batch])), classes)
        logits = network(mtf, x, classes)
        loss = mtf.reduce_mean(mtf.layers.softmax_cross_entropy_with_logits(logits, y, classes))
        gradients = mtf.gradients([loss], [v.outputs[0] for v in graph.trainable_variables])
        updates = optimizer(mtf.optimize).apply_grads(gradients, graph.trainable_variables)
        placement = mtf.placement_mesh_impl.PlacementMeshImpl("all:1", "batch:all", [""])
        lowering = mtf.Lowering(graph, {mesh: placement})
        tf_loss = tf.to_float(lowering.export_to_tf_tensor(loss))
        restore = mtf.MtfRestoreHook(lowering)
        if mode != tf.estimator.ModeKeys.TRAIN:
            outputs = tf.metrics.mean(lowering.export_to_tf_tensor(logits))
            return tf.estimator.EstimatorSpec(
                mode,
                loss=tf_loss,
                eval_metric_ops={"output": outputs},
                evaluation_hooks=[restore],
            )
        lowered = [lowering.lowered_operation(op) for op in updates]
        lowered.append(tf.assign_add(tf.train.get_global_step(), 1))
        return tf.estimator.EstimatorSpec(
            mode, loss=tf_loss, train_op=tf.group(lowered), training_hooks=[restore]
        )

    estimator = tf.estimator.Estimator(model_fn, config=_config())
    estimator.train(input_fn, steps=4)
    return estimator.evaluate(input_fn)


def _two_layers(mtf, x, classes):
    hidden = mtf.Dimension("hidden", 8)
    x = mtf.layers.dense(x, hidden, activation=mtf.relu, kernel_initializer=start, name="a")
    x = mtf.layers.layer_norm(x, hidden, name="norm")
    return mtf.layers.dense(x, classes, kernel_initializer=start, name="b")


def adam_and_layer_norm_on_a_mesh():
    return _on_mesh(_two_layers, lambda of: of.AdamWeightDecayOptimizer(0.01, epsilon=1e-3))


def conv_and_pooling_on_a_mesh():
    def network(mtf, x, classes):
        (batch, _), high, wide = x.shape, mtf.Dimension("high", 2), mtf.Dimension("wide", 3)
        one, many = mtf.Dimension("one", 1), mtf.Dimension("many", 4)
        x = mtf.reshape(x, mtf.Shape([batch, high, wide, one]))
        x = mtf.relu(
            mtf.layers.conv2d(x, many, filter_size=(2, 2), filter_initializer=start, name="conv")
        )
        x = mtf.layers.avg_pool2d(x, (1, 3))
        x = mtf.reduce_sum(x, output_shape=mtf.Shape([batch, many]))
        return mtf.layers.dense(x, classes, kernel_initializer=start, name="logits")

    return _on_mesh(network, lambda of: of.SgdOptimizer(0.05))


def convolutions_of_sonnet():
    import sonnet as snt

    def network(features):
        image = tf.reshape(features, [-1, 2, 3, 1])
        convolved = snt.nets.ConvNet2D([4, 2], [3], [1], [snt.SAME], initializers={"w": start})
        larger = snt.Conv2DTranspose(2, [4, 6], 3, 2, initializers={"w": start})
        return snt.Linear(2, initializers={"w": start})(
            snt.BatchFlatten()(tf.tanh(larger(convolved(image))))
        )

    return trained(network)


def recurrent_cores_of_sonnet():
    import sonnet as snt

    def network(features):
        gated = snt.GRU(3, initializers=dict.fromkeys(snt.GRU.POSSIBLE_INITIALIZER_KEYS, start))
        linear = {key: {"w": start} for key in ("in_to_hidden", "hidden_to_hidden")}
        plain = snt.VanillaRNN(2, initializers=linear)
        deep = snt.DeepRNN([gated, plain], skip_connections=False)
        steps = tf.reshape(features, [-1, 3, 2])
        outputs, _ = tf.nn.dynamic_rnn(
            deep, steps, initial_state=deep.initial_state(tf.shape(steps)[0])
        )
        return outputs[:, -1]

    return trained(network)


def embeddings_and_layer_norm_of_sonnet():
    import sonnet as snt

    def network(features):
        ids = tf.to_int32(tf.round(4 + 4 * features))
        embedded = snt.Embed(9, 2, initializers={"embeddings": start})(ids)
        return snt.LayerNorm()(
            snt.Linear(2, initializers={"w": start})(snt.BatchFlatten()(embedded))
        )

    return trained(network)


def moving_averages_of_sonnet():
    import sonnet as snt

    def network(features):
        average = snt.MovingAverage(decay=0.5)
        return snt.Linear(2, initializers={"w": start})(
            features - average(tf.reduce_mean(features))
        )

    return trained(network)


def sequences_of_trfl():
    import trfl

    def network(features):
        return tf.reshape(dense(features, 6), [-1, 2, 3])

    def loss_of(outputs, labels):
        values, policies = outputs[:, :, 0], outputs[:, :, 1:]
        rewards, discounts = tf.ones_like(values), 0.9 * tf.ones_like(values)
        actions = tf.zeros_like(values, tf.int32)
        last = tf.reduce_sum(values, 0)
        critic = trfl.sequence_advantage_actor_critic_loss(
            policies, values, actions, rewards, discounts, last, lambda_=0.9, entropy_cost=0.1
        )
        learnt = trfl.td_lambda(values, rewards, discounts, last, lambda_=0.5)
        return tf.reduce_mean(critic.loss) + tf.reduce_mean(learnt.loss)

    return trained(network, loss_of)


def vtrace_of_trfl():
    import trfl

    def network(features):
        return tf.reshape(dense(features, 6), [-1, 2, 3])

    def loss_of(outputs, labels):
        values, policies = outputs[:, :, 0], outputs[:, :, 1:]
        returns = trfl.vtrace_from_logits(
            tf.zeros_like(policies),
            policies,
            tf.zeros_like(values, tf.int32),
            0.9 * tf.ones_like(values),
            tf.ones_like(values),
            values,
            tf.reduce_sum(values, 0),
        )
        return tf.reduce_mean(tf.square(returns.vs - values)) - tf.reduce_mean(
            returns.pg_advantages * policies[:, :, 0]
        )

    return trained(network, loss_of)


def retrace_of_trfl():
    import trfl

    def network(features):
        return tf.reshape(dense(features, 4), [-1, 2, 2])

    def loss_of(values, labels):
        rewards = tf.ones_like(values[:, :, 0])
        actions = tf.zeros_like(rewards, tf.int32)
        policy = 0.5 * tf.ones_like(values)
        found = trfl.retrace(
            0.9, values, values, actions, rewards, 0.9 * rewards, policy, policy[:, :, 0]
        )
        return tf.reduce_mean(found.loss)

    return trained(network, loss_of)


def distributions_of_values_of_trfl():
    import trfl

    atoms = np.linspace(-1, 1, 3).astype(np.float32)

    def network(features):
        return tf.reshape(dense(features, 6), [-1, 2, 3])

    def loss_of(logits, labels):
        ones = tf.ones_like(logits[:, 0, 0])
        found = trfl.categorical_dist_qlearning(
            atoms, logits, labels, ones, 0.9 * ones, atoms, tf.stop_gradient(logits)
        )
        return tf.reduce_mean(found.loss)

    return trained(network, loss_of)


PARTS = {
    "gan": {
        "`TPUGANEstimator`": tpu_gan_estimator,
        "`get_sequential_train_hooks`": gan_estimator_with_two_discriminator_steps,
    },
    "kfac": {
        "`KfacOptimizer`": kfac_optimizer,
        "`use_weight_decay`, `norm_constraint`": weight_decay_and_a_norm_constraint,
    },
    "mesh": {
        "`AdamWeightDecayOptimizer`, `layer_norm`": adam_and_layer_norm_on_a_mesh,
        "`conv2d`, `avg_pool2d`": conv_and_pooling_on_a_mesh,
    },
    "sonnet": {
        "`ConvNet2D`, `Conv2DTranspose`": convolutions_of_sonnet,
        "`GRU`, `VanillaRNN`, `DeepRNN`": recurrent_cores_of_sonnet,
        "`Embed`, `LayerNorm`": embeddings_and_layer_norm_of_sonnet,
        "`MovingAverage`": moving_averages_of_sonnet,
    },
    "trfl": {
        "`td_lambda`, `sequence_advantage_actor_critic_loss`": sequences_of_trfl,
        "`vtrace_from_logits`": vtrace_of_trfl,
        "`retrace`": retrace_of_trfl,
        "`categorical_dist_qlearning`": distributions_of_values_of_trfl,
    },
}


def ended(part):
    """The metrics of a part, or its error."""
    try:
        return {key: float(value) for key, value in part().items()}
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip()}".split("\n")[0]


print("RESULT", json.dumps({name: ended(part) for name, part in PARTS[sys.argv[1]].items()}))
