"""A model on the cores of a TPU: its strategy, and losses that are divided among the cores."""

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError

STRATEGY = '''
def make_strategy(use_tpu, resolver=None):
    """A strategy for the cores of a TPU, or for this machine."""
    if not use_tpu:
        return tf.distribute.get_strategy()
    resolver = resolver or tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
'''
CORES = "cores = tf.distribute.get_strategy().num_replicas_in_sync"
# A mean over a core's examples, which is not divided by the number of cores.
_UNDIVIDED = ("weighted_mean(", "reduce_mean(", "ops.mean(")


def check_loss(node, lines):
    """Raises StaysError for a loss that Keras does not divide among cores.

    Losses of keras.losses are, in a strategy's scope; the gradients are added up.
    """
    text = "\n".join(lines)
    if "keras.losses." not in text or any(part in text for part in _UNDIVIDED):
        message = "take the loss from tf.losses, without weights: Keras divides it among the cores"
        raise StaysError(node, message)


def divided(lines):
    """The lines of a loss, with what layers add divided by the number of cores."""
    found = [line.replace("sum(self.losses)", "sum(self.losses) / cores") for line in lines]
    return [CORES, *found] if found != lines else lines
