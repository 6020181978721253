"""The checkpoints of a training, written while it goes on where that is safe.

The saver writes a snapshot. It writes the `checkpoint` file, which names the latest checkpoint,
when all else is complete. So that file never names half a checkpoint.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.replay.snapshot import SaverSession, Snapshot, shards_of
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime import checkpoints, graph_text, latest_checkpoint
from estimator2strategy.engine.runtime.input_position import PositionListener
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.runtime.session_config import not_rewritten
from estimator2strategy.engine.runtime.unfinished_saves import SaveMarker

tf1 = tf.compat.v1

# Listeners that may be called in the thread that writes.
_OURS = (PositionListener, SaveMarker)


def can_save_beside(recording: Recording) -> bool:
    """True if the host has the variables of this training, and no other process waits for it."""
    return recording.worker is None and not is_tpu(recording.strategy)


class SaverHook(tf1.train.CheckpointSaverHook):
    """A CheckpointSaverHook that need not wait until a checkpoint is written.

    It does wait for the one before, for the first and the last one, and wherever somebody could
    notice: a listener of the program's, or a saver of another type.

    If a checkpoint cannot be written, training goes on, the earlier ones stay, and the log says so.
    Only the last one is an error.

    Args:
        beside: True if training may go on while it writes.
    """

    def __init__(self, *args: Any, beside: bool, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._may_save_beside = beside
        self._thread: threading.Thread | None = None
        self._text: threading.Thread | None = None
        self._failed = False
        self._beside = False
        self._meta_graph: bytes | None = None

    def wait(self) -> None:
        """Waits until all files are written."""
        if self._text:
            self._text.join()
        self._wait_for_checkpoint()

    def _wait_for_checkpoint(self) -> None:
        if self._thread:
            self._thread.join()
            self._thread = None

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Does as any CheckpointSaverHook, but writes `graph.pbtxt` while the step compiles."""
        self._beside = False
        runs = session.runs if isinstance(session, ReplaySession) else None
        graph_def = graph_text.with_shapes(session.graph, runs)
        meta_graph = tf1.train.export_meta_graph(
            graph=session.graph, graph_def=graph_def, saver_def=self._get_saver().saver_def
        )
        self._meta_graph = meta_graph.SerializeToString() if self._save_graph_def else None
        _tf_private.add_graph(self._summary_writer, session.graph, graph_def)
        self._summary_writer.add_meta_graph(meta_graph)
        step = session.run(self._global_step_tensor)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)
        self._beside = self._may_save_beside
        if self._save_graph_def and not graph_text.is_written(runs, self._checkpoint_dir):
            work = (graph_def, self._checkpoint_dir, runs)
            self._text = threading.Thread(target=_write_text, args=work, name="graph.pbtxt")
            self._text.start()

    def save_last(self, session: tf1.Session) -> None:
        """Saves what `end` would save."""
        step = session.run(self._global_step_tensor)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
            self._timer.update_last_triggered_step(step)

    def end(self, session: tf1.Session) -> None:
        self.wait()
        self._beside = False
        if self._failed:
            step = session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(step)
            self._save(session, step)
        super().end(session)

    def _save(self, session: tf1.Session, step: Any) -> bool:
        self._wait_for_checkpoint()
        saver = self._get_saver()
        if type(saver) is not tf1.train.Saver or saver.saver_def.version != tf1.train.SaverDef.V2:
            return bool(super()._save(session, step))
        tf1.logging.info("Calling checkpoint listeners before saving checkpoint %d...", step)
        for listener in self._listeners:
            listener.before_save(session, step)
        tf1.logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        if self._beside and all(isinstance(listener, _OURS) for listener in self._listeners):
            work = (saver, Snapshot(session, saver.saver_def), session, step)
            self._thread = threading.Thread(target=self._write, args=work, name="checkpoint")
            self._thread.start()
            return False
        path = f"{self._save_path}-{step}"
        is_there = is_unchanged(path, session, saver.saver_def)
        with not_rewritten():  # what writes files gains nothing from it
            self._write_files(
                saver, Unchanged(session.graph, saver.saver_def) if is_there else session, step
            )
        tf1.logging.info("Calling checkpoint listeners after saving checkpoint %d...", step)
        asked = [listener for listener in self._listeners if listener.after_save(session, step)]
        for listener in asked:
            tf1.logging.info(
                "A CheckpointSaverListener requested that training be stopped. listener: %s",
                listener,
            )
        return bool(asked)

    def _write_files(self, saver: tf1.train.Saver, session: tf1.Session, step: Any) -> None:
        """Saves as `saver.save` does, with a graph serialized once for all checkpoints."""
        with session.graph.as_default():
            path = saver.save(session, self._save_path, global_step=step, write_meta_graph=False)
        if self._meta_graph and path:
            half = f"{self._save_path}-{step}.meta.tmp{uuid.uuid4().hex}"
            try:
                with tf.io.gfile.GFile(half, "wb") as file:
                    file.write(self._meta_graph)
                tf.io.gfile.rename(half, f"{self._save_path}-{step}.meta", overwrite=True)
            except tf.errors.OpError as error:
                checkpoints.remove_file(half)
                raise checkpoints.not_written(error) from error
        latest_checkpoint.note_written(f"{self._save_path}-{step}")
        log = tf1.SessionLog(status=tf1.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)

    def _write(self, saver: Any, snapshot: Snapshot, session: tf1.Session, step: Any) -> None:
        """Writes a checkpoint in the thread, and calls the listeners."""
        path = f"{self._save_path}-{step}"
        try:
            self._write_files(saver, snapshot, step)
            for listener in self._listeners:
                listener.after_save(session, step)
        except Exception as error:  # whatever it is, nobody would see it in a thread
            self._failed = True
            checkpoints.remove_unfinished(path)
            for listener in self._listeners:
                listener.not_saved(step)
            tf1.logging.error(
                "The checkpoint %s COULD NOT BE WRITTEN. Training goes on, and the earlier ones "
                "are kept. %s",
                path,
                error,
            )
        else:
            self._failed = False


def _write_text(graph_def: tf1.GraphDef, folder: str, runs: Any) -> None:
    """`graph_text.write`, for a thread. Nothing reads that file, so training goes on without it."""
    try:
        graph_text.write(graph_def, folder, runs)
    except tf.errors.OpError as error:
        checkpoints.remove_file(graph_text.unfinished(folder))
        tf1.logging.error(
            "graph.pbtxt could not be written, and training goes on without it: %s. If the disk is "
            "full, make room before the next checkpoint.",
            error.message,
        )


class LastSaveHook(tf1.train.SessionRunHook):
    """Has the last checkpoint written with the last run, which is repeated if a TPU is lost.

    Savers would write it in their `end`, where MonitoredSession makes no new session. Must be the
    last of all hooks: any of them may ask to stop.
    """

    def __init__(self, savers: Sequence[SaverHook]):
        self._savers = savers

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: Any) -> None:
        del run_values
        if run_context.stop_requested:
            for saver in self._savers:
                saver.save_last(run_context.session)


class Unchanged(SaverSession):
    """A session for a Saver whose files are written already."""

    def save(self, filename: Any) -> bytes:
        """Returns the path, and leaves the files as they are."""
        path: bytes = tf.compat.as_bytes(filename)
        return path


def is_unchanged(path: str, session: tf.compat.v1.Session, saver_def: Any) -> bool:
    """True if `session` was restored from `path`, and a save to it would give the same variables.

    It would not where the program, a hook or a listener has written one since; where the checkpoint
    has more, or has them as objects; and whoever saves other things than variables has them
    written.
    """
    if not isinstance(session, SavingSession) or session.restored_from != path:
        return False
    recorded = session.recorded
    recorded.refresh()
    behind = recorded.ancestors([input_node(saver_def.save_tensor_name)])
    shards = shards_of(session.graph, behind)
    tensors = [tensor.name for shard in shards for tensor in shard.tensors]
    variables = [name for tensor in tensors if (name := recorded.variable_read(tensor))]
    if len(variables) < len(tensors) or not session.is_as_restored(path, variables):
        return False
    names = {tf.compat.as_str(name) for shard in shards for name in shard.names}
    try:
        return names == set(tf.train.load_checkpoint(path).get_variable_to_shape_map())
    except (tf.errors.OpError, ValueError):  # it was removed meanwhile
        return False
