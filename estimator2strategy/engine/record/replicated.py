"""Records a model_fn as one replica sees it, and puts stand-ins for all replicas in the host graph.

Example:

    replicas = RecordedReplicas(fed, strategy, call_model_fn, inside=one_shard_of)
    mean_loss = replicas.mean(spec.loss)           # a placeholder in the host graph
    logits = replicas.concat(spec.predictions)     # likewise, [global batch, ...]
    step = replicas.runs(spec.train_op)            # an op in the host graph
    recording = replicas.recording(EstimatorSpec(...))
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.captures import Capture, capture_in_closure, first_capture
from estimator2strategy.engine.record.feeding import Fed
from estimator2strategy.engine.record.host_call import refusing_v1_summaries
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.replicas import ReplicatedModel
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.step_context import StepContext

tf1 = tf.compat.v1
Merge = Callable[[Sequence[tf.Tensor]], tf.Tensor]


def _mean(values: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.add_n(list(values)) / len(values)


def _concat(values: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.concat(list(values), axis=0)


def _first(values: Sequence[tf.Tensor]) -> tf.Tensor:
    return values[0]


class RecordedReplicas:
    """A model recorded for the replicas of a strategy.

    Attributes:
        fed: The input of all replicas.
        strategy: The strategy whose replicas they are.
        spec: The spec that model_fn returned for one replica.
        variables: Names of the variables that model_fn made: each replica has its own copy. A
            variable that is made later (for a host_call, say) is the host's.
        op: The op of the host graph that stands for one step of all replicas.
        later: Splices for the host's work on the replicas' results.
        left_out: The summaries that model_fn made, where no core can write one.
    """

    def __init__(
        self,
        fed: Fed,
        strategy: tf.distribute.Strategy,
        call: Callable[..., Any],
        inside: Callable[[int], contextlib.AbstractContextManager[Any]],
        partitions: Sequence[Any] = (),
    ):
        """Calls model_fn once, on placeholders for one replica's part of the batch.

        Args:
            fed: The input of all replicas.
            call: `call(features, labels)` calls model_fn.
            inside: `inside(num_replicas)`: the context in which to call it. May give a list of the
                summaries that it leaves out.
            partitions: The split of each tensor among a replica's cores; see `ReplicatedModel`.
        """
        self.fed = fed
        self.strategy = strategy
        self._partitions = tuple(partitions)
        self._feeds = [
            tf1.placeholder(tensor.dtype, tensor.shape, name="infeed") for tensor in fed.replicas[0]
        ]
        structure = tf.nest.pack_sequence_as(fed.structure, self._feeds, expand_composites=True)
        features, labels = (*structure, None)[:2]
        tf1.get_variable_scope().set_use_resource(True)  # cores never had reference variables
        with inside(strategy.num_replicas_in_sync) as left_out:
            self.spec = call(features, labels)
        self.left_out = tuple(left_out or ())
        operations = tf1.get_default_graph().get_operations()
        self.variables = tuple(op.name for op in operations if op.type == "VarHandleOp")
        self._made = len(operations)
        self.op = tf.no_op(name="cores/step")
        self.later: list[Splice] = []
        self._ops: list[tf.Operation] = []
        self._results: list[tuple[tf.Tensor, tf.Tensor, Merge]] = []

    def runs(self, op: tf.Operation | tf.Tensor) -> tf.Operation:
        """Makes each replica run `op` in each step; returns what stands for all of it."""
        self._ops.append(op if isinstance(op, tf.Operation) else op.op)
        return self.op

    def mean(self, tensor: tf.Tensor) -> tf.Tensor:
        """The mean of a scalar over the replicas."""
        return self._stand_in(tensor, tensor.shape, _mean)

    def sum(self, tensor: tf.Tensor) -> tf.Tensor:
        """The sum of a scalar over the replicas."""
        return self._stand_in(tensor, tensor.shape, tf.add_n)

    def concat(self, tensor: tf.Tensor) -> tf.Tensor:
        """A batch of results, all replicas' in order."""
        tensor = tf.convert_to_tensor(tensor)
        if tensor.shape.rank == 0:
            raise RuntimeError(
                "All tensors outfed from TPU should preserve batch size dimension, but got scalar "
                f"{tensor}. Reshape it to [1]."
            )
        dims = tensor.shape.as_list()
        dims[0] = dims[0] and dims[0] * self.strategy.num_replicas_in_sync
        return self._stand_in(tensor, dims, _concat)

    def first(self, tensor: tf.Tensor) -> tf.Tensor:
        """The value that the first replica has, where all replicas have the same."""
        return self._stand_in(tensor, tensor.shape, _first)

    def _stand_in(self, tensor: tf.Tensor, shape: Any, merge: Merge) -> tf.Tensor:
        name = f"cores/{tensor.op.name}"
        stand_in = tf1.placeholder(tensor.dtype, shape, name=name)
        self._results.append((tensor, stand_in, merge))
        return stand_in

    def capture(
        self, since: int, results: Collection[tf.Tensor | tf.Operation] | None = None
    ) -> Capture | None:
        """The first use, by ops made for the host, of what a replica computes from its batch.

        See `captures.first_capture` for the arguments.
        """
        return first_capture(tf1.get_default_graph(), self._feeds, since, results)

    @contextlib.contextmanager
    def on_host(self, function: Callable[..., Any], name: str) -> Iterator[list[Any]]:
        """A context for calling a function of the host, which may use no tensor but its arguments.

        On a TPU the host cannot see such a tensor; here it would see the first replica's only.

        Args:
            function: The user's function.
            name: Its name in the contract, such as 'metric_fn'.

        Yields:
            A list, to which the body adds the tensors and ops that the function returned.

        Raises:
            RecordingError: One of those needs what a replica computes from its part of the batch;
                or the body ended with an error that such a tensor, with its other shape, explains.
                Or the function makes summaries of TF1.
        """
        graph = tf1.get_default_graph()
        results: list[Any] = []
        try:
            with refusing_v1_summaries(function, name):
                yield results
            capture = self.capture(self._made, results)
        except ValueError as error:
            capture = self.capture(self._made)
            capture = capture or capture_in_closure(graph, self._feeds, function)
            if capture is None:
                raise
            raise capture.error(function, name, self._feeds, error) from error
        if capture:
            raise capture.error(function, name, self._feeds)

    @property
    def splices(self) -> tuple[Splice, ...]:
        """The splices that replay runs in place of the stand-ins."""
        outputs = [(t.name, stand_in.name, merge) for t, stand_in, merge in self._results]
        return (self._splice(outputs), *self.later)

    def recording(self, spec: Any, **more: Any) -> Recording:
        """The recording of the default graph.

        Args:
            spec: The EstimatorSpec, in terms of the host graph.
            more: Other attributes of the Recording; `input_hooks` run after those of the input.
        """
        hooks = (*self.fed.hooks, *more.pop("input_hooks", ()))
        return Recording(
            tf1.get_default_graph(),
            spec,
            hooks,
            splices=self.splices,
            strategy=self.strategy,
            replicated=self.variables,
            **more,
        )

    def _splice(self, outputs: list[tuple[str, str, Merge]]) -> Splice:
        """Makes the splice that runs the replicas.

        Args:
            outputs: (name in a replica, name in the host graph, how to merge) of each.
        """
        model = ReplicatedModel(
            self.strategy,
            feeds=tuple(t.name for t in self._feeds),
            outputs=tuple(name for name, _, _ in outputs),
            ops=tuple(op.name for op in self._ops),
            partitions=self._partitions,
        )

        def trace(
            recorded: RecordedGraph, state: State, values: Sequence[tf.Tensor], context: StepContext
        ) -> list[tuple[tf.Tensor, ...]]:
            watched = [inner for inner, name, _ in outputs if name == context.watched]
            return model.trace(recorded, state, values, context.host_uses, *watched)

        def merge(results: Sequence[Any]) -> list[tf.Tensor]:
            return [merge(parts) for parts, (_, _, merge) in zip(results, outputs, strict=True)]

        def expose(names: Sequence[str]) -> Splice:
            return self._splice([*outputs, *((name, name, _first) for name in names)])

        return Splice(
            op=self.op.name,
            inputs=tuple(tensor.name for fed in self.fed.replicas for tensor in fed),
            outputs=tuple(name for _, name, _ in outputs),
            trace=trace,
            inner=model.feeds,
            expose=expose,
            model=model,
            merge=merge,
        )


@contextlib.contextmanager
def one_shard_of(num_shards: int) -> Iterator[list[tf.Tensor]]:
    """The context in which TPUEstimator called model_fn: one of N shards, in an XLA context.

    Summaries made here are left out of the graph's: no core can write one.

    Yields:
        The list to which they are added.
    """
    summaries = tf1.get_default_graph().get_collection_ref(tf1.GraphKeys.SUMMARIES)
    before = len(summaries)
    left_out: list[tf.Tensor] = []
    with _tf_private.tpu_shard_context(num_shards), _tf_private.xla_control_flow_context("cores"):
        yield left_out
    left_out += summaries[before:]
    if left_out:
        tf1.logging.warn(
            "Summaries that model_fn makes on a TPU are not written (%s). Make them in a "
            "host_call; see migration_guide/host_call.md.",
            left_out[0].op.name,
        )
    del summaries[before:]
