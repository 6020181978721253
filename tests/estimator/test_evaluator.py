"""The evaluator beside a trainer that removes old checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator2strategy import estimator
from estimator2strategy.estimator.evaluator import EvalStatus, Evaluator
from tests.engine.runtime.programs import host_estimator, numbers


class FailingExporter(estimator.Exporter):
    """Fails as an export does whose checkpoint is gone.

    Args:
        pattern: Of the files that are removed before.
    """

    name = "exports"

    def __init__(self, folder, pattern):
        self._folder, self._pattern = Path(folder), pattern

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        for path in self._folder.glob(self._pattern):
            path.unlink()
        raise ValueError(f"The passed save_path is not a valid checkpoint: {checkpoint_path}")


def evaluator_with(model_dir, pattern):
    model = host_estimator(model_dir, save_checkpoints_steps=2)
    model.train(numbers(4))
    spec = estimator.EvalSpec(numbers(1), exporters=[FailingExporter(model_dir, pattern)])
    return Evaluator(model, spec, max_steps=4)


def test_a_checkpoint_that_is_removed_before_it_is_exported_gives_way_to_the_next(model_dir, log):
    evaluator = evaluator_with(model_dir, "model.ckpt-4.*")
    assert evaluator.evaluate_and_export().status == EvalStatus.NO_NEW_CHECKPOINT
    assert evaluator.metrics is None
    assert not evaluator.done()
    assert any("model.ckpt-4 was removed before it was" in line for line in log())


def test_an_export_that_fails_otherwise_is_an_error(model_dir):
    evaluator = evaluator_with(model_dir, "model.ckpt-0.*")
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        evaluator.evaluate_and_export()
