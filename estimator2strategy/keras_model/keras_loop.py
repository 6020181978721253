"""`KerasLoop`: an Estimator's calls, by Keras's `fit`, `evaluate` and `predict`.

    loop = KerasLoop(model_fn, "model_dir", params={"rate": 0.1})
    loop.train(input_fn, max_steps=1000, callbacks=[keras.callbacks.TerminateOnNaN()])
    loop.evaluate(eval_input_fn)
    loop.export_saved_model("exports", serving_input_receiver_fn)

`e2s migrate --stage 7` puts it in the place of an Estimator, and stage 8 takes it away again.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime import devices, tpu_system
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.run_config import RunConfig, completed
from estimator2strategy.estimator.tpu_config import InputPipelineConfig
from estimator2strategy.estimator.tpu_config import RunConfig as TPURunConfig
from estimator2strategy.estimator.tpu_estimator import TPUEstimator
from estimator2strategy.keras_model.legacy_model import LegacyModel

tf1 = tf.compat.v1
_DEFAULT_SAVE_STEPS = 1000


class KerasLoop:
    """A model_fn as a LegacyModel, in Keras's loops, with the arguments of an Estimator.

    Checkpoints and summaries are written as often as by an Estimator, by the same names, into the
    same folders. Exports are the Estimator's, of the latest checkpoint.

    Args:
        model_fn: As for Estimator or TPUEstimator.
        model_dir: Where checkpoints and summaries are.
        config: A RunConfig.
        params: Hyperparameters.
        use_tpu: None: model_fn was written for Estimator. Else for TPUEstimator, with this use_tpu.
        train_batch_size, eval_batch_size, predict_batch_size: As for TPUEstimator.
        steps_per_execution: The number of steps that run in one call, between callbacks. The last
            call before a checkpoint or the end is shortened.

    Attributes:
        model: The LegacyModel.

    Raises:
        ValueError: The config asks for what `fit` does not do: several workers, say.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        use_tpu: bool | None = None,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        *,
        steps_per_execution: int = 1,
    ):
        self.config, self.params = completed(config, model_dir), params
        self.model_dir: str = self.config.model_dir or ""
        self._model_fn, self._use_tpu = model_fn, use_tpu
        self.batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        if self.config.tf_random_seed is not None:
            tf.random.set_seed(self.config.tf_random_seed)
        self.strategy, self._batches_of_core = _strategy(self.config, use_tpu)
        with self.strategy.scope():
            self.model = _WritingModel(model_fn, params, config, use_tpu=use_tpu)
        self.model.compile(steps_per_execution=steps_per_execution)
        self.model.writer = self._writer
        self.model.every = self.config.save_summary_steps
        self._save_steps = self.config.save_checkpoints_steps or _DEFAULT_SAVE_STEPS
        self._writers: dict[str, Any] = {}
        self._predict_step = tf.function(
            lambda batch: self.strategy.run(self.model, (batch,)), autograph=False
        )

    @property
    def global_step(self) -> int:
        """The steps that the model has been trained for."""
        return self.model.global_step

    def train(
        self,
        input_fn: Callable[..., Any],
        callbacks: Iterable[keras.callbacks.Callback] = (),
        steps: int | None = None,
        max_steps: int | None = None,
        **validation: Any,
    ) -> KerasLoop:
        """Trains until max_steps, for so many steps, or until the input ends."""
        dataset = self.dataset(input_fn, ModeKeys.TRAIN)
        self._restore()
        self.model.build(dataset)
        begin = self.global_step
        end = max_steps if steps is None else begin + steps
        if end is not None and begin >= end:
            return self
        self.model.begin.assign(begin)
        every, epochs = self._save_steps, 10**9
        if end is not None:
            epochs = -(-(end - begin) // every)
            every = min(every, end - begin)
        loop = _SavedAndWritten(self, begin, every)
        self.model.fit(
            dataset,
            epochs=epochs,
            steps_per_epoch=every,
            max_steps=None if end is None else end - begin,
            callbacks=[loop, *callbacks],
            shuffle=False,
            verbose=2,
            **validation,
        )
        return self

    def train_and_evaluate(
        self, train_spec: Any, eval_spec: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        """Trains, evaluates at each checkpoint, and calls the exporters of the spec."""
        held_out = self.dataset(eval_spec.input_fn, ModeKeys.EVAL)
        exporters = list(eval_spec.exporters or ())
        self.train(
            train_spec.input_fn,
            callbacks=[_Exports(self, exporters)] if exporters else (),
            max_steps=train_spec.max_steps,
            validation_data=held_out,
            validation_steps=eval_spec.steps,
        )
        results = self.evaluate(eval_spec.input_fn, eval_spec.steps, name=eval_spec.name)
        exported = [self.export_by(exporter, results, True) for exporter in exporters]
        return results, exported

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        callbacks: Iterable[keras.callbacks.Callback] = (),
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint; the results are also written as summaries."""
        self._restore(checkpoint_path)
        dataset = self.dataset(input_fn, ModeKeys.EVAL)
        results = self.model.evaluate(
            dataset, steps=steps, verbose=0, callbacks=list(callbacks), return_dict=True
        )
        self.write(results, self.global_step, "eval_" + name if name else "eval")
        return {**results, "global_step": self.global_step}

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        callbacks: Iterable[Any] = (),
        checkpoint_path: str | None = None,
    ) -> Iterator[Any]:
        """Yields the predictions of each example."""
        del callbacks  # Keras calls none around a batch of one's own loop
        self._restore(checkpoint_path)
        dataset = self.dataset(input_fn, ModeKeys.PREDICT)
        if isinstance(dataset.element_spec, tuple):
            dataset = dataset.map(lambda features, *labels: features)
        # With batches on the cores ahead of time, TensorFlow hangs if the caller stops early.
        options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
        for batch in self.strategy.experimental_distribute_dataset(dataset, options):
            with self.model.naming_failures():
                predicted = tf.nest.map_structure(self._of_all_cores, self._predict_step(batch))
            if isinstance(predicted, dict):
                kept = {key: predicted[key] for key in predict_keys or predicted}
                yield from (
                    dict(zip(kept, row, strict=True)) for row in zip(*kept.values(), strict=True)
                )
            else:
                yield from predicted

    # What an Estimator does with a checkpoint.

    @property
    def estimator(self) -> Estimator:
        """An Estimator of the same model_dir, for what is done with checkpoints alone."""
        if self._use_tpu is None:
            return Estimator(self._model_fn, self.model_dir, self.config, self.params)
        config = self.config if isinstance(self.config, TPURunConfig) else None
        sizes: Any = (size or 1 for size in self.batch_sizes.values())
        return TPUEstimator(self._model_fn, self.model_dir, config, self.params, False, *sizes)

    def export_saved_model(self, export_dir_base: str, *args: Any, **kwargs: Any) -> Any:
        """Writes a SavedModel as `Estimator.export_saved_model` does, with its arguments."""
        return self.estimator.export_saved_model(export_dir_base, *args, **kwargs)

    export_savedmodel = export_saved_model

    def export_by(self, exporter: Any, results: Mapping[str, Any], is_last: bool) -> Any:
        """Calls an exporter of an EvalSpec, as train_and_evaluate does."""
        folder = os.path.join(self.model_dir, "export", exporter.name)
        path = tf1.train.latest_checkpoint(self.model_dir)
        return exporter.export(self.estimator, folder, path, results, is_last)

    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint in model_dir."""
        found: str | None = tf1.train.latest_checkpoint(self.model_dir)
        return found

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint."""
        return self.estimator.get_variable_names()

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint."""
        return self.estimator.get_variable_value(name)

    # Parts of the loops.

    def dataset(self, input_fn: Callable[..., Any], mode: str) -> tf.data.Dataset:
        """The batches of an input_fn, which is called as an Estimator calls it."""
        given = {"params": self.params, "mode": mode, "config": self.config}
        size, cores = self.batch_sizes[mode], self.strategy.num_replicas_in_sync
        if size:
            if size % cores:
                raise ValueError(f"A batch of {size} cannot be dealt out to {cores} cores.")
            asked = size // cores if self._batches_of_core else size
            given["params"] = {**(self.params or {}), "batch_size": asked}
        names = inspect.signature(input_fn).parameters
        inputs = input_fn(**{name: given[name] for name in names if name in given})
        if not isinstance(inputs, tf.data.Dataset):
            raise TypeError(f"fit takes a Dataset, and {input_fn} returned {type(inputs)!r}.")
        if self._batches_of_core and cores > 1:
            return inputs.unbatch().batch(size, drop_remainder=mode != ModeKeys.PREDICT)
        return inputs

    def write(self, values: Mapping[str, Any], step: int, folder: str = "") -> None:
        """Writes summaries, by the tags and in the folder where an Estimator wrote them."""
        kind = tf1.Summary  # of TF1, as what reads the files may be
        written = [kind.Value(tag=tag, simple_value=float(values[tag])) for tag in values]
        with self._writer(folder).as_default():
            text = kind(value=written).SerializeToString()
            tf.summary.experimental.write_raw_pb(text, step)
        self._writer(folder).flush()

    def _writer(self, folder: str = "") -> Any:
        if folder not in self._writers:
            path = os.path.join(self.model_dir, folder)
            with tf.init_scope():  # not in the graph of a step
                self._writers[folder] = tf.summary.create_file_writer(path)
        return self._writers[folder]

    def _restore(self, path: str | None = None) -> None:
        path = path or tf1.train.latest_checkpoint(self.model_dir)
        if path:
            self.model.load_checkpoint(path)

    def _of_all_cores(self, value: Any) -> Any:
        parts = self.strategy.experimental_local_results(value)
        return tf.concat(parts, 0).numpy()


def _strategy(config: Any, use_tpu: bool | None) -> tuple[tf.distribute.Strategy, bool]:
    """The strategy of a TPU's cores, or of one device; True if input_fn makes a core's batch."""
    tpu = getattr(config, "tpu_config", None)
    if config.train_distribute or config.num_worker_replicas > 1:
        raise ValueError(
            "KerasLoop trains on one machine, by itself or on its TPU: keep tf.estimator for "
            "train_distribute and for several workers."
        )
    if not use_tpu:
        return tf.distribute.get_strategy(), False
    kinds = InputPipelineConfig
    known = (kinds.PER_HOST_V1, kinds.PER_HOST_V2)
    if tpu is not None and (
        tpu.num_cores_per_replica
        or tpu.num_shards == 1
        or tpu.per_host_input_for_training not in known
    ):
        raise ValueError(
            "KerasLoop trains one replica on each core, with batches of one input_fn: keep "
            "TPUEstimator for num_cores_per_replica, num_shards=1 and other kinds of "
            "per_host_input_for_training."
        )
    devices.emulate_tpu_if_asked()
    of_core = tpu is not None and tpu.per_host_input_for_training == kinds.PER_HOST_V2
    if devices.emulated_cores():
        return devices.emulated_strategy(), of_core
    resolver = getattr(config, "cluster", None)
    resolver = resolver or tf.distribute.cluster_resolver.TPUClusterResolver(
        config.master or "local"
    )
    tpu_system.start(resolver)
    return tf.distribute.TPUStrategy(resolver), of_core


class _WritingModel(LegacyModel):
    """A LegacyModel whose training steps write model_fn's summaries, as often as an Estimator.

    Attributes:
        writer: Returns the writer.
        every: The steps between two summaries; None for none.
        begin: The global step from which they are counted.
    """

    writer: Callable[[], Any]
    every: int | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.begin = tf.Variable(0, trainable=False, dtype=tf.int64)

    def train_step(self, data: Any) -> dict[str, Any]:
        with self.writer().as_default(), tf.summary.record_if(self._is_due):
            return super().train_step(data)

    def _is_due(self) -> tf.Tensor | bool:
        """True after the first step, and after every so many more."""
        if not self.every:
            return False
        step = self.legacy_variables[tf1.GraphKeys.GLOBAL_STEP].value
        return tf.equal((tf.identity(step) - self.begin - 1) % self.every, 0)


class _SavedAndWritten(keras.callbacks.Callback):
    """Writes checkpoints and summaries in `fit` as an Estimator did, and stops at a NaN."""

    def __init__(self, loop: KerasLoop, begin: int, every: int):
        super().__init__()
        self._loop, self._begin, self._every = loop, begin, every
        self._step, self._began = begin, time.time()

    def on_train_begin(self, logs: Any = None) -> None:
        if not self._loop.latest_checkpoint():
            self.model.save_checkpoint(self._loop.model_dir)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model.reset_metrics()  # the loss is that of these steps, not a mean of the epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        before, self._step = self._step, self._loop.global_step
        config, loss = self._loop.config, (logs or {})["loss"]
        if loss != loss:
            raise tf1.train.NanLossDuringTrainingError
        values = {}
        # The first step writes, and every so many after it.
        if self._has_passed(config.save_summary_steps, before - 1, self._step - 1):
            values = {} if "loss" in self.model.summaries else {"loss": loss}
        every = config.log_step_count_steps or 0
        if self._has_passed(every, before, self._step):
            now = time.time()
            rate = every / (now - self._began)
            values["global_step/sec"], self._began = rate, now
            size = self._loop.batch_sizes[ModeKeys.TRAIN]
            if size:
                values["examples/sec"] = rate * size
        if values:
            self._loop.write(values, self._step)

    def _has_passed(self, every: int | None, before: int, after: int) -> bool:
        """True if the steps after `before`, up to `after`, include a multiple of `every`."""
        if not every:
            return False
        return (after - self._begin) // every > (before - self._begin) // every

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.save_checkpoint(self._loop.model_dir)
        values = logs or {}
        held_out = {tag[4:]: values[tag] for tag in values if tag.startswith("val_")}
        if held_out:
            self._loop.write(held_out, self._step, "eval")
        if self._step < self._begin + (epoch + 1) * self._every:
            self.model.stop_training = True  # the input has ended


class _Exports(keras.callbacks.Callback):
    """Calls the exporters of an EvalSpec after each evaluation but the last.

    The last one's are called behind `fit`, as those of the final evaluation.
    """

    def __init__(self, loop: KerasLoop, exporters: list[Any]):
        super().__init__()
        self._loop, self._exporters = loop, exporters
        self._results: dict[str, Any] | None = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        values = logs or {}
        self._results = {tag[4:]: values[tag] for tag in values if tag.startswith("val_")}
        self._results[tf1.GraphKeys.GLOBAL_STEP] = self._loop.global_step

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self._results is None:
            return
        for exporter in self._exporters:
            self._loop.export_by(exporter, self._results, False)
