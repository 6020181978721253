"""The inside of a `LegacyModel`: recordings of a model_fn, and the variables that they share."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.engine.record.model_fn import call_model_fn
from estimator2strategy.engine.record.model_program import ModelProgram, ReplacedCalls
from estimator2strategy.engine.record.on_host import FedReplica
from estimator2strategy.engine.record.recording import Placement
from estimator2strategy.engine.record.recording_strategy import one_replica_of
from estimator2strategy.engine.record.replicated import one_shard_of
from estimator2strategy.engine.record.under_jax import UnderJax
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.replay.xla.target import JaxTarget
from estimator2strategy.engine.runtime import checkpoints
from estimator2strategy.engine.runtime.latest_checkpoint import latest_checkpoint
from estimator2strategy.engine.worlds import legacy_world, modern_world
from estimator2strategy.engine.wrong_argument import check, wrong_argument
from estimator2strategy.errors import CheckpointError
from estimator2strategy.estimator.calling import call_tpu_model_fn, checked_spec
from estimator2strategy.estimator.checks import check_model_fn_args
from estimator2strategy.estimator.contract_rules import RULES, TPU_RULES
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.specs import EstimatorSpec
from estimator2strategy.estimator.tpu_config import InputPipelineConfig
from estimator2strategy.estimator.tpu_context import Deployment
from estimator2strategy.keras_model.recorded_model import RecordedModel, ReplayedModel, record_model
from estimator2strategy.keras_model.variable_scopes import VariableScope, scope_and_name

tf1 = tf.compat.v1


class LegacyProgram:
    """A model_fn, what it recorded so far, and its variables.

    Args:
        model_fn, params, config, use_tpu: See `LegacyModel`.
        strategy: Over whose replicas it runs.
        target: The device of JAX that runs it; None: TensorFlow does.
        add_scope: Called with each new VariableScope.

    Attributes:
        variables: Legacy name -> variable, in the order in which they were made.
        scopes: Legacy scope -> the layer that has its variables.
        replayed: The models that were recorded, by mode and kind of batch.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        params: Any,
        config: RunConfig,
        use_tpu: bool | None,
        strategy: tf.distribute.Strategy,
        target: JaxTarget | None,
        add_scope: Callable[[VariableScope], None],
    ):
        self.model_fn = model_fn
        self.params = copy.deepcopy(params) if params is not None else {}
        self.config = config
        self.use_tpu = use_tpu
        self.strategy = strategy
        self.target = target
        self.variables: dict[str, keras.Variable] = {}
        self.scopes: dict[str, VariableScope] = {}
        self.replayed: dict[tuple[str, str], ReplayedModel] = {}
        # Values for variables that are not made yet, and where they are from.
        self.waiting: Mapping[str, Any] = {}
        self._add_scope = add_scope
        self._checkpoint: str | None = None
        self._partial = False

    @property
    def _several(self) -> tf.distribute.Strategy | None:
        several = self.strategy.num_replicas_in_sync > 1 or is_tpu(self.strategy)
        return self.strategy if several else None

    def model(self, mode: str, batch: Any) -> ReplayedModel:
        """The replay for this mode and kind of batch; recorded at the first call.

        Args:
            mode: A value of ModeKeys.
            batch: (features, labels), or (features,): of one replica.
        """
        key = (mode, _kind(batch))
        if key not in self.replayed:
            # Keras calls this while it traces. A retrace refuses new variables (those of metrics),
            # in an init_scope too, but only in its own thread.
            with concurrent.futures.ThreadPoolExecutor(1) as outside:
                self.replayed[key] = outside.submit(self._new, mode, batch).result()
        return self.replayed[key]

    def _new(self, mode: str, batch: Any) -> ReplayedModel:
        with self.strategy.scope() if self._several else contextlib.nullcontext():
            return self._made(self._record(mode, batch))

    def give_back(self) -> None:
        """Gives the variables the values that a device of JAX has."""
        with modern_world():
            for model in self.replayed.values():
                model.session.runs.give_back()

    @contextlib.contextmanager
    def naming_failures(self, *modes: str) -> Iterator[None]:
        """Gives the error of a failing step the program's name of the op, and the user's line.

        Args:
            modes: Those whose steps run, the likeliest first: ops of two may have one name.

        Raises:
            tf.errors.OpError: In place of TensorFlow's own, of the same class.
        """
        try:
            yield
        except tf.errors.OpError as error:
            for mode in modes:
                for key, model in self.replayed.items():
                    named = model.named_failure(error) if key[0] == mode else error
                    if named is not error:
                        raise named from error
            raise

    def largest(self) -> ReplayedModel:
        """The replay that has the most variables: of training, if there is one.

        Raises:
            ValueError: Nothing was recorded yet.
        """
        if not self.replayed:
            raise wrong_argument(
                "The model has no variables yet, which save_checkpoint needs",
                [],
                "Call build(dataset) first, or fit, evaluate or predict.",
            )
        return max(self.replayed.values(), key=lambda model: len(model.recording.variables))

    def _record(self, mode: str, batch: Any) -> RecordedModel:
        calls = ReplacedCalls(model_fn=self._call)
        program = ModelProgram(self.model_fn, self.params, self.config, EstimatorSpec, calls)
        return record_model(program, self._placement(), mode, batch)

    def _placement(self) -> Placement:
        replica = self._replica()
        return UnderJax(replica, self.target) if self.target else replica

    def _replica(self) -> FedReplica:
        count = self.strategy.num_replicas_in_sync
        if self.use_tpu:
            return FedReplica(count, one_shard_of)
        return FedReplica(count, one_replica_of) if count > 1 else FedReplica()

    def _call(self, features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        if self.use_tpu is None:
            params = copy.deepcopy(self.params)
            spec = call_model_fn(self.model_fn, features, labels, mode, params, config)
        else:
            deployment = self._deployment(mode, features)
            arguments = (self.params, config)
            spec = call_tpu_model_fn(self.model_fn, features, labels, deployment, *arguments)
        for kind in ("training_hooks", "evaluation_hooks", "prediction_hooks", "host_call"):
            if getattr(spec, kind, None):
                tf1.logging.warning(
                    "LegacyModel does not run the %s of model_fn: fit has callbacks. See "
                    "migration_guide/hooks.md.",
                    kind,
                )
        if hasattr(spec, "host_call"):
            spec = spec._replace(host_call=None)
        return checked_spec(spec, self.model_fn)

    def _deployment(self, mode: str, features: Any) -> Deployment:
        first = tf.nest.flatten(features, expand_composites=True)[0]
        size = tf.compat.dimension_value(first.shape[0]) if first.shape.rank else None
        if not self.use_tpu:
            return Deployment(mode, size)
        size = size and size * self.strategy.num_replicas_in_sync
        return Deployment(mode, size, self.strategy, InputPipelineConfig.PER_HOST_V2)

    def _made(self, recording: RecordedModel) -> ReplayedModel:
        """Makes the variables that are missing, and the replay on them."""
        made = {v.op.name: v for v in recording.variables}
        fresh = [name for name in made if name not in self.variables]
        for name in fresh:
            self._make(name, made[name], {*made, *self.variables})
        model = ReplayedModel(recording, self._several, self.variables, self.target)
        model.initialise(fresh)
        if self._checkpoint and fresh:
            self._restore(model, self._checkpoint)
        for name in fresh:
            if name in self.waiting:
                self.variables[name].assign(self.waiting[name])
        return model

    def _make(self, name: str, variable: tf.Variable, names: set[str]) -> None:
        scope, short = scope_and_name(name, names)
        if scope not in self.scopes:
            self.scopes[scope] = VariableScope(scope)
            self._add_scope(self.scopes[scope])
        self.variables[name] = self.scopes[scope].add(short, variable)

    # Legacy checkpoints.

    def load(self, path: str | os.PathLike[str], partial: bool) -> str:
        """Restores all variables from a legacy checkpoint, those that are made later too.

        Args:
            path: A checkpoint, or a folder whose latest one is taken.
            partial: True if a variable that it lacks keeps its value.

        Returns:
            The checkpoint's path.

        Raises:
            CheckpointError: There is none, or it lacks variables, or they have other shapes.
        """
        path = os.fspath(path)
        path_of_checkpoint = latest_checkpoint(path) if tf.io.gfile.isdir(path) else path
        if not path_of_checkpoint or not checkpoints.is_there(path_of_checkpoint):
            raise wrong_argument(
                f"path: There is no checkpoint at {path}",
                path,
                "Pass the path of a checkpoint without the ending of its files, or a folder.",
                CheckpointError,
            )
        self._partial = partial
        for model in self.replayed.values():
            self._restore(model, path_of_checkpoint)
        self._checkpoint = path_of_checkpoint
        return path_of_checkpoint

    def _restore(self, model: ReplayedModel, path: str) -> None:
        if self._partial:
            self._assign(path, [v.op.name for v in model.recording.variables])
            return
        with legacy_world(), model.recording.graph.as_default():
            try:
                checkpoints.restore(model.recording.scaffold.saver, model.session, path)
            except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError) as error:
                raise CheckpointError(error.message) from error

    def _assign(self, path: str, names: Sequence[str]) -> None:
        """Gives the variables `names` what a checkpoint has of them."""
        reader = tf.train.load_checkpoint(path)
        there = reader.get_variable_to_shape_map()
        kept = [name for name in names if name not in there]
        tf1.logging.info("Not in %s, and left as they are: %s", path, kept or "none")
        for name in names:
            if name in there:
                try:
                    self.variables[name].assign(reader.get_tensor(name))
                except ValueError as error:
                    raise CheckpointError(f"{name} of {path} does not fit: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes a legacy checkpoint that the old program can go on from.

        Args:
            path: A folder, where it becomes `model.ckpt-<global step>`, and the latest one.

        Returns:
            The checkpoint's path.

        Raises:
            ValueError: There are no variables yet.
        """
        model = self.largest()
        step = int(self.variables["global_step"].numpy())
        tf.io.gfile.makedirs(os.fspath(path))
        prefix = os.path.join(os.fspath(path), "model.ckpt")
        with legacy_world(), model.recording.graph.as_default():
            saver = model.recording.scaffold.saver
            return str(saver.save(model.session, prefix, global_step=step, write_meta_graph=False))


def check_program(model_fn: Any, params: Any, config: Any, use_tpu: bool | None) -> None:
    """Checks the arguments of a `LegacyModel` as Estimator and TPUEstimator check theirs.

    Raises:
        TypeError, ValueError: As of these.
    """
    if config is not None and not isinstance(config, RunConfig):
        raise wrong_argument(
            "config must be an instance of `RunConfig`", config, RULES["config"].instead
        )
    if use_tpu is not None:
        check(TPU_RULES, {"params": params})
    check_model_fn_args(model_fn, params)


def features_and_labels(x: Any, y: Any) -> tuple[Any, ...]:
    """The tuple that is recorded as one batch."""
    return (x,) if y is None else (x, y)


def _kind(batch: Any) -> str:
    """The key of a recording: structure, dtypes and static shapes of a batch."""

    def spec(leaf: Any) -> str:
        if not isinstance(leaf, tf.TypeSpec):
            leaf = tf.type_spec_from_value(leaf)
        return f"{type(leaf).__name__}({leaf.shape}, {leaf.dtype.name})"

    return str(tf.nest.map_structure(spec, batch))


def naming_failures_in(*modes: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Around a loop that runs steps in these modes: see `LegacyProgram.naming_failures`."""

    def around(loop: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(loop)
        def naming(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self._legacy.naming_failures(*modes):
                return loop(self, *args, **kwargs)

        return naming

    return around
