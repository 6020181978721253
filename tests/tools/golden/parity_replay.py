"""Replays the goldens of tests/programs/verified.py in this process."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from unittest import mock

from estimator2strategy.legacy import importing
from estimator2strategy.tools.golden import verify
from estimator2strategy.tools.golden.here import Here, HostRecorder

TESTS = Path(__file__).parents[2]
GOLDENS = TESTS / "goldens"
ALL = ("train", "evaluate", "predict", "export")


def program():
    with mock.patch.object(sys, "path", [str(TESTS / "programs"), *sys.path]):
        return importing.import_module("verified")


def replayed(golden="parity_tf115", what=ALL, cores=0, **flags):
    """The comparison on the program with these flags, as far as `what` goes."""
    golden = verify.read(str(GOLDENS / golden))
    parity = program()
    estimator = parity.build_estimator(flags)
    recorder = HostRecorder(Here().calls(), None, like=golden)
    with contextlib.closing(recorder):
        recorder.train(estimator, parity.input_fn)
        if "evaluate" in what:
            recorder.evaluate(estimator, parity.eval_input_fn)
        if "predict" in what:
            recorder.predict(estimator, parity.eval_input_fn)
        if "export" in what:
            recorder.export(estimator, parity.serving_input_fn)
        return verify.compared(golden, recorder, cores)


def statuses(comparison):
    return {tier.name: tier.status.name for tier in comparison.tiers}


def details(comparison, tier):
    (found,) = (t for t in comparison.tiers if t.name == tier)
    return "\n".join(f"{c.what}: {c.status.value} {c.detail}" for c in found.checks)
