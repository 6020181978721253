"""Photographs on a TPU: a TPUEstimator program in the way of the ResNet of TensorFlow 1.x.

  e2s run --emulate-tpu-cores=4 flowers.py --data_dir=/tmp/flowers/records \
      --model_dir=/tmp/flowers/model --export_dir=/tmp/flowers/exported

Parallel, shuffled, prefetched input; transpose_input; batch norm; training and evaluation in turn,
from wherever the last checkpoint is; export of a model that takes JPEG files.
"""
import os

import tensorflow as tf

flags = tf.flags
flags.DEFINE_string('data_dir', None, 'Folder of TFRecords: train-*, test-*.')
flags.DEFINE_string('model_dir', None, 'Folder for checkpoints and summaries.')
flags.DEFINE_string('export_dir', None, 'Folder for the exported model.')
flags.DEFINE_bool('use_tpu', True, 'Whether to train on a TPU.')
flags.DEFINE_string('tpu', '', 'Name or addresses of the TPU; none for that of this machine.')
flags.DEFINE_bool('transpose_input', True, 'Feed images as [height, width, channels, batch].')
flags.DEFINE_integer('batch_size', 64, 'Global batch size.')
flags.DEFINE_integer('train_steps', 200, 'Global step to train to.')
flags.DEFINE_integer('steps_per_eval', 100, 'Steps between evaluations.')
flags.DEFINE_integer('iterations', 10, 'Steps per call of the TPU.')
FLAGS = flags.FLAGS

SIZE = 32
NUM_TEST = 160


def preprocess(encoded):
  image = tf.image.decode_jpeg(encoded, channels=3)
  image = tf.image.convert_image_dtype(tf.reshape(image, [SIZE, SIZE, 3]), tf.float32)
  return image - 0.5


def parse(record):
  example = tf.parse_single_example(record, {
      'image/encoded': tf.FixedLenFeature([], tf.string),
      'image/class/label': tf.FixedLenFeature([], tf.int64),
  })
  return preprocess(example['image/encoded']), tf.cast(example['image/class/label'], tf.int32)


def input_fn(params, is_training):
  files = tf.data.Dataset.list_files(
      os.path.join(params['data_dir'], ('train' if is_training else 'test') + '-*'),
      shuffle=is_training, seed=1)
  dataset = files.apply(tf.contrib.data.parallel_interleave(
      tf.data.TFRecordDataset, cycle_length=4, sloppy=False))
  if is_training:
    dataset = dataset.apply(tf.contrib.data.shuffle_and_repeat(1024, seed=1))
  dataset = dataset.apply(tf.contrib.data.map_and_batch(
      parse, batch_size=params['batch_size'], num_parallel_batches=2, drop_remainder=True))
  if params['transpose_input']:
    # The batch comes last, as a TPU likes it best; model_fn puts it back.
    dataset = dataset.map(
        lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels),
        num_parallel_calls=2)
  return dataset.prefetch(tf.contrib.data.AUTOTUNE)


def block(net, filters, training, name):
  with tf.variable_scope(name):
    net = tf.layers.conv2d(net, filters, 3, padding='same', use_bias=False, name='conv')
    net = tf.layers.batch_normalization(net, training=training, momentum=0.9, fused=True, name='bn')
    return tf.layers.max_pooling2d(tf.nn.relu(net), 2, 2)


def model_fn(features, labels, mode, params):
  training = mode == tf.estimator.ModeKeys.TRAIN
  if isinstance(features, dict):
    features = features['image']
  elif params['transpose_input']:
    features = tf.transpose(features, [3, 0, 1, 2])
  net = features
  for i, filters in enumerate((16, 32, 64)):
    net = block(net, filters, training, 'block%d' % i)
  logits = tf.layers.dense(tf.reduce_mean(net, [1, 2]), 2, name='logits')
  if mode == tf.estimator.ModeKeys.PREDICT:
    predictions = {'class': tf.argmax(logits, 1), 'probabilities': tf.nn.softmax(logits)}
    return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions, export_outputs={
        'serving_default': tf.estimator.export.PredictOutput(predictions)})
  loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
  train_op = None
  if training:
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True)
    if params['use_tpu']:
      optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
      train_op = optimizer.minimize(loss, tf.train.get_global_step())
  return tf.estimator.tpu.TPUEstimatorSpec(
      mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits]))


def metric_fn(labels, logits):
  return {'accuracy': tf.metrics.accuracy(labels, tf.argmax(logits, 1))}


def serving_input_receiver_fn():
  """JPEG files, as many as a request has."""
  encoded = tf.placeholder(tf.string, [None], name='image_bytes')
  images = tf.map_fn(preprocess, encoded, dtype=tf.float32)
  return tf.estimator.export.ServingInputReceiver({'image': images}, {'image_bytes': encoded})


def main(unused_argv):
  cluster = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu) if FLAGS.use_tpu else None
  config = tf.estimator.tpu.RunConfig(
      cluster=cluster, model_dir=FLAGS.model_dir, tf_random_seed=1, save_summary_steps=10,
      save_checkpoints_steps=FLAGS.steps_per_eval,
      tpu_config=tf.estimator.tpu.TPUConfig(
          iterations_per_loop=FLAGS.iterations,
          per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2))
  estimator = tf.estimator.tpu.TPUEstimator(
      model_fn, config=config, use_tpu=FLAGS.use_tpu, export_to_tpu=False,
      train_batch_size=FLAGS.batch_size, eval_batch_size=32,
      params={'data_dir': FLAGS.data_dir, 'transpose_input': FLAGS.transpose_input})

  checkpoint = tf.train.latest_checkpoint(FLAGS.model_dir)
  step = int(checkpoint.split('-')[-1]) if checkpoint else 0
  tf.logging.info('Training from step %d to %d.', step, FLAGS.train_steps)
  while step < FLAGS.train_steps:
    step = min(step + FLAGS.steps_per_eval, FLAGS.train_steps)
    estimator.train(lambda params: input_fn(params, True), max_steps=step)
    results = estimator.evaluate(lambda params: input_fn(params, False), steps=NUM_TEST // 32)
    tf.logging.info('Step %d: %s', step, results)
  if FLAGS.export_dir:
    estimator.export_saved_model(FLAGS.export_dir, serving_input_receiver_fn)


if __name__ == '__main__':
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.app.run(main)
