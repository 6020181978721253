"""MtfModel of t5 on a task of ours: finetuned, evaluated, decoded from a file, scored."""

import functools
import glob
import json
import os
import tempfile
import zlib

import tensorflow as tf

if tf.__version__.startswith("2.15"):  # mesh-tensorflow takes a function from where 2.13 had it
    from tensorflow.python.framework import ops
    from tensorflow.python.framework import tensor_conversion_registry as registry

    ops.register_tensor_conversion_function = registry.register_tensor_conversion_function

import gin
import mesh_tensorflow as mtf
import mesh_tensorflow.transformer
import numpy as np
import seqio
import t5
import t5.models

tf.compat.v1.disable_v2_behavior()  # as t5's own main does
tf.compat.v1.enable_resource_variables()  # the updates of others race on TensorFlow 2.15
folder = tempfile.mkdtemp()
vocabulary = seqio.ByteVocabulary(extra_ids=0)


def examples(split, shuffle_files, seed=None):
    random = np.random.RandomState(len(split))
    words = ["".join(random.choice(list("abcdefgh"), 4)) for _ in range(8)]
    return tf.data.Dataset.from_tensor_slices(
        {"inputs": words, "targets": ["".join(sorted(word)) for word in words]}
    )


seqio.TaskRegistry.add(
    "sorted_letters",
    source=seqio.FunctionDataSource(examples, splits=("train", "validation")),
    preprocessors=[seqio.preprocessors.tokenize, seqio.preprocessors.append_eos],
    output_features={key: seqio.Feature(vocabulary) for key in ("inputs", "targets")},
    metric_fns=[t5.evaluation.metrics.edit_distance],
)
for module in (mtf.transformer, t5.models):
    gin.add_config_file_search_path(os.path.join(os.path.dirname(module.__file__), "gin"))
gin.parse_config_file("defaults.gin")
gin.parse_config_file("models/t5.1.1.tiny.gin")
gin.parse_config(
    """
    mesh_train_dataset_fn.shuffle = False
    num_layers = 1
    d_model = 16
    d_kv = 8
    save_scores.save_example_text = False
    """
)


def model(name):
    return t5.models.MtfModel(
        os.path.join(folder, name),
        tpu=None,
        mesh_shape="model:1,batch:1",
        mesh_devices=[""],
        batch_size=4,
        sequence_length={"inputs": 6, "targets": 6},
        learning_rate_schedule=lambda step: 0.01,
        optimizer=functools.partial(mtf.optimize.AdamWeightDecayOptimizer, epsilon=1e-3),
        save_checkpoints_steps=100,
        iterations_per_loop=4,
    )


def known_start(pretrained):
    """Give a checkpoint's weights the same values everywhere, and Adam's slots zeros."""
    reader = tf.train.load_checkpoint(pretrained)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, shape in reader.get_variable_to_shape_map().items():
            random = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
            value = random.uniform(-0.5, 0.5, shape) if shape else reader.get_tensor(name)
            value = np.ones(shape) if name.endswith("/scale") else value
            value = np.zeros(shape) if "/adam_" in name else value
            tf.compat.v1.get_variable(
                name, initializer=np.asarray(value, reader.get_tensor(name).dtype)
            )
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, tf.train.latest_checkpoint(pretrained))


model("pretrained").train("sorted_letters", steps=1)
known_start(os.path.join(folder, "pretrained"))
finetuned = model("finetuned")
finetuned.finetune("sorted_letters", 4, os.path.join(folder, "pretrained"))
results = {}
# t5 writes files into this folder before TensorFlow makes it.
tf.io.gfile.makedirs(os.path.join(folder, "finetuned", "validation_eval"))
finetuned.eval("sorted_letters", checkpoint_steps=-1, compute_sequence_length=False)
for events in glob.glob(
    os.path.join(folder, "finetuned", "validation_eval", "**", "events*"), recursive=True
):
    for event in tf.compat.v1.train.summary_iterator(events):
        results.update({value.tag: value.simple_value for value in event.summary.value})
words = os.path.join(folder, "words")
with open(words, "w") as file:
    file.write("abcd\nhgfe\nbaba\nfeed\n")
finetuned.predict(words, words + "-decoded", temperature=0.0, vocabulary=vocabulary)
(decoded,) = glob.glob(words + "-decoded-*")
with open(decoded) as file:
    for index, line in enumerate(file.read().splitlines()):
        results[f"decoded/{index}"] = sum(ord(s) * 0.5**place for place, s in enumerate(line))
scores = finetuned.score(words, words, vocabulary=vocabulary)
results.update({f"scores/{index}": score for index, score in enumerate(scores)})
print("RESULT", json.dumps({key: float(value) for key, value in sorted(results.items())}))
