"""Warns of an input that gave no batch: nothing fails, and nothing comes of it."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import wrong_argument

_INSTEAD = "Return from input_fn a Dataset that is not empty: look at its files and filters."


def warn_of_no_steps() -> None:
    """The original's warning after a training that ran no step."""
    _warn("Training with estimator made no steps. Perhaps input is empty or misspecified: input_fn")


def warn_of_no_batch(purpose: str) -> None:
    """Warns after an evaluation or a prediction without a batch.

    Args:
        purpose: Follows "no batch to".
    """
    _warn(f"input_fn gave no batch to {purpose}")


def _warn(what: str) -> None:
    tf.compat.v1.logging.warn(str(wrong_argument(what, 0, _INSTEAD)))
