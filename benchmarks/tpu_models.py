"""Full-size legacy model_fns, which migration_guide/tpu_compile.md has compiled for TPUs.

    e2s check benchmarks/tpu_models.py:resnet50 --input benchmarks/tpu_models.py:images \\
        --batch-size 1024 --modes train --tpu v2-8,v3-8,v5e-4

They are written for TF 1.15, as programs for TPUs were: `tf.layers`, `CrossShardOptimizer`,
`TPUEstimatorSpec`. Inputs are zeros, made where they are used: nothing here is trained.
"""

from __future__ import annotations

import tensorflow as tf
from bert import modeling, optimization

IMAGE, CLASSES = 224, 1000
# BERT-base: google-research/bert, uncased_L-12_H-768_A-12.
SEQUENCE, VOCABULARY, LABELS = 128, 30522, 2
# Of ResNet-50: filters and blocks of each group.
GROUPS = ((64, 3), (128, 4), (256, 6), (512, 3))
CONV_GROUPS = ((16, 1), (32, 1))


def zeros(params, *tensors):
    """A dataset of batches of zeros, with a fixed size."""
    size = [params["batch_size"]]
    batch = tuple(tf.zeros(size + shape, dtype) for shape, dtype in tensors)
    return tf.data.Dataset.from_tensors(batch).repeat()


# --- ResNet-50 ---------------------------------------------------------------------------------


def images(params):
    """Returns bfloat16 images [batch, 224, 224, 3] and int32 labels [batch]."""
    return zeros(params, ([IMAGE, IMAGE, 3], tf.bfloat16), ([], tf.int32))


def small_images(params):
    """Returns bfloat16 images [batch, 32, 32, 3] and int32 labels [batch]."""
    return zeros(params, ([32, 32, 3], tf.bfloat16), ([], tf.int32))


def convolution(inputs, filters, size, stride=1):
    """A convolution without bias, padded alike for every stride."""
    return tf.layers.conv2d(
        inputs, filters, size, stride, padding="same", use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(),
    )  # fmt: skip


def normalized(inputs, training, relu=True, zero=False):
    """Batch normalization of a core's own part of the batch, as on TPUs."""
    gamma = tf.zeros_initializer() if zero else tf.ones_initializer()
    outputs = tf.layers.batch_normalization(
        inputs, momentum=0.9, epsilon=1e-5, training=training, fused=True, gamma_initializer=gamma
    )
    return tf.nn.relu(outputs) if relu else outputs


def bottleneck(inputs, filters, stride, training):
    """Three convolutions around a shortcut."""
    shortcut = inputs
    if stride > 1 or inputs.shape[-1] != 4 * filters:
        shortcut = normalized(convolution(inputs, 4 * filters, 1, stride), training, relu=False)
    outputs = normalized(convolution(inputs, filters, 1), training)
    outputs = normalized(convolution(outputs, filters, 3, stride), training)
    outputs = normalized(convolution(outputs, 4 * filters, 1), training, relu=False, zero=True)
    return tf.nn.relu(outputs + shortcut)


def resnet_logits(inputs, groups, training):
    """A residual network; float32 logits [batch, CLASSES]."""
    outputs = normalized(convolution(inputs, groups[0][0], 7, 2), training)
    outputs = tf.layers.max_pooling2d(outputs, 3, 2, padding="same")
    for group, (filters, blocks) in enumerate(groups):
        for block in range(blocks):
            stride = 2 if group and not block else 1
            outputs = bottleneck(outputs, filters, stride, training)
    pooled = tf.cast(tf.reduce_mean(outputs, [1, 2]), tf.float32)
    return tf.layers.dense(pooled, CLASSES)


def resnet(features, labels, mode, groups):
    """Computes in bfloat16 on float32 variables, trains with momentum and weight decay."""
    training = mode == tf.estimator.ModeKeys.TRAIN
    with tf.contrib.tpu.bfloat16_scope():
        logits = resnet_logits(features, groups, training)
    logits = tf.cast(logits, tf.float32)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"classes": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    kernels = [v for v in tf.trainable_variables() if "batch_normalization" not in v.name]
    loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in kernels])
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (accuracy, [labels, logits])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)
    optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def accuracy(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}


def resnet50(features, labels, mode, params):
    """ResNet-50 (v1.5) on images of 224 x 224: 25.6 million parameters."""
    del params
    return resnet(features, labels, mode, GROUPS)


def conv_net(features, labels, mode, params):
    """Two blocks of the same, on images of 32 x 32."""
    del params
    return resnet(features, labels, mode, CONV_GROUPS)


# --- BERT --------------------------------------------------------------------------------------


def sentences(params):
    """Returns int32 token ids [batch, 128] and int32 labels [batch]."""
    return zeros(params, ([SEQUENCE], tf.int32), ([], tf.int32))


def bert(features, labels, mode, layers):
    """A classifier on google-research/bert, as `run_classifier.py` trains it: in float32."""
    config = modeling.BertConfig(VOCABULARY, num_hidden_layers=layers)
    training = mode == tf.estimator.ModeKeys.TRAIN
    model = modeling.BertModel(config, training, features, use_one_hot_embeddings=True)
    pooled = model.get_pooled_output()
    logits = tf.layers.dense(tf.nn.dropout(pooled, 0.9) if training else pooled, LABELS)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (accuracy, [labels, logits])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    train_op = optimization.create_optimizer(loss, 5e-5, 1000, 100, use_tpu=True)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def bert_base(features, labels, mode, params):
    """BERT-base on sequences of 128: 109 million parameters, Adam with weight decay."""
    del params
    return bert(features, labels, mode, layers=12)


def bert_2_layers(features, labels, mode, params):
    """The same with two layers: 39 million parameters."""
    del params
    return bert(features, labels, mode, layers=2)
