"""The Estimators of this package, for a recorder: `e2s record`, and the replay of `e2s verify`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from estimator2strategy.engine import patches
from estimator2strategy.engine.runtime import devices
from estimator2strategy.estimator import Estimator, FinalExporter, RunConfig, tpu
from estimator2strategy.legacy import importing
from estimator2strategy.legacy import run as run_lib
from estimator2strategy.tools.golden.recorder.programs import Platform
from estimator2strategy.tools.golden.recorder.recorder import Recorder, moved
from estimator2strategy.tools.golden.recorder.recorder import started as started_in_place


class Here(Platform):
    """Runs programs as `e2s run` does."""

    def __init__(self) -> None:
        self.Estimator, self.RunConfig = Estimator, RunConfig
        self.TPUEstimator, self.TPURunConfig = tpu.TPUEstimator, tpu.RunConfig
        self.FinalExporter = FinalExporter
        self.classes = {Estimator, tpu.TPUEstimator}

    def run(self, argv: list[str]) -> None:
        is_module = argv[0] == "-m"
        target, *arguments = argv[is_module:]
        patches.noted("program")
        hook = sys.excepthook
        try:
            run_lib.run(run_lib.ProgramToRun(target, is_module, tuple(arguments)))
        finally:
            sys.excepthook = hook

    def module(self, name: str) -> Any:
        importing.install()
        devices.emulate_tpu_if_asked()
        return super().module(name)


class HostRecorder(Recorder):
    """Records on the host what an Estimator does that may be meant for cores.

    Args:
        tell: Is told each part as it begins; else as of Recorder.

    Attributes:
        trained: The Estimator that was trained, as the program made it.
    """

    trained: Any = None

    def __init__(self, *args: Any, tell: Callable[[str], object] = str, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._tell = tell

    def _alone(self, what: str) -> Any:
        self._tell(what)
        return super()._alone(what)

    def prepared(self, estimator: Any) -> Any:
        self.trained = self.trained or estimator
        made = super().prepared(on_host(estimator))
        # Where train_and_evaluate looks for what was trained.
        moved(estimator, made.model_dir)
        return made


def on_host(estimator: Any) -> Any:
    """A copy of an Estimator that runs on one device, whatever it was made for."""
    parts = estimator.e2s_parts
    config = parts.program.config.replace(train_distribute=None, eval_distribute=None)
    of_tpu = {"use_tpu": False} if parts.tpu else {}
    return estimator.e2s_copy(strategy=None, config=config, **of_tpu)


def started(estimator: Any, folder: str, checkpoint: str) -> Any:
    """A copy of an Estimator that trains in `folder`, from a checkpoint."""
    return started_in_place(estimator.e2s_copy(), folder, checkpoint)
