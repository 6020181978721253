"""Records a program for devices of JAX: as for the placement beneath, and says which run it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.recording import Placement, Recording
from estimator2strategy.engine.replay.xla.target import JaxTarget


@dataclasses.dataclass(frozen=True)
class UnderJax(Placement):
    """A placement whose model JAX runs.

    Attributes:
        recorded_as: The placement that calls the program's functions.
        target: The devices, one for each replica of that placement.
    """

    recorded_as: Placement
    target: JaxTarget

    def record_input(self, program: ModelProgram, mode: str, input_fn: Callable[..., Any]) -> Any:
        return self.recorded_as.record_input(program, mode, input_fn)

    def record_model(self, program: ModelProgram, mode: str, inputs: Any) -> Recording:
        # So gradients of conds and loops are made of ops that XLA has.
        with _tf_private.xla_control_flow_context("jax"):
            recording = self.recorded_as.record_model(program, mode, inputs)
        return dataclasses.replace(recording, jax=self.target)
