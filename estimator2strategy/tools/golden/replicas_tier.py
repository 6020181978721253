"""The tier "replicas": the golden's batches on emulated TPU cores.

The batches are run twice. With the whole batch on every core nothing may differ, for any model: the
mean over the cores is the result of one device. With the batch divided among the cores a model may
differ by its own design: batch norm and clipping then see the examples of one core only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.runtime import devices
from estimator2strategy.estimator import tpu
from estimator2strategy.estimator.tpu_checks import NotSummedError
from estimator2strategy.tools.golden.recorder.batches import is_dense, rebuilt
from estimator2strategy.tools.golden.recorder.feeds import TrainFeed
from estimator2strategy.tools.golden.recorder.options import Golden
from estimator2strategy.tools.golden.result import (
    Check,
    CheckStatus,
    Side,
    TierName,
    compared,
    unchecked,
)
from estimator2strategy.tools.golden.tiers import ROWS
from estimator2strategy.tools.golden.training_tier import LOSS, Divergence, Quantity, Training

tf1 = tf.compat.v1

_AS = "as of one device"
_TRAINING = (TierName.FORWARD, TierName.ONE_STEP, TierName.N_STEPS)
_ADDED = (
    "the strategy adds up the losses and gradients of replicas, as the original's did, because the "
    "program does not take its gradients by minimize or compute_gradients of an optimizer"
)
_NOT_SUMMED = (
    "the gradients are not summed over the cores: model_fn makes no CrossShardOptimizer, perhaps "
    "only without --use_tpu. Give the program its flags for a TPU: "
    "e2s verify GOLDEN --program train.py --use_tpu=True ..."
)
_STEPS = 3  # each step is as many steps of the golden as there are cores
_LARGEST = 1 << 30  # bytes that may become constants of a graph


def replicated(
    golden: Golden,
    side: Side,
    estimator: Any,
    start: Callable[[Any], Any],
    cores: int,
    factor: float = 1.0,
) -> tuple[Check, ...]:
    """Trains and predicts on emulated cores.

    Args:
        golden: The golden to compare with.
        side: The same, read.
        estimator: As the program made it.
        start: Gives an Estimator a new model_dir with the golden's first checkpoint.
        cores: The number of cores.
        factor: The factor by which tolerances are widened.
    """
    about = golden.about["batches"]["train"]
    batches = golden.batches("train") or []
    why = _unfit(golden, about, batches)
    if why:
        return (unchecked("training on cores", why),)
    same = [b for b in batches[:_STEPS] if _shapes(b) == _shapes(batches[0])]
    size = len(batches[0][0]) if batches[0][0].ndim else 0
    checks = [_trained(golden, side, estimator, start, about, same, _Tiled(cores, factor))]
    if checks[0].status is CheckStatus.UNCHECKED:
        return tuple(checks)
    fitting = next((n for n in (cores, 4, 2) if n <= cores and size and size % n == 0), 0)
    if fitting:
        checks.append(
            _trained(golden, side, estimator, start, about, same, _Dealt(fitting, factor))
        )
    else:
        checks.append(unchecked("batch dealt out", f"{size} examples cannot be dealt out"))
    if isinstance(estimator, tpu.TPUEstimator):
        checks.append(_predicted(golden, side, estimator, cores, factor))
    return tuple(checks)


def _unfit(
    golden: Golden, about: Mapping[str, Any], batches: Sequence[Sequence[np.ndarray]]
) -> str:
    if not batches or not is_dense(about["structure"]):
        return "sparse and ragged batches are not dealt out here"
    train = golden.about["train"]
    if train["draws"] or train["uncontrolled"]:
        return "training draws random numbers (dropout?), which differ from core to core"
    if sum(array.nbytes for batch in batches[:_STEPS] for array in batch) > _LARGEST:
        return "the batches are too large to be dealt out in this process"
    return ""


def _shapes(batch: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    return [array.shape for array in batch]


class _Tiled:
    """The whole batch on every core."""

    what = "whole batch on each core"

    def __init__(self, cores: int, factor: float):
        self.cores, self.factor = cores, factor

    def together(self, data: tf.data.Dataset, axes: Sequence[int]) -> tf.data.Dataset:
        """One batch for all cores, for a TPUEstimator; `axes`: along which it is dealt out."""

        def tiled(*leaves: tf.Tensor) -> tuple[tf.Tensor, ...]:
            pairs = zip(leaves, axes, strict=True)
            return tuple(tf.concat([leaf] * self.cores, axis) for leaf, axis in pairs)

        return data.map(tiled)

    def each(self, data: tf.data.Dataset) -> tf.data.Dataset:
        """One batch a replica, for `train_distribute`."""
        return data.flat_map(
            lambda *leaves: tf.data.Dataset.from_tensors(leaves).repeat(self.cores)
        )

    def size(self, batch: int) -> int:
        """Examples of all cores, where the golden's batch has `batch`."""
        return batch * self.cores


class _Dealt:
    """The batch in as many parts as there are cores."""

    what = "batch dealt out to the cores"

    def __init__(self, cores: int, factor: float):
        self.cores, self.factor = cores, factor

    def together(self, data: tf.data.Dataset, axes: Sequence[int]) -> tf.data.Dataset:
        return data

    def each(self, data: tf.data.Dataset) -> tf.data.Dataset:
        def parts(*leaves: tf.Tensor) -> tf.data.Dataset:
            split = tuple(
                tf.reshape(leaf, [self.cores, leaf.shape[0] // self.cores, *leaf.shape[1:]])
                for leaf in leaves
            )
            return tf.data.Dataset.from_tensor_slices(split)

        return data.flat_map(parts)

    def size(self, batch: int) -> int:
        return batch


class CoresWatch(TrainFeed):
    """Watches losses and variables of the first core; feeds nothing."""

    def __init__(self) -> None:
        super().__init__({}, [])

    def begin(self) -> None:
        super().begin()
        self._loss = tf1.get_collection(tf1.GraphKeys.LOSSES)[-1]
        graph = tf1.get_default_graph()
        self.types = {op.type for op in graph.get_operations()}
        self.names = {v.op.name.rpartition("/")[2] for v in tf1.global_variables()}
        self.clips = any("clip_by" in op.name for op in graph.get_operations())

    def before_run(self, run_context: Any) -> Any:
        return tf1.train.SessionRunArgs({"loss": self._loss})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(np.asarray(run_values.results["loss"], np.float64))
        self.watch(run_context.session)


def _trained(
    golden: Golden,
    side: Any,
    estimator: Any,
    start: Callable[[Any], Any],
    about: Mapping[str, Any],
    batches: Sequence[Sequence[np.ndarray]],
    how: _Tiled | _Dealt,
) -> Check:
    watch = CoresWatch()
    size = len(batches[0][0]) if batches[0][0].ndim else 1

    def data() -> tf.data.Dataset:
        stacked = tuple(np.stack(leaves) for leaves in zip(*batches, strict=True))
        return tf.data.Dataset.from_tensor_slices(stacked)

    def structured(leaves: tf.data.Dataset) -> tf.data.Dataset:
        return leaves.map(lambda *parts: rebuilt(about["structure"], parts))

    replica = on_cores(start(estimator), how.cores, how.size(size))
    is_tpu = isinstance(estimator, tpu.TPUEstimator)

    def input_fn(params: Mapping[str, Any]) -> tf.data.Dataset:
        del params
        if not is_tpu:
            return structured(how.each(data()))
        axes = estimator.e2s_parts.tpu.batch_axis
        fit = axes is not None and len(axes) == len(batches[0])
        return structured(how.together(data(), axes if fit else [0] * len(batches[0])))

    try:
        replica.train(input_fn, hooks=[watch], steps=len(batches))
    except NotSummedError:
        return unchecked(how.what, _NOT_SUMMED)
    return _checked(golden, side, watch, how, adds=not is_tpu)


def _checked(golden: Golden, side: Side, watch: CoresWatch, how: Any, *, adds: bool) -> Check:
    """The check of a training.

    Args:
        golden, side: The golden.
        watch: What the first core did.
        how: How the batches came to the cores.
        adds: True if losses are added up unless an optimizer scales them, as under a strategy.
    """
    train = golden.about["train"]
    here = Side(
        {"train": {**train, "variables": watch.inventory(), "gradients": train["gradients"]}},
        {
            "train/losses": np.array(watch.losses),
            "train/gradients": side.results["train/gradients"][: len(watch.losses)],
            "train/values": np.array(watch.values),
            "train/updates": np.array(watch.updates),
        },
    )
    training = Training(side, here, dict.fromkeys(_TRAINING, how.factor))
    divergence = training.divergence()
    what = f"{how.what} ({how.cores})"
    if divergence is None:
        share = training.largest_share()
        return Check(what, CheckStatus.PASSED, _AS, share, f"{training.steps} steps")
    if adds and _is_sum(divergence, how.cores):
        return Check(what, CheckStatus.EXPLAINED, _AS, divergence.share, f"{_ADDED}; {divergence}")
    causes = _causes(watch) if isinstance(how, _Dealt) else []
    if causes:
        detail = f"{' and '.join(causes)} within each core's part, so it differs; {divergence}"
        return Check(what, CheckStatus.EXPLAINED, _AS, divergence.share, detail)
    hints = {
        _Tiled: "a sum over the cores for a mean?",
        _Dealt: "a loss that is no plain mean over the examples?",
    }
    detail = f"{divergence}; {hints[type(how)]}"
    return Check(what, CheckStatus.FAILED, _AS, divergence.share, detail)


def _is_sum(losses: Divergence, cores: int) -> bool:
    """True if the loss is that of one device, added up over the cores."""
    is_times = np.isclose(losses.here, losses.golden * cores, rtol=LOSS.relative * 10)
    return losses.kind is Quantity.LOSS and bool(is_times)


def _causes(watch: CoresWatch) -> list[str]:
    causes = []
    if "moving_mean" in watch.names or any("FusedBatchNorm" in kind for kind in watch.types):
        causes.append("batch norm averages")
    if watch.clips:
        causes.append("gradients are clipped")
    return causes


def on_cores(estimator: Any, cores: int, batch_size: int) -> Any:
    """A copy of an Estimator that runs on emulated cores, one step at a time."""
    parts, of_tpu = estimator.e2s_parts, {}
    if parts.tpu:
        config = tpu.TPUConfig(iterations_per_loop=1, per_host_input_for_training=True)
        of_tpu = {
            "config": parts.program.config.replace(tpu_config=config),
            "use_tpu": True,
            "batch_sizes": dict.fromkeys(parts.tpu.batch_sizes, batch_size),
        }
    return estimator.e2s_copy(strategy=devices.emulated_strategy(cores), **of_tpu)


def _predicted(golden: Golden, side: Side, estimator: Any, cores: int, factor: float) -> Check:
    """Predictions on cores: a last batch is padded, and nobody sees the padding."""
    what = f"predictions ({cores})"
    about, batches = golden.about["batches"].get("predict"), golden.batches("predict")
    names = [name for name in side.results if name.startswith("predict/last/")]
    if not batches or not names or not is_dense(about["structure"]):
        return unchecked(what, "the golden has none that can be dealt out")
    rows = tuple(np.concatenate(leaves) for leaves in zip(*batches, strict=True))
    size = -(-len(batches[0][0]) // cores) * cores

    def input_fn(params: Mapping[str, Any]) -> tf.data.Dataset:
        data = tf.data.Dataset.from_tensor_slices(rows).batch(params["batch_size"])
        return data.map(lambda *parts: rebuilt(about["structure"], parts))

    path = golden.checkpoint("last")
    predicted = list(on_cores(estimator, cores, size).predict(input_fn, checkpoint_path=path))
    checks = []
    for name in names:
        key = name[len("predict/last/") :]
        here = np.array([row[key] if key else row for row in predicted])
        checks.append(compared(what, side.results[name], here, ROWS.times(factor)))
    failed = [check for check in checks if check.status is CheckStatus.FAILED]
    return failed[0] if failed else max(checks, key=lambda check: check.share or 0.0)
