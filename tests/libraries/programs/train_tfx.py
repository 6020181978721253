"""The trainer_fn of a TFX pipeline: specs, a serving receiver and an exporter, for Examples."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
random = np.random.RandomState(0)
folder = tempfile.mkdtemp()
spec = {
    "fare": tf.io.FixedLenFeature([], tf.float32),
    "company": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "tips": tf.io.FixedLenFeature([], tf.int64),
}


def example(fare, company):
    feature = tf.train.Feature
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "fare": feature(float_list=tf.train.FloatList(value=[fare])),
                "company": feature(bytes_list=tf.train.BytesList(value=[company])),
                "tips": feature(int64_list=tf.train.Int64List(value=[int(fare > 0.5)])),
            }
        )
    ).SerializeToString()


examples = [example(fare, [b"a", b"b"][i % 2]) for i, fare in enumerate(random.rand(64))]
path = os.path.join(folder, "examples.gz")
with tf.io.TFRecordWriter(path, options="GZIP") as writer:
    for serialized in examples:
        writer.write(serialized)


def input_fn(files):
    def parsed(serialized):
        features = tf.io.parse_example(serialized, spec)
        return features, features.pop("tips")

    dataset = tf.data.TFRecordDataset(files, compression_type="GZIP").repeat()
    return dataset.batch(16).map(parsed)


def serving_fn():
    serialized = v1.placeholder(tf.string, [None], name="input_example_tensor")
    features = tf.io.parse_example(serialized, {k: v for k, v in spec.items() if k != "tips"})
    return tf.estimator.export.ServingInputReceiver(features, {"examples": serialized})


def trainer_fn(hparams):
    company = tf.feature_column.categorical_column_with_vocabulary_list("company", ["a", "b"])
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        config=tf.estimator.RunConfig(
            model_dir=os.path.join(folder, "model"), save_checkpoints_steps=8
        ),
        linear_feature_columns=[company, tf.feature_column.numeric_column("fare")],
        linear_optimizer="Adagrad",
    )
    exporter = tf.estimator.FinalExporter("chicago-taxi", serving_fn)
    return {
        "estimator": estimator,
        "train_spec": tf.estimator.TrainSpec(
            lambda: input_fn(hparams["train_files"]), max_steps=hparams["train_steps"]
        ),
        "eval_spec": tf.estimator.EvalSpec(
            lambda: input_fn(hparams["eval_files"]),
            steps=hparams["eval_steps"],
            exporters=[exporter],
            name="chicago-taxi-eval",
            throttle_secs=0,
        ),
    }


trainer = trainer_fn({"train_files": path, "train_steps": 16, "eval_files": path, "eval_steps": 4})
results, exports = tf.estimator.train_and_evaluate(
    trainer["estimator"], trainer["train_spec"], trainer["eval_spec"]
)
results = dict(results)
with tf.Graph().as_default(), v1.Session() as session:
    signature = v1.saved_model.load(session, ["serve"], exports[0]).signature_def["predict"]
    probability = signature.outputs["probabilities"].name
    fed = {signature.inputs["examples"].name: examples[:4]}
    for index, value in enumerate(session.run(probability, fed)[:, 1]):
        results[f"served/{index}"] = value
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
