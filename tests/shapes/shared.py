"""Input and loss of the models whose shapes are compared."""

import numpy as np

BATCH = 8


def arrays(tf, **specs):
    """The next batch of a Dataset; each spec is a dtype and the shape of an example."""
    data = {name: np.zeros((16, *shape), dtype) for name, (dtype, shape) in specs.items()}
    data = tf.data.Dataset.from_tensor_slices(data).shuffle(16).repeat().batch(BATCH)
    return data.make_one_shot_iterator().get_next()


def records(tf, spec):
    """The next batch of parsed records."""
    data = tf.data.TFRecordDataset(["records"]).repeat().batch(BATCH)
    data = data.map(lambda records: tf.parse_example(records, spec))
    return tf.data.make_initializable_iterator(data).get_next()


def images(tf, size=28, depth=1):
    batch = arrays(tf, x=("float32", [size, size, depth]), y=("int64", []))
    return batch["x"], batch["y"]


def texts(tf, length=12):
    batch = arrays(tf, x=("int32", [length]), n=("int32", []), y=("int64", []))
    return batch["x"], batch["n"], batch["y"]


def cross_entropy(tf, labels, logits):
    tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def classified(tf, labels, net, classes=10):
    return cross_entropy(tf, labels, tf.layers.dense(net, classes))
