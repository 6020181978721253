"""A dataset of tensorflow-datasets, built here, in the input_fns of a canned Estimator."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

folder = tempfile.mkdtemp()


class Flowers(tfds.core.GeneratorBasedBuilder):
    """Small images and their measures, of two kinds."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = tfds.features.FeaturesDict(
            {
                "image": tfds.features.Image(shape=(4, 4, 3)),
                "measures": tfds.features.Tensor(shape=(3,), dtype=tf.float32),
                "name": tfds.features.Text(),
                "kind": tfds.features.ClassLabel(names=["rose", "tulip"]),
            }
        )
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return [
            tfds.core.SplitGenerator(tfds.Split.TRAIN, gen_kwargs={"seed": 0, "rows": 64}),
            tfds.core.SplitGenerator(tfds.Split.TEST, gen_kwargs={"seed": 1, "rows": 32}),
        ]

    def _generate_examples(self, seed, rows):
        random = np.random.RandomState(seed)
        for index in range(rows):
            measures = random.rand(3).astype(np.float32)
            yield (
                index,
                {
                    "image": random.randint(0, 255, (4, 4, 3)).astype(np.uint8),
                    "measures": measures,
                    "name": ["red", "white", "yellow"][index % 3],
                    "kind": "rose" if measures.sum() > 1.5 else "tulip",
                },
            )


builder = Flowers(data_dir=folder)
builder.download_and_prepare()


def input_fn(split, repeat=None):
    read_config = tfds.ReadConfig(shuffle_seed=3, interleave_cycle_length=1)
    dataset = builder.as_dataset(split=split, shuffle_files=False, read_config=read_config)

    def of_row(row):
        features = {key: row[key] for key in ("measures", "name")}
        features["pixels"] = tf.cast(tf.reshape(row["image"], [48]), tf.float32) / 255.0
        return features, row["kind"]

    return dataset.map(of_row).repeat(repeat).batch(16)


names = tf.feature_column.categorical_column_with_vocabulary_list("name", ["red", "white"])
columns = [
    tf.feature_column.numeric_column("measures", (3,)),
    tf.feature_column.numeric_column("pixels", (48,)),
    tf.feature_column.indicator_column(names),
]
estimator = tf.estimator.LinearClassifier(
    columns, optimizer="Adagrad", model_dir=os.path.join(folder, "model")
)
estimator.train(lambda: input_fn("train", 3))
results = {f"test/{k}": v for k, v in estimator.evaluate(lambda: input_fn("test", 1)).items()}
half = estimator.evaluate(lambda: input_fn("train[:50%]", 1))
results |= {f"half/{key}": value for key, value in half.items()}
first = next(iter(tfds.as_numpy(builder.as_dataset(split="test"))))
results["first"] = first["measures"].sum()
results["classes"] = builder.info.features["kind"].num_classes
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
