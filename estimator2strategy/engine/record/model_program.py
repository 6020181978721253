"""A legacy program as a value: its model_fn, and how its functions are called."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.input_fn import call_input_fn
from estimator2strategy.engine.record.model_fn import call_model_fn, not_a_spec

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class ReplacedCalls:
    """The calls that a subclass of Estimator, or a program, has put in the place of ours.

    Attributes:
        input_fn: `input_fn(input_fn, mode)` returns what the program's input_fn does.
        model_fn: `model_fn(features, labels, mode, config)` returns an EstimatorSpec.
        global_step: `global_step(graph)` makes the global step of a graph.
    """

    input_fn: Callable[[Callable[..., Any], str], Any] | None = None
    model_fn: Callable[[Any, Any, str, Any], Any] | None = None
    global_step: Callable[[tf.Graph], tf.Variable] | None = None


@dataclasses.dataclass(frozen=True)
class ModelProgram:
    """A model_fn, and the arguments that the functions of its program get.

    Attributes:
        model_fn: Called once for each recording.
        params: Hyperparameters; each call gets a deep copy.
        config: A RunConfig; each call gets a deep copy.
        spec_class: The class that model_fn must return: EstimatorSpec.
        replaced: Calls that the program makes itself.
        in_session: True if a Session trains it, which feeds the queues of an input_fn as well.
    """

    model_fn: Callable[..., Any]
    params: Any
    config: Any
    spec_class: type
    replaced: ReplacedCalls = ReplacedCalls()
    in_session: bool = False

    @property
    def plain(self) -> ModelProgram:
        """The program as it is, without what subclasses replaced."""
        return dataclasses.replace(self, replaced=ReplacedCalls())

    def call_input_fn(self, input_fn: Callable[..., Any], mode: str, **more: Any) -> Any:
        """Returns what input_fn returns.

        Args:
            more: Arguments that it may declare beside `mode`, `params` and `config`.
        """
        if self.replaced.input_fn:
            return self.replaced.input_fn(input_fn, mode)
        params, config = copy.deepcopy((self.params, self.config))
        available = {"mode": mode, "params": params, "config": config, **more}
        return call_input_fn(input_fn, available)

    def call_model_fn(self, features: Any, labels: Any, mode: str, config: Any = None) -> Any:
        """Returns the spec that model_fn returns.

        Args:
            config: In place of the program's.

        Raises:
            ValueError: It returns something else.
        """
        config = config or copy.deepcopy(self.config)
        if self.replaced.model_fn:
            return self.replaced.model_fn(features, labels, mode, config)
        params = copy.deepcopy(self.params)
        spec = call_model_fn(self.model_fn, features, labels, mode, params, config)
        if not isinstance(spec, self.spec_class):
            raise not_a_spec(spec, self.model_fn)
        return spec

    def create_global_step(self, graph: tf.Graph) -> tf.Variable:
        """The global step of a graph, made there."""
        return (self.replaced.global_step or tf1.train.create_global_step)(graph)

    def start(self, input_fn: Callable[..., Any], mode: str, **more: Any) -> Any:
        """Makes the global step, then calls input_fn; see `call_input_fn`."""
        graph = tf1.get_default_graph()
        self.create_global_step(graph)
        if mode == ModeKeys.TRAIN:
            _tf_private.add_global_step_read(graph)
        return self.call_input_fn(input_fn, mode, **more)
