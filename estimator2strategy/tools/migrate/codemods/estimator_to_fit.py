"""An Estimator's `train`, `evaluate` and `predict` become `fit` and its kin of a LegacyModel."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.module import Module

_ESTIMATORS = (
    "tf.estimator.Estimator",
    "tf.estimator.tpu.TPUEstimator",
    "tf.contrib.tpu.TPUEstimator",
)
# The arguments that the loop takes, in their order, as the Estimators do.
_ARGUMENTS = (
    *("model_fn", "model_dir", "config", "params", "use_tpu"),
    *("train_batch_size", "eval_batch_size", "predict_batch_size"),
)
# Method -> the arguments that it has in the loop too; `hooks` become `callbacks`.
_METHODS = {
    "train": ("input_fn", "hooks", "steps", "max_steps"),
    "evaluate": ("input_fn", "steps", "hooks", "checkpoint_path", "name"),
    "predict": ("input_fn", "predict_keys", "hooks", "checkpoint_path"),
}
# Methods that the loop has with the same arguments.
_OF_CHECKPOINTS = (
    *("export_saved_model", "export_savedmodel", "latest_checkpoint"),
    *("get_variable_names", "get_variable_value"),
)
_SPECS = {
    "tf.estimator.TrainSpec": ("input_fn", "max_steps"),
    "tf.estimator.EvalSpec": (
        *("input_fn", "steps", "name", "exporters"),
        *("start_delay_secs", "throttle_secs"),
    ),
}
_TOGETHER = "tf.estimator.train_and_evaluate"
_NAME = "KerasLoop"
_IMPORT = ("estimator2strategy", _NAME, None)
# Options of a RunConfig and of a TPUConfig -> what a loop has in their place.
_WITHOUT = {
    "iterations_per_loop": "KerasLoop(steps_per_execution=...)",
    "keep_checkpoint_every_n_hours": "nothing",
    "save_checkpoints_secs": "save_checkpoints_steps",
    "session_config": "tf.config",
}
_CONFIGS = (
    "tf.estimator.RunConfig",
    "tf.estimator.tpu.RunConfig",
    "tf.estimator.tpu.TPUConfig",
    "tf.contrib.tpu.RunConfig",
    "tf.contrib.tpu.TPUConfig",
)
# Options with which an Estimator trains otherwise than a loop.
_TRAINS_OTHERWISE = (
    "train_distribute",
    "eval_distribute",
    "experimental_distribute",
    "device_fn",
    "num_cores_per_replica",
    "input_partition_dims",
)
# Fields of a spec that a Session ran; LegacyModel does not run them.
_OF_SPEC = (
    "host_call",
    "training_hooks",
    "training_chief_hooks",
    "evaluation_hooks",
    "prediction_hooks",
)


@codemod("estimator-to-fit", stage=7, tier=SafetyTier.REVIEW, words=("Estimator", _NAME))
def find(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    made = list(module.calls(*_ESTIMATORS))
    if made:
        loops = _Loops(module, made)
        reasons = list(dict.fromkeys(loops.reasons()))
        for call in made if reasons else ():
            yield Todo(call.node, f"the Estimator stays: {'; '.join(reasons)}")
        if not reasons:
            yield from loops.changes()
        return
    if any(call.last == _NAME for call in module.calls()):
        yield from _left_out(module)


def _left_out(module: Module) -> Iterator[Any]:
    """Marks the options of the Estimator that the loop does not have."""
    for call in module.calls(*_CONFIGS):
        said = [f"{k.arg} is {_WITHOUT[k.arg]}" for k in call.node.keywords if k.arg in _WITHOUT]
        if said:
            yield Todo(call.node, f"beside fit, {'; '.join(said)}")


class _Loops:
    """The Estimators of a file, and what is done with them."""

    def __init__(self, module: Module, made: Any):
        self.module, self.made = module, made
        self.names = _names_of(made, module.source)
        self.used = [
            call
            for call in module.source.calls
            if isinstance(call.node.func, ast.Attribute)
            and ast.unparse(call.node.func.value) in self.names
        ]
        self.together = list(module.calls(_TOGETHER))

    def reasons(self) -> Iterator[Any]:
        """Why they have to stay, if so."""
        if not self._is_eager():
            yield "change the import first (--stage 2): under `e2s run` a program is in graph mode"
        if self.module.facts.has_sessions:
            yield "there are Sessions beside it"
        for call in self.made:
            yield from self._of_arguments(call)
        for call in self.used:
            yield from self._of_method(call)
        for call in self.module.calls(*_SPECS):
            known = _SPECS[str(self.module.name(call.node.func, call.scope))]
            yield from _others(call, known, "a callback, or what stands behind fit, has to do it")
        for call in self.module.calls(*_CONFIGS):
            for keyword in call.node.keywords:
                if keyword.arg in _TRAINS_OTHERWISE:
                    yield f"{keyword.arg} trains it otherwise than fit"
        for argument in _OF_SPEC:
            if argument in self._of_specs():
                yield f"fit does not run the {argument} of a spec: write a callback"
        for call in self.together:
            if len(call.node.args) != 3 or ast.unparse(call.node.args[0]) not in self.names:
                yield "train_and_evaluate is given it in a way that is not understood"

    def _of_specs(self) -> Any:
        """The arguments of the file's specs as they are now; of the program's, if it has none."""
        specs = [c for c in self.module.source.calls if c.last.endswith("EstimatorSpec")]
        own = {keyword.arg for call in specs for keyword in call.node.keywords}
        return own if specs else self.module.facts.of_specs

    def _is_eager(self) -> Any:
        known = self.module.source.resolve(ast.Name(str(self.module.tf)), self.module.source.scope)
        return known == "estimator2strategy.tf1"

    def _of_arguments(self, call: Any) -> Iterator[Any]:
        if call.is_open:
            yield "its arguments cannot be seen"
        yield from _others(call, _ARGUMENTS, "LegacyModel has none")

    def _of_method(self, call: Any) -> Iterator[Any]:
        if call.last in _OF_CHECKPOINTS:
            return
        known = _METHODS.get(call.last)
        if known is None:
            yield f"{call.last} is called on it"
            return
        yield from _others(call, known, "fit has none")
        hooks = call.argument("hooks", known.index("hooks"))
        if hooks is not None and self._callbacks(hooks) is None:
            yield "its hooks are not all made in the call, of classes with a callback beside them"

    def _callbacks(self, hooks: Any) -> Any:
        """Node of a hook's class -> the callback's; None if one is not known."""
        if not isinstance(hooks, (ast.List, ast.Tuple)):
            return None
        callbacks = {}
        for hook in hooks.elts:
            if not isinstance(hook, ast.Call) or not isinstance(hook.func, ast.Name):
                return None
            callback = f"{hook.func.id}Callback"
            if callback not in self.module.source.scope.bindings:
                return None
            callbacks[hook.func] = callback
        return callbacks

    def changes(self) -> Iterator[Any]:
        module = self.module
        for call in self.made:
            yield self._renamed(call)
        for call in self.used:
            if call.last in _OF_CHECKPOINTS:
                continue
            hooks = call.argument("hooks", _METHODS[call.last].index("hooks"))
            if hooks is not None:
                for node, callback in self._callbacks(hooks).items():
                    yield module.replace(node, callback)
                if any(keyword.arg == "hooks" for keyword in call.node.keywords):
                    yield module.rename_keyword(call, "hooks", "callbacks")
        for call in self.together:
            estimator, *specs = map(module.written, call.node.args)
            text = f"{estimator}.train_and_evaluate({', '.join(specs)})"
            yield module.replace(call.node, text)

    def _renamed(self, call: Any) -> Any:
        """The loop in an Estimator's place; TPUEstimator has use_tpu=True where it is not said."""
        module = self.module
        if call.last == "Estimator" or call.argument("use_tpu", 4) is not None:
            return module.replace(call.node.func, _NAME, [_IMPORT])
        text = module.written_with(call.node, {call.node.func: _NAME})
        given = text.removesuffix(")").rstrip()
        comma = "" if given.endswith(("(", ",")) else ","
        return module.replace(call.node, f"{given}{comma} use_tpu=True)", [_IMPORT])


def _names_of(made: Any, source: Any) -> Any:
    """The names and attributes to which the Estimators are assigned."""
    names, functions = set(), set()
    for call in made:
        names |= _targets(call.node)
        if isinstance(call.node.parent, ast.Return):
            functions.add(call.scope.name.rpartition(".")[2])
    for call in source.calls:  # `estimator = build_estimator(...)`
        if isinstance(call.node.func, ast.Name) and call.node.func.id in functions:
            names |= _targets(call.node)
    return names


def _targets(node: Any) -> Any:
    parent = node.parent
    return {ast.unparse(t) for t in parent.targets} if isinstance(parent, ast.Assign) else set()


def _others(call: Any, known: Any, why: Any) -> Iterator[Any]:
    """The arguments of a call beside the known ones."""
    for keyword in call.node.keywords:
        if keyword.arg is not None and keyword.arg not in known:
            yield f"it is given {keyword.arg}: {why}"
    if len(call.node.args) > len(known):
        yield f"it is given more than {len(known)} arguments"
