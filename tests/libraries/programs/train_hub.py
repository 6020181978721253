"""A module made, embedded, fine-tuned and exported by tensorflow-hub: text column, image column."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_hub as hub

random = np.random.RandomState(0)
texts = np.array(["good film", "bad film", "good day", "bad day"] * 8)
images = random.rand(32, 4, 4, 3).astype(np.float32)
labels = np.array([1, 0, 1, 0] * 8, np.int32)
weights = random.rand(8, 3).astype(np.float32)
folder = tempfile.mkdtemp()


def text_module():
    text = tf.placeholder(tf.string, [None])
    words = tf.string_split(text)
    ids = tf.string_to_hash_bucket_fast(words.values, 8)
    table = tf.get_variable("table", initializer=weights)
    bags = tf.SparseTensor(words.indices, ids, words.dense_shape)
    hub.add_signature(
        "default", text, tf.nn.embedding_lookup_sparse(table, bags, None, combiner="mean")
    )


def image_module():
    image = tf.placeholder(tf.float32, [None, 4, 4, 3])
    kernel = tf.get_variable("kernel", initializer=weights[:3])
    hub.add_signature(
        "default",
        {"images": image},
        {"default": tf.tensordot(tf.reduce_mean(image, [1, 2]), kernel, 1)},
    )
    hub.attach_message("image_module_info", hub.image_util.ImageModuleInfo())


def saved(name, function):
    path = os.path.join(folder, name)
    with tf.Graph().as_default(), tf.Session() as session:
        module = hub.Module(hub.create_module_spec(function))
        session.run(tf.global_variables_initializer())
        module.export(path, session)
    return path


def input_fn():
    features = {"text": texts, "image": images}
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(8)


columns = [
    hub.text_embedding_column("text", saved("text", text_module), trainable=True),
    hub.image_embedding_column("image", saved("image", image_module)),
]
config = tf.estimator.RunConfig(tf_random_seed=1, model_dir=os.path.join(folder, "canned"))
classifier = tf.estimator.LinearClassifier(columns, optimizer="Adam", config=config)
classifier.train(input_fn)
results = {f"canned/{key}": value for key, value in classifier.evaluate(input_fn).items()}


def model_fn(features, labels, mode):
    module = hub.Module(os.path.join(folder, "text"), trainable=True, name="tuned")
    hub.register_module_for_export(module, "tuned")
    logits = tf.reduce_sum(module(features["text"]), 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def serving_input_fn():
    text = tf.placeholder(tf.string, [None])
    return tf.estimator.export.ServingInputReceiver({"text": text}, text)


tuned = tf.estimator.Estimator(model_fn, os.path.join(folder, "model"))
tuned.train(input_fn)
exporter = hub.LatestModuleExporter("modules", serving_input_fn)
path = exporter.export(tuned, os.path.join(folder, "export"), tuned.latest_checkpoint(), {}, True)
tuned_folder = tf.compat.as_str(path)
with tf.Graph().as_default(), tf.Session() as session:
    embedded = hub.Module(os.path.join(tuned_folder, "tuned"))(["good film", "bad day"])
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for index, value in enumerate(session.run(embedded).ravel()):
        results[f"exported/{index}"] = value
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
