"""Records as the command line says."""

import os
import sys

from estimator2strategy.tools.golden.recorder.folder import RecordError, say
from estimator2strategy.tools.golden.recorder.options import parts_of, record_parser, source_of
from estimator2strategy.tools.golden.recorder.programs import (
    Platform,
    record_functions,
    record_program,
)
from estimator2strategy.tools.golden.recorder.recorder import Limits, Recorder


def record(platform, recorder, source):
    """Records what `source` names, by one way or the other."""
    if "program" in source:
        record_program(platform, recorder, source["program"])
    else:
        record_functions(platform, recorder, source)


def main(argv=None, platform=Platform, prog="record.py"):
    """Records as the command line says; returns the exit code."""
    options = record_parser(prog).parse_args(argv)
    recorder = None
    try:
        source = source_of(options)
        if os.path.exists(os.path.join(options.out, "golden.json")):
            raise RecordError(
                f"{options.out} is there already; delete it, or give another folder with --out"
            )
        out, here = os.path.abspath(options.out), platform()
        limits = Limits(options.steps, options.eval_batches, options.predict_batches)
        parts = parts_of(options)
        recorder = Recorder(here.calls(), limits, options.checkpoint, parts=parts)
        record(here, recorder, source)
        recorder.write(out, source)
    except RecordError as error:
        say(error)
        return 2
    finally:
        if recorder:
            recorder.close()
    what = ", ".join(sorted(recorder.done))
    steps = recorder.about["train"]["steps"]
    say(f"wrote {options.out}: {what}, {steps} steps")
    for note in recorder.about["notes"]:
        say(f"note: {note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
