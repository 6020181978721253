"""A schema of tensorflow-data-validation: inferred, edited, read back, and the spec that parses.

Its anomalies in a second day of data are compared, too.
"""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_data_validation as tfdv
from tensorflow_transform.tf_metadata import schema_utils

random = np.random.RandomState(0)
folder = tempfile.mkdtemp()


def example(index, fare, company):
    feature = tf.train.Feature
    tags = [b"day", b"night", b"late"][: index % 4]
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "fare": feature(float_list=tf.train.FloatList(value=[fare])),
                "company": feature(bytes_list=tf.train.BytesList(value=[company])),
                "tags": feature(bytes_list=tf.train.BytesList(value=tags)),
                "place": feature(float_list=tf.train.FloatList(value=[fare, fare / 2])),
                "tips": feature(int64_list=tf.train.Int64List(value=[int(fare > 0.5)])),
            }
        )
    ).SerializeToString()


def written(name, companies):
    path = os.path.join(folder, name)
    fares = random.rand(64)
    with tf.io.TFRecordWriter(path) as writer:
        for index, fare in enumerate(fares):
            writer.write(example(index, fare, companies[index % len(companies)]))
    return path


first, second = written("first", [b"a", b"b"]), written("second", [b"a", b"b", b"c"])
statistics = tfdv.generate_statistics_from_tfrecord(first)
schema = tfdv.infer_schema(statistics)
tfdv.get_feature(schema, "fare").presence.min_fraction = 1.0
path = os.path.join(folder, "schema.pbtxt")
tfdv.write_schema_text(schema, path)
schema = tfdv.load_schema_text(path)
anomalies = tfdv.validate_statistics(tfdv.generate_statistics_from_tfrecord(second), schema)
spec = schema_utils.schema_as_feature_spec(schema).feature_spec
vocabulary = tfdv.get_domain(schema, "company").value


def input_fn():
    def parsed(serialized):
        features = tf.io.parse_example(serialized, spec)
        return features, features.pop("tips")

    return tf.data.TFRecordDataset(first).batch(16).map(parsed)


column = tf.feature_column
estimator = tf.compat.v2.estimator.LinearClassifier(
    [
        column.numeric_column("fare"),
        column.numeric_column("place", 2),
        column.categorical_column_with_vocabulary_list("company", list(vocabulary)),
        column.categorical_column_with_vocabulary_list(
            "tags", list(tfdv.get_domain(schema, "tags").value)
        ),
    ],
    optimizer="Adagrad",
    model_dir=os.path.join(folder, "model"),
)
for _ in range(3):
    estimator.train(input_fn)
results = estimator.evaluate(input_fn)
receiver_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(
    {name: each for name, each in spec.items() if name != "tips"}
)
exported = estimator.export_saved_model(os.path.join(folder, "export"), receiver_fn)
served = tf.saved_model.load(tf.compat.as_str(exported)).signatures["predict"]
probabilities = served(examples=tf.constant([example(3, 0.7, b"b")]))["probabilities"]
results["served"] = probabilities.numpy()[0, 1]
for name, each in spec.items():
    results[f"spec/{name}/{type(each).__name__}"] = np.prod(getattr(each, "shape", [-1]))
for name, anomaly in anomalies.anomaly_info.items():
    for reason in anomaly.reason:
        results[f"anomaly/{name}"] = reason.type
for feature in statistics.datasets[0].features:
    results[f"statistics/{feature.path.step[0]}/count"] = (
        feature.num_stats.common_stats.num_non_missing
        or feature.string_stats.common_stats.num_non_missing
    )
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
