"""Graphs of whole models, as programs of TF 1.15 built them: input, model, loss and training.

`GRAPHS` has functions by name; each takes TF 1.15's `tf` and gives the loss and the gradients. A
model is a function in one of the modules beside this one. It gives a loss, or the train op of a
canned Estimator.
"""

import functools

import canned_models as canned
import image_models as image
import other_models as other
import sequence_models as sequence

_OPTIMIZERS = ("Adam", "GradientDescent", "Adagrad", "Ftrl", "RMSProp", "Momentum", "Adadelta")


def _trained(tf, function, optimizer, given):
    """A model's graph, with its optimizer where the function gives a loss."""
    loss = function(tf, **given)
    if isinstance(loss, tf.Tensor) and loss.dtype.is_floating and tf.trainable_variables():
        rest = {"momentum": 0.9} if optimizer == "Momentum" else {}
        made = getattr(tf.train, optimizer + "Optimizer")(0.1, **rest)
        gradients = made.compute_gradients(loss)
        made.apply_gradients(gradients, tf.train.get_or_create_global_step())
        tf.summary.scalar("loss", loss)
        tf.summary.merge_all()
        tf.train.Saver()
        slices = tf.IndexedSlices
        given = [(v.op.name, g.values if isinstance(g, slices) else g) for g, v in gradients]
        return {"loss": loss, "gradients": dict(given)}
    return {"loss": loss}


_PLAIN = (
    image.perceptron,
    image.convolutions_channels_first,
    image.convolutions_3d,
    image.residual,
    image.autoencoder,
    image.variational,
    image.segmented,
    image.detected,
    image.read_images,
    image.style,
    image.contrib_layers,
    sequence.language_model,
    sequence.speech,
    sequence.tagged,
    sequence.text_convolutions,
    sequence.attended,
    sequence.remembered,
    sequence.looked_up,
    other.factorized,
    other.sparse_machine,
    other.adversaries,
    other.q_learning,
    other.policy,
    other.mixtures,
    other.python_in_between,
    other.ordered_by_hand,
    canned.sequence_columns,
    canned.linear_model,
)
# A model, one of its arguments, and the values for which there is a graph each.
_OF_KINDS = (
    (image.convolutions, "normalized", (False, True)),
    (image.convolutions, "convolution", ("separable_conv2d",)),
    (image.slim_net, "kind", ("conv", "inception", "mobile")),
    (sequence.recurrent, "form", ("dynamic", "time_major", "both_ways", "static", "stacked")),
    (sequence.recurrent, "cell", ("GRUCell", "BasicRNNCell")),
    (sequence.translated, "beam", (False, True)),
    (other.word_pairs, "loss", ("nce_loss", "sampled_softmax_loss")),
    (other.pairs, "loss", ("contrastive", "triplet", "ranked")),
    (other.loops, "kind", ("while", "cond", "map", "scan", "array")),
    (canned.headed, "head", ("multi_label", "multi_class", "poisson")),
)
_CANNED = ("Linear", "DNN", "DNNLinearCombined", "Baseline")


def _models():
    """All models, as a function and its arguments by name."""
    yield from ((model, {}) for model in _PLAIN)
    for model, argument, values in _OF_KINDS:
        yield from ((model, {argument: value}) for value in values)
    for kind in _CANNED:
        yield canned.canned, {"kind": kind + "Regressor"}
        for mode in ("train", "eval", "infer"):
            yield canned.canned, {"kind": kind + "Classifier", "mode": mode}
    yield canned.canned, {"kind": "DNNClassifier", "n_classes": 4, "weight_column": "age"}
    yield canned.canned, {"kind": "DNNClassifier", "batch_norm": True}


def _named(number, model, given):
    words = [model.__name__.replace("_", " "), *map(str, given.values())]
    optimizer = _OPTIMIZERS[number % len(_OPTIMIZERS)]
    made = functools.partial(_trained, function=model, optimizer=optimizer, given=given)
    return ", ".join(words), made


GRAPHS = dict(_named(number, *model) for number, model in enumerate(_models()))
