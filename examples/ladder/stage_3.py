"""Stage 3: Keras metrics in place of tf.metrics.

  python stage_3.py --data_dir=/tmp/digits --model_dir=/tmp/stage_3
"""
import json
import os

import numpy as np
from absl import app, flags, logging

import estimator2strategy.tf1 as tf

flags.DEFINE_string('data_dir', None, 'Where digits.npz is.')
flags.DEFINE_string('model_dir', None, 'Where checkpoints and summaries go.')
flags.DEFINE_integer('train_steps', 100, 'Global step to train to.')
FLAGS = flags.FLAGS


def read_digits(params, split):
  data = np.load(os.path.join(params['data_dir'], 'digits.npz'))
  return tf.data.Dataset.from_tensor_slices((data[split + '_images'], data[split + '_labels']))


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
  config = tf.estimator.RunConfig(model_dir=FLAGS.model_dir, save_summary_steps=1)
  params = {'data_dir': FLAGS.data_dir, 'batch_size': 64, 'learning_rate': 0.005}
  estimator = tf.estimator.Estimator(model_fn, config=config, params=params)
  estimator.train(train_input_fn, max_steps=FLAGS.train_steps)
  results = estimator.evaluate(eval_input_fn)
  logging.info('Held-out digits: %s', results)
  with tf.io.gfile.GFile(os.path.join(FLAGS.model_dir, 'results.json'), 'w') as f:
    json.dump({'accuracy': float(results['accuracy'])}, f)


if __name__ == '__main__':
  logging.set_verbosity(logging.INFO)
  tf.get_logger().setLevel('INFO')
  app.run(main)
