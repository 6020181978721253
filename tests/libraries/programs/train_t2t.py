"""A problem, hparams and a Transformer that are registered with tensor2tensor: trained, decoded.

trainer_lib makes the Estimator and its experiment, as t2t_trainer does.
"""

import json
import os
import tempfile
import zlib
from typing import ClassVar

import numpy as np
import tensorflow as tf
from tensor2tensor.data_generators import problem, text_problems
from tensor2tensor.models import transformer
from tensor2tensor.utils import decoding, registry, trainer_lib

folder = tempfile.mkdtemp()


@registry.register_problem
class SortedLetters(text_problems.Text2TextProblem):
    """Letters, and the same ones in their order."""

    vocab_type = text_problems.VocabType.CHARACTER
    is_generate_per_split = True
    skip_random_fraction_when_training = False
    dataset_splits: ClassVar = [
        {"split": problem.DatasetSplit.TRAIN, "shards": 1},
        {"split": problem.DatasetSplit.EVAL, "shards": 1},
    ]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        random = np.random.RandomState(len(dataset_split))
        for index in range(64):
            letters = random.choice(list("abcdefgh"), 3 + index % 4)
            yield {"inputs": "".join(letters), "targets": "".join(sorted(letters))}

    def dataset(self, *args, **kwargs):
        return super().dataset(*args, **{**kwargs, "shuffle_files": False})


class KnownStart(tf.train.SessionRunHook):
    """Gives the weights the same first values everywhere."""

    def after_create_session(self, session, coord):
        if session.run(tf.train.get_global_step()):
            return
        for variable in tf.trainable_variables():
            random = np.random.RandomState(zlib.crc32(variable.op.name.encode()) % 2**31)
            shape = variable.shape.as_list()
            is_scale = variable.op.name.endswith("scale")
            value = np.ones(shape) if is_scale else random.uniform(-0.2, 0.2, shape)
            variable.load(value.astype(np.float32), session)


@registry.register_model
class Sorter(transformer.Transformer):
    @staticmethod
    def train_hooks(hook_context):
        return [KnownStart()]


@registry.register_hparams
def sorter_tiny():
    hparams = transformer.transformer_test()
    hparams.num_hidden_layers = 1
    hparams.hidden_size, hparams.filter_size = 16, 32
    hparams.batch_size, hparams.batch_shuffle_size = 128, 0
    hparams.layer_prepostprocess_dropout = hparams.attention_dropout = hparams.relu_dropout = 0.0
    hparams.learning_rate_constant, hparams.learning_rate_warmup_steps = 0.1, 4
    return hparams


trainer_lib.set_random_seed(1)  # of the order in which examples are written, too
sorted_letters = registry.problem("sorted_letters")
sorted_letters.generate_data(folder, folder)
config = trainer_lib.create_run_config(
    "sorter", model_dir=os.path.join(folder, "model"), iterations_per_loop=4, random_seed=1
)
hparams = trainer_lib.create_hparams("sorter_tiny")
decode_hparams = decoding.decode_hparams("beam_size=2,extra_length=2,return_beams=true")
experiment = trainer_lib.create_experiment(
    config,
    hparams,
    "sorter",
    "sorted_letters",
    folder,
    train_steps=8,
    eval_steps=2,
    min_eval_frequency=8,
    schedule="train",
    decode_hparams=decode_hparams,
)
experiment.train()
results = dict(experiment.evaluate())
inputs = sorted_letters.make_estimator_input_fn(
    tf.estimator.ModeKeys.EVAL, hparams, data_dir=folder
)
estimator = trainer_lib.create_estimator("sorter", hparams, config, decode_hparams=decode_hparams)
for index, decoded in zip(range(4), estimator.predict(inputs)):
    results[f"scores/{index}"] = np.sum(decoded["scores"])
    results[f"letters/{index}"] = np.sum(decoded["outputs"])
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
