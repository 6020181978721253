"""Graphs that serve a model on TPU cores: built on any machine, run where there is a TPU.

    predictions = inference_on_tpu(computation, [images], num_batch_threads=2, max_batch_size=32,
                                   batch_timeout_micros=1000)

A call is one node of the graph, `TPUPartitionedCall`. It runs a function on one core; the next call
runs on the next core. `tpu.rewrite` has marked the part of the function that the TPU compiles.

Source: tensorflow_estimator 2.15 tpu_estimator.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.user_code import argument_names
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.estimator import export
from estimator2strategy.estimator.saved_model import ServedGraph
from estimator2strategy.estimator.specs import EstimatorSpec

tf1 = tf.compat.v1

_TAGS = (tf.saved_model.SERVING, "tpu")


class ExportSavedModelApiVersion(enum.Enum):
    """The part of the program that puts an exported model on the TPU: TPUEstimator or model_fn."""

    V1 = 1
    V2 = 2


class BatchConfig(NamedTuple):
    """Settings that combine requests into batches for the TPU.

    Attributes:
        num_batch_threads: Batches that are processed at the same time.
        max_batch_size: No batch is larger, in examples.
        batch_timeout_micros: Microseconds after which an incomplete batch goes out.
        allowed_batch_sizes: Sizes, in ascending order and up to `max_batch_size`, to which batches
            are padded; None or empty: batches are not padded.
        max_enqueued_batches: Batches that may wait.
    """

    num_batch_threads: int
    max_batch_size: int
    batch_timeout_micros: int
    allowed_batch_sizes: Sequence[int] | None
    max_enqueued_batches: int = 100


def call_computation(
    computation_inputs: Any,
    computation: Callable[[Any], Sequence[tf.Tensor]],
    batch_config: BatchConfig | None = None,
) -> list[tf.Tensor]:
    """Calls a computation, one core after the other with each run of the graph.

    Args:
        computation_inputs: (Nested) tensors.
        computation: `computation(inputs)` builds the graph, `tpu.rewrite` included, and returns a
            list of tensors.
        batch_config: Settings that batch the feeds of simultaneous runs; None: no batching.

    Returns:
        What the computation returns, of unknown shape.
    """

    def on_a_core(inputs: Any) -> list[tf.Tensor]:
        # The variables stay the graph's own, of which the server keeps copies on the cores.
        @_tf_private.Defun(capture_resource_var_by_value=False)
        def tpu_subgraph() -> Any:
            return computation(inputs)

        outputs = tpu_subgraph.definition.signature.output_arg
        return cast(
            list[tf.Tensor],
            tf.raw_ops.TPUPartitionedCall(
                args=tpu_subgraph.captured_inputs,
                device_ordinal=tf.raw_ops.TPUOrdinalSelector(),
                Tout=[output.type for output in outputs],
                f=tpu_subgraph,
            ),
        )

    if not batch_config:
        return on_a_core(computation_inputs)

    @tf.nondifferentiable_batch_function(**batch_config._asdict(), autograph=False)
    def batched_tpu_computation(*inputs: Any) -> Any:
        return on_a_core(tf.nest.pack_sequence_as(computation_inputs, inputs))

    return cast(list[tf.Tensor], batched_tpu_computation(*tf.nest.flatten(computation_inputs)))


def inference_on_tpu(
    computation: Callable[..., Any],
    inputs_to_tpu: Sequence[tf.Tensor],
    num_batch_threads: int,
    max_batch_size: int | None,
    batch_timeout_micros: int,
    allowed_batch_sizes: Sequence[int] | None = None,
    max_enqueued_batches: int = 100,
) -> list[tf.Tensor]:
    """Puts a part of a model on the TPU, for a model_fn with `export_saved_model_api_version=2`.

    Args:
        computation: `computation(*inputs_to_tpu)` returns a tensor or a list of tensors.
        inputs_to_tpu: The arguments to call it with.
        max_batch_size: None or 0: requests are not batched.

    The others: as in `BatchConfig`.

    Returns:
        What the computation returns, of unknown shape.
    """

    def compiled(inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return _compiled(computation, list(inputs))

    batch_config = None
    if max_batch_size:
        batch_config = BatchConfig(
            num_batch_threads,
            max_batch_size,
            batch_timeout_micros,
            allowed_batch_sizes,
            max_enqueued_batches,
        )
    return call_computation(list(inputs_to_tpu), compiled, batch_config)


def model_fn_inference_on_tpu(
    model_fn: Callable[..., Any],
    features: Any,
    labels: Any = None,
    config: Any = None,
    params: Any = None,
    batch_config: BatchConfig | None = None,
) -> Any:
    """Calls model_fn for prediction, all of it on the TPU, with
    `export_saved_model_api_version=2`.

    Args:
        model_fn: Called with those of these arguments that it takes, and with mode PREDICT.
        features: Tensor or dict of tensors; none of them sparse.
        labels: Passed on.
        config: Passed on.
        params: Passed on.
        batch_config: As in `call_computation`.

    Returns:
        The spec that model_fn returned, with tensors of the host in `predictions` and
        `export_outputs`.

    Raises:
        ValueError: An export output is of a kind that is not TensorFlow's, or there is no tensor
            in the spec.
    """
    names = argument_names(model_fn)
    given = {"labels": labels, "mode": ModeKeys.PREDICT, "config": config, "params": params}
    arguments = {name: value for name, value in given.items() if name in names}
    specs = []

    def computation(inputs: Any) -> list[tf.Tensor]:
        def model() -> list[tf.Tensor]:
            spec = model_fn(features=inputs, **arguments)
            specs.append(spec)
            tensors = [tensor for tensor in tf.nest.flatten(_results(spec)) if tensor is not None]
            if not tensors:
                raise _nothing_to_compute(spec)
            return tensors

        return _compiled(model)

    tensors = iter(call_computation(features, computation, batch_config))
    (spec,) = specs
    predictions, outputs = tf.nest.map_structure(
        lambda inner: None if inner is None else next(tensors), _results(spec)
    )
    return spec._replace(
        predictions=predictions,
        export_outputs={
            name: with_tensors(output, outputs[name])
            for name, output in spec.export_outputs.items()
        },
    )


def _nothing_to_compute(spec: Any) -> ValueError:
    return wrong_argument(
        "predictions and export_outputs of the spec that model_fn returned are empty: there is "
        "nothing to compute on a TPU",
        spec.predictions,
        "Pass TPUEstimatorSpec(mode, predictions={name: tensor}), or export with "
        "export_to_tpu=False.",
    )


def _compiled(computation: Callable[..., Any], inputs: list[Any] | None = None) -> list[tf.Tensor]:
    outputs = tf1.tpu.rewrite(computation, inputs)
    _tf_private.prune_unconnected_ops_from_xla(tf1.get_default_graph())
    return cast(list[tf.Tensor], outputs)


def _results(spec: Any) -> tuple[Any, dict[str, list[tf.Tensor | None]]]:
    outputs = {name: tensors_of(output) for name, output in spec.export_outputs.items()}
    return spec.predictions, outputs


def tensors_of(output: Any) -> list[tf.Tensor | None]:
    """The tensors of an export output.

    Raises:
        ValueError: It is of a kind that is not TensorFlow's.
    """
    if isinstance(output, export.ClassificationOutput):
        return [output.scores, output.classes]
    if isinstance(output, export.RegressionOutput):
        return [output.value]
    if isinstance(output, export.PredictOutput):
        return list(output.outputs.values())
    raise ValueError(
        "`export_output` must be have type `ClassificationOutput`, `RegressionOutput`, or "
        f"`PredictOutput`; got {output}."
    )


def with_tensors(output: Any, tensors: Sequence[tf.Tensor | None]) -> Any:
    """An export output like `output`, of other tensors, in the order of `tensors_of`."""
    if isinstance(output, export.ClassificationOutput):
        return export.ClassificationOutput(*tensors)
    if isinstance(output, export.RegressionOutput):
        return export.RegressionOutput(*tensors)
    return export.PredictOutput(dict(zip(output.outputs, tensors, strict=True)))


@contextlib.contextmanager
def tpu_inference() -> Iterator[None]:
    """A context for building a TPU's graph: conds and loops stay whole for the TPU's compiler."""
    context = _tf_private.TPUInferenceContext("tpu_inference", check_ops=False)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()


def served_graphs(
    mode: str,
    receiver_fn: Callable[[], Any],
    *,
    on_host: Callable[..., EstimatorSpec] | None,
    on_tpu: Callable[..., EstimatorSpec] | None,
) -> list[ServedGraph]:
    """The graphs of a TPUEstimator's SavedModel for one mode.

    Args:
        mode: Graphs for a TPU are made for PREDICT only.
        receiver_fn: See `ServedGraph`.
        on_host: Calls model_fn for a graph that the host runs; None: there shall be none.
        on_tpu: Likewise, for a graph that a TPU runs.

    Raises:
        ValueError: Both are None.

    Source: `TPUEstimator._add_meta_graph_for_mode`, tensorflow_estimator 2.15.
    """
    if not on_host and not on_tpu:
        raise ValueError("One of export_to_cpu and export_to_tpu must be true.")
    if on_tpu and mode != ModeKeys.PREDICT:
        tf1.logging.warn(
            "TPUEstimator only handles mode PREDICT for exporting when `export_to_tpu` is "
            "`True`; Mode %s will be ignored for TPU.",
            mode,
        )
        on_tpu = None
    graphs = []
    if on_host:
        graphs.append(ServedGraph(mode, export.EXPORT_TAG_MAP[mode], receiver_fn, on_host))
    if on_tpu:
        graphs.append(ServedGraph(mode, _TAGS, receiver_fn, on_tpu, check_variables=False))
    return [dataclasses.replace(graph, resource_step=True) for graph in graphs]
