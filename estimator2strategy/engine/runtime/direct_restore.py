"""Restores variables without a Saver, for calls that save nothing.

A Saver adds a dozen ops to the graph and two for each variable: a sixth of the time that a short
`predict` takes. Evaluation and prediction only read a checkpoint, so they can do without where
nothing of the program could tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import tensorflow as tf

from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1


class DirectRestore:
    """Stands for a Saver in a Scaffold: `restore` assigns the variables, `build` has nothing to do.

    Args:
        variables: Resource variables of the recorded graph, each whole.
    """

    def __init__(self, variables: Sequence[tf.Variable]):
        self._variables = {variable.op.name: variable for variable in variables}

    @property
    def expected(self) -> dict[str, tuple[tf.TensorShape, tf.DType]]:
        """Checkpoint name -> (shape, dtype) of what is read."""
        return {name: (v.shape, v.dtype.base_dtype) for name, v in self._variables.items()}

    def fits(self, path: str) -> bool:
        """True if the checkpoint has all variables by their names, in their shapes and dtypes."""
        try:
            reader = tf.train.load_checkpoint(path)
        except (tf.errors.OpError, ValueError):  # whoever restores it says what is wrong
            return False
        shapes = reader.get_variable_to_shape_map()
        dtypes = reader.get_variable_to_dtype_map()
        return all(
            name in shapes and shape.is_compatible_with(shapes[name]) and dtypes[name] == dtype
            for name, (shape, dtype) in self.expected.items()
        )

    def build(self) -> None:
        """Adds nothing to the graph."""

    def restore(self, session: ReplaySession, path: str) -> None:
        """Gives the variables of a session the values that a checkpoint has.

        Raises:
            tf.errors.NotFoundError: It lacks one.
        """
        # Programs that follow a log look for this line; source: `tf.compat.v1.train.Saver.restore`.
        tf1.logging.info("Restoring parameters from %s", path)
        dtypes = [dtype for _, dtype in self.expected.values()]
        with modern_world(), tf.device("CPU:0"):
            values = tf.raw_ops.RestoreV2(
                prefix=path,
                tensor_names=list(self._variables),
                shape_and_slices=[""] * len(self._variables),
                dtypes=dtypes,
            )
            for name, value in zip(self._variables, values, strict=True):
                session.state.variable(name).assign(value, read_value=False)


@contextlib.contextmanager
def in_place_of_saver(scaffold: tf1.train.Scaffold, path: str) -> Iterator[None]:
    """A scaffold that is finalized in this context restores `path` directly, if that is the same.

    It is not where the program has a Saver of its own or objects of its own to save, where a
    variable is a reference or a part of one (which no checkpoint has by its name), or where the
    checkpoint needs what only a Saver knows: object-based ones, or the words of an error.
    """
    direct = None if scaffold.saver is not None else _of_default_graph(path)
    if direct is None:
        yield
        return
    # A scaffold looks for its saver there. Afterwards whoever exports the graph must not find it.
    savers = tf1.get_collection_ref(tf1.GraphKeys.SAVERS)
    savers.append(direct)
    yield
    savers.remove(direct)


def _of_default_graph(path: str) -> DirectRestore | None:
    keys = tf1.GraphKeys
    variables = tf1.global_variables()
    if not variables or any(variable.op.type != "VarHandleOp" for variable in variables):
        return None
    if tf1.get_collection(keys.SAVERS) or tf1.get_collection(keys.SAVEABLE_OBJECTS):
        return None
    direct = DirectRestore(variables)
    return direct if len(direct.expected) == len(variables) and direct.fits(path) else None
