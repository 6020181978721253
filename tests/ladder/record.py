"""Records what a program does with TensorFlow 1.15: `tf115/bin/python tests/ladder/record.py NAME`.

Of `programs/NAME.py`, or of `programs/NAME/main.py`, `goldens/NAME.npz` gets the first weights, the
loss of each step, and the results of the evaluation.
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
    sys.argv = [path, "--model_dir=" + tempfile.mkdtemp()]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit:
        pass
    finally:
        tf.estimator.Estimator.train, tf.estimator.Estimator.evaluate = train, evaluate
    return found


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
