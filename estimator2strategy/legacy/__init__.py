"""Gives TF 1.15's `tensorflow` to the modules of a legacy program, its processes, its tests."""

from estimator2strategy.legacy.importing import Scope, import_module, install

__all__ = ["Scope", "import_module", "install"]
