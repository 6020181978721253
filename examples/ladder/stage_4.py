"""Stage 4: datasets for a strategy, and the loop of Keras; model_fn stays as it is.

  python stage_4.py --data_dir=/tmp/digits --model_dir=/tmp/stage_4
"""
import json
import os

import numpy as np
import tensorflow as tf2
from absl import app, flags, logging

import estimator2strategy as e2s
import estimator2strategy.tf1 as tf

flags.DEFINE_string('data_dir', None, 'Where digits.npz is.')
flags.DEFINE_string('model_dir', None, 'Where checkpoints and summaries go.')
flags.DEFINE_integer('train_steps', 100, 'Global step to train to.')
FLAGS = flags.FLAGS


def dataset_fn_of(input_fn, params, global_batch_size):
  """For `strategy.distribute_datasets_from_function`: the batches of `input_fn`, per replica."""

  def dataset_fn(input_context):
    batch_size = input_context.get_per_replica_batch_size(global_batch_size)
    dataset = input_fn({**params, 'batch_size': batch_size})
    return dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

  return dataset_fn


def read_digits(params, split):
  data = np.load(os.path.join(params['data_dir'], 'digits.npz'))
  return tf2.data.Dataset.from_tensor_slices((data[split + '_images'], data[split + '_labels']))


def train_input_fn(params):
  return read_digits(params, 'train').repeat().batch(params['batch_size'], drop_remainder=True)


def eval_input_fn(params):
  return read_digits(params, 'test').batch(params['batch_size'])


def digit_logits(images):
  net = tf.layers.conv2d(images, 16, 3, padding='same', activation=tf.nn.relu, name='conv1')
  net = tf.layers.max_pooling2d(net, 2, 2)
  net = tf.layers.flatten(net)
  net = tf.layers.dense(net, 64, activation=tf.nn.relu, name='hidden')
  return tf.layers.dense(net, 10, name='logits')


def model_fn(features, labels, mode, params):
  logits = digit_logits(features)
  loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
  if mode == tf.estimator.ModeKeys.EVAL:
    accuracy = tf.keras.metrics.Accuracy(name='accuracy')
    accuracy.update_state(labels, tf.argmax(logits, axis=1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
        'accuracy': accuracy,
    })
  global_step = tf.train.get_global_step()
  learning_rate = tf.train.exponential_decay(params['learning_rate'], global_step, 20, 0.9)
  train_op = tf.train.AdamOptimizer(learning_rate).minimize(loss, global_step)
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(unused_argv):
  params = {'data_dir': FLAGS.data_dir, 'learning_rate': 0.005}
  strategy = tf2.distribute.get_strategy()  # or tf2.distribute.MirroredStrategy()
  with strategy.scope():
    model = e2s.LegacyModel(model_fn, params=params)
  if tf2.train.latest_checkpoint(FLAGS.model_dir):
    model.load_checkpoint(FLAGS.model_dir)
  train = strategy.distribute_datasets_from_function(dataset_fn_of(train_input_fn, params, 64))
  test = strategy.distribute_datasets_from_function(dataset_fn_of(eval_input_fn, params, 64))
  model.compile(steps_per_execution=10)
  log = tf2.keras.callbacks.CSVLogger(os.path.join(FLAGS.model_dir, 'losses.csv'))
  model.fit(train, epochs=FLAGS.train_steps // 10, steps_per_epoch=10, callbacks=[log], verbose=0)
  results = model.evaluate(test, return_dict=True, verbose=0)
  model.save_checkpoint(FLAGS.model_dir)
  logging.info('Held-out digits: %s', results)
  with tf.io.gfile.GFile(os.path.join(FLAGS.model_dir, 'results.json'), 'w') as f:
    json.dump({'accuracy': float(results['accuracy'])}, f)


if __name__ == '__main__':
  logging.set_verbosity(logging.INFO)
  tf.get_logger().setLevel('INFO')
  app.run(main)
