"""Makes the `Subject` that is asked for: imports functions, or runs a program up to `train`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from estimator2strategy.engine import legacy_code, patches
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.estimator import estimator as estimator_lib
from estimator2strategy.estimator.train_evaluate import TrainingExecutor
from estimator2strategy.legacy import importing
from estimator2strategy.legacy import run as run_command
from estimator2strategy.tools.check.levels.check_error import CheckError, attempted, of_program
from estimator2strategy.tools.check.levels.subject import Model, Subject, default_config
from estimator2strategy.tools.check.request import EXAMPLES_PER_CORE, MODES, Asked, Mode

# The arguments that input_fn may take.
_GIVEN = ("params", "config", "mode", "input_context")


def subject_of(asked: Asked) -> Any:
    """The Subject that is asked for.

    Raises:
        CheckError: Its functions cannot be found, or do not take what they are given; or the
            program ended before it trained.
    """
    if asked.program:
        return _from_program(asked)
    return _from_functions(asked)


# Functions by name.


def _from_functions(asked: Asked) -> Any:
    model_fn = function_of(asked.model, asked.facade)
    named = {target: function_of(target, asked.facade) for target in set(asked.inputs.values())}
    inputs = {mode: named[target] for mode, target in asked.inputs.items()}
    return of_functions(asked, model_fn, inputs, hyperparameters(asked))


def of_functions(
    asked: Asked, model_fn: Callable[..., Any], inputs: Mapping[Mode, Any], params: Any
) -> Any:
    """The Subject of functions that are there already.

    It is a TPUEstimator's if all of them take `params`, and `params` has no key that it would set.

    Raises:
        CheckError: There is no input_fn for a mode, or a batch size for an Estimator.
    """
    modes, missing = _modes(asked, inputs)
    if missing:
        raise CheckError(
            f"{asked.name}: there is no input_fn for {missing}. Give --input "
            "MODULE:input_fn for all modes, or --input eval=MODULE:eval_input_fn for one."
        )
    for input_fn in dict.fromkeys(inputs.values()):
        _check_input_fn(input_fn)
    for_tpu = all("params" in _arguments(f) for f in (model_fn, *inputs.values()))
    for_tpu = for_tpu and not {"batch_size", "context"} & set(_keys(params))
    size = asked.batch_size or EXAMPLES_PER_CORE * asked.cores
    sizes = dict.fromkeys((ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT), size)
    if not for_tpu and asked.batch_size is not None:
        raise CheckError(
            f"{asked.name}: --batch-size has no meaning here. It is given to functions that take "
            "`params` as a TPUEstimator's do; these make batches of their own."
        )
    model = Model(
        model_fn,
        params,
        attempted(asked.name, default_config),
        batch_sizes=sizes if for_tpu else None,
        for_tpu=for_tpu,
    )
    return _subject(asked, model, inputs, modes)


def _subject(asked: Asked, model: Any, inputs: Mapping[Mode, Any], modes: tuple[Mode, ...]) -> Any:
    return Subject(
        name=asked.name,
        model=model,
        inputs=inputs,
        modes=modes,
        cores=asked.cores,
        checkpoint=asked.checkpoint,
        root=asked.root,
        options=asked.options,
    )


def _modes(asked: Asked, inputs: Mapping[Mode, Any]) -> tuple[tuple[Mode, ...], str]:
    """The modes to check, and the names of those that have no input_fn."""
    modes = asked.modes or tuple(mode for mode in MODES if mode in inputs)
    return modes, ", ".join(mode for mode in modes if mode not in inputs)


def _check_input_fn(input_fn: Callable[..., Any]) -> None:
    """Raises CheckError if it needs an argument that Estimator does not give."""
    try:
        parameters = inspect.signature(input_fn).parameters.values()
    except (TypeError, ValueError):
        return
    positional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for parameter in parameters:
        needed = parameter.default is parameter.empty and parameter.kind not in positional
        if needed and parameter.name not in _GIVEN:
            raise CheckError(
                f"input_fn {location(input_fn)} takes {parameter.name!r}, which Estimator does not "
                f"give: it may take {', '.join(_GIVEN)}.\n"
                "  Name a function that returns what Estimator is given (functools.partial, a "
                "lambda in a module), or run the program with --program."
            )


def _keys(params: Any) -> list[str]:
    return list(params) if isinstance(params, Mapping) else list(getattr(params, "values", dict)())


def hyperparameters(asked: Asked) -> Any:
    """The `params` of the model that is asked for, read from where they are named."""
    if not isinstance(asked.params, str):
        return dict(asked.params)
    found = function_of(asked.params, asked.facade, of_any_kind=True)
    return attempted(asked.params, found) if callable(found) else found


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return argument_names(function)
    except (TypeError, ValueError):
        return ()


def function_of(target: str, facade: bool = True, *, of_any_kind: bool = False) -> Any:
    """The function that `MODULE:name` or `FILE.py:name` stands for.

    Args:
        target: The name.
        facade: True if the program's `tensorflow` is TF 1.15's.
        of_any_kind: True if it may be something else than a function.

    Raises:
        CheckError: There is no such module or function, or the module raised an error.
    """
    place, _, name = target.rpartition(":")
    module = _module(place, facade)
    if not hasattr(module, name):
        functions = [n for n, value in vars(module).items() if inspect.isfunction(value)]
        known = ", ".join(sorted(n for n in functions if not n.startswith("_")))
        raise CheckError(f"{target}: {place} has no {name!r}; its functions are: {known}")
    found = getattr(module, name)
    if not of_any_kind and not callable(found):
        raise CheckError(f"{target} is no function, but {type(found).__name__}")
    return found


def _module(place: str, facade: bool) -> Any:
    if not place.endswith(".py"):
        patches.noted("command's search path")
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        return _imported(place, facade)
    path = os.path.abspath(place)
    if not os.path.isfile(path):
        raise CheckError(f"{place}: no such file")
    folder = _package_root(path)
    patches.noted("command's search path")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = os.path.relpath(path, folder)[: -len(".py")].replace(os.sep, ".")
    return _imported(name, facade)


def _package_root(path: str) -> str:
    """The folder from which a file is imported: above the packages that it is in."""
    folder = os.path.dirname(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _imported(name: str, facade: bool) -> Any:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    except (Exception, SystemExit) as error:
        raise of_program(f"importing {name}", error) from error
    if spec is None:
        raise CheckError(
            f"there is no module {name!r} (in {os.getcwd()} or installed). Start the check where "
            "it can be imported, or give FILE.py:function"
        )
    if facade:
        _install(spec)
    return attempted(f"importing {name}", lambda: importlib.import_module(name))


def _install(spec: Any) -> None:
    """From here on modules of the program get TF 1.15's `tensorflow`."""
    scope = legacy_code.Scope(whole_program=True)
    if legacy_code.is_installed(spec.name):
        scope |= legacy_code.Scope(legacy=frozenset({spec.name.partition(".")[0]}))
    migrated = spec.origin is not None and legacy_code.is_migrated(spec.origin)
    importing.install(scope | legacy_code.Scope(graph_mode=not migrated))


# Whole programs.


class _Reached(BaseException):
    """The program got to `train` or the like; not an Exception, so that no program catches it."""


def _from_program(asked: Asked) -> Any:
    is_module = asked.program[0] == "-m"
    path, *arguments = asked.program[is_module:]
    found: dict[str, Any] = {}
    with _intercepted(found):
        try:
            run_command.run(
                run_command.ProgramToRun(path, is_module, tuple(arguments)),
                emulate_tpu_cores=asked.cores,
            )
        except _Reached:
            pass
        except (Exception, SystemExit) as error:
            raise of_program(path, error) from error
    if not found:
        raise CheckError(
            f"{path} ended without a call of train, evaluate, predict or train_and_evaluate, so "
            "there is no estimator to check. Give the flags that make it train, after its name."
        )
    inputs = found["inputs"]
    modes, missing = _modes(asked, inputs)
    if missing:
        raise CheckError(
            f"{path} was stopped at its first call, {found['call']}, which has no input_fn for "
            f"{missing}. Leave --modes out, or run the program so that it gets there first."
        )
    return _subject(asked, _model_of(found["estimator"]), inputs, modes)


@contextlib.contextmanager
def _intercepted(found: dict[str, Any]) -> Iterator[None]:
    """Calls of `train` and the like end the program; what they were given is in `found`."""

    def note(call: str, estimator: Any, inputs: Mapping[Mode, Any]) -> None:
        found.update(call=call, estimator=estimator, inputs=dict(inputs))
        raise _Reached

    def method(name: str, mode: Mode) -> Callable[..., Any]:
        def stop(self: Any, input_fn: Any, *args: Any, **kwargs: Any) -> None:
            note(name, self, {mode: input_fn})

        return stop

    def run(self: Any) -> None:
        inputs = {Mode.TRAIN: self._train_spec.input_fn}
        if self._eval_spec:
            inputs[Mode.EVAL] = self._eval_spec.input_fn
        note("train_and_evaluate", self._estimator, inputs)

    stops = {
        (estimator_lib.Estimator, "train"): method("train", Mode.TRAIN),
        (estimator_lib.Estimator, "evaluate"): method("evaluate", Mode.EVAL),
        (estimator_lib.Estimator, "predict"): method("predict", Mode.PREDICT),
        (TrainingExecutor, "run"): run,  # of `train_and_evaluate`, whatever the task
    }
    before = {(owner, name): getattr(owner, name) for owner, name in stops}
    for (owner, name), stop in stops.items():
        setattr(owner, name, stop)
    try:
        yield
    finally:
        for (owner, name), function in before.items():
            setattr(owner, name, function)


def _model_of(estimator: Any) -> Any:
    """The parts that make an estimator like this one, on other devices."""
    parts = estimator.e2s_parts
    of_tpu = vars(parts.tpu) if parts.tpu else {}
    model_fn, params, config = parts.program.model_fn, estimator.params, estimator.config
    return Model(model_fn, params, config, for_tpu=parts.tpu is not None, **of_tpu)
