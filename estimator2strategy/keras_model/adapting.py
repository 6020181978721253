"""`adapt`: a legacy program in a TF2 loop of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.runtime.training_options import TrainingOptions
from estimator2strategy.engine.wrong_argument import checked, wrong_argument
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.tpu_config import RunConfig as TPURunConfig
from estimator2strategy.estimator.tpu_estimator import TPUEstimator
from estimator2strategy.keras_model.adapted_model import AdaptedModel
from estimator2strategy.keras_model.argument_rules import RULES, check_strategy


@checked(RULES)
def adapt(
    model_fn: Callable[..., Any] | Estimator,
    input_fn: Callable[..., Any] | None = None,
    *,
    eval_input_fn: Callable[..., Any] | None = None,
    predict_input_fn: Callable[..., Any] | None = None,
    params: Any = None,
    config: RunConfig | None = None,
    model_dir: str | None = None,
    strategy: tf.distribute.Strategy | None = None,
    steps_per_execution: int = 1,
    use_tpu: bool | None = None,
    train_batch_size: int | None = None,
    eval_batch_size: int | None = None,
    predict_batch_size: int | None = None,
    runtime: Runtime | None = None,
    precision: Precision | None = None,
) -> AdaptedModel:
    """Makes the steps of a legacy program callable from a loop of one's own.

        model = adapt(model_fn, input_fn, params={"lr": 0.1}, steps_per_execution=100)
        model.load_checkpoint("/models/old")
        while model.global_step < 10_000:
            print(model.train())
        model.save_checkpoint("/models/old")

    Args:
        model_fn: `model_fn(features, labels, mode, params, config)`, as for Estimator or
            TPUEstimator; called once for each mode that has an input. Or an Estimator or a
            TPUEstimator itself, which then has all that it runs with.
        input_fn: As for `Estimator.train`; None: the model does not train.
        eval_input_fn: As for `Estimator.evaluate`, for `evaluate`.
        predict_input_fn: As for `Estimator.predict`, for `predict`.
        params: Hyperparameters; the functions get copies.
        config: A RunConfig; with `use_tpu`, one of TPUs.
        model_dir: Where `load_checkpoint` and `save_checkpoint` look if they are told no place. As
            of Estimator.
        strategy: The strategy whose replicas run the model. Default: the one of the scope around
            the call. For an Estimator's model_fn each replica takes the next batch of input_fn; a
            TPUEstimator's global batch is dealt out to them.
        steps_per_execution: The number of steps that run in one call from Python.
        use_tpu: None: model_fn was written for Estimator. True or False: for TPUEstimator, with
            this `use_tpu`.
        train_batch_size: With `use_tpu` given: the global batch size, in examples.
        eval_batch_size, predict_batch_size: Likewise; default: `train_batch_size`.
        runtime, precision: As of TrainingOptions. Under JAX variables return to the host after each
            call, so a larger `steps_per_execution` is faster; there is no `train_step`.

    Returns:
        The model: its `train`, `evaluate` and `predict` run on the same variables.

    Raises:
        TypeError: An argument is of the wrong type.
        ValueError: An argument has a wrong value, or goes with no other that is given.
        UnsupportedError: The strategy is a ParameterServerStrategy, or goes with no JAX.
    """
    inputs = _checked_inputs(input_fn, eval_input_fn, predict_input_fn)
    sizes = (train_batch_size, eval_batch_size, predict_batch_size)
    program = _Program(params, config, model_dir, strategy, use_tpu, *sizes, runtime, precision)
    return AdaptedModel(program.estimator(model_fn), inputs, steps_per_execution)


class _Program(NamedTuple):
    """The arguments of `adapt` that say how a model_fn runs."""

    params: Any
    config: Any
    model_dir: str | None
    strategy: tf.distribute.Strategy | None
    use_tpu: bool | None
    train_batch_size: int | None
    eval_batch_size: int | None
    predict_batch_size: int | None
    runtime: Runtime | None
    precision: Precision | None

    @property
    def _options(self) -> TrainingOptions:
        return TrainingOptions(runtime=self.runtime, precision=self.precision)

    def estimator(self, model_fn: Any) -> Estimator:
        """The Estimator that knows how to call model_fn, and where it runs."""
        given = [name for name, value in self._asdict().items() if value is not None]
        if isinstance(model_fn, Estimator):
            if given:
                raise wrong_argument(
                    f"adapt was given {', '.join(given)} and an Estimator, which has its own",
                    model_fn,
                    "Pass them to the Estimator, or pass model_fn.",
                )
            return model_fn
        if not callable(model_fn):
            raise TypeError("model_fn must be a function, or an Estimator")
        strategy = self._strategy()
        if self.use_tpu is not None:
            return self._tpu_estimator(model_fn, strategy)
        for name in given:
            if name.endswith("_batch_size"):
                raise wrong_argument(
                    f"{name} is for TPUEstimator, and use_tpu is None: an Estimator's input_fn "
                    "makes the batches itself",
                    getattr(self, name),
                    "For a TPUEstimator's model_fn pass use_tpu=True, or False.",
                )
        config = self.config or RunConfig()
        if strategy and isinstance(config, RunConfig):
            config = config.replace(eval_distribute=strategy)
        of_training = {"strategy": strategy, "options": self._options}
        return Estimator(model_fn, self.model_dir, config, self.params, **of_training)

    def _strategy(self) -> tf.distribute.Strategy | None:
        strategy = self.strategy
        if strategy is None and tf.distribute.has_strategy():
            strategy = tf.distribute.get_strategy()
        check_strategy("What adapt returns", strategy)
        return strategy

    def _tpu_estimator(self, model_fn: Any, strategy: Any) -> TPUEstimator:
        train = self.train_batch_size
        if train is None:
            raise wrong_argument(
                f"use_tpu is {self.use_tpu}, and train_batch_size is None",
                None,
                "Pass the number of examples in a batch of all cores, which params['batch_size'] "
                "is made of.",
            )
        config = self.config or TPURunConfig()
        if isinstance(config, TPURunConfig):
            config = config.replace(log_step_count_steps=None)  # the loop is the user's
        return TPUEstimator(
            model_fn,
            self.model_dir,
            config,
            self.params,
            bool(self.use_tpu),
            train,
            self.eval_batch_size or train,
            self.predict_batch_size or train,
            strategy=strategy if self.use_tpu else None,
            options=self._options,
        )


def _checked_inputs(train: Any, evaluate: Any, predict: Any) -> dict[str, Callable[..., Any]]:
    """ModeKeys -> input_fn, of those that are given."""
    arguments = {"input_fn": train, "eval_input_fn": evaluate, "predict_input_fn": predict}
    modes = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
    given = zip(modes, arguments.values(), strict=True)
    inputs = {mode: function for mode, function in given if function is not None}
    if not inputs:
        raise wrong_argument(
            "adapt was given no input_fn",
            None,
            "Pass input_fn to train, eval_input_fn to evaluate, or predict_input_fn to predict.",
        )
    return inputs
