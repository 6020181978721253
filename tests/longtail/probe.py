"""Runs a program and writes down the numbers that it computes, on TensorFlow 1.15 or here.

    python probe.py OUT.json tf115 PROGRAM.py ITS FLAGS
    python probe.py OUT.json e2s [options of e2s run] PROGRAM.py ITS FLAGS

The program's files are untouched. What would make two runs differ is taken out of TensorFlow below
its public names, alike on both sides: a random op becomes a fixed sequence, `Dataset.shuffle` does
nothing, an interleave is in order, and Python and NumPy are seeded. Initial values and dropout are
then the same everywhere, and all numbers can be compared from the first step on.

Runs on Python 3.7 too, and imports nothing of this repository.
"""

import contextlib
import functools
import inspect
import itertools
import json
import os
import random
import sys
import threading

import numpy as np

STEPS = int(os.environ.get("PROBE_STEPS", "10"))  # of one training
CALLS = int(os.environ.get("PROBE_CALLS", "6"))  # of an Estimator's methods, then the program ends
RUNS = int(os.environ.get("PROBE_RUNS", "40"))  # of a Session, then the program ends
NUDGE = float(os.environ.get("PROBE_NUDGE", "0"))  # added to all that stands for chance
PREDICTIONS = 16

record = {"calls": [], "runs": [], "variables": {}, "tags": []}
_busy = threading.local()
_folders = []


class Enough(SystemExit):
    """Ends a program of which enough was seen."""


# --- what stands for chance -------------------------------------------------------------------


def _fixed(shape, dtype, salt):
    """Numbers in [0, 1) that integers alone decide: no kernel of any release rounds otherwise."""
    import tensorflow.compat.v1 as tf

    count = tf.reduce_prod(tf.cast(shape, tf.int64))
    numbers = tf.range(count, dtype=tf.int64) + (salt + 1) * 7919
    for factor in (48271, 69621):
        numbers = tf.math.floormod(numbers * factor + 12345, 2147483647)
    uniform = tf.cast(numbers // 128, tf.float32) / 16777216.0 + NUDGE
    return tf.reshape(tf.cast(uniform, dtype), shape)


def _salt():
    """Of an initial value the variable's name; 0 elsewhere, where names may rightly differ."""
    import tensorflow.compat.v1 as tf

    scope = tf.get_default_graph().get_name_scope() if not tf.executing_eagerly() else ""
    name, found, _ = scope.partition("/Initializer")
    return sum(map(ord, name.rpartition("/")[2] + name)) % 9973 if found else 0


def _replace_random_ops():
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import gen_random_ops as ops

    def uniform(shape, dtype, seed=0, seed2=0, name=None):
        return tf.identity(_fixed(shape, dtype, _salt()), name=name)

    def normal(shape, dtype, seed=0, seed2=0, name=None):
        centred = _fixed(shape, dtype, _salt()) * 2.0 - 1.0
        return tf.identity(centred * tf.cast(1.7320508, dtype), name=name)

    def integers(shape, minval, maxval, seed=0, seed2=0, name=None):
        wide = tf.cast(maxval - minval, tf.float32)
        offset = tf.cast(_fixed(shape, tf.float32, _salt()) * wide, tf.as_dtype(minval.dtype))
        return tf.add(minval, offset, name=name)

    def parameterized(shape, means, stdevs, minvals, maxvals, seed=0, seed2=0, name=None):
        return tf.add(normal(shape, means.dtype) * stdevs, means, name=name)

    def multinomial(logits, num_samples, seed=0, seed2=0, output_dtype=tf.int64, name=None):
        best = tf.cast(tf.argmax(logits, 1), output_dtype or tf.int64)[:, tf.newaxis]
        return tf.tile(best, [1, num_samples], name=name)

    ops.random_uniform = uniform
    ops.random_standard_normal = ops.truncated_normal = normal
    ops.random_uniform_int = integers
    ops.parameterized_truncated_normal = parameterized
    ops.multinomial = multinomial
    ops.random_shuffle = lambda value, seed=0, seed2=0, name=None: tf.identity(value, name=name)


def _replace_stateless_ops():
    """What tf-keras's initializers call; TensorFlow 1.15's called the ops above."""
    from tensorflow.python.ops import gen_random_ops as ops
    from tensorflow.python.ops import gen_stateless_random_ops_v2 as v2

    def of(function):
        return lambda shape, key, counter, alg, dtype=np.float32, name=None: function(
            shape, dtype, name=name
        )

    v2.stateless_random_uniform_v2 = of(ops.random_uniform)
    v2.stateless_random_normal_v2 = of(ops.random_standard_normal)
    v2.stateless_truncated_normal_v2 = of(ops.truncated_normal)


def _replace_shuffles():
    import tensorflow.compat.v1 as tf
    from tensorflow.python.data.ops import dataset_ops, readers

    def same(dataset, *args, **kwargs):
        return dataset

    def repeated(buffer_size, count=None, seed=None):
        return lambda dataset: dataset.repeat(count)

    in_order = readers.ParallelInterleaveDataset.__init__

    def interleaved(self, *args, **kwargs):
        given = inspect.signature(in_order).bind(self, *args, **kwargs)
        given.arguments["sloppy"] = False
        in_order(*given.args, **given.kwargs)

    readers.ParallelInterleaveDataset.__init__ = interleaved
    for kind in {dataset_ops.DatasetV1, dataset_ops.DatasetV2, tf.data.Dataset}:
        kind.shuffle = same
    tf.data.experimental.shuffle_and_repeat = repeated


# --- what is written down ---------------------------------------------------------------------


def _summary(value):
    """The figures of one result: shape, sum over the root of the size, norm; None if no number.

    An error of a tensor moves either figure by at most that error's norm.
    """
    array = np.asarray(getattr(value, "values", value))
    if array.dtype.kind not in "biuf":
        return None
    array = array.astype(np.float64)
    total = float(array.sum() / np.sqrt(max(array.size, 1)))
    return {"shape": list(array.shape), "sum": total, "norm": float(np.sqrt((array**2).sum()))}


def _flat(value):
    if isinstance(value, dict):
        return [leaf for key in sorted(value, key=str) for leaf in _flat(value[key])]
    if isinstance(value, (list, tuple)) and not hasattr(value, "dense_shape"):
        return [leaf for part in value for leaf in _flat(part)]
    return [] if value is None else [_summary(value)]


def _plain(result):
    """A result of evaluate or predict, as JSON has it."""
    if isinstance(result, dict):
        return {str(key): _plain(value) for key, value in sorted(result.items(), key=str)}
    array = np.asarray(result)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64).ravel()[:64].tolist()
    return [str(item) for item in array.ravel()[:64]]


def _outermost(method):
    """Wraps a method so that what it calls by the same name is not written down as well."""

    def decorate(wrapped):
        @functools.wraps(method)
        def call(self, *args, **kwargs):
            if method.__name__ in _inside():
                return method(self, *args, **kwargs)
            with _at(method.__name__):
                result = wrapped(self, *args, **kwargs)
            if not _inside() and len(record["calls"]) >= CALLS:
                raise Enough(0)
            return result

        return call

    return decorate


def _inside():
    """The watched methods that this thread is in."""
    if not hasattr(_busy, "names"):
        _busy.names = []
    return _busy.names


@contextlib.contextmanager
def _at(name):
    _inside().append(name)
    try:
        yield
    finally:
        _inside().remove(name)


def _losses(tf):
    class Losses(tf.train.SessionRunHook):
        def __init__(self):
            self.values = []

        def begin(self):
            found = tf.get_collection(tf.GraphKeys.LOSSES)
            self.loss = found[-1] if found else None

        def before_run(self, run_context):
            return tf.train.SessionRunArgs([] if self.loss is None else self.loss)

        def after_run(self, run_context, run_values):
            if self.loss is not None:
                self.values.append(float(np.mean(run_values.results)))

    return Losses()


def _checkpointed(tf, folder):
    path = tf.train.latest_checkpoint(folder)
    if path is None:
        return {}
    reader = tf.train.NewCheckpointReader(path)
    return {name: _summary(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}


def _watch_training(tf, estimator):
    train = estimator.train

    @_outermost(train)
    def watched(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        losses = _losses(tf)
        if max_steps is not None:
            steps, max_steps = None, min(max_steps, STEPS)
        else:
            steps = min(steps or STEPS, STEPS)
        result = train(self, input_fn, [*(hooks or ()), losses], steps, max_steps, saving_listeners)
        _folders.append(self.model_dir)
        record["variables"] = _checkpointed(tf, self.model_dir)
        record["calls"].append({"call": "train", "losses": losses.values})
        return result

    estimator.train = watched
    made = tf.estimator.TrainSpec.__new__

    def capped(cls, *args, **kwargs):
        spec = made(cls, *args, **kwargs)
        return spec._replace(max_steps=min(spec.max_steps or STEPS, STEPS))

    tf.estimator.TrainSpec.__new__ = capped


def _watch_results(tf, estimator):
    evaluate, predict = estimator.evaluate, estimator.predict

    @_outermost(evaluate)
    def evaluated(self, *args, **kwargs):
        result = evaluate(self, *args, **kwargs)
        record["calls"].append({"call": "evaluate", "results": _plain(dict(result))})
        return result

    def predicted(self, *args, **kwargs):
        if "predict" in _inside():
            yield from predict(self, *args, **kwargs)
            return
        seen = []
        results = predict(self, *args, **kwargs)
        try:
            while len(seen) < PREDICTIONS:
                try:
                    with _at("predict"):
                        result = next(results)
                except StopIteration:
                    return
                seen.append(_plain(result))
                yield result
        finally:
            record["calls"].append({"call": "predict", "results": seen})

    estimator.evaluate, estimator.predict = evaluated, predicted


def _watch_exports(tf, estimator):
    def of(name):
        method = getattr(estimator, name)

        @_outermost(method)
        def exported(self, *args, **kwargs):
            result = method(self, *args, **kwargs)
            folder = result.decode() if isinstance(result, bytes) else result
            record["calls"].append({"call": "export", "signatures": _signatures(tf, folder)})
            return result

        setattr(estimator, name, exported)

    for name in ("export_saved_model", "export_savedmodel"):
        of(name)


def _signatures(tf, folder):
    with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
        from tensorflow.core.protobuf import saved_model_pb2

        graph = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs[0]

    def side(tensors):
        return {
            key: [info.dtype, [dim.size for dim in info.tensor_shape.dim]]
            for key, info in sorted(tensors.items())
        }

    return {
        name: [signature.method_name, side(signature.inputs), side(signature.outputs)]
        for name, signature in sorted(graph.signature_def.items())
        if not name.startswith("__")
    }


def _watch_sessions():
    from tensorflow.python.client import session as sessions

    run = sessions.BaseSession.run

    @functools.wraps(run)
    def watched(self, fetches, *args, **kwargs):
        if _inside():
            return run(self, fetches, *args, **kwargs)
        with _at("run"):
            result = run(self, fetches, *args, **kwargs)
        if threading.current_thread() is not threading.main_thread():
            return result  # a Supervisor's threads run when they happen to
        seen = result.get("caller", result) if isinstance(result, dict) else result
        record["runs"].append(_flat(seen))
        if len(record["runs"]) >= RUNS:
            _read_variables(self, run)
            raise Enough(0)
        return result

    sessions.BaseSession.run = watched


def _read_variables(session, run):
    import tensorflow.compat.v1 as tf

    session.graph._unsafe_unfinalize()  # a Supervisor finalizes it
    with session.graph.as_default():
        variables = tf.global_variables()
        ready = run(session, [tf.is_variable_initialized(variable) for variable in variables])
        chosen = list(itertools.compress(variables, ready))
        values = run(session, chosen)
    for variable, value in zip(chosen, values):
        record["variables"][variable.op.name] = _summary(value)


def _tags():
    import glob

    import tensorflow.compat.v1 as tf

    tags = set()
    for folder in set(_folders):
        for path in glob.glob(os.path.join(folder, "**", "events.out.*"), recursive=True):
            for event in tf.train.summary_iterator(path):
                tags.update(value.tag for value in event.summary.value)
    return sorted(tags)


def _classes(tf):
    """Those whose own methods are watched: a subclass that overrides one calls its parent's."""
    found = [tf.estimator.Estimator]
    tpu = tf.estimator.tpu.TPUEstimator
    return found + [tpu] * any(name in vars(tpu) for name in ("train", "evaluate", "predict"))


def install(here):
    # The MNIST of TensorFlow's tutorials asks for another seed each time: np.random.seed(None).
    seed = np.random.seed
    np.random.seed = lambda value=None: seed(1 if value is None else value)
    if here:
        from estimator2strategy import tf1 as tf
    else:
        import tensorflow as tf
    _replace_random_ops()
    if here:
        _replace_stateless_ops()
    _replace_shuffles()
    for estimator in _classes(tf):
        _watch_training(tf, estimator)
        _watch_results(tf, estimator)
        _watch_exports(tf, estimator)
    _watch_sessions()
    random.seed(1)  # at last: an import of the above may draw
    np.random.seed(1)


def run(kind, target):
    if kind == "e2s":
        from estimator2strategy.legacy.run import main

        main(target)
        return
    import runpy

    if target[0] == "-m":
        sys.argv, sys.path[0] = target[1:], os.getcwd()
        runpy.run_module(target[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = target, os.path.dirname(os.path.abspath(target[0]))
        runpy.run_path(target[0], run_name="__main__")


def main():
    out, kind, target = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.environ.pop("TF2_BEHAVIOR", None)  # TensorFlow 2 leaves it to the processes that it starts
    install(kind == "e2s")
    try:
        run(kind, target)
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise
    finally:
        _inside().append("end")
        record["tags"] = _tags()
        with open(out, "w") as file:
            json.dump(record, file)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
