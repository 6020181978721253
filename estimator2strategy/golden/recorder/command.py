"""The command line of a recording."""

import argparse
import json
import os
import sys

from estimator2strategy.golden.recorder.folder import RecordError, say
from estimator2strategy.golden.recorder.programs import Platform, record_functions, record_program
from estimator2strategy.golden.recorder.recorder import Limits, Recorder


def add_source(parser):
    """The arguments that say what to record."""
    parser.add_argument("model_fn", nargs="?", help="module:function or file.py:function")
    parser.add_argument("--estimator", help="in its place: a function that returns an Estimator")
    parser.add_argument("--input", metavar="INPUT_FN", help="module:function")
    parser.add_argument("--eval_input", metavar="INPUT_FN", help="by default --input")
    parser.add_argument("--predict_input", metavar="INPUT_FN", help="by default --input")
    parser.add_argument("--serving", metavar="RECEIVER_FN", help="also export the model")
    parser.add_argument("--params", type=json.loads, help="hyperparameters, as JSON")
    parser.add_argument(
        "--batch_size", type=int, help="make a TPUEstimator (use_tpu=False) of this batch size"
    )
    parser.add_argument(
        "--program", nargs=argparse.REMAINDER, help="in place of all these: a program and its flags"
    )


def source_of(options):
    """What `add_source` was given, as JSON; `options` gets an error for what is missing."""
    if options.program:
        return {"program": options.program, "cwd": os.getcwd()}
    if not (options.model_fn or options.estimator) or not options.input:
        raise RecordError("give model_fn (or --estimator) and --input, or --program")
    names = [
        "model_fn",
        "estimator",
        "input",
        "eval_input",
        "predict_input",
        "serving",
        "params",
        "batch_size",
    ]
    return {name: getattr(options, name) for name in names}


def record(platform, recorder, source):
    """Records what `source` names, by one way or the other."""
    if "program" in source:
        record_program(platform, recorder, source["program"])
    else:
        record_functions(platform, recorder, source)


def main(argv=None, platform=Platform):
    """Records as the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(prog="e2s record", description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", default="golden", help="folder to write, by default golden")
    parser.add_argument("--steps", type=int, default=20, help="steps to train, by default 20")
    parser.add_argument("--eval_batches", type=int, default=10, help="at most; by default 10")
    parser.add_argument("--predict_batches", type=int, default=4, help="at most; by default 4")
    parser.add_argument("--checkpoint", help="start from this one, not from initial values")
    add_source(parser)
    options = parser.parse_args(argv)
    recorder = None
    try:
        if os.path.exists(os.path.join(options.out, "golden.json")):
            raise RecordError(f"{options.out} is there already; delete it first")
        out, source, here = os.path.abspath(options.out), source_of(options), platform()
        limits = Limits(options.steps, options.eval_batches, options.predict_batches)
        recorder = Recorder(here.calls(), limits, options.checkpoint)
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
