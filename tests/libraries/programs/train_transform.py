"""A transform of tensorflow-transform: its feature specs in an input_fn, its graph when serving."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform import impl_helper

v1 = tf.compat.v1
random = np.random.RandomState(0)
folder = tempfile.mkdtemp()
raw_spec = {
    "fare": tf.io.FixedLenFeature([], tf.float32),
    "company": tf.io.FixedLenFeature([], tf.string),
    "tags": tf.io.VarLenFeature(tf.string),
    "tips": tf.io.FixedLenFeature([], tf.int64),
}


def example(index, fare):
    feature = tf.train.Feature
    tags = [b"day", b"night", b"late"][: index % 4]
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "fare": feature(float_list=tf.train.FloatList(value=[fare])),
                "company": feature(bytes_list=tf.train.BytesList(value=[b"ab"[index % 2 :][:1]])),
                "tags": feature(bytes_list=tf.train.BytesList(value=tags)),
                "tips": feature(int64_list=tf.train.Int64List(value=[int(fare > 0.5)])),
            }
        )
    ).SerializeToString()


def preprocessing_fn(inputs):
    fare = inputs["fare"]
    return {
        "fare": (fare - 0.5) / 0.3,
        "bucket": tft.apply_buckets(fare, tf.constant([[0.25, 0.5, 0.75]])),
        "company": tft.hash_strings(inputs["company"], 8),
        "tags": tft.hash_strings(inputs["tags"], 4),
        "tips": inputs["tips"],
    }


examples = [example(index, fare) for index, fare in enumerate(random.rand(64))]
type_specs = {
    name: tf.SparseTensorSpec([None, None], spec.dtype)
    if isinstance(spec, tf.io.VarLenFeature)
    else tf.TensorSpec([None], spec.dtype)
    for name, spec in raw_spec.items()
}
path = os.path.join(folder, "transform")
impl_helper.analyze_in_place(preprocessing_fn, True, raw_spec, type_specs, path)
transform = tft.TFTransformOutput(path)


def transformed(serialized):
    raw = tf.io.parse_example(serialized, raw_spec)
    return transform.transform_raw_features(raw)


def materialized():
    """The transformed Examples, as a pipeline of Transform writes them."""
    with tf.Graph().as_default(), v1.Session() as session:
        values = session.run(transformed(tf.constant(examples)))
    tags = values.pop("tags")
    for index in range(len(examples)):
        feature = {
            name: tf.train.Feature(float_list=tf.train.FloatList(value=[value[index]]))
            if value.dtype == np.float32
            else tf.train.Feature(int64_list=tf.train.Int64List(value=[value[index]]))
            for name, value in values.items()
        }
        of_row = tags.values[tags.indices[:, 0] == index]
        feature["tags"] = tf.train.Feature(int64_list=tf.train.Int64List(value=of_row))
        yield tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def input_fn():
    def parsed(serialized):
        features = tf.io.parse_example(serialized, transform.transformed_feature_spec())
        return features, features.pop("tips")

    return tf.data.Dataset.from_tensor_slices(list(materialized())).batch(16).map(parsed)


def serving_fn():
    spec = {name: each for name, each in raw_spec.items() if name != "tips"}
    serialized = v1.placeholder(tf.string, [None])
    raw = tf.io.parse_example(serialized, spec)
    transform_layer = transform.transform_features_layer()
    return tf.estimator.export.ServingInputReceiver(transform_layer(raw), {"examples": serialized})


categorical = tf.feature_column.categorical_column_with_identity
estimator = tf.estimator.LinearClassifier(
    [
        tf.feature_column.numeric_column("fare"),
        categorical("bucket", 4),
        categorical("company", 8),
        categorical("tags", 4),
    ],
    optimizer="Adagrad",
    model_dir=os.path.join(folder, "model"),
)
for _ in range(3):
    estimator.train(input_fn)
results = estimator.evaluate(input_fn)
exported = estimator.export_saved_model(os.path.join(folder, "export"), serving_fn)
with tf.Graph().as_default(), v1.Session() as session:
    signature = v1.saved_model.load(session, ["serve"], tf.compat.as_str(exported)).signature_def
    signature = signature["predict"]
    fed = {signature.inputs["examples"].name: examples[:4]}
    served = session.run(signature.outputs["probabilities"].name, fed)
for index, value in enumerate(served[:, 1]):
    results[f"served/{index}"] = value
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
