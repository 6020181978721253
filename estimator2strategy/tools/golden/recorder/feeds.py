"""The hooks of a recording: they feed each step its batch, and watch what it does.

A step that is run again and again from the same values shows a race in the program.
"""

import contextlib
import time
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.tools.golden.recorder.batches import Draws, rebuilt, static

tf1 = tf.compat.v1

_STEPS = 3  # that are run again, the first ones
_TIMES = 15  # a race of threads has a favourite
_SECONDS = 20.0  # for all steps; each is run again once in any case
_DIFFERS = 1e-3  # of the norm of an update; rounding is much less
# Python code may count its calls.
_PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


class Again:
    """Runs the first steps several times, each time from the values that were before.

    TensorFlow 1.x ran what no dependency orders as threads fell, and so do its races: a step that
    reads a variable beside an assignment to it has more than one right result.

    Attributes:
        race: The first step that did not give the same, and the indices of the variables that
            differed; None: all did.
        updates: [times, variables, 3], of that step, in the form of the first run's.
    """

    def __init__(self) -> None:
        self.race: Any = None
        self.updates: Any = None
        self._spent = 0.0

    def begin(self, uncontrolled: Any) -> None:
        """Looks at the graph; `uncontrolled` are random ops, which differ each time anyway."""
        graph = tf1.get_default_graph()
        kinds = {op.type for op in graph.get_operations()}
        self._left = 0 if uncontrolled or kinds & _PYTHON else _STEPS
        numbers = [v for v in tf1.local_variables() if v.dtype.base_dtype != tf.string]
        self._locals = [v for v in numbers if hasattr(v, "load")]

    def read(self, session: "tf.compat.v1.Session") -> None:
        """Keeps the values of local variables before a step."""
        self._before = session.run(self._locals) if self._left and self._locals else []

    def run(
        self,
        session: "tf.compat.v1.Session",
        spec: Any,
        feed: Any,
        variables: Any,
        before: Any,
        after: Any,
        size: Any,
        quiet: Any,
    ) -> None:
        """Runs the step that has just made `after` of `before` again, and leaves all as it was.

        Args:
            size: Makes of a change the numbers that are kept of it.
            quiet: For each variable, True if rounding alone moves it.
        """
        if not self._left or self.race or not all(hasattr(v, "load") for v in variables):
            return
        self._left -= 1
        after_locals = session.run(self._locals) if self._locals else []
        changes = [_changes(before, after, size)]
        begin = time.time()
        while len(changes) < 2 or (len(changes) <= _TIMES and self._spent < _SECONDS):
            _give(session, variables, before)
            _give(session, self._locals, self._before)
            session.run((spec.train_op, spec.loss), feed_dict=feed)
            changes.append(_changes(before, session.run(variables), size))
            self._spent, begin = self._spent + time.time() - begin, time.time()
        _give(session, variables, after)
        _give(session, self._locals, after_locals)
        norms = np.array(changes)[:, :, 0]
        spread = norms.max(axis=0) - norms.min(axis=0)
        differing = np.flatnonzero((spread > _DIFFERS * norms.max(axis=0)) & ~np.array(quiet))
        if len(differing):
            self.race = (_STEPS - self._left - 1, [int(i) for i in differing])
            self.updates = changes


def _changes(before: Any, after: Any, size: Any) -> Any:
    return [size(new.astype(float) - old) for new, old in zip(after, before)]


def _give(session: "tf.compat.v1.Session", variables: Any, values: Any) -> None:
    for variable, value in zip(variables, values):
        variable.load(value, session)


_ROUNDING = 1e-6  # of the largest gradient


class Feed(tf1.train.SessionRunHook):
    """An input_fn of placeholders, and the hook that feeds it one batch a step.

    Attributes:
        spec: The EstimatorSpec that model_fn returned.
        losses: The loss of each step, where there is one.
    """

    def __init__(self, about: Any, batches: Any):
        self._about, self._batches = about, batches
        self.spec: Any = None
        self.draws: Any = None
        self.step = 0
        self.losses: Any = []

    def input_fn(self, params: Any) -> Any:
        del params
        leaves = [
            tf1.placeholder(leaf["dtype"], leaf["shape"], name=f"batch_{i}")
            for i, leaf in enumerate(self._about["leaves"])
        ]
        self._placeholders = leaves
        return rebuilt(self._about["structure"], leaves)

    @contextlib.contextmanager
    def watching(self, estimator: Any) -> Any:
        """While this lasts, what model_fn returns to the Estimator is seen here, too."""
        call = estimator._call_model_fn

        def watched(features: Any, labels: Any, mode: Any, config: Any) -> Any:
            spec = call(features, labels, mode, config)
            if self.spec is None:  # later calls are evaluations in the course of training
                self.spec = spec
                self.draws = Draws([getattr(end, "op", end) for end in self.ends()])
            return spec

        before = vars(estimator).get("_call_model_fn")
        estimator._call_model_fn = watched
        try:
            yield
        finally:
            if before:
                estimator._call_model_fn = before
            else:
                del estimator._call_model_fn

    def ends(self) -> Any:
        """The tensors of the graph that will run; model_fn has just returned."""
        spec = self.spec
        return _tensors((spec.loss, spec.predictions, spec.eval_metric_ops))

    def feed(self, session: "tf.compat.v1.Session") -> Any:
        batch = dict(zip(self._placeholders, self._batches[self.step]))
        batch.update(self.draws.feed(session, self.step, batch))
        return batch

    def before_run(self, run_context: Any) -> Any:
        fetches = {} if self.spec.loss is None else {"loss": self.spec.loss}
        return tf1.train.SessionRunArgs(fetches, feed_dict=self.feed(run_context.session))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if "loss" in run_values.results:
            self.losses.append(np.asarray(run_values.results["loss"], np.float64))
        self.step += 1
        if self.step == len(self._batches):
            run_context.request_stop()


def _tensors(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _tensors(part)]
    return [value] if hasattr(value, "op") else []


class TrainFeed(Feed):
    """Also watches gradients and variables, at each step."""

    def __init__(self, about: Any, batches: Any, again: Any = None):
        super().__init__(about, batches)
        self.again = again
        self.gradients: Any = []
        self.values: Any = []
        self.updates: Any = []
        self.notes: Any = []
        self.trainable: Any = []

    def ends(self) -> Any:
        trainable = tf1.trainable_variables()
        try:
            gradients = tf1.gradients(self.spec.loss, trainable)
        except Exception as error:  # whatever an op without a gradient raises
            self.notes.append(f"no gradients of the loss: {error}")
            gradients = [None] * len(trainable)
        self.trainable = [_name(variable) for variable in trainable]
        self._gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
        known = [gradient for gradient in self._gradients if gradient is not None]
        return [self.spec.loss, self.spec.train_op, *known]

    def begin(self) -> None:
        numbers = [v for v in tf1.global_variables() if v.dtype.base_dtype != tf.string]
        self.variables = sorted(numbers, key=_name)
        if self.again:
            self.again.begin(self.draws.uncontrolled)

    def after_create_session(self, session: "tf.compat.v1.Session", coord: Any) -> None:
        self._last = self._read(session)
        self.values.append([_size(value) for value in self._last])

    def _read(self, session: "tf.compat.v1.Session") -> Any:
        return session.run(self.variables)

    def before_run(self, run_context: Any) -> Any:
        fed = self.feed(run_context.session)
        known = {i: g for i, g in enumerate(self._gradients) if g is not None}
        values = run_context.session.run(known, feed_dict=fed) if known else {}
        missing = [np.nan] * 3
        here = range(len(self._gradients))
        self.gradients.append([_size(values[i]) if i in values else missing for i in here])
        self._fed = fed
        if self.again:
            self.again.read(run_context.session)
        return tf1.train.SessionRunArgs({"loss": self.spec.loss}, feed_dict=fed)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        super().after_run(run_context, run_values)
        self.watch(run_context.session)

    def watch(self, session: "tf.compat.v1.Session") -> None:
        """Notes what the step that has just run made of the variables."""
        now = self._read(session)
        self.values.append([_size(value) for value in now])
        changes = [_size(new.astype(float) - old) for new, old in zip(now, self._last)]
        self.updates.append(changes)
        before, self._last = self._last, now
        if self.again:
            quiet = self._quiet()
            run = (session, self.spec, self._fed, self.variables, before, now, _size, quiet)
            self.again.run(*run)

    def _quiet(self) -> Any:
        """For each variable, True if its gradient, or that of its owner, is rounding."""
        norms = np.nan_to_num(np.array(self.gradients[-1])[:, 0]) if self.trainable else []
        least = _ROUNDING * max(norms, default=0.0)
        names = [name for name, norm in zip(self.trainable, norms) if norm < least]
        return [any((_name(v) + "/").startswith(n + "/") for n in names) for v in self.variables]

    def inventory(self) -> Any:
        trained = set(self.trainable)
        return [
            {
                "name": _name(v),
                "shape": static(v.get_shape()),
                "dtype": v.dtype.base_dtype.name,
                "trainable": _name(v) in trained,
            }
            for v in self.variables
        ]


def _name(variable: Any) -> Any:
    return variable.op.name


def _size(value: Any) -> Any:
    """L2 norm, sum and largest magnitude."""
    value = np.asarray(value).astype(np.float64)
    if not value.size:
        return [0.0, 0.0, 0.0]
    return [np.sqrt(np.sum(value * value)), np.sum(value), np.max(np.abs(value))]
