"""`LegacyModel`: a legacy model_fn as a `keras.Model`.

    model = LegacyModel(model_fn, params={"learning_rate": 0.1})
    model.load_checkpoint("/models/old")           # what an Estimator left
    model.compile(steps_per_execution=50)
    model.fit(dataset, epochs=3, validation_data=held_out)

model_fn is recorded once per mode and kind of batch; the steps of Keras's own loops replay it.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.user_code import location
from estimator2strategy.engine.wrong_argument import checked, wrong_argument
from estimator2strategy.errors import CheckpointError
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.keras_model import executions
from estimator2strategy.keras_model.argument_rules import (
    MODEL_RULES,
    check_one_process,
    check_strategy,
    target_beside,
)
from estimator2strategy.keras_model.executions import Executions, LoopsOfJax, renew
from estimator2strategy.keras_model.legacy_program import (
    LegacyProgram,
    check_program,
    features_and_labels,
    naming_failures_in,
)
from estimator2strategy.keras_model.variable_scopes import VariableScope

# Arguments of `compile` of a Keras model that model_fn brings along.
_OF_MODEL_FN = ("optimizer", "loss", "loss_weights", "metrics", "weighted_metrics")


@keras.saving.register_keras_serializable(package="estimator2strategy")
class LegacyModel(LoopsOfJax):
    """A model_fn as a Keras model: `fit`, `evaluate`, `predict`, callbacks, weights.

    Loss, optimizer and metrics are those of model_fn. Make it in a strategy's scope to train on its
    replicas: each gets its part of the batch, as in any Keras model. Under a TPUStrategy batches
    must have a fixed size, as for TPUEstimator: batch with drop_remainder=True.

    Its variables are those of the legacy checkpoint, by the same names (`legacy_variables`); a
    legacy scope is a layer (`model.get_layer("conv1")`; slashes become dots). Variables are made
    when the first batch is seen, or by `build`.

    Args:
        model_fn: `model_fn(features, labels, mode, params, config)`, as for Estimator or
            TPUEstimator. It is called once per mode and kind of batch.
        params: Hyperparameters; model_fn gets a copy.
        config: A RunConfig, for model_fn and for its `tf_random_seed`.
        use_tpu: None: model_fn was written for Estimator, whose optimizers sum gradients over
            replicas by themselves. True or False: for TPUEstimator with this `use_tpu`; with True
            each replica is one core, and a CrossShardOptimizer sums. `params` gets `use_tpu`, and
            `batch_size` where the batch has a fixed size.
        name: The model's name.
        runtime: As of TrainingOptions. JAX runs the steps on its first device, one by one; it
            knows no strategies, and nothing can trace the steps into a `tf.function`.
        precision: As of TrainingOptions.

    Raises:
        UnsupportedError: It is made under a ParameterServerStrategy, one of several processes, or
            under JAX any of several replicas.
    """

    train_function: Any
    test_function: Any

    @checked(MODEL_RULES)
    def __init__(
        self,
        model_fn: Callable[..., Any],
        params: Any = None,
        config: RunConfig | None = None,
        *,
        use_tpu: bool | None = None,
        name: str | None = None,
        runtime: Runtime | None = None,
        precision: Precision | None = None,
    ):
        super().__init__(name=name or "legacy_model", autocast=False)
        strategy = self.distribute_strategy
        check_strategy("LegacyModel", strategy)
        check_one_process(strategy)
        check_program(model_fn, params, config, use_tpu)
        where = (strategy, target_beside(strategy, runtime, precision))
        self._legacy = LegacyProgram(
            model_fn, params, config or RunConfig(), use_tpu, *where, self._add_scope
        )
        self._mean_loss = keras.metrics.Mean(name="loss")
        self._counting: Any = _Untracked()
        self._batch_of_core: int | None = None
        self._steps_of_test: int | None = None
        self.supports_jit = False  # replays keep random streams and tables, which XLA cannot have
        self.built = True

    def _add_scope(self, scope: VariableScope) -> None:
        setattr(self, f"scope_{len(self._legacy.scopes)}", scope)

    def _lock_state(self) -> None:
        """Keras's: no new variables after `build`. But training has more than prediction."""

    def _maybe_symbolic_build(self, *args: Any, **kwargs: Any) -> None:
        """Keras's: traces `call` on a first batch. The steps make all that they need."""

    # Building and compiling.

    @checked(MODEL_RULES)
    def build(self, batch: Any) -> None:
        """Makes the variables for batches of this kind, before any batch is seen.

        Args:
            batch: A Dataset, its `element_spec`, or one batch: `(features, labels)` makes what
                training needs, `features` alone what prediction needs.
        """
        spec = batch.element_spec if hasattr(batch, "element_spec") else batch
        x, y = executions.unpacked(spec)
        mode = ModeKeys.PREDICT if y is None else ModeKeys.TRAIN
        self._legacy.model(mode, features_and_labels(x, y))

    @checked(MODEL_RULES)
    def compile(
        self,
        *,
        steps_per_execution: int = 1,
        run_eagerly: bool = False,
        jit_compile: bool | str = False,
        **of_model_fn: Any,
    ) -> None:
        """Prepares `fit` and `evaluate`.

        Args:
            steps_per_execution: The number of steps that run in one call, between callbacks.
            run_eagerly: False: what was recorded is not Python code any more.
            jit_compile: False (or "auto").
            of_model_fn: None of `optimizer`, `loss`, `metrics` and so on can be given.

        Raises:
            ValueError: One of the last three is given.
        """
        given = [name for name in of_model_fn if of_model_fn[name] is not None]
        if given:
            why = "model_fn has its own" if given[0] in _OF_MODEL_FN else "LegacyModel has none"
            what = f"compile was given {', '.join(given)}: {why}"
            raise wrong_argument(what, of_model_fn[given[0]], "Leave it out.")
        if run_eagerly or jit_compile is True:
            raise ValueError(
                "LegacyModel replays a recorded graph: run_eagerly and jit_compile must be False."
            )
        super().compile(optimizer=None, jit_compile=False, steps_per_execution=steps_per_execution)

    def get_compile_config(self) -> dict[str, Any]:
        return {"steps_per_execution": self.steps_per_execution} if self.compiled else {}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        self.compile(**config)

    # Keras's loops forget the size of a finite Dataset's batches, which a TPU has to know.

    @naming_failures_in(ModeKeys.TRAIN, ModeKeys.EVAL)
    def fit(self, *args: Any, max_steps: int | None = None, **kwargs: Any) -> Any:
        """Trains as Keras's `fit`, for at most `max_steps` steps; shortens the last execution."""
        given = _arguments(keras.Model.fit, args, kwargs)
        self._note_size(given.get("x"))
        self.make_train_function()
        self.train_function.expect(given.get("steps_per_epoch"), max_steps)
        return super().fit(*args, **kwargs)

    @naming_failures_in(ModeKeys.EVAL)
    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        given = _arguments(keras.Model.evaluate, args, kwargs)
        self._note_size(given.get("x"))
        self._steps_of_test = given.get("steps")
        return super().evaluate(*args, **kwargs)

    @naming_failures_in(ModeKeys.PREDICT)
    def predict(self, *args: Any, **kwargs: Any) -> Any:
        given = _arguments(keras.Model.predict, args, kwargs)
        self._note_size(given.get("x"))
        steps, size = given.get("steps"), self.steps_per_execution if self.compiled else 1
        if steps and steps % size:
            raise wrong_argument(
                f"predict would run more steps: steps_per_execution is {size}",
                steps,
                "Pass steps that it divides, or compile with another steps_per_execution.",
            )
        return super().predict(*args, **kwargs)

    @naming_failures_in(ModeKeys.TRAIN)
    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        return super().train_on_batch(*args, **kwargs)

    @naming_failures_in(ModeKeys.EVAL)
    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        return super().test_on_batch(*args, **kwargs)

    @naming_failures_in(ModeKeys.PREDICT)
    def predict_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        return super().predict_on_batch(*args, **kwargs)

    def _note_size(self, x: Any) -> None:
        if is_tpu(self.distribute_strategy) and isinstance(x, tf.data.Dataset):
            first = tf.nest.flatten(x.element_spec, expand_composites=True)[0]
            size = first.shape[0] if first.shape.rank else None
            self._batch_of_core = size and size // self.distribute_strategy.num_replicas_in_sync

    def _data(self, data: Any) -> tuple[Any, Any]:
        """(features, labels) of what Keras hands to a step; on a TPU, of a fixed size."""
        if is_tpu(self.distribute_strategy):
            data = executions.of_fixed_size(data, self._batch_of_core)
        return executions.unpacked(data)

    # Steps, which Keras's loops call in each replica.

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = self._data(data)
        size = executions.uneven_size(x, self.distribute_strategy)
        if size is not None:
            x = executions.after(executions.assert_some(size), x)
        loss, _ = self._model(ModeKeys.TRAIN, x, y).step(features_and_labels(x, y))
        self._count(loss)
        return {"loss": self._mean_loss.result()}

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y = self._data(data)
        model = self._model(ModeKeys.EVAL, x, y)
        self._counting.metrics = {name: m.metric for name, m in model.keras_metrics.items()}

        def count() -> tf.Tensor:
            loss, _ = model.step(features_and_labels(x, y))
            self._count(loss)
            return tf.constant(True)

        size = executions.uneven_size(x, self.distribute_strategy)
        if size is None:
            count()
        else:  # of the last batch there may be nothing left for some replicas
            tf.cond(size > 0, count, lambda: tf.constant(False))
        return {metric.name: metric.result() for metric in self.metrics}

    def _count(self, loss: Any) -> None:
        """Adds to the mean loss, when there is one: an input that has ended must not be counted."""
        with tf.control_dependencies([loss]):
            self._mean_loss.update_state(loss)

    def naming_failures(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context for calling a `tf.function` of your own that calls the model.

        Raises:
            tf.errors.OpError: A step failed: with the program's op and the user's line, as in
                `predict`.
        """
        return self._legacy.naming_failures(ModeKeys.PREDICT)

    def predict_step(self, data: Any) -> Any:
        features, _ = self._data(data)
        return self._model(ModeKeys.PREDICT, features, None).step((features,))[1]

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns model_fn's predictions (a tensor or a dict) for a batch of features.

        Raises:
            ValueError: With `training=True`: a training step is more than its predictions. Or it is
                called eagerly under a TPUStrategy, whose cores run programs.
        """
        if training:
            raise ValueError("LegacyModel trains with fit or train_on_batch, not by being called.")
        if not tf.executing_eagerly():
            return self.predict_step(features)
        if is_tpu(self.distribute_strategy):
            raise ValueError(
                "Under a TPUStrategy LegacyModel is not called eagerly: use predict, or call it in "
                "strategy.run."
            )
        features = tf.nest.map_structure(tf.convert_to_tensor, features)
        self._model(ModeKeys.PREDICT, features, None)
        with self._legacy.naming_failures(ModeKeys.PREDICT):
            if self.under_jax:
                return self.make_predict_function()([features])
            return tf.function(self.predict_step, autograph=False)(features)

    def _model(self, mode: str, x: Any, y: Any) -> Any:
        """The replay; the first replica has it recorded while the others wait."""
        context = tf.distribute.get_replica_context()
        batch = self._kind_of(x, y)
        return context.merge_call(lambda _: _Holder(self._legacy.model(mode, batch))).value

    def make_train_function(self, force: bool = False) -> Any:
        if force or not isinstance(self.train_function, Executions):
            renew(self, "train_function", super().make_train_function)
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        # Each kind of batch has metrics of its own; a new trace says which of them count.
        kinds = [mode for mode, _ in self._legacy.replayed if mode == ModeKeys.EVAL]
        if force or len(kinds) > 1 or not isinstance(self.test_function, Executions):
            renew(self, "test_function", super().make_test_function)
        self.test_function.expect(self._steps_of_test)
        return self.test_function

    # Metrics.

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """The mean loss, and the metrics of model_fn as Keras metrics once it was evaluated."""
        return [self._mean_loss, *self._counting.metrics.values()]

    def reset_metrics(self) -> None:
        self._mean_loss.reset_state()
        for model in self._legacy.replayed.values():
            for counted in model.keras_metrics.values():
                counted.metric.reset_state()

    # Summaries.

    @property
    def summaries(self) -> list[str]:
        """Names of the summaries that model_fn makes in training; known once that was recorded.

        A step of `fit` writes them where `tf.summary` has a default writer when it is traced. Their
        step is the global step. There are none on cores of a TPU, which cannot write.
        """
        recorded = [model.recording for model in self._legacy.replayed.values()]
        return list(dict.fromkeys(name for one in recorded for name in one.summaries))

    # Variables.

    @property
    def legacy_variables(self) -> dict[str, keras.Variable]:
        """Legacy name -> variable, in the order in which model_fn made them."""
        return dict(self._legacy.variables)

    @property
    def global_step(self) -> int:
        """The steps that the model has been trained for."""
        return int(self._legacy.variables["global_step"].numpy())

    @checked(MODEL_RULES)
    def scope(self, scope: str) -> VariableScope:
        """Returns the layer with the variables of a legacy scope, such as "bert/layer_0".

        Raises:
            ValueError: There is no such scope.
        """
        if scope not in self._legacy.scopes:
            raise ValueError(
                f"No variables in scope {scope!r}; there are {[*self._legacy.scopes]}."
            )
        return self._legacy.scopes[scope]

    @checked(MODEL_RULES)
    def load_checkpoint(self, path: str | os.PathLike[str], partial: bool = False) -> str:
        """Restores all variables from a legacy checkpoint, also those that are made later.

        Args:
            path: A checkpoint, or a folder whose latest one is taken.
            partial: True if a variable that it lacks (an optimizer's slot, say) keeps its value.

        Returns:
            The checkpoint's path.

        Raises:
            CheckpointError: There is none, or it does not fit; the message lists each variable.
        """
        return self._legacy.load(path, partial)

    @checked(MODEL_RULES)
    def save_checkpoint(self, path: str | os.PathLike[str]) -> str:
        """Writes a legacy checkpoint, which the old program can go on from.

        Args:
            path: A folder; the checkpoint is `model.ckpt-<global step>` in it, and its latest one.

        Returns:
            The checkpoint's path.

        Raises:
            ValueError: There are no variables yet.
        """
        return self._legacy.save(path)

    def save_own_variables(self, store: Any) -> None:
        for name, variable in self._legacy.variables.items():
            store[name.replace("/", "|")] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Loads variables by name; values of variables that are not made yet wait for them.

        Args:
            store: The values by name, as Keras reads them from a file.

        Raises:
            CheckpointError: The file lacks variables of the model, or they have other shapes.
        """
        values = {name.replace("|", "/"): store[name][()] for name in store.keys()}  # noqa: SIM118
        wrong = [
            f"{name} {tuple(variable.shape)}, there {getattr(values.get(name), 'shape', 'missing')}"
            for name, variable in self._legacy.variables.items()
            if name not in values or tuple(variable.shape) != values[name].shape
        ]
        if wrong:
            raise CheckpointError("The weights do not fit the model:\n  " + "\n  ".join(wrong))
        self._legacy.waiting = values
        for name, variable in self._legacy.variables.items():
            variable.assign(values[name])

    # `.keras` files.

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make the model again.

        Raises:
            ValueError: model_fn has no name to be found by.
        """
        legacy = self._legacy
        model_fn = f"{legacy.model_fn.__module__}:{getattr(legacy.model_fn, '__qualname__', '?')}"
        if _found(model_fn) is not legacy.model_fn:
            raise ValueError(
                f"A .keras file names model_fn, and {location(legacy.model_fn)} cannot be found by "
                "its name in its module. Write the weights (save_weights) or a legacy checkpoint "
                "(save_checkpoint) instead."
            )
        return {
            "name": self.name,
            "model_fn": model_fn,
            "params": legacy.params,
            "use_tpu": legacy.use_tpu,
            "seed": legacy.config.tf_random_seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> LegacyModel:
        """Makes the model again; see `get_config`.

        Raises:
            ValueError: The module of model_fn is not imported.
        """
        config = dict(config)
        run_config = RunConfig(tf_random_seed=config.pop("seed"))
        name = config.pop("model_fn")
        model_fn = (custom_objects or {}).get(name) or _found(name)
        if model_fn is None:
            raise ValueError(
                f"The file names the model_fn {name!r}, which is not there. Import its module "
                f"first, or pass custom_objects={{{name!r}: model_fn}}."
            )
        return cls(model_fn, config=run_config, **config)

    def get_build_config(self) -> None:
        """Returns None: values wait for the variables, which the first batch makes."""

    def build_from_config(self, config: Any) -> None:
        """Does nothing: the first batch makes the variables."""


def _arguments(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a call of a method by their names, as far as it takes them."""
    return inspect.signature(function).bind_partial(None, *args, **kwargs).arguments


class _Untracked:
    """Metrics that Keras shall not find by itself."""

    def __init__(self) -> None:
        self.metrics: dict[str, keras.metrics.Metric] = {}


class _Holder:
    """Carries any object through `merge_call`, which looks into structures."""

    def __init__(self, value: Any):
        self.value = value


def _found(name: str) -> Any:
    """The function `module:qualified.name` of a module that is imported already, or None."""
    module, _, path = name.partition(":")
    value: Any = sys.modules.get(module)
    for part in path.split("."):
        value = getattr(value, part, None)
    return value
