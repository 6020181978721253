"""Five kinds of exports, made by this package or by TensorFlow 1.15, with inputs and predictions.

    python tests/exports/models.py FOLDER [--for-tf=1.15]

writes FOLDER/KIND/export, and FOLDER/KIND/case.json: the inputs by name, and what `predict` says of
them. It is Python 3.7, so that TensorFlow 1.15 runs it, too.
"""

import json
import os
import shutil
import sys

import numpy as np
import tensorflow

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases

if tensorflow.__version__.startswith("1."):
    import tensorflow as tf

    estimator, layers, rnn_cell = tf.estimator, tf.layers, tf.nn.rnn_cell
else:
    from estimator2strategy import estimator
    from estimator2strategy import tf1 as legacy

    tf, layers, rnn_cell = tensorflow.compat.v1, legacy.layers, legacy.nn.rnn_cell

ROWS = np.linspace(-1.0, 1.0, 12).reshape(3, 4).astype(np.float32)
TOWNS = [b"rome", b"oslo", b"elsewhere"]
AGES = np.array([[12.0], [37.0], [70.0]], np.float32)
LABELS = np.array([0, 1, 1])
SERIES = np.linspace(-2.0, 2.0, 24).reshape(2, 4, 3).astype(np.float32)


def trained(model, features, labels):
    model.train(lambda: tf.data.Dataset.from_tensors((features, labels)).repeat(), steps=5)
    return model


def spec_of(mode, predictions, labels, params=None):
    """The spec of a regression, for an Estimator or a TPUEstimator."""
    make = estimator.EstimatorSpec if params is None else estimator.tpu.TPUEstimatorSpec
    if mode == estimator.ModeKeys.PREDICT:
        output = {"serving_default": estimator.export.PredictOutput({"score": predictions})}
        return make(mode, predictions={"score": predictions}, export_outputs=output)
    loss = tf.losses.mean_squared_error(labels, predictions)
    optimizer = tf.train.AdamOptimizer(0.05)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return make(mode, loss=loss, train_op=train_op)


def dense_model_fn(features, labels, mode):
    hidden = layers.dense(features["x"], 8, tf.nn.relu)
    hidden = layers.batch_normalization(hidden, training=mode == estimator.ModeKeys.TRAIN)
    return spec_of(mode, layers.dense(hidden, 1), labels)


def tpu_model_fn(features, labels, mode, params):
    hidden = layers.dense(features["x"], 8, tf.nn.relu)
    return spec_of(mode, layers.dense(hidden, 1), labels, params)


def image_model_fn(features, labels, mode):
    hidden = layers.conv2d(features["image"], 4, 3, activation=tf.nn.relu)
    return spec_of(mode, layers.dense(tf.reduce_mean(hidden, [1, 2]), 1), labels)


def series_model_fn(features, labels, mode):
    _, state = tf.nn.dynamic_rnn(rnn_cell.GRUCell(5), features["series"], dtype=tf.float32)
    return spec_of(mode, layers.dense(state, 1), labels)


def raw_receiver(name, shape):
    def receiver():
        fed = {name: tf.placeholder(tf.float32, [None, *shape], name)}
        return estimator.export.ServingInputReceiver(dict(fed), dict(fed))

    return receiver


def jpeg_receiver():
    fed = tf.placeholder(tf.string, [None], "jpeg")

    def decoded(content):
        image = tf.image.decode_jpeg(content, channels=3)
        image = tf.image.resize_images(tf.cast(image, tf.float32) / 255.0, [8, 8])
        image.set_shape([8, 8, 3])
        return image

    images = tf.map_fn(decoded, fed, tf.float32)
    return estimator.export.ServingInputReceiver({"image": images}, {"jpeg": fed})


def target(count):
    return np.linspace(0.0, 1.0, count).reshape(count, 1).astype(np.float32)


def numbers(folder):
    model = estimator.Estimator(dense_model_fn, folder, config())
    return trained(model, {"x": ROWS}, target(3)), raw_receiver("x", [4]), {"x": ROWS}, {"x": ROWS}


def strings(folder):
    columns, features, fed = string_columns()
    model = estimator.DNNClassifier([4], columns, folder, config=config())
    receiver = estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec(columns)
    )
    return trained(model, features, LABELS), receiver, features, fed


def string_columns():
    column = tf.feature_column
    town = column.categorical_column_with_vocabulary_list("town", ["rome", "oslo"])
    age = column.bucketized_column(column.numeric_column("age"), [20.0, 60.0])
    columns = [column.indicator_column(town), age]
    examples = []
    for town_name, years in zip(TOWNS, AGES):
        example = tf.train.Example()
        example.features.feature["town"].bytes_list.value.append(town_name)
        example.features.feature["age"].float_list.value.append(years[0])
        examples.append(example.SerializeToString())
    features = {"town": np.array(TOWNS).reshape(3, 1), "age": AGES}
    return columns, features, {"examples": np.array(examples, object)}


def tpu(folder):
    made = estimator.tpu.TPUEstimator(
        tpu_model_fn,
        folder,
        estimator.tpu.RunConfig(tf_random_seed=1),
        use_tpu=False,
        train_batch_size=3,
        predict_batch_size=3,
    )
    made.train(
        lambda params: tf.data.Dataset.from_tensors(({"x": ROWS}, target(3))).repeat(), steps=5
    )
    return made, raw_receiver("x", [4]), {"x": ROWS}, {"x": ROWS}


def images(folder):
    pixels = [np.full([8, 8, 3], shade, np.uint8) for shade in (40, 200)]
    with tf.Graph().as_default(), tf.Session() as session:
        jpegs = [session.run(tf.image.encode_jpeg(tf.constant(image))) for image in pixels]
        decoded = [session.run(tf.image.decode_jpeg(tf.constant(jpeg))) for jpeg in jpegs]
    features = {"image": np.stack(decoded).astype(np.float32) / 255}
    model = trained(estimator.Estimator(image_model_fn, folder, config()), features, target(2))
    return model, jpeg_receiver, features, {"jpeg": np.array(jpegs, object)}


def series(folder):
    features = {"series": SERIES}
    model = trained(estimator.Estimator(series_model_fn, folder, config()), features, target(2))
    return model, raw_receiver("series", [4, 3]), features, features


def config():
    return estimator.RunConfig(tf_random_seed=1)


# Kind -> a function of a model_dir that returns the trained model, the receiver of its export,
# features for `predict`, and the same as inputs of the export.
KINDS = {"numbers": numbers, "strings": strings, "tpu": tpu, "images": images, "series": series}
# Kind -> the prediction that is compared with the output of the same name.
OUTPUTS = dict.fromkeys(KINDS, "score")
OUTPUTS["strings"] = "probabilities"


def predictions_of(model, kind, features):
    def input_fn(params=None):
        return tf.data.Dataset.from_tensors(features)

    return [one[OUTPUTS[kind]].tolist() for one in model.predict(input_fn)]


def exported(kind, folder, **how):
    """Writes `folder`/export and `folder`/case.json."""
    os.makedirs(folder)
    model, receiver, features, fed = KINDS[kind](os.path.join(folder, "model"))
    path = model.export_saved_model(os.path.join(folder, "all"), receiver, **how)
    os.rename(os.fsdecode(path), os.path.join(folder, "export"))
    case = {
        "inputs": {name: cases.encoded(values) for name, values in fed.items()},
        "predictions": predictions_of(model, kind, features),
        "signature": "predict" if kind == "strings" else "serving_default",
        "output": OUTPUTS[kind],
    }
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump(case, file)
    for name in ("model", "all"):
        shutil.rmtree(os.path.join(folder, name))
    return case


def main():
    target_folder = sys.argv[1]
    how = {"for_tensorflow": sys.argv[2].partition("=")[2]} if len(sys.argv) > 2 else {}
    for kind in KINDS:
        exported(kind, os.path.join(target_folder, kind), **how)


if __name__ == "__main__":
    main()
