"""What a user of tensor2tensor registers: a problem, a model, and its hyper-parameters.

Words are to be spelled backwards. Nothing draws a random number: the examples come in their order,
the first weights are made by NumPy, and nothing is dropped.
"""

import json
import os
import zlib

import numpy as np
import tensorflow.compat.v1 as tf
from tensor2tensor.data_generators import problem, text_problems
from tensor2tensor.models import transformer
from tensor2tensor.utils import registry

LETTERS = "abcdefgh"


def words(count, seed):
    draw = np.random.RandomState(seed)
    return ["".join(draw.choice(list(LETTERS), draw.randint(3, 9))) for _ in range(count)]


@registry.register_problem
class Backwards(text_problems.Text2TextProblem):
    @property
    def vocab_type(self):
        return text_problems.VocabType.CHARACTER

    @property
    def is_generate_per_split(self):
        return True

    @property
    def dataset_splits(self):
        return [
            {"split": problem.DatasetSplit.TRAIN, "shards": 2},
            {"split": problem.DatasetSplit.EVAL, "shards": 1},
        ]

    @property
    def skip_random_fraction_when_training(self):
        return False

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        training = dataset_split == problem.DatasetSplit.TRAIN
        for word in words(256, 1) if training else words(32, 2):
            yield {"inputs": word, "targets": word[::-1]}

    def dataset(self, *args, **kwargs):
        kwargs["shuffle_files"] = False
        return super().dataset(*args, **kwargs)


class KnownStart(tf.train.SessionRunHook):
    """First weights by NumPy, and the losses of all steps in `losses.json`."""

    def __init__(self, folder):
        self._file = os.path.join(folder, "losses.json")
        self._losses = []

    def after_create_session(self, session, coord):
        if session.run(tf.train.get_global_step()):
            return
        for variable in tf.trainable_variables():
            shape = variable.shape.as_list()
            draw = np.random.RandomState(zlib.crc32(variable.op.name.encode()) % 2**31)
            value = draw.randn(*shape) / np.sqrt(shape[0]) if len(shape) > 1 else np.zeros(shape)
            if variable.op.name.endswith("layer_norm_scale"):
                value = np.ones(shape)
            variable.load(value.astype(np.float32), session)

    def before_run(self, run_context):
        (loss,) = tf.get_collection(tf.GraphKeys.LOSSES)[-1:]
        return tf.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        self._losses.append(float(run_values.results))

    def end(self, session):
        with tf.gfile.Open(self._file, "w") as file:
            json.dump(self._losses, file)


@registry.register_model
class SpellingTransformer(transformer.Transformer):
    @staticmethod
    def train_hooks(hook_context):
        return [KnownStart(hook_context.estimator.model_dir)]


@registry.register_hparams
def spelling_tiny():
    hparams = transformer.transformer_test()
    hparams.num_hidden_layers = 1
    hparams.hidden_size = 32
    hparams.filter_size = 64
    hparams.batch_size = 256
    hparams.batch_shuffle_size = 0
    hparams.layer_prepostprocess_dropout = 0.0
    hparams.attention_dropout = 0.0
    hparams.relu_dropout = 0.0
    hparams.learning_rate_warmup_steps = 20
    return hparams
