"""Records what a program does with TensorFlow 1.15: `tf115/bin/python tests/ladder/record.py NAME`.

Of `programs/NAME.py`, or of `programs/NAME/main.py`, `goldens/NAME.npz` gets the first weights, the
loss of each step, the results of the evaluation, and what its exports answer.
"""

import os
import runpy
import sys
import tempfile

import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


class Recorder(tf.train.SessionRunHook):
    def __init__(self, found):
        self.found = found

    def after_create_session(self, session, coord):
        for variable in tf.global_variables():
            self.found["first/" + variable.op.name] = session.run(variable)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        self.found.setdefault("losses", []).append(run_values.results)


def recorded(path):
    found = {}
    train, evaluate = tf.estimator.Estimator.train, tf.estimator.Estimator.evaluate

    def recorded_train(self, *args, **kwargs):
        kwargs["hooks"] = [*(kwargs.get("hooks") or ()), Recorder(found)]
        return train(self, *args, **kwargs)

    def recorded_evaluate(self, *args, **kwargs):
        results = evaluate(self, *args, **kwargs)
        found.update({"eval/" + name: value for name, value in results.items()})
        return results

    tf.estimator.Estimator.train = recorded_train
    tf.estimator.Estimator.evaluate = recorded_evaluate
    model_dir = tempfile.mkdtemp()
    sys.argv = [path, "--model_dir=" + model_dir]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit:
        pass
    finally:
        tf.estimator.Estimator.train, tf.estimator.Estimator.evaluate = train, evaluate
    folder = os.path.join(model_dir, "export")
    for name in os.listdir(folder) if os.path.exists(folder) else ():
        if not name.isdigit():  # of an exporter
            (version,) = os.listdir(os.path.join(folder, name))
            found.update(answers("export/" + name, os.path.join(folder, name, version)))
    return found


def answers(name, path):
    """The feeds of an export and its answers, below a name."""
    with tf.Session(graph=tf.Graph()) as session:
        graph = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], path)
        signature = graph.signature_def["serving_default"]
        fed = {key: example(info) for key, info in signature.inputs.items()}
        asked = {key: info.name for key, info in signature.outputs.items()}
        got = session.run(asked, {signature.inputs[key].name: fed[key] for key in fed})
    found = {name + "/in/" + key: value for key, value in fed.items()}
    found.update({name + "/out/" + key: value for key, value in got.items()})
    return found


def example(info):
    """Three rows for an input of a signature."""
    shape = [3 if size.size < 0 else size.size for size in info.tensor_shape.dim]
    numbers = np.arange(np.prod(shape)).reshape(shape)
    return numbers.astype(tf.as_dtype(info.dtype).as_numpy_dtype)


if __name__ == "__main__":
    (name,) = sys.argv[1:]
    path = os.path.join(HERE, "programs", name + ".py")
    if not os.path.exists(path):
        path = os.path.join(HERE, "programs", name, "main.py")
        sys.path.insert(0, os.path.dirname(path))
    found = recorded(path)
    skipped = ("/Adam", "beta1_power", "beta2_power", "/Adagrad", "/Momentum")
    kept = {key: value for key, value in found.items() if not any(s in key for s in skipped)}
    np.savez_compressed(os.path.join(HERE, "goldens", name + ".npz"), **kept)
