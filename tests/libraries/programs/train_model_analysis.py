"""An EvalSavedModel of tensorflow-model-analysis: exported by its exporter, analysed by slice.

The analyses run on Beam. One has the metrics that the Estimator put into the export, and some that
are added afterwards. Those of an EvalConfig are of the graph for evaluation and of that to serve.
"""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma

random = np.random.RandomState(0)
folder = tempfile.mkdtemp()
raw_spec = {
    "fare": tf.io.FixedLenFeature([1], tf.float32),
    "company": tf.io.FixedLenFeature([1], tf.string),
    "tips": tf.io.FixedLenFeature([1], tf.int64),
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
records = os.path.join(folder, "examples")
with tf.io.TFRecordWriter(records) as writer:
    for serialized in examples:
        writer.write(serialized)


def parsed(serialized):
    features = tf.io.parse_example(serialized, raw_spec)
    return features, features.pop("tips")


def input_fn():
    return tf.data.TFRecordDataset(records).batch(16).map(parsed)


def eval_input_receiver_fn():
    serialized = tf.compat.v1.placeholder(tf.string, [None], name="input_example_tensor")
    features, labels = parsed(serialized)
    return tfma.export.EvalInputReceiver(
        features=features, labels=labels, receiver_tensors={"examples": serialized}
    )


def serving_fn():
    serialized = tf.compat.v1.placeholder(tf.string, [None])
    features, _ = parsed(serialized)
    return tf.estimator.export.ServingInputReceiver(features, {"examples": serialized})


company = tf.feature_column.categorical_column_with_vocabulary_list("company", ["a", "b"])
estimator = tf.estimator.LinearClassifier(
    [tf.feature_column.numeric_column("fare"), company],
    optimizer="Adagrad",
    model_dir=os.path.join(folder, "model"),
)
exporter = tfma.exporter.FinalExporter(
    name="eval",
    eval_input_receiver_fn=eval_input_receiver_fn,
    serving_input_receiver_fn=serving_fn,
)
metrics, exports = tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(lambda: input_fn().repeat(), max_steps=12),
    tf.estimator.EvalSpec(input_fn, exporters=[exporter], throttle_secs=0),
)
results = {f"estimator/{name}": value for name, value in metrics.items()}


def add(analysis, result):
    """Adds all metrics of an analysis that are numbers."""
    for slice_key, by_output in result.slicing_metrics:
        slice_name = "/".join(f"{column}={value}" for column, value in slice_key)
        for name, value in by_output[""][""].items():
            values = value if isinstance(value, dict) else {}
            for kind in ("doubleValue", "boundedValue"):
                if kind in values:
                    number = values[kind]
                    number = number["value"] if kind == "boundedValue" else number
                    results[f"{analysis}/{slice_name}/{name}"] = number


slices = [tfma.slicer.SingleSliceSpec(), tfma.slicer.SingleSliceSpec(columns=["company"])]
model = tfma.default_eval_shared_model(
    tf.compat.as_str(exports[0]),
    add_metrics_callbacks=[
        tfma.post_export_metrics.auc(),
        tfma.post_export_metrics.auc(curve="PR"),
    ],
)
with_callbacks = tfma.run_model_analysis(
    eval_shared_model=model,
    data_location=records,
    slice_spec=slices,
    output_path=os.path.join(folder, "callbacks"),
)
add("callbacks", with_callbacks)
for signature in ("eval", "predict"):
    config = tfma.EvalConfig(
        model_specs=[tfma.ModelSpec(signature_name=signature, label_key="tips")],
        slicing_specs=[tfma.SlicingSpec(), tfma.SlicingSpec(feature_keys=["company"])],
        metrics_specs=tfma.metrics.specs_from_metrics(
            [
                tf.keras.metrics.BinaryAccuracy(name="accuracy"),
                tfma.metrics.AUC(name="auc"),
                tfma.metrics.Calibration(name="calibration"),
            ]
        ),
    )
    add(
        signature,
        tfma.run_model_analysis(
            eval_shared_model=tfma.default_eval_shared_model(
                tf.compat.as_str(exports[0]), eval_config=config
            ),
            eval_config=config,
            data_location=records,
            output_path=os.path.join(folder, signature),
        ),
    )
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
