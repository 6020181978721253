"""`tf.contrib.seq2seq.Decoder` of TF 1.15: what all decoders are."""

from __future__ import annotations

import abc
from typing import Any


class Decoder(abc.ABC):
    """A decoder, which `dynamic_decode` runs."""

    @property
    def batch_size(self) -> Any:
        """The batch size of the inputs."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Structure of the sizes of a step's outputs, without the batch."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """Structure of the types of a step's outputs."""
        raise NotImplementedError

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """(finished [batch], inputs, state) before the first step."""

    @abc.abstractmethod
    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """(outputs, state, inputs, finished) of a step."""

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Outputs [time, batch, ...] and state as `dynamic_decode` is to return them."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """True if a sequence that had finished may go on."""
        return False
