"""`e2s doctor`: what is installed here, and versions that clash.

Versions are read from the metadata of the installed packages; TensorFlow is only imported in a
process of its own, which may fail or hang without harm.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from estimator2strategy.engine.command_line import Parser
from estimator2strategy.engine.xla.pjrt import INSTALL
from estimator2strategy.tools.check import patches_report, probes
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.clashes import (
    Environment,
    Problem,
    problems,
    read_environment,
    unseen_tpu,
)
from estimator2strategy.tools.check.probes import probe

# Of the names in the first column: so that those of imports, which come later, stand below.
_WIDEST = "imported: jax devices"


def main(argv: Sequence[str]) -> int:
    """Runs `e2s doctor`; returns 1 if something clashes."""
    options = parser().parse_args(argv)
    if options.patches:
        return _show_patches(options.timeout)
    here = read_environment()
    if not options.json:
        # Imports take seconds, and what needs none is often the answer.
        _show(_rows(here))
    imported, found = _after_imports(here, 0 if options.no_import else options.timeout)
    if options.json:
        text = json.dumps(
            {
                "environment": dataclasses.asdict(here),
                "imported": imported,
                "problems": [_as_json(problem) for problem in found],
            },
            indent=2,
        )
        _show([text])
    else:
        _show([*_imported_rows(imported), *_shown_problems(found)])
    return int(any(problem.severity is Severity.ERROR for problem in found))


def _show(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _after_imports(here: Environment, seconds: float) -> tuple[dict[str, object], list[Problem]]:
    """The lines of TensorFlow and JAX on themselves, and all problems.

    Args:
        here: The environment.
        seconds: How long an import may take; 0: nothing is imported.
    """
    found = problems(here)
    asked: list[tuple[float, str, str]] = []
    if here.tensorflow and seconds:
        asked.append((seconds, probes.OF_TENSORFLOW, "tensorflow"))
    if "jax" in here.versions and seconds:
        asked.append((min(seconds, probes.SECONDS), probes.OF_JAX, "jax"))
    with ThreadPoolExecutor() as pool:  # each waits for a process of its own
        said = pool.map(lambda of: probe(*of), asked)
        answers = {module: answer for (_, _, module), answer in zip(asked, said, strict=True)}
    imported = answers.get("tensorflow", {})
    if "error" in imported:
        found.insert(0, Problem(Severity.ERROR, str(imported["error"]), "See the lines above it."))
    if unseen := unseen_tpu(here, imported):
        found.append(unseen)
    if "jax" in answers:
        of_jax = answers["jax"]
        found += _not_fitting(here, of_jax)
        imported |= {name: value for name, value in of_jax.items() if name != "error"}
    return imported, found


def _show_patches(seconds: float) -> int:
    found = probe(seconds, patches_report.PROBE, "estimator2strategy.tf1")
    if error := found.get("error"):
        sys.stderr.write(f"e2s doctor: {error}\n")
        return 1
    in_force = found["patches"]
    assert isinstance(in_force, list)
    sys.stdout.write(f"{patches_report.text(in_force)}\n")
    return 0


def _not_fitting(here: Environment, of_jax: Mapping[str, object]) -> list[Problem]:
    """The problem of a JAX that does not start; an ERROR if it is to run the steps."""
    why = probes.what_does_not_fit(of_jax, here.versions.get("jaxlib"))
    if not why:
        return []
    asked = here.settings.get("E2S_RUNTIME") == "jax"
    fix = "Install jax and jaxlib of one version (on a GPU 'jax[cuda13]', on a TPU 'jax[tpu]')."
    return [Problem(Severity.ERROR if asked else Severity.WARNING, why, fix)]


def parser() -> Parser:
    """Returns the parser of `e2s doctor`."""
    made = Parser(
        prog="e2s doctor",
        description="Lists what is installed here, and versions that clash.",
        epilog="example: e2s doctor --json\n\nexit code: 1 if something clashes, else 0",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument(
        "--no-import",
        action="store_true",
        help="do not try to import TensorFlow and JAX (in other processes)",
    )
    made.add_argument(
        "--timeout",
        type=float,
        default=120,
        metavar="SECONDS",
        help="the time limit of that import; by default 120",
    )
    made.add_argument(
        "--patches",
        action="store_true",
        help="list what this package changes in TensorFlow, Keras and the interpreter instead",
    )
    return made


def _as_json(problem: Problem) -> dict[str, str]:
    return {"severity": str(problem.severity), "what": problem.what, "fix": problem.fix}


def _compiler(here: Environment) -> str:
    """The version of the compiler that `e2s check --tpu` has, or how to get one."""
    if here.tpu_compiler:
        return f"libtpu {here.versions.get('libtpu', 'of unknown version')}, for `e2s check --tpu`"
    return f"none; `e2s check --tpu` needs {INSTALL}"


def _rows(here: Environment) -> list[str]:
    """The facts that need no import."""
    rows = {"python": ".".join(map(str, here.python)), **here.versions, **here.settings}
    rows["TPU"] = ", ".join(here.tpu_devices) or "no device of one on this machine"
    rows["TPU compiler"] = _compiler(here)
    return _aligned(rows)


def _imported_rows(imported: Mapping[str, object]) -> list[str]:
    return _aligned({f"imported: {name}": str(value) for name, value in imported.items()})


def _aligned(rows: Mapping[str, str]) -> list[str]:
    width = max(map(len, (*rows, _WIDEST)))
    return [f"  {name:{width}}  {value}" for name, value in rows.items()]


def _shown_problems(found: Sequence[Problem]) -> list[str]:
    if not found:
        return ["\nNothing that clashes."]
    return [f"\n{p.severity}: {p.what}.\n  {p.fix}" for p in found]
