import tensorflow as tf


class Work:
    def __init__(self, size):
        self.size = size


def run(work):
    return [tf.__version__, tf.zeros([work.size]).shape[0].value, tf.executing_eagerly()]
