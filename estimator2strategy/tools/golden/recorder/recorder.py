"""Records what one Estimator does."""

import collections
import contextlib
import json
import os
import platform
import shutil
import tempfile
import traceback
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.tools.golden.recorder.batches import (
    described,
    is_dense,
    rebuilt,
    received,
    taken_batches,
)
from estimator2strategy.tools.golden.recorder.feeds import Again, Feed, TrainFeed
from estimator2strategy.tools.golden.recorder.options import (
    FORMAT,
    PARTS,
    VERSION,
    NoBatchError,
    RecordError,
    copy_checkpoint,
    files_of,
    packed,
    say,
    sha256,
)

tf1 = tf.compat.v1

_NEVER = 10**9  # steps between checkpoints: only the first and the last are wanted
_LARGE = 1 << 30  # bytes of batches that are worth a word
_FUSED = (
    "TensorFlow 1 fused shuffle and repeat in the input for {}, so a seed gives another order than "
    "in TensorFlow 2. To turn that off: options = tf.data.Options(); "
    "options.experimental_optimization.shuffle_and_repeat_fusion = False; "
    "dataset = dataset.with_options(options)"
)

# The methods of an Estimator, and how many batches to record of each mode.
Calls = collections.namedtuple("Calls", "train eval predict export")
Limits = collections.namedtuple("Limits", "train eval predict")


class Recorder:
    """Records the first training, evaluation, prediction and export that it is asked for.

    Args:
        calls: The Estimator's own methods.
        limits: The numbers of batches to record.
        start: A checkpoint to start from; None: the initial values of the program.
        parts: The parts to record; the Estimator does the others as ever.
        like: A Golden, whose batches and checkpoints are used: no batch is taken. Evaluation,
            prediction and export then use its last checkpoint, whatever training made.
    """

    def __init__(
        self, calls: Any, limits: Any, start: Any = None, like: Any = None, parts: Any = PARTS
    ):
        self.parts = frozenset(parts)
        self._calls, self._limits, self._like = calls, limits, like
        self._start = like.checkpoint("first") if like else start
        self._scratch = tempfile.mkdtemp(prefix="e2s_record_")
        self.first: Any = None
        self.last: Any = None
        self._features = None
        self._batches: Any = {}
        self.results: Any = {}
        self.done: Any = set()
        self.active: Any = set()
        self.about: Any = {"format": FORMAT, "version": VERSION, "batches": {}, "notes": []}
        self.about["versions"] = {
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
            "machine": platform.machine(),
        }

    def close(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)

    @contextlib.contextmanager
    def _alone(self, what: Any) -> Any:
        """While this lasts, the Estimator's calls of its own methods are not recorded."""
        self.active.add(what)
        try:
            yield
        except BaseException:
            self._forget(what)
            raise
        finally:
            self.active.remove(what)
        self.done.add(what)

    def _forget(self, what: Any) -> None:
        """Leaves nothing of a part that was recorded in part."""
        self.about.pop(what, None)
        for name in [name for name in self.results if name.startswith(what + "/")]:
            del self.results[name]

    def leave_out(self, what: Any, error: Any) -> None:
        """Goes on without what failed, once training is recorded; a replay fails as a whole.

        Raises:
            Exception: `error`, where nothing is left to record.
        """
        if self._like or "train" not in self.done:
            raise error
        traceback.print_exception(type(error), error, error.__traceback__)
        said = (str(error).splitlines() or [""])[0]
        missing = [part for part in PARTS if part in self.parts - self.done]
        self.about["notes"].append(
            "{} failed, so the golden is without {}: {}: {}".format(
                what, ", ".join(missing), type(error).__name__, said
            )
        )

    def _unless_empty(self, what: Any, record: Any, call: Any) -> Any:
        """Records a mode; of one without a batch only a note that there is nothing to record.

        Returns:
            The result of `record`, or of the Estimator's own `call`.
        """
        try:
            if what in self.parts:
                with self._alone(what):
                    return record()
        except NoBatchError as error:
            self.about["notes"].append(f"{what} is not recorded: {error}")
        self.active.add(what)
        try:
            return call()
        finally:
            self.active.remove(what)

    def train(
        self,
        estimator: Any,
        input_fn: Any,
        hooks: Any = None,
        saving_listeners: Any = None,
        most: Any = None,
    ) -> None:
        """Records training; `most` is how many steps the program wants at most."""
        estimator = self.prepared(estimator)
        with self._alone("train"):
            about, batches = self._input(estimator, input_fn, "train", most)
            # A replay orders what races in a Session.
            again = None if hasattr(estimator, "_placement") else Again()
            feed = TrainFeed(about, batches, again)
            own = [h for h in hooks or [] if not isinstance(h, tf1.train.CheckpointSaverHook)]
            with feed.watching(estimator):
                self._calls.train(
                    estimator,
                    input_fn=feed.input_fn,
                    hooks=[*own, feed],
                    steps=len(batches),
                    saving_listeners=saving_listeners,
                )
            self._keep_training(estimator, feed)

    def prepared(self, estimator: Any) -> Any:
        """The Estimator, with a model_dir of ours, and the checkpoint to start from in it.

        Raises:
            RecordError: The Estimator is for a TPU, or for several replicas.
        """
        refuse_other_devices(estimator)
        return started(estimator, os.path.join(self._scratch, "model"), self._start)

    def _input(self, estimator: Any, input_fn: Any, mode: Any, most: Any = None) -> Any:
        """The batches of a mode: the golden's, or taken from input_fn."""
        if self._like:
            about, batches = self._like.about["batches"].get(mode), self._like.batches(mode)
            if about is None:
                raise NoBatchError(f"the golden has no batches of mode {mode!r}")
        else:
            limit = min(most or _NEVER, getattr(self._limits, mode))
            key = {"predict": "infer"}.get(mode, mode)
            about, batches = taken_batches(estimator, input_fn, key, limit)
            if about["shuffle_and_repeat_fusion"]:
                self.about["notes"].append(_FUSED.format(key))
            size = sum(np.asarray(array).nbytes for batch in batches for array in batch)
            if size > _LARGE:
                gigabytes = size / 1e9
                say(f"the batches for {mode} are {gigabytes:.1f} GB: smaller ones would do")
        self.about["batches"][mode] = about
        for i, batch in enumerate(batches):
            for j, array in enumerate(batch):
                self._batches.update(packed(f"{mode}/{i}/{j}", array))
        if mode == "predict" or self._features is None:
            features = (
                rebuilt(about["structure"], batches[0]) if is_dense(about["structure"]) else None
            )
            self._features = features[0] if isinstance(features, tuple) else features
        return about, batches

    def _keep_training(self, estimator: Any, feed: Any) -> None:
        first = int(np.rint(feed.values[0][_index(feed, "global_step")][1]))
        last = int(np.rint(feed.values[-1][_index(feed, "global_step")][1]))
        self.first, self.last = (
            os.path.join(estimator.model_dir, f"model.ckpt-{s}") for s in (first, last)
        )
        self.about["checkpoints"] = {
            which: os.path.basename(path)
            for which, path in (("first", self.first), ("last", self.last))
        }
        self.about["estimator"] = "{0.__module__}.{0.__name__}".format(type(estimator))
        self.about["train"] = {
            "steps": len(feed.losses),
            "global_steps": [first, last],
            "variables": feed.inventory(),
            "gradients": feed.trainable,
            "draws": feed.draws.about(),
            "uncontrolled": feed.draws.uncontrolled,
        }
        self.about["notes"] += feed.notes
        if feed.again and feed.again.race:
            self._keep_race(feed)
        if feed.draws.uncontrolled:
            self.about["notes"].append(
                "random ops that are not controlled: " + ", ".join(feed.draws.uncontrolled[:5])
            )
        for name in ("losses", "gradients", "values", "updates"):
            self.results["train/" + name] = np.array(getattr(feed, name), np.float64)

    def _keep_race(self, feed: Any) -> None:
        step, differing = feed.again.race
        names = [feed.variables[i].op.name for i in differing]
        self.about["train"]["race"] = {"step": step, "variables": names}
        self.results["train/again"] = np.array(feed.again.updates, np.float64)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        self.about["notes"].append(
            "the program races: step {} run again from the same values gives other updates of {}{}."
            " It reads a variable (the global step?) beside an assignment to it".format(
                step + 1, ", ".join(names[:3]), more
            )
        )

    def _trained(self, estimator: Any) -> Any:
        """The checkpoint that is evaluated, asked for predictions, and exported."""
        if self._like:
            return self._like.checkpoint("last")
        return self.last or tf.train.latest_checkpoint(estimator.model_dir)

    def evaluate(self, estimator: Any, input_fn: Any, most: Any = None, **arguments: Any) -> Any:
        """Records an evaluation; returns the metrics."""
        estimator = self.prepared(estimator)

        def record() -> Any:
            feed = Feed(*self._input(estimator, input_fn, "eval", most))
            with feed.watching(estimator):
                arguments["hooks"] = [*(arguments.get("hooks") or []), feed]
                path = self._trained(estimator)
                steps = self.about["batches"]["eval"]["count"]
                metrics = self._calls.eval(
                    estimator, feed.input_fn, steps=steps, checkpoint_path=path, **arguments
                )
            self.about["evaluate"] = {"metrics": sorted(metrics), "batches": feed.step}
            self.results["evaluate/losses"] = np.array(feed.losses, np.float64)
            for name, value in metrics.items():
                self.results.update(packed("evaluate/metric/" + name, value))
            return metrics

        asked = dict(arguments)  # `record` adds a hook to its own

        def call() -> Any:
            path = self._trained(estimator)
            return self._calls.eval(estimator, input_fn, checkpoint_path=path, **asked)

        return self._unless_empty("evaluate", record, call)

    def predict(self, estimator: Any, input_fn: Any, hooks: Any = None, **arguments: Any) -> Any:
        """Records predictions, of the first and of the last checkpoint; returns what was asked."""
        estimator = self.prepared(estimator)

        def predicted(path: Any, input_fn: Any, hooks: Any, **arguments: Any) -> Any:
            arguments.update(hooks=hooks, checkpoint_path=path)
            return list(self._calls.predict(estimator, input_fn, **arguments))

        def record() -> Any:
            about, batches = self._input(estimator, input_fn, "predict")

            def fed(path: Any, **arguments: Any) -> Any:
                feed = Feed(about, batches)
                with feed.watching(estimator):
                    return predicted(path, feed.input_fn, [*(hooks or []), feed], **arguments)

            for which, path in (("first", self.first), ("last", self._trained(estimator))):
                rows = fed(path)
                if not rows:
                    raise NoBatchError("its batches have no rows.")
                keys = sorted(rows[0]) if isinstance(rows[0], dict) else [""]
                self.about["predict"] = {"keys": keys, "rows": len(rows)}
                for key in keys:
                    column = np.array([row[key] if key else row for row in rows])
                    self.results.update(packed(f"predict/{which}/{key}", column))
            return fed(self._trained(estimator), **arguments) if arguments else rows

        def call() -> Any:
            return predicted(self._trained(estimator), input_fn, hooks, **arguments)

        return self._unless_empty("predict", record, call)

    def export(self, estimator: Any, receiver_fn: Any) -> Any:
        """Records the signatures of an export, and what they answer to recorded features."""
        estimator = self.prepared(estimator)

        def call() -> Any:
            folder = os.path.join(self._scratch, "export")
            path = self._calls.export(
                estimator, folder, receiver_fn, checkpoint_path=self._trained(estimator)
            )
            return path.decode() if isinstance(path, bytes) else path

        def record() -> Any:
            path = call()
            self._keep_export(path)
            return path

        return self._unless_empty("export", record, call)

    def _keep_export(self, path: Any) -> None:
        with tf1.Session(graph=tf.Graph()) as session:
            graph = tf1.saved_model.load(session, ["serve"], path)
            signatures = {}
            for key, signature in sorted(graph.signature_def.items()):
                signatures[key] = {
                    "method": signature.method_name,
                    "inputs": described(signature.inputs),
                    "outputs": described(signature.outputs),
                }
                try:
                    self._keep_answers(session, key, signature)
                except Exception as error:  # whatever the program's graph raises
                    self.about["notes"].append(
                        f"signature {key}: not asked, {str(error).splitlines()[0]}"
                    )
            self.about["export"] = {"signatures": signatures}

    def _keep_answers(self, session: "tf.compat.v1.Session", key: Any, signature: Any) -> None:
        prefix = f"export/{key}/"
        if self._like:
            values = self._like.results(prefix + "in/")
            if not values:
                return
        else:
            values = received(signature.inputs, self._features)
        feed = {info.name: values[name] for name, info in signature.inputs.items()}
        answers = session.run({n: i.name for n, i in signature.outputs.items()}, feed)
        for kind, arrays in (("in/", values), ("out/", answers)):
            for name, array in arrays.items():
                self.results.update(packed(prefix + kind + name, array))

    def write(self, folder: Any, source: Any) -> None:
        """Writes the golden; `source` says in JSON how to get the Estimator again."""
        os.makedirs(os.path.join(folder, "checkpoints"), exist_ok=True)
        for path in (self.first, self.last):
            copied_checkpoint(path, os.path.join(folder, "checkpoints"), os.path.basename(path))
        np.savez_compressed(os.path.join(folder, "batches.npz"), **self._batches)
        np.savez_compressed(os.path.join(folder, "results.npz"), **self.results)
        self.about["source"] = source
        self.about["sha256"] = {
            name: sha256(os.path.join(folder, name)) for name in files_of(folder)
        }
        with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
            json.dump(self.about, file, indent=1, sort_keys=True, default=str)
            file.write("\n")


def _index(feed: Any, name: Any) -> Any:
    return [variable.op.name for variable in feed.variables].index(name)


def moved(estimator: Any, folder: Any, **settings: Any) -> None:
    """Makes an Estimator work in another folder, with other settings of its RunConfig."""
    estimator._config = estimator._config.replace(model_dir=folder, **settings)
    estimator._model_dir = folder


def started(estimator: Any, folder: Any, checkpoint: Any) -> Any:
    """The Estimator, made to work in a folder of ours, where it goes on from a checkpoint, if any.

    It saves at its first step and at its last.
    """
    moved(estimator, folder, save_checkpoints_steps=_NEVER, save_checkpoints_secs=None)
    if checkpoint and not os.path.exists(os.path.join(folder, "checkpoint")):
        os.makedirs(folder, exist_ok=True)
        step = int(tf.train.load_variable(checkpoint, "global_step"))
        copied = copied_checkpoint(checkpoint, folder, f"model.ckpt-{step}")
        tf1.train.update_checkpoint_state(folder, copied)
    return estimator


def copied_checkpoint(path: Any, folder: Any, name: Any) -> Any:
    """Copies a name-based checkpoint, in the V2 format; returns the prefix of the copy."""
    if os.path.exists(path + ".index"):
        return copy_checkpoint(path, folder, name)
    reader = tf.train.load_checkpoint(path)  # of the V1 format: SaverDef.V1
    names = sorted(reader.get_variable_to_shape_map())
    values = [reader.get_tensor(key) for key in names]
    prefix = os.path.join(folder, name)
    with tf.Graph().as_default(), tf1.Session() as session:
        fed = [tf1.placeholder(tf.as_dtype(value.dtype), value.shape) for value in values]
        slices = [""] * len(names)
        saved = tf.raw_ops.SaveV2(
            prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=fed
        )
        session.run(saved, dict(zip(fed, values)))
    return prefix


def refuse_other_devices(estimator: Any) -> None:
    """A golden is what one CPU or GPU does.

    Raises:
        RecordError: The Estimator is for a TPU, or for several replicas.
    """
    context = getattr(estimator, "_ctx", None)
    if getattr(context, "_use_tpu", getattr(estimator, "_use_tpu", False)):
        raise RecordError("the TPUEstimator was made with use_tpu=True; record with use_tpu=False")
    strategy = getattr(estimator.config, "train_distribute", None)
    if strategy is not None:
        raise RecordError("RunConfig.train_distribute is set; record without it")
