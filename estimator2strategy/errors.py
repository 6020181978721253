"""The exceptions of this package.

    EstimatorToStrategyError
    ├── RecordingError          model_fn or input_fn could not be recorded
    │   └── UnsupportedError    it uses something that has no home on TF2
    │       └── QueueRunnerError    queues of input_fn cannot run
    ├── CheckpointError         a checkpoint does not fit the model, or cannot be read
    ├── SavedModelError         an export cannot be read, or not be rewritten for its reader
    ├── ModelDirInUseError      another training writes to the same model_dir
    └── DeviceError             the machine cannot do what the configuration asks for

Where the real Estimator raised a built-in exception that programs catch, the class here is also
a subclass of that one.
"""

from __future__ import annotations


class EstimatorToStrategyError(Exception):
    """Base of all errors that this package raises by its own name."""


class RecordingError(EstimatorToStrategyError, ValueError):
    """model_fn or input_fn could not be recorded; the message names the user's file and line."""


class UnsupportedError(RecordingError):
    """The program uses an API that cannot work on TF2; the message names the replacement."""


class QueueRunnerError(UnsupportedError, RuntimeError):
    """input_fn reads from queues where none can run; the message names the line that made one."""


class CheckpointError(EstimatorToStrategyError, ValueError):
    """A checkpoint and the model differ, or no checkpoint can be read; the message lists each."""


class SavedModelError(EstimatorToStrategyError, ValueError):
    """An export cannot be read, or not be rewritten for its reader; the message says what to do."""


class ModelDirInUseError(EstimatorToStrategyError, RuntimeError):
    """Another training writes to the same model_dir; the message names its process."""


class DeviceError(EstimatorToStrategyError, RuntimeError):
    """The configuration asks for devices that this machine does not have."""
