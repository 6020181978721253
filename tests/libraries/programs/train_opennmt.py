"""A Transformer of OpenNMT-tf that reverses words: trained, evaluated, decoded by beams, scored."""

import json
import os
import tempfile

import numpy as np
import opennmt
import tensorflow as tf
from opennmt.runner import Runner

random = np.random.RandomState(0)
folder = tempfile.mkdtemp()
letters = list("abcdefgh")


def written(name, lines):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write("".join(line + "\n" for line in lines))
    return path


words = [random.choice(letters, 3 + index % 4) for index in range(64)]
source = written("source.txt", [" ".join(word) for word in words])
target = written("target.txt", [" ".join(word[::-1]) for word in words])
entries = ["<blank>", "<s>", "</s>", *letters]
vocabulary = written("vocabulary.txt", entries)
# The first embeddings would come from a seed.
embeddings = written(
    "embeddings.txt", [word + " " + " ".join(map(str, random.rand(16) - 0.5)) for word in entries]
)


def embedder(side):
    return opennmt.inputters.WordEmbedder(
        side + "_words_vocabulary",
        embedding_size=16,
        embedding_file_key=side + "_embedding",
        embedding_file_with_header=False,
    )


class Reverser(opennmt.models.Transformer):
    """A Transformer whose weights start from the same values everywhere."""

    def _initializer(self, params):
        def start(shape, dtype=None, partition_info=None):
            values = np.random.RandomState(sum(shape)).uniform(-0.1, 0.1, shape)
            return tf.constant(values.astype(np.float32))

        return start


model = Reverser(
    embedder("source"),
    embedder("target"),
    num_layers=1,
    num_units=16,
    num_heads=2,
    ffn_inner_dim=32,
    dropout=0.0,
    attention_dropout=0.0,
    relu_dropout=0.0,
)
config = {
    "model_dir": os.path.join(folder, "model"),
    "data": {
        "source_words_vocabulary": vocabulary,
        "target_words_vocabulary": vocabulary,
        "source_embedding": embeddings,
        "target_embedding": embeddings,
        "train_features_file": source,
        "train_labels_file": target,
        "eval_features_file": source,
        "eval_labels_file": target,
    },
    "params": {
        "optimizer": "AdamOptimizer",
        "learning_rate": 0.01,
        "beam_width": 2,
        "maximum_iterations": 6,
    },
    "train": {
        "batch_size": 16,
        "batch_type": "examples",
        "bucket_width": 1,
        "sample_buffer_size": 0,
        "num_threads": 1,
        "train_steps": 20,
        "save_summary_steps": 10,
    },
    "eval": {"batch_size": 16, "num_threads": 1},
    "infer": {"batch_size": 8, "n_best": 2, "with_scores": True},
    "score": {"batch_size": 16},
}
os.makedirs(config["model_dir"])  # as its command does
runner = Runner(model, config, seed=1)
runner.train()
results = {"evaluated/" + key: value for key, value in runner.evaluate().items()}
few = written("few.txt", [" ".join(word) for word in words[:4]])
answers = os.path.join(folder, "answers.txt")
runner.infer(few, predictions_file=answers)
scores = os.path.join(folder, "scores.txt")
runner.score(source, target, output_file=scores)
for name, path in (("answers", answers), ("scores", scores)):
    with open(path) as file:
        for index, line in enumerate(file.read().splitlines()[:8]):
            score, _, text = line.partition(" ||| ")
            results[f"{name}/{index}"] = float(score)
            # The words as a number: one letter more changes it.
            ids = [letters.index(letter) + 1 for letter in text.split() if letter in letters]
            results[f"{name}/{index}/words"] = sum(
                value * 9.0**place for place, value in enumerate(ids[:6])
            )
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
