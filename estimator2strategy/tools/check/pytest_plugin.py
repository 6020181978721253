"""A pytest plugin: models of a project, checked as tests of it.

    def test_model(e2s_check):
        checked = e2s_check(
            "trainer.model:model_fn",
            input="trainer.data:input_fn",
            params={"hidden": 64},
            levels=["recorded", "replicated"],
        )
        checked.assert_clean()

Nothing of TensorFlow is imported here, nor where tests are collected: each level runs in a process
of its own, as it does under `e2s check`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from estimator2strategy.tools.check.check_report import Finding, LevelReport, Report, Severity
    from estimator2strategy.tools.check.request import Asked
    from estimator2strategy.tools.check.settings import Settings

_MARKER = "e2s_levels"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("e2s", "checks of Estimator programs").addoption(
        "--e2s-levels",
        metavar="LEVELS",
        help="go through these levels only, of those that tests ask for: recorded,replicated; a "
        "test of none of them is skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(*levels): the levels that e2s_check goes through in this test, unless it says "
        "otherwise itself",
    )


@dataclasses.dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes:
        report: All of it.
    """

    report: Report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those in the source too."""
        return self.report.findings

    @property
    def levels(self) -> dict[str, LevelReport]:
        """Name of a level -> what it says."""
        return {level.level.option: level for level in self.report.levels}

    def assert_clean(self, fail_on: str = "warning", ignore: Sequence[str] = ()) -> None:
        """Fails the test if there are findings, or if the check could not be done.

        Args:
            fail_on: The lowest severity that fails: "error", "warning" or "info".
            ignore: Rules that may be found here: ids, beginnings of ids, or names.

        Raises:
            AssertionError: With the report, as `e2s check` prints it.
            SettingsError: There is no such severity or rule.
        """
        __tracebackhide__ = True
        from pathlib import Path

        from estimator2strategy.tools.check import formats
        from estimator2strategy.tools.check.rule import matching, redirected
        from estimator2strategy.tools.check.settings import SettingsError, parse_severity

        for selector in ignore:
            if not any(matching([selector])) and not redirected(selector):
                raise SettingsError(f"ignore: no rule is {selector!r}")
        allowed = set(matching(ignore))
        kept = tuple(f for f in self.report.findings if f.rule not in allowed)
        left = dataclasses.replace(self.report, findings=kept)
        if left.exit_code(parse_severity(fail_on)):
            # pytest's summary has the first line alone.
            text = formats.render("text", left, Path.cwd())
            raise AssertionError(f"{_first(left, parse_severity(fail_on))}\n\n{text}")


def _first(report: Report, least: Severity | None) -> str:
    """The gravest finding, or what could not be done, in one line."""
    found = [f for f in report.findings if least is not None and f.severity >= least]
    said = [f"{f.rule} {f.message} ({f.path}:{f.line})" for f in found] or list(report.problems)
    more = f", and {len(said) - 1} more" if len(said) > 1 else ""
    return " ".join(f"{said[0]}{more}".split())


Check = Callable[..., Checked]


@pytest.fixture
def e2s_check(request: pytest.FixtureRequest) -> Check:
    """`e2s_check(model, input=..., ...) -> Checked`; see `_check` for its arguments."""
    marker = request.node.get_closest_marker(_MARKER)
    default = marker.args if marker else ("recorded",)

    def check(model: str = "", *, levels: Sequence[str] | None = None, **options: Any) -> Checked:
        wanted = list(default if levels is None else levels)
        only = request.config.getoption("--e2s-levels")
        chosen = [level for level in wanted if only is None or level in only.split(",")]
        if not chosen:
            pytest.skip(f"of the levels {', '.join(wanted)} none is in --e2s-levels={only}")
        return _check(request.config.rootpath, model, chosen, **options)

    return check


def _check(
    root: Any,
    model: str,
    levels: Sequence[str],
    *,
    input: str | Mapping[str, str] | None = None,  # noqa: A002
    params: Mapping[str, Any] | str | None = None,
    modes: Sequence[str] = (),
    batch_size: int | None = None,
    checkpoint: str | None = None,
    program: Sequence[str] = (),
    cores: int = 8,
    target: str = "facade",
    time_limit: float | None = None,
    **options: Any,
) -> Checked:
    """Checks a model.

    Args:
        root: The project's folder; its pyproject.toml has the settings.
        model: `MODULE:model_fn` or `FILE.py:model_fn`.
        levels: Names as of `e2s check --levels`.
        input: `MODULE:input_fn` for all modes, or a dict of mode -> such a name.
        params: Hyperparameters, or `MODULE:name` of what has or returns them.
        modes: Of "train", "eval", "predict"; by default all that there is an input for.
        batch_size: Global, in examples.
        checkpoint: A checkpoint, or a folder of them, that the model is to fit.
        program: `("train.py", "--flag=1")`, in place of `model` and `input`.
        cores: The number of cores to emulate.
        target: "facade" or "tf2".
        time_limit: Seconds for each level.
        options: Of single levels: `tpu="v3-8"`.

    Raises:
        SettingsError: An argument that cannot be meant.
    """
    from estimator2strategy.tools.check import request, settings
    from estimator2strategy.tools.check import request as level_table

    given = settings.with_changes(settings.read(root), {"target": target}, where="e2s_check")
    if bool(model) == bool(program) or bool(model) != bool(input):
        raise settings.SettingsError("e2s_check: give a model and its input, or a program")
    asked = request.Asked(
        model or request.name_of_program(program),
        model=model,
        inputs=request.inputs_of(_pairs(input)),
        params=params if isinstance(params, str) else dict(params or {}),
        modes=request.modes_of(",".join(modes)),
        batch_size=batch_size,
        checkpoint=checkpoint,
        program=tuple(program),
        cores=cores,
        facade=given.target is settings.Target.FACADE,
        root=root,
        path=tuple(sys.path),
        levels=level_table.levels_of(",".join(levels)),
        time_limit=time_limit,
        options=options,
    )
    return Checked(_report(asked, given))


def _pairs(inputs: str | Mapping[str, str] | None) -> list[str]:
    """Inputs as `e2s check --input` has them: "MODULE:input_fn", or "eval=MODULE:input_fn"."""
    if inputs is None or isinstance(inputs, str):
        return [inputs] if inputs is not None else []
    return [f"{mode}={function}" for mode, function in inputs.items()]


def _report(asked: Asked, given: Settings) -> Report:
    """The report on the source and on each level, which runs in a process of its own."""
    from estimator2strategy.tools.check import checking
    from estimator2strategy.tools.check.levels import process
    from estimator2strategy.tools.check.request import source_files

    reports = [process.run(asked, level) for level in asked.levels]
    return checking.check(source_files([asked]), given, reports)
