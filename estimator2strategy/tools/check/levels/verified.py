"""The level `verified`: what a golden recorded elsewhere is replayed here; see `e2s verify`."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator2strategy.tools.check.check_report import Evidence, LevelReport, Outcome, Verdict
from estimator2strategy.tools.check.levels.check_error import CheckError, of_program
from estimator2strategy.tools.check.levels.facts import Curve, Curves, Fact, Table
from estimator2strategy.tools.check.levels.findings import finding
from estimator2strategy.tools.check.levels.load import hyperparameters
from estimator2strategy.tools.check.request import Asked, Mode, file_of_program
from estimator2strategy.tools.golden import opened, output, result, verify
from estimator2strategy.tools.golden.recorder.options import RecordError
from estimator2strategy.tools.golden.result import CheckStatus
from estimator2strategy.tools.golden.training_tier import LATER_LOSS, Training

_LEVEL = Evidence.VERIFIED
_COLUMNS = ("tier", "check", "outcome", "slack", "tolerance", "detail")
_OUTCOMES = {
    CheckStatus.PASSED: Outcome.PASSED,
    CheckStatus.EXPLAINED: Outcome.PASSED,
    CheckStatus.FAILED: Outcome.FAILED,
}


def check(asked: Asked) -> LevelReport:
    """Replays the golden in `asked.options["golden"]` with the model that is under check.

    Raises:
        CheckError: There is no golden, or the program does not do here what was recorded.
    """
    folder = asked.options.get("golden")
    if not folder:
        raise CheckError("give --golden DIR, the folder that `e2s record` wrote")
    try:
        golden = opened.read(folder)
        found, estimator = verify.verified(golden, _source(asked, golden), asked.cores)
    except RecordError as error:
        raise CheckError(str(error)) from error
    except Exception as error:
        raise of_program(f"{asked.name}, replaying {folder}", error) from error
    file = file_of_program(asked.program) if asked.program else None
    place = (file, 1) if file else None
    model_fn = estimator.e2s_parts.program.model_fn
    findings = [
        finding("E2S626", place, _sentence(found, what), asked.root, model_fn=model_fn)
        for what in [found.first_failure]
        if what is not None
    ]
    return LevelReport(
        _LEVEL,
        asked.name,
        verdicts=tuple(_verdict(t) for t in found.tiers if t.status is not CheckStatus.UNCHECKED),
        findings=tuple(findings),
        facts=_facts(found),
        not_checked=tuple(_unchecked(t) for t in found.tiers if t.status is CheckStatus.UNCHECKED),
    )


def _source(asked: Asked, golden: Any) -> dict[str, Any]:
    """The source to replay: the model under check, with the golden's options where it has none."""
    if asked.program:
        return {"program": list(asked.program), "cwd": str(asked.root)}
    names = ("eval_input", "predict_input", "serving", "params", "batch_size")
    recorded = {name: golden.about["source"].get(name) for name in names}
    given = {
        "eval_input": asked.inputs.get(Mode.EVAL),
        "predict_input": asked.inputs.get(Mode.PREDICT),
        "params": hyperparameters(asked),
        "batch_size": asked.batch_size,
    }
    source = {**recorded, **{name: value for name, value in given.items() if value}}
    train_input = asked.inputs.get(Mode.TRAIN)
    if train_input is None:
        raise CheckError("a golden is of training: give --input MODULE:input_fn for train, too")
    return {**source, "estimator": None, "model_fn": asked.model, "input": train_input}


def _verdict(tier: result.GoldenTier) -> Verdict:
    said = [
        f"{check.what}: {check.detail or check.slack}"
        for check in tier.checks
        if check.status in (CheckStatus.FAILED, CheckStatus.EXPLAINED)
    ]
    return Verdict(f"{tier.name}: as in the golden", _OUTCOMES[tier.status], "; ".join(said))


def _unchecked(tier: result.GoldenTier) -> str:
    why = "; ".join(dict.fromkeys(check.detail for check in tier.checks if check.detail))
    return f"{tier.name}: {why or 'it is not in the golden'}"


def _sentence(found: result.Comparison, failure: tuple[result.GoldenTier, result.Check]) -> str:
    tier, failed = failure
    cause = f" (likely cause: {found.cause})" if found.cause else ""
    detail = f": {failed.detail}" if failed.detail else ""
    return f"it is not the model of the golden: {tier.name}, {failed.what}{detail}{cause}"


def _facts(found: result.Comparison) -> tuple[Fact, ...]:
    training = Training(found.golden, found.here)
    golden, here = training.losses()
    steps = tuple(range(1, len(golden) + 1))

    def curve(label: str, values: np.ndarray) -> Curve:
        return Curve(label, steps, tuple(values.tolist()))

    rows = tuple(
        (tier, what, status.value, slack, tolerance, detail)
        for tier, what, status, slack, tolerance, detail in output.rows(found)
    )
    return (
        Table(output.headline(found), _COLUMNS, rows),
        Curves("loss of each step", "step", (curve("golden", golden), curve("here", here))),
        Curves(
            "error of the loss, as a share of its tolerance",
            "step",
            (curve("error", LATER_LOSS.shares(golden, here)),),
        ),
    )
