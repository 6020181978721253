"""A block of steps, compiled when it is first launched.

    launch = CompiledBlock(block, platform="gpu")
    after = launch(variables, batches, 10)      # `variables` are given away

A GPU asks the host before each turn of a loop whether there is another, unless the number of turns
stands in the program. So it gets a second program, of the number of steps that most launches have.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from estimator2strategy.engine.replay.xla.block import Block, BlockResults
from estimator2strategy.engine.replay.xla.kept_compilations import kept
from estimator2strategy.engine.replay.xla.step_function import Arrays

_ASKS_HOST = frozenset({"gpu", "cuda", "rocm"})


class CompiledBlock:
    """The programs of a block.

    Args:
        block: As for `block_of`.
        platform: The name of JAX's platform.
        how: For `jax.jit`.

    Attributes:
        count: The number of steps that stands in the second program; None: there is none.
    """

    def __init__(self, block: Block, platform: str, **how: Any):
        self._block, self._how = block, {**how, "donate_argnums": 0}
        self._any_count = kept(jax.jit(block, **self._how))
        self._asks_host = platform in _ASKS_HOST
        self._last = 1
        self.count: int | None = None

    def __call__(self, variables: Arrays, batches: Arrays, count: int) -> BlockResults:
        """Starts `count` steps, as of `block_of`."""
        if self._asks_host and self.count is None and count == self._last > 1:
            self.count = count
            self._of_count = kept(jax.jit(self._of_usual, **self._how))
        self._last = count
        results: BlockResults = (
            self._of_count(variables, batches)
            if count == self.count
            else self._any_count(variables, batches, np.int32(count))
        )
        return results

    def _of_usual(self, variables: Arrays, batches: Arrays) -> BlockResults:
        return self._block(variables, batches, np.int32(self.count or 1))
