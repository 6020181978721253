"""Sources of Estimators: a whole program, or functions that are named."""

import contextlib
import importlib
import os
import runpy
import sys
from typing import Any

import tensorflow as tf

from estimator2strategy.tools.golden.recorder.options import (
    RecordError,
    parts_of,
    record_parser,
    say,
    source_of,
)
from estimator2strategy.tools.golden.recorder.recorder import Calls, Limits, Recorder

tf1 = tf.compat.v1


class Stop(SystemExit):
    """Ends a program from within: all that can be recorded of it is."""


@contextlib.contextmanager
def patched(platform: Any, recorder: Any) -> Any:
    """While this lasts, what programs ask of the platform's Estimators is recorded."""
    undo = []
    for method, (what, replacement) in _replacements(recorder).items():
        for cls in {base for c in platform.classes for base in c.__mro__ if method in vars(base)}:
            original = vars(cls)[method]
            undo.append((cls, method, original))
            setattr(cls, method, _unless_active(recorder, what, original, replacement))
    final = platform.FinalExporter
    undo.append((final, "export", final.export))
    final.export = _at_any_step(final.export)
    try:
        yield
    finally:
        for cls, method, original in undo:
            setattr(cls, method, original)


def _unless_active(recorder: Any, what: Any, original: Any, replacement: Any) -> Any:
    """The original method while the recorder itself calls it, else the replacement."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (original if what in recorder.active else replacement)(self, *args, **kwargs)

    return call


def _once(recorder: Any, what: Any) -> None:
    """Ends the program if this is done already, or cannot be done any more."""
    trained = what == "train" or "train" in recorder.done | recorder.active
    if what in recorder.done or not trained or recorder.parts <= recorder.done:
        raise Stop(0)


def _replacements(recorder: Any) -> Any:
    """Method of an Estimator -> (what it does, the function that records it)."""

    def train(
        self: Any,
        input_fn: Any,
        hooks: Any = None,
        steps: Any = None,
        max_steps: Any = None,
        saving_listeners: Any = None,
    ) -> Any:
        _once(recorder, "train")
        tf1.gfile.MakeDirs(self.model_dir)  # as training does: programs write results there
        recorder.train(self, input_fn, hooks, saving_listeners, most=steps or max_steps)
        return self

    def evaluate(
        self: Any,
        input_fn: Any,
        steps: Any = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        name: Any = None,
    ) -> Any:
        _once(recorder, "evaluate")
        return recorder.evaluate(self, input_fn, most=steps, hooks=hooks, name=name)

    def predict(
        self: Any,
        input_fn: Any,
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        yield_single_examples: Any = True,
    ) -> Any:
        _once(recorder, "predict")
        arguments = {}  # that ask for something else than all predictions, one by one
        if predict_keys is not None:
            arguments["predict_keys"] = predict_keys
        if not yield_single_examples:
            arguments["yield_single_examples"] = yield_single_examples
        return iter(recorder.predict(self, input_fn, hooks, **arguments))

    def export(
        self: Any, export_dir_base: Any, serving_input_receiver_fn: Any, *args: Any, **kwargs: Any
    ) -> Any:
        _once(recorder, "export")
        path = recorder.export(self, serving_input_receiver_fn)
        base = tf.compat.as_str_any(export_dir_base)
        if base.startswith(self.model_dir):  # an exporter's: it lists its older exports next
            tf1.gfile.MakeDirs(base)
        return path.encode()

    return {
        "train": ("train", train),
        "evaluate": ("evaluate", evaluate),
        "predict": ("predict", predict),
        "export_saved_model": ("export", export),
        "export_savedmodel": ("export", export),
    }


def _at_any_step(export: Any) -> Any:
    """A recording ends long before max_steps, and wants a FinalExporter's export all the same."""

    def exported(
        self: Any,
        estimator: Any,
        export_path: Any,
        checkpoint_path: Any,
        eval_result: Any,
        is_the_final_export: Any,
    ) -> Any:
        return export(self, estimator, export_path, checkpoint_path, eval_result, True)

    return exported


class Platform:
    """The Estimators of the TensorFlow that is installed, and how its programs are run."""

    def __init__(self) -> None:
        estimator = getattr(tf1, "estimator", None) or getattr(tf, "estimator", None)
        if estimator is None:
            raise RecordError(
                f"TensorFlow {tf.__version__} has no Estimator; run this where the program ran "
                "until now, or `e2s record` here"
            )
        for package in ("tensorflow_estimator.python.estimator", "tensorflow.contrib.tpu.python"):
            try:
                tpu = importlib.import_module(package + ".tpu.tpu_estimator")
                config = importlib.import_module(package + ".tpu.tpu_config")
                break
            except ImportError:
                continue
        self.Estimator, self.RunConfig = estimator.Estimator, estimator.RunConfig
        self.TPUEstimator, self.TPURunConfig = tpu.TPUEstimator, config.RunConfig
        self.FinalExporter = estimator.FinalExporter
        self.classes = {tf.estimator.Estimator, estimator.Estimator, tpu.TPUEstimator}

    def calls(self) -> Any:
        base = self.Estimator
        export = getattr(base, "export_saved_model", None) or base.export_savedmodel
        return Calls(*map(_call_of, ("train", "evaluate", "predict", export.__name__)))

    def run(self, argv: Any) -> None:
        """Runs a program as `python argv...` would, `python -m module ...` too."""
        if argv[0] == "-m":
            sys.argv, sys.path[0] = list(argv[1:]), os.getcwd()
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
            return
        sys.argv = list(argv)
        sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")

    def load(self, target: Any) -> Any:
        """The object of a target; see the function `load`."""
        return load(target, self.module)

    def module(self, name: Any) -> Any:
        return module_of(name)


def load(target: str, module: Any = None) -> Any:
    """The object of `package.module:name`, or of `file.py:name`.

    Raises:
        RecordError: There is no such file, module or name.
    """
    place, _, name = target.rpartition(":")
    if not place:
        raise RecordError(f"{target!r} is not of the form module:function")
    try:
        loaded = (module or module_of)(place)
    except ImportError as error:
        raise RecordError(f"{target}: {error}") from error
    if not hasattr(loaded, name):
        raise RecordError(f"{place} has no {name!r}")
    return getattr(loaded, name)


def module_of(name: Any) -> Any:
    """Imports `package.module`, found from the working directory too, or `file.py`."""
    if name.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
        name = os.path.basename(name)[:-3]
    elif "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)


def _call_of(method: Any) -> Any:
    return lambda estimator, *args, **kwargs: getattr(estimator, method)(*args, **kwargs)


def record_functions(platform: Any, recorder: Any, source: Any) -> None:
    """Records what `source` names: a model_fn or an Estimator, and input_fns."""
    if source["estimator"]:
        estimator = platform.load(source["estimator"])()
    else:
        estimator = _estimator_of(platform, source)
    inputs = {"train": platform.load(source["input"])}
    for mode in ("eval", "predict"):
        given = source[mode + "_input"]
        inputs[mode] = platform.load(given) if given else inputs["train"]
    recorder.train(estimator, inputs["train"])
    others: Any = {
        "evaluate": lambda: recorder.evaluate(estimator, inputs["eval"]),
        "predict": lambda: recorder.predict(estimator, inputs["predict"]),
    }
    if source["serving"]:
        others["export"] = lambda: recorder.export(estimator, platform.load(source["serving"]))
    for part, call in others.items():
        if part in recorder.parts:
            try:
                call()
            except Exception as error:  # whatever the program's functions raise
                recorder.leave_out(part, error)


def _estimator_of(platform: Any, source: Any) -> Any:
    model_fn = platform.load(source["model_fn"])
    params, size = source["params"], source["batch_size"]
    if size is None:
        return platform.Estimator(
            model_fn, config=platform.RunConfig(tf_random_seed=1), params=params
        )
    config = platform.TPURunConfig(tf_random_seed=1)
    return platform.TPUEstimator(
        model_fn,
        config=config,
        params=params,
        use_tpu=False,
        train_batch_size=size,
        eval_batch_size=size,
        predict_batch_size=size,
    )


def record_program(platform: Any, recorder: Any, argv: Any) -> None:
    """Runs a program until it has trained, and then as long as there is something to record.

    Raises:
        RecordError: It is not there, or does not train.
    """
    is_module = argv[0] == "-m"
    name = " ".join(argv[: 1 + is_module])
    if name == "-m" or not (is_module or os.path.isfile(name)):
        raise RecordError("-m needs a module" if is_module else f"there is no file {name}")
    with patched(platform, recorder):
        try:
            platform.run(argv)
        except SystemExit as end:
            if end.code and not isinstance(end, Stop):
                how = "" if isinstance(end.code, str) else "exit code "
                error = RecordError(f"{name} ended with {how}{end.code}")
                error.__cause__ = end
                if "train" not in recorder.done:
                    raise error from end
                recorder.leave_out(name, error)
        except Exception as error:  # whatever the program raises
            recorder.leave_out(name, error)
    if "train" not in recorder.done:
        raise RecordError(f"{name} never called train")


def record(platform: Any, recorder: Any, source: Any) -> None:
    """Records what `source` names, by one way or the other."""
    if "program" in source:
        record_program(platform, recorder, source["program"])
    else:
        record_functions(platform, recorder, source)


def main(argv: Any = None, platform: Any = Platform, prog: Any = "record.py") -> Any:
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
