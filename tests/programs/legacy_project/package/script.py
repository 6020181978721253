import tensorflow as tf

print(tf.__version__, tf.executing_eagerly())
