"""A step that is run again and again from the same values: a race in the program shows there."""

import time

import numpy as np
import tensorflow as tf

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

    def __init__(self):
        self.race, self.updates, self._spent = None, None, 0.0

    def begin(self, uncontrolled):
        """Looks at the graph; `uncontrolled` are random ops, which differ each time anyway."""
        graph = tf1.get_default_graph()
        kinds = {op.type for op in graph.get_operations()}
        self._left = 0 if uncontrolled or kinds & _PYTHON else _STEPS
        numbers = [v for v in tf1.local_variables() if v.dtype.base_dtype != tf.string]
        self._locals = [v for v in numbers if hasattr(v, "load")]

    def read(self, session):
        """Keeps the values of local variables before a step."""
        self._before = session.run(self._locals) if self._left and self._locals else []

    def run(self, session, spec, feed, variables, before, after, size, quiet):
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


def _changes(before, after, size):
    return [size(new.astype(float) - old) for new, old in zip(after, before)]


def _give(session, variables, values):
    for variable, value in zip(variables, values):
        variable.load(value, session)
