"""Exports SavedModels with the real Estimator and with ours, and describes what is in them.

    python served.py FOLDER [v1]

Prints JSON: case -> files, variables and, by their tags, graphs: signatures, nodes, collections,
what each answers. With `v1` it calls `disable_v2_behavior()` first, and exports two cases.
tests/goldens/served.json is {"v2": its output, "v1": its output with v1} on TensorFlow 2.15.1.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
if hasattr(tf1, "estimator"):
    estimator = tf1.estimator  # TensorFlow 2.15
    from tensorflow_estimator.python.estimator.tpu import tpu_estimator as tpu

    supervised_receiver_fn = estimator.experimental.build_raw_supervised_input_receiver_fn
else:
    from estimator2strategy import estimator

    tpu = estimator.tpu
    supervised_receiver_fn = estimator.export.build_raw_supervised_input_receiver_fn
export = estimator.export
ModeKeys = estimator.ModeKeys

WORDS = ["ant", "bee", "cat", "dog"]
FEATURES = {
    "word": tf.io.FixedLenFeature([], tf.string),
    "size": tf.io.FixedLenFeature([2], tf.float32),
    "seen": tf.io.VarLenFeature(tf.int64),
}


def vocabulary(folder):
    path = os.path.join(folder, "words.txt")
    with open(path, "w") as file:
        file.write("\n".join(WORDS))
    return path


def lookup(words, path):
    table = tf1.lookup.StaticVocabularyTable(
        tf1.lookup.TextFileInitializer(
            path, tf.string, tf1.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, tf1.lookup.TextFileIndex.LINE_NUMBER,
        ),
        num_oov_buckets=1,
    )  # fmt: skip
    return table.lookup(words)


def model_fn(features, labels, mode, params):
    """Logistic regression on embedded words and sizes; weights that one can tell by hand."""
    embedding = tf1.get_variable("embedding", initializer=tf.reshape(tf.range(10.0), [5, 2]))
    bias = tf1.get_variable("bias", [2], initializer=tf1.ones_initializer())
    local = tf1.get_local_variable("scale", [], initializer=tf1.constant_initializer(2.0))
    ids = lookup(features["word"], params["vocabulary"])
    sums = tf.gather(embedding, ids) * local + features["size"] + bias
    logits = tf1.cond(
        tf.reduce_all(sums > 3.0), lambda: tf.add(sums, bias), lambda: tf.identity(sums)
    )
    probabilities = tf.nn.softmax(logits, name="probabilities")
    if mode == ModeKeys.PREDICT:
        classes = tf.tile(tf.constant([["no", "yes"]]), [tf.shape(logits)[0], 1])
        outputs = {
            "classes": export.ClassificationOutput(probabilities, classes),
            "scores": export.ClassificationOutput(scores=probabilities),
            "odds": export.RegressionOutput(tf.exp(logits[:, 1])),
            "all": export.PredictOutput({"logits": logits, "ids": ids}),
            "serving_default": export.PredictOutput(probabilities),
        }
        predictions = {"probabilities": probabilities, "ids": ids}
        return estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = None
    if mode == ModeKeys.TRAIN:
        optimizer = tf1.train.MomentumOptimizer(0.5, 0.9)
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    predicted = tf1.argmax(logits, 1)
    metrics = {"accuracy": tf1.metrics.accuracy(labels, predicted), "none": (loss, tf.no_op())}
    return estimator.EstimatorSpec(
        mode, {"predicted": predicted}, loss, train_op, eval_metric_ops=metrics
    )


def doubled_in_a_loop(sizes):
    """[batch, 2] -> [batch, 1]: 8 x (a + 2b)."""
    weight = tf1.get_variable("weight", initializer=[[1.0], [2.0]])
    product = tf.matmul(sizes, weight, name="product")
    return tf1.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x * 2.0), (0, product))[1]


def dense_model_fn(features, labels, mode, params):
    """What goes to a TPU; whether `use_tpu` is set shows in the outputs."""
    outputs = doubled_in_a_loop(features["size"])
    if mode == ModeKeys.PREDICT:
        assert "batch_size" not in params
        tf1.placeholder(tf.float32, [], "unused")  # A TPU's compiler would refuse it.
        outputs = outputs + (100.0 if params["use_tpu"] else 0.0)
        return estimator.tpu.TPUEstimatorSpec(
            mode,
            predictions={"outputs": outputs},
            export_outputs={
                "twice": export.PredictOutput({"twice": outputs * 2, "once": outputs}),
                "value": export.RegressionOutput(outputs),
                "class": export.ClassificationOutput(
                    classes=tf1.tpu.outside_compilation(tf.as_string, outputs)
                ),
                "serving_default": export.PredictOutput({"outputs": outputs}),
            },
        )
    loss = tf.reduce_mean(outputs)
    step = tf1.train.get_global_step()
    return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=tf1.assign_add(step, 1))


def all_on_tpu_model_fn(features, labels, mode, params):
    """`dense_model_fn`, put on the TPU by itself, with batching."""
    if mode == ModeKeys.PREDICT and params["use_tpu"]:
        batches = tpu.BatchConfig(1, 8, 100, [2, 8], 7)
        return tpu.model_fn_inference_on_tpu(
            dense_model_fn, features, labels, params=params, batch_config=batches
        )
    return dense_model_fn(features, labels, mode, params)


def part_on_tpu_model_fn(features, labels, mode, params):
    """A part of the model on the TPU, with batching."""
    if mode != ModeKeys.PREDICT:
        return dense_model_fn(features, labels, mode, params)
    halves = features["size"] / 2.0
    if params["use_tpu"]:
        (outputs,) = tpu.inference_on_tpu(doubled_in_a_loop, [halves], 1, 8, 100)
    else:
        outputs = doubled_in_a_loop(halves)
    return estimator.tpu.TPUEstimatorSpec(mode, {"outputs": tf.identity(outputs)})


def input_fn(params):
    del params
    features = {"word": ["bee", "wolf"], "size": [[1.0, 2.0], [3.0, 4.0]]}
    return tf1.data.Dataset.from_tensors((features, [0, 1]))


def parsed():
    return export.build_parsing_serving_input_receiver_fn(FEATURES)()


def parsed_or_raw():
    serialized = tf1.placeholder(tf.string, [None], name="examples")
    features = tf1.io.parse_example(serialized, FEATURES)
    raw = {"word": features["word"], "size": features["size"]}
    return export.ServingInputReceiver(features, serialized, {"raw": raw})


def supervised():
    features = {
        "word": tf1.placeholder(tf.string, [None], "words"),
        "size": tf1.placeholder(tf.float32, [None, 2], "sizes"),
    }
    labels = {"label": tf1.placeholder(tf.int64, [None], "labels")}
    receiver = supervised_receiver_fn(features, labels)()
    return type(receiver)(receiver.features, receiver.labels["label"], receiver.receiver_tensors)


def serialized_examples():
    examples = []
    for word, size in (("bee", [1.0, 2.0]), ("wolf", [3.0, 4.0])):
        example = tf.train.Example()
        example.features.feature["word"].bytes_list.value.append(word.encode())
        example.features.feature["size"].float_list.value.extend(size)
        examples.append(example.SerializeToString())
    return examples


FED = {
    "examples": serialized_examples(),
    "word": ["bee", "wolf"],
    "size": [[1.0, 2.0], [3.0, 4.0]],
    "label": [0, 1],
}
FED["input"] = FED["inputs"] = FED["examples"]


RECEIVERS = {ModeKeys.TRAIN: supervised, ModeKeys.EVAL: supervised, ModeKeys.PREDICT: parsed}
CASES = {
    "parsed": lambda model, folder: model.export_saved_model(folder, parsed),
    "raw": lambda model, folder: model.export_saved_model(
        folder, parsed_or_raw, assets_extra={"notes/words.txt": f"{folder}/words.txt"}
    ),
    "every attribute": lambda model, folder: model.export_savedmodel(folder, parsed, as_text=True),
    "modes": lambda model, folder: model.experimental_export_all_saved_models(folder, RECEIVERS),
}


def exported(folder, cases=CASES):
    """Case -> folder of its SavedModel."""
    config = estimator.RunConfig(tf_random_seed=1)
    params = {"vocabulary": vocabulary(folder)}
    model = estimator.Estimator(model_fn, os.path.join(folder, "model"), config, params)
    model.train(input_fn, steps=3)
    return {case: CASES[case](model, folder) for case in cases}


TPU_CASES = {
    "both": (dense_model_fn, {}),
    "TPU alone": (dense_model_fn, {"export_to_cpu": False}),
    "host alone": (dense_model_fn, {"export_to_tpu": False}),
    "V2, all": (all_on_tpu_model_fn, {"export_saved_model_api_version": 2}),
    "V2, part": (
        part_on_tpu_model_fn,
        {"export_saved_model_api_version": tpu.ExportSavedModelApiVersion.V2},
    ),
}


def exported_for_tpus(folder, cases=TPU_CASES):
    """Case -> folder of its SavedModel, with a graph for TPUs that is built but not run."""
    # The real one cannot export a graph for TPUs alone, on a host without TPUs, but with this.
    pruned = tf1.ConfigProto(graph_options=tf1.GraphOptions(place_pruned_graph=True))
    folders = {}
    for case in cases:
        function, options = TPU_CASES[case]
        model = estimator.tpu.TPUEstimator(
            function,
            os.path.join(folder, "dense"),
            estimator.tpu.RunConfig(tf_random_seed=1, session_config=pruned),
            use_tpu=False,
            train_batch_size=2,
            **options,
        )
        model.train(input_fn, max_steps=1)
        spec = {"size": FEATURES["size"]}
        receiver_fn = export.build_parsing_serving_input_receiver_fn(spec)
        folders[case] = model.export_saved_model(folder, receiver_fn)
    return folders


def described(folder):
    """Files and graphs of one SavedModel."""
    folder = os.fsdecode(folder)
    files = [
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, names in os.walk(folder)
        for name in names
    ]
    saved = _parsed(folder)
    variables = os.path.join(folder, "variables", "variables")
    return {
        "files": sorted(files),
        "variables": {
            name: np.asarray(tf.train.load_variable(variables, name)).tolist()
            for name, _ in tf.train.list_variables(variables)
        },
        "graphs": {
            ",".join(sorted(graph.meta_info_def.tags)): _described_graph(graph, folder)
            for graph in saved.meta_graphs
        },
    }


def _parsed(folder):
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    text = os.path.join(folder, "saved_model.pbtxt")
    if os.path.exists(text):
        with open(text) as file:
            return text_format.Parse(file.read(), saved)
    with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
        saved.ParseFromString(file.read())
    return saved


def _tensors(infos):
    return {
        name: [info.name, tf.as_dtype(info.dtype).name, [d.size for d in info.tensor_shape.dim]]
        for name, info in sorted(infos.items())
    }


def _described_graph(graph, folder):
    functions = [
        " ".join([node.op, *(sorted(a for a in node.attr if a.startswith(("_tpu", "_xla"))))])
        for function in graph.graph_def.library.function
        for node in function.node_def
    ]
    return {
        "stripped": graph.meta_info_def.stripped_default_attrs,
        "signatures": {
            key: [signature.method_name, _tensors(signature.inputs), _tensors(signature.outputs)]
            for key, signature in sorted(graph.signature_def.items())
        },
        "nodes": [f"{node.name} {node.op} {len(node.attr)}" for node in graph.graph_def.node],
        "in functions": sorted(functions),
        "collections": {
            key: list(collection.node_list.value) or len(getattr(collection, kind).value)
            for key, collection in sorted(graph.collection_def.items())
            if (kind := collection.WhichOneof("kind"))
        },
        "saver": [graph.saver_def.restore_op_name, graph.saver_def.sharded],
        "answers": _answers(graph, folder),
    }


def _answers(graph, folder):
    tags = set(graph.meta_info_def.tags)
    if "tpu" in tags:
        return None
    with tf1.Session(graph=tf.Graph()) as session:
        tf1.saved_model.load(session, tags, folder)
        answers = {}
        for key, signature in sorted(graph.signature_def.items()):
            feed = {info.name: FED[name] for name, info in signature.inputs.items()}
            # Without updates: a metric's value would race with them.
            fetches = {
                name: info.name
                for name, info in sorted(signature.outputs.items())
                if not name.endswith("update_op")
            }
            values = session.run(fetches, feed)
            answers[key] = {name: _plain(value) for name, value in values.items()}
        return answers


def answers_of_function(function):
    """What a signature that `tf.saved_model.load` found answers."""
    specs = function.structured_input_signature[1]
    fed = {name: tf.constant(FED[name], spec.dtype) for name, spec in specs.items()}
    values = function(**fed)
    return {k: _plain(v.numpy()) for k, v in sorted(values.items()) if not k.endswith("update_op")}


def _plain(value):
    if value.dtype.kind in "OS":
        return [[word.decode() for word in row] for row in value]
    return np.round(value.astype(np.float64), 5).tolist()


def main(folder, *v1):
    if v1:
        tf1.disable_v2_behavior()
    folders = exported(folder, ["parsed"] if v1 else CASES)
    folders |= exported_for_tpus(folder, ["both"] if v1 else TPU_CASES)
    print(json.dumps({case: described(where) for case, where in folders.items()}))


if __name__ == "__main__":
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    main(*sys.argv[1:])
