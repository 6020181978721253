"""`e2s verify`: replays a golden here, and says tier by tier whether it is still the same model."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from estimator2strategy.engine import patches, put_off, quiet_import, user_code
from estimator2strategy.engine.command_line import Parser
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.runtime.requested_job import (
    PRECISION_VARIABLE,
    RUNTIME_VARIABLE,
    Runtime,
    requested_runtime,
)
from estimator2strategy.tools.golden import output, tiers
from estimator2strategy.tools.golden.opened import read
from estimator2strategy.tools.golden.recorder.options import (
    PARTS,
    Golden,
    RecordError,
    add_parts,
    add_source,
    parts_of,
    source_of,
    unpacked,
)
from estimator2strategy.tools.golden.result import (
    Check,
    Comparison,
    Factors,
    Side,
    TierName,
    unchecked,
)
from estimator2strategy.tools.golden.tiers import MEASURED
from estimator2strategy.tools.untrusted import printable

_OURS = str(Path(__file__).parents[2]) + os.sep
_EXAMPLE = """\
examples:
  e2s verify golden/                                       as it was recorded
  e2s verify golden/ --program train.py --use_tpu=True     the program with its flags for a TPU
  e2s verify golden/ --tolerance 10 --tolerance one-step=2   ten times as wide, of one tier twice
  e2s verify golden/ --runtime=jax                         on a device of JAX
  e2s verify golden/ --format text --format html=parity.html --format json=parity.json

exit code: 0 every tier that could be checked passed; 1 one failed; 2 it could not be verified.
"""


def main(argv: Sequence[str]) -> int:
    """Runs `e2s verify` with these arguments; returns the exit code."""
    options = parser().parse_args(argv)
    if said := quiet_import.missing():
        _complain(said)
        return 2
    patches.noted("command's log")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    patches.noted("end of a verification")
    atexit.register(gc.freeze)
    try:
        outputs = [output.parsed(given) for given in options.format or ["text"]]
        golden = read(
            options.golden, lambda: _tell(f"replaying {options.golden}; TensorFlow starts")
        )
        with _quiet_stdout():
            factors = dict(pair for given in options.tolerance for pair in given.items())
            cores = _cores(options)
            source, parts = _source(golden, options), parts_of(options)
            comparison, _ = verified(golden, source, cores, factors, parts, _tell)
        for name, path in outputs:
            output.write(name, path, comparison)
    except (RecordError, OSError) as error:
        _complain(str(error))
        return 2
    except Exception as error:
        if _is_of_program(error):  # its traceback says more than we could
            traceback.print_exc()
            _complain("the program failed here, so nothing was compared")
        else:
            said = str(error).strip() or "no message"
            _complain(f"it cannot be replayed here: {type(error).__name__}: {said}")
        return 2
    return comparison.exit_code


def _tell(said: str) -> None:
    """Says at once what is going on: a replay may take minutes."""
    printable.write(f"e2s verify: {printable.printable_lines(said)} ...\n", sys.stderr)
    sys.stderr.flush()


def _cores(options: argparse.Namespace) -> int:
    """The number of emulated cores; sets the runtime, which the Estimators of the program ask for.

    Raises:
        RecordError: There are none under JAX.
    """
    if options.runtime:
        patches.noted("program")
        os.environ[RUNTIME_VARIABLE] = options.runtime
    if requested_runtime() is not Runtime.JAX:
        return 8 if options.cores is None else int(options.cores)
    if options.cores:
        raise RecordError("--cores are emulated by TensorFlow: leave them out, or --runtime=jax")
    patches.noted("program")
    os.environ[PRECISION_VARIABLE] = Precision.HIGHEST.value
    _complain("JAX runs the model, on one device, with the highest precision of float32 products.")
    return 0


def _complain(said: str) -> None:
    printable.write(f"e2s verify: {printable.printable_lines(said)}\n", sys.stderr)


def _is_of_program(error: Exception) -> bool:
    """True if an error comes from a function of the program, and not from what called it."""
    names = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [i for i, name in enumerate(names) if name.startswith(_OURS)]
    its_own = [i for i, name in enumerate(names) if user_code.is_user_file(name)]
    return bool(its_own) and its_own[-1] > max(ours, default=-1)


def parser() -> Parser:
    """Returns the parser of `e2s verify`."""
    made = Parser(
        prog="e2s verify",
        usage="e2s verify [options] GOLDEN [--program {PROGRAM.py | -m MODULE} [its flags]]",
        description="Replays a golden of `e2s record` here, and says tier by tier if the model\n"
        "is still the same. Without a model_fn or a program, it runs the recorded command.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("golden", metavar="GOLDEN", help="the folder that `record` wrote")
    made.add_argument(
        "--cores",
        type=int,
        metavar="N",
        help="emulated cores of the tier `replicas`, by default 8; 0 leaves it out",
    )
    made.add_argument(
        "--runtime",
        choices=[runtime.value for runtime in Runtime],
        help="jax: JAX runs the model, on one device, with the highest precision of float32 "
        "products; without the tier `replicas`",
    )
    made.add_argument(
        "--tolerance",
        action="append",
        type=_factor,
        default=[],
        metavar="[TIER=]FACTOR",
        help="multiply the tolerances of all tiers by FACTOR, or those of one tier: "
        f"{', '.join(tier.option for tier in MEASURED)}; may be repeated. Names, shapes and "
        "classes must always be equal",
    )
    made.add_argument(
        "--format",
        action="append",
        metavar="NAME[=FILE]",
        help=f"{', '.join(output.NAMES)}; may be repeated",
    )
    add_parts(made, "replay")
    add_source(made)
    return made


def _factor(text: str) -> dict[TierName, float]:
    """Tier -> factor, from `10` (of all tiers) or `one-step=10`."""
    name, equals, number = text.rpartition("=")
    option = name.replace(" ", "-")
    tiers = [tier for tier in MEASURED if not equals or tier.option == option]
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf") or not tiers:
        known = ", ".join(tier.option for tier in MEASURED)
        raise argparse.ArgumentTypeError(
            f"{text!r}: give a number above 0, or TIER=NUMBER with one of {known}"
        )
    return dict.fromkeys(tiers, factor)


def _source(golden: Golden, options: argparse.Namespace) -> dict[str, Any]:
    """The source to replay: that of the command line, else the recorded one."""
    if options.program or options.model_fn or options.estimator:
        return cast(dict[str, Any], source_of(options))
    source = golden.about["source"]
    program = source.get("program")
    if program and program[0] != "-m" and not os.path.exists(program[0]):
        raise RecordError(
            f"the golden was recorded with {program[0]!r} in {source.get('cwd')}, which is not "
            "here; say where it is: --program PATH [its flags]"
        )
    return cast(dict[str, Any], source)


def verified(
    golden: Golden,
    source: dict[str, Any],
    cores: int,
    factors: Factors | None = None,
    parts: Sequence[str] = PARTS,
    tell: Callable[[str], object] = str,
) -> tuple[Comparison, Any]:
    """Replays a golden in this process, whose devices must not have started.

    Args:
        golden: The golden.
        source: The source of the Estimator, as of `source_of`.
        cores: The cores of the tier `replicas`.
        factors: The factors by which the tolerances of tiers are widened.
        parts: The parts to replay.
        tell: Is told each part as it begins.

    Returns:
        The comparison, and the Estimator that was trained for it.

    Raises:
        RecordError: The program or its functions cannot be found, or do not train.
    """
    quiet_import.import_tensorflow()
    with put_off.without_collections():
        from estimator2strategy.engine.runtime import devices
        from estimator2strategy.tools.golden import here as here_lib
        from estimator2strategy.tools.golden.recorder.programs import record

    if cores:
        devices.emulate(cores)
    platform = here_lib.Here()
    recorder = here_lib.HostRecorder(platform.calls(), None, like=golden, parts=parts, tell=tell)
    with contextlib.closing(recorder):
        record(platform, recorder, source)
        if cores > 1:
            tell(f"train on {cores} emulated cores")
        return compared(golden, recorder, cores, factors), recorder.trained


def compared(
    golden: Golden, recorder: Any, cores: int, factors: Factors | None = None
) -> Comparison:
    """Compares what a recorder recorded `like` the golden with the golden, and runs the cores."""
    results = dict(recorder.results)
    results["train/drift"] = _drift(golden, recorder.last)
    side = Side(golden.about, golden.all_results())
    replicas = _replicas(
        golden, side, recorder.trained, cores, (factors or {}).get(TierName.REPLICAS, 1.0)
    )
    return tiers.comparison(side, Side(recorder.about, _unpacked(results)), replicas, factors)


def _unpacked(results: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = {name.partition("|")[0] for name in results}
    return {name: unpacked(results, name) for name in sorted(names)}


def _drift(golden: Golden, path: str) -> np.ndarray:
    """[variables, 3]: how far each ended from the golden's, how far that moved, its norm."""
    import tensorflow as tf

    readers = [
        tf.train.load_checkpoint(p)
        for p in (golden.checkpoint("first"), golden.checkpoint("last"), path)
    ]
    rows = []
    for variable in golden.about["train"]["variables"]:
        name = variable["name"]
        if not all(reader.has_tensor(name) for reader in readers):
            rows.append([np.inf, 0.0, 0.0])
            continue
        first, last, here = (np.asarray(r.get_tensor(name), np.float64) for r in readers)
        if here.shape != last.shape:
            rows.append([np.inf, 0.0, 0.0])
            continue
        rows.append([float(np.linalg.norm(v)) for v in (here - last, last - first, last)])
    return np.array(rows)


def _replicas(
    golden: Golden, side: Side, estimator: Any, cores: int, factor: float
) -> tuple[Check, ...]:
    if cores < 2:
        return (unchecked("training on cores", "--cores=0"),)
    from estimator2strategy.tools.golden import here as here_lib
    from estimator2strategy.tools.golden.replicas_tier import replicated

    with tempfile.TemporaryDirectory(prefix="e2s_verify_") as scratch:

        def start(estimator: Any) -> Any:
            folder = tempfile.mkdtemp(dir=scratch)
            return here_lib.started(estimator, folder, golden.checkpoint("first"))

        return replicated(golden, side, estimator, start, cores, factor)


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Sends prints of the program and of TensorFlow's kernels to stderr; stdout is the report's."""
    sys.stdout.flush()
    ours = os.dup(1)
    patches.noted("report's output")
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)
