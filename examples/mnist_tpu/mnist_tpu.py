"""Handwritten digits on a TPU: a TPUEstimator program as they were written for TensorFlow 1.x.

  python make_data.py --data_dir=/tmp/digits
  python mnist_tpu.py --data_dir=/tmp/digits --model_dir=/tmp/digits_model

The same file runs under TensorFlow 1.15 and, with estimator2strategy, under today's TensorFlow;
the import below is all that knows of both. See README.md.
"""
import os

try:
  import estimator2strategy.tf1 as tf  # today's TensorFlow
except ImportError:
  import tensorflow as tf  # TensorFlow 1.15

tf.flags.DEFINE_string('data_dir', None, 'Directory with train.tfrecords and test.tfrecords.')
tf.flags.DEFINE_string('model_dir', None, 'Directory for checkpoints and summaries.')
tf.flags.DEFINE_bool('use_tpu', False, 'Train on a TPU rather than on the CPU.')
tf.flags.DEFINE_string('tpu', '', 'Name or grpc:// address of the TPU.')
tf.flags.DEFINE_integer('train_steps', 600, 'Total number of training steps; 0 skips training.')
tf.flags.DEFINE_integer('iterations', 10, 'Training steps per call of the TPU.')
tf.flags.DEFINE_integer('batch_size', 64, 'Global training batch size; divisible by the cores.')
tf.flags.DEFINE_integer('eval_batch_size', 120, 'Global batch size to evaluate and predict with.')
tf.flags.DEFINE_integer('eval_steps', 3, 'Number of evaluation batches; 0 skips evaluation.')
tf.flags.DEFINE_integer('predictions', 8, 'Number of test digits to log predictions for.')
tf.flags.DEFINE_float('learning_rate', 0.05, 'Initial learning rate.')
tf.flags.DEFINE_float('dropout', 0.4, 'Fraction of hidden units dropped in training.')
tf.flags.DEFINE_bool('shuffle', True, 'Shuffle the training digits.')
tf.flags.DEFINE_integer('seed', 1, 'Seed of the initial weights, the shuffling and the dropout.')

FLAGS = tf.flags.FLAGS

NUM_CLASSES = 10
IMAGE_SIZE = 8
TRAIN_EXAMPLES = 1437
DECAY_STEPS = 100
DECAY_RATE = 0.7


def parse_digit(record):
  """One serialized tf.train.Example -> (8x8x1 float32 image in [0, 1], int32 label)."""
  example = tf.parse_single_example(record, {
      'image_raw': tf.FixedLenFeature([], tf.string),
      'label': tf.FixedLenFeature([], tf.int64),
  })
  image = tf.cast(tf.decode_raw(example['image_raw'], tf.uint8), tf.float32) / 16.0
  image = tf.reshape(image, [IMAGE_SIZE, IMAGE_SIZE, 1])
  return image, tf.cast(example['label'], tf.int32)


def read_digits(params, filename):
  return tf.data.TFRecordDataset(os.path.join(params['data_dir'], filename)).map(parse_digit)


def train_input_fn(params):
  dataset = read_digits(params, 'train.tfrecords')
  if params['shuffle']:
    dataset = dataset.shuffle(TRAIN_EXAMPLES, seed=FLAGS.seed)
  dataset = dataset.repeat().batch(params['batch_size'], drop_remainder=True)
  return dataset.prefetch(1)


def eval_input_fn(params):
  return read_digits(params, 'test.tfrecords').batch(params['batch_size'], drop_remainder=True)


def predict_input_fn(params):
  images = read_digits(params, 'test.tfrecords').map(lambda image, label: image)
  return images.batch(params['batch_size'])


def digit_logits(images, dropout, training):
  """Three convolutions, two poolings, one hidden layer: 8x8x1 images -> 10 logits each."""
  net = tf.layers.conv2d(images, 16, 3, padding='same', activation=tf.nn.relu, name='conv1')
  net = tf.layers.conv2d(net, 32, 3, padding='same', activation=tf.nn.relu, name='conv2')
  net = tf.layers.max_pooling2d(net, 2, 2, name='pool1')
  net = tf.layers.conv2d(net, 64, 3, padding='same', activation=tf.nn.relu, name='conv3')
  net = tf.layers.max_pooling2d(net, 2, 2, name='pool2')
  net = tf.layers.flatten(net)
  net = tf.layers.dense(net, 64, activation=tf.nn.relu, name='hidden')
  net = tf.layers.dropout(net, rate=dropout, training=training)
  return tf.layers.dense(net, NUM_CLASSES, name='logits')


def metric_fn(labels, logits):
  predictions = tf.argmax(logits, axis=1, output_type=tf.int32)
  return {
      'accuracy': tf.metrics.accuracy(labels, predictions),
      'top_2_accuracy': tf.metrics.mean(tf.cast(tf.nn.in_top_k(logits, labels, 2), tf.float32)),
      'precision_of_eights': tf.metrics.precision(tf.equal(labels, 8), tf.equal(predictions, 8)),
  }


def model_fn(features, labels, mode, params):
  training = mode == tf.estimator.ModeKeys.TRAIN
  logits = digit_logits(features, params['dropout'], training)

  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={
        'class': tf.argmax(logits, axis=1, output_type=tf.int32),
        'probabilities': tf.nn.softmax(logits),
    })

  loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)

  if mode == tf.estimator.ModeKeys.EVAL:
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))

  global_step = tf.train.get_global_step()
  learning_rate = tf.train.exponential_decay(
      params['learning_rate'], global_step, DECAY_STEPS, DECAY_RATE)
  optimizer = tf.train.MomentumOptimizer(learning_rate, momentum=0.9)
  if FLAGS.use_tpu:
    optimizer = tf.tpu.CrossShardOptimizer(optimizer)
  train_op = optimizer.minimize(loss, global_step=global_step)
  return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def build_estimator(session_config=None):
  """The TPUEstimator that the flags describe."""
  cluster = None
  if FLAGS.use_tpu:
    cluster = tf.contrib.cluster_resolver.TPUClusterResolver(tpu=FLAGS.tpu)
  config = tf.estimator.tpu.RunConfig(
      cluster=cluster,
      model_dir=FLAGS.model_dir,
      tf_random_seed=FLAGS.seed,
      session_config=session_config,
      save_summary_steps=FLAGS.iterations,
      log_step_count_steps=100,
      tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=FLAGS.iterations))
  return tf.estimator.tpu.TPUEstimator(
      model_fn=model_fn,
      config=config,
      use_tpu=FLAGS.use_tpu,
      train_batch_size=FLAGS.batch_size,
      eval_batch_size=FLAGS.eval_batch_size,
      predict_batch_size=FLAGS.eval_batch_size,
      params={
          'data_dir': FLAGS.data_dir,
          'shuffle': FLAGS.shuffle,
          'learning_rate': FLAGS.learning_rate,
          'dropout': FLAGS.dropout,
      })


def main(unused_argv):
  estimator = build_estimator()

  if FLAGS.train_steps:
    estimator.train(train_input_fn, max_steps=FLAGS.train_steps)

  if FLAGS.eval_steps:
    metrics = estimator.evaluate(eval_input_fn, steps=FLAGS.eval_steps)
    tf.logging.info('Held-out digits: %s', metrics)

  if FLAGS.predictions:
    # Zip asks for the index first: no digit is predicted only to be dropped.
    for index, digit in zip(range(FLAGS.predictions), estimator.predict(predict_input_fn)):
      tf.logging.info('Digit %d looks like a %d (probability %.3f).',
                      index, digit['class'], digit['probabilities'].max())


if __name__ == '__main__':
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.flags.mark_flags_as_required(['data_dir', 'model_dir'])
  tf.app.run(main)
