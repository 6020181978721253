"""The optimizers of a model_fn as functions that make Keras's, and their learning rates.

A model_fn with several optimizers, each with its own loss and variables: a `train_step`.
"""

from __future__ import annotations

import ast
from typing import Any

from estimator2strategy.tools.migrate import core_sums
from estimator2strategy.tools.migrate.model_class import values
from estimator2strategy.tools.migrate.model_class.model_fn_parts import (
    names_in,
    reads_of,
    writes_of,
)
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments
from estimator2strategy.tools.migrate.model_class.wrapping import joined

STRATEGY = '''
def make_strategy(use_tpu, resolver=None):
    """A strategy for the cores of a TPU, or for this machine."""
    if not use_tpu:
        return tf.distribute.get_strategy()
    resolver = resolver or tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
'''
CORES = "cores = tf.distribute.get_strategy().num_replicas_in_sync"
# A mean over a core's examples, which is not divided by the number of cores.
_UNDIVIDED = ("weighted_mean(", "reduce_mean(", "ops.mean(")


def check_loss(node: Any, lines: Any) -> None:
    """Raises StaysError for a loss that Keras does not divide among cores.

    Losses of keras.losses are, in a strategy's scope; the gradients are added up.
    """
    text = "\n".join(lines)
    if "keras.losses." not in text or any(part in text for part in _UNDIVIDED):
        message = "take the loss from tf.losses, without weights: Keras divides it among the cores"
        raise StaysError(node, message)


def divided(lines: Any) -> Any:
    """The lines of a loss, with what layers add divided by the number of cores."""
    written = [line.replace("sum(self.losses)", "sum(self.losses) / cores") for line in lines]
    return [CORES, *written] if written != lines else lines


_SUMMED = '''class Summed{0}(keras.optimizers.{0}):
    """Sums the gradients of an id that stands twice in a batch."""

    def apply(self, grads, trainable_variables=None):
{1}        # A sum is dense.
        grads = [None if grad is None else keras.ops.add(grad, 0.0) for grad in grads]
        super().apply(grads, trainable_variables)
'''
_CLIPPED = """\
        # Its norm is taken before they are added up.
        grads, _ = tf.clip_by_global_norm(grads, {})
"""
_MOMENTUM = '''class Momentum(keras.optimizers.SGD):
    """Accumulates gradients without the learning rate."""

    def update_step(self, gradient, variable, learning_rate):
        accumulated = self.momentums[self._get_variable_index(variable)]
        self.assign(accumulated, self.momentum * accumulated + gradient)
        change = accumulated
        if self.nesterov:
            change = gradient + self.momentum * accumulated
        self.assign_sub(variable, learning_rate * change)
'''
_MOMENTUM_OF_TF = "tf.train.MomentumOptimizer"
_MOMENTUM_ARGUMENTS = ("learning_rate", "momentum", "use_locking", "name", "use_nesterov")
# A function that clips gradients -> the argument of Keras's optimizers, and where the limit stands.
_CLIPS = {
    "tf.clip_by_global_norm": ("global_clipnorm", "clip_norm", 1),
    "tf.clip_by_norm": ("clipnorm", "clip_norm", 1),
    "tf.clip_by_value": ("clipvalue", "clip_value_max", 2),
}
# Other functions that gradients may pass on their way into an optimizer of Keras.
_PASSED_ON = {
    *("tf.gradients", "tf.trainable_variables", "tf.group", "tf.no_op"),
    *("builtins.zip", "builtins.list", "zip", "list"),
}
# Keras divides the losses among cores, and adds up the gradients.
_MEAN = ".gradient_aggregator = mean_over_cores"
_SCHEDULE = '''class {name}(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of each step."""
{init}
    def __call__(self, {step}):
{lines}
'''
_KEEPS = """
    def __init__(self, params):
        super().__init__()
        self.params = params
"""


class OptimizerCode:
    """Writes `make_optimizer`.

    Args:
        model: The `ModelClass`.

    Attributes:
        above: The classes that it needs.
        several: The `SeveralOptimizers`; None for one.
        made: The lines of the model's `__init__` that make all but one of several.
    """

    def __init__(self, model: Any):
        self._model, self._module = model, model.module
        self.above: list[Any] = []
        self._options: dict[Any, Any] = {}
        self._lines: list[Any] = []
        self.several: Any = None
        self.made: list[Any] = []
        self._in_schedule: Any = ()
        self._steps: set[Any] = set()
        self._rewriter = Rewriter(
            model.module, (values.schedule, self._momentum, self._class, *values.VALUES)
        )

    def text(self) -> Any:
        """The lines of the function."""
        made = self._find_optimizers()
        returned = made.get(self.several.main) if self.several else None
        for statement in self._model.parts.optimizer:
            call = getattr(statement, "value", None)
            name = self._rewriter.called(call) or ""
            if statement in self._in_schedule:
                continue
            if name in values.STEPS:
                self._steps |= writes_of(statement)
            elif self._is_optimizer(name):
                self._lines += self._model._comments(statement)
                returned = returned or call
            elif self.several and self.several.is_on_gradients(statement):
                continue
            elif not self._is_on_gradients(statement):
                rate = self._of_rate(statement)
                self._lines += rate
        if returned is None:
            raise StaysError(self._model.function, "its optimizer is none of Keras (stage 5)")
        text = self._optimizer(returned)
        takes = "params" if "params" in self._model.takes else ""
        head = [f"def make_optimizer({takes}):", '    """The optimizer, and its learning rate."""']
        for name, call in made.items() if self.several else ():
            if call is not returned:
                self.made.append(f"self.{name} = {self._other(call)}")
        lines = self._of_names([*self._lines, f"return {text}"])
        return [*head, *self._model._block(lines, "    ")]

    def _find_optimizers(self) -> Any:
        """Name -> the call that makes it; notes if there are several."""
        made: dict[Any, Any] = {}
        for statement in self._model.parts.optimizer:
            call = getattr(statement, "value", None)
            if self._is_optimizer(self._rewriter.called(call) or ""):
                made |= dict.fromkeys(writes_of(statement), call)
        if len(made) > 1:
            self.several = SeveralOptimizers(self._model, made)
        return made

    def _other(self, call: Any) -> Any:
        """The text of an optimizer that the model makes itself."""
        text = joined(self._rewriter.text(call))
        written = set().union(*(writes_of(s) for s in self._model.parts.optimizer))
        if names_in(text) & written:
            raise StaysError(call, "write the learning rate of this optimizer into its call")
        return text

    def _is_optimizer(self, name: Any) -> Any:
        is_keras = name.startswith("tf.keras.optimizers.") and "schedules" not in name
        return is_keras or name == _MOMENTUM_OF_TF

    # Gradients.

    def _is_on_gradients(self, statement: Any) -> Any:
        """True for a statement that applies gradients; notes how they are clipped."""
        text = self._module.written(statement)
        if ".iterations = " in text or _MEAN in text:
            return True
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        called = [self._rewriter.called(call) or _last(call) for call in calls]
        if set(called) & set(core_sums.WRAPPERS):
            if "reduction" in text:
                raise StaysError(
                    statement, "Keras takes the mean over the cores: write the loss so"
                )
            return True
        touches = {"tf.gradients", *_CLIPS, "tf.group", "apply_gradients", "minimize"}
        if not touches & set(called):
            return called == ["tf.trainable_variables"]
        for call, name in zip(calls, called, strict=True):
            if name in _CLIPS:
                option, argument, place = _CLIPS[name]
                given = {k.arg: k.value for k in call.keywords}
                limit = given.get(argument) or call.args[place]
                self._options[option] = joined(self._rewriter.text(limit))
            elif name not in (*_PASSED_ON, "apply_gradients", "minimize"):
                raise StaysError(call, "write what is done to gradients in train_step")
        return True

    # The optimizer.

    def _optimizer(self, call: Any) -> Any:
        text = joined(self._rewriter.text(call))
        if self._options:
            more = ", ".join(f"{name}={value}" for name, value in self._options.items())
            text = f"{text[:-1]}, {more})"
        return text

    def _momentum(self, node: Any, rewriter: Any) -> Any:
        """MomentumOptimizer, which multiplies the rate into each step only."""
        if rewriter.called(node) != _MOMENTUM_OF_TF:
            return None
        if self._model.is_looking_up():
            raise StaysError(node, "momentum of Keras moves rows that nobody looks up")
        given = arguments(node, _MOMENTUM_ARGUMENTS)
        texts = {
            n: rewriter.text(v) for n, v in given.items() if n in ("learning_rate", "momentum")
        }
        if "use_nesterov" in given:
            texts["nesterov"] = rewriter.text(given["use_nesterov"])
        self.above.append(_MOMENTUM)
        return f"Momentum({', '.join(f'{n}={v}' for n, v in texts.items())})"

    def _class(self, node: Any, rewriter: Any) -> Any:
        name = rewriter.name(node) if isinstance(node, ast.Attribute) else None
        kind = (name or "").rpartition(".")[2]
        is_optimizer = name and name.startswith("tf.keras.optimizers.") and "sched" not in name
        if is_optimizer and self._model.is_looking_up() and kind in values.SUMMED:
            norm = self._options.pop("global_clipnorm", None)
            self.above.append(_SUMMED.format(kind, _CLIPPED.format(norm) if norm else ""))
            return f"Summed{kind}"
        return None

    # The learning rate.

    def _of_rate(self, statement: Any) -> Any:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            raise StaysError(statement, "write this beside fit: it is no part of an optimizer")
        lines = self._model._written(statement, self._rewriter)
        if not any(self._reads_step(line) for line in lines):
            return lines
        return self._schedule(statement)

    def _reads_step(self, line: Any) -> Any:
        return names_in(line) & self._steps or "get_global_step" in line

    def _schedule(self, last: Any) -> Any:
        """A class for a rate that is computed of the step; the statements so far go into it."""
        statements = self._model.parts.optimizer
        rate = writes_of(last)
        before = statements[: statements.index(last) + 1]
        # All that is computed of the step and then read by the optimizer.
        later = statements[statements.index(last) + 1 :]
        taken = list(before)
        for one in later:
            call = self._rewriter.called(getattr(one, "value", None)) or ""
            if self._is_optimizer(call):
                break
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                taken.append(one)
                rate = writes_of(one)
        (name,) = rate
        step = min(self._steps) if self._steps else "step"
        rules = Rewriter(self._module, (self._step_of(step), self._kept, *values.VALUES))
        lines = []
        for one in taken:
            is_step = (self._rewriter.called(getattr(one, "value", None)) or "") in values.STEPS
            if not is_step and not self._is_on_gradients(one):
                lines += self._model._written(one, rules)
        lines = self._of_names([*lines, f"return {name}"], but={step})
        keeps = any("self.params" in line for line in lines)
        written = "\n".join(self._model._block(lines))
        text = _SCHEDULE.format(
            name="LearningRate", step=step, lines=written, init=_KEEPS if keeps else ""
        )
        self.above.append(text)
        self._lines = []
        self._in_schedule = taken
        return [f"{name} = LearningRate({'params' if keeps else ''})"]

    def _step_of(self, step: Any) -> Any:
        def rule(node: Any, rewriter: Any) -> Any:
            return step if rewriter.called(node) in values.STEPS else None

        return rule

    def _kept(self, node: Any, rewriter: Any) -> Any:
        is_params = isinstance(node, ast.Name) and node.id == "params"
        return "self.params" if is_params and isinstance(node.ctx, ast.Load) else None

    def _of_names(self, lines: Any, but: Any = ()) -> Any:
        """The lines, behind those of the model_fn's constants that they read."""
        read = set().union(*map(names_in, lines), set()) - set(but)
        kept: list[Any] = []
        rewriter = Rewriter(self._module, values.VALUES)
        for statement in reversed(self._model.parts.forward):
            if self._model.is_constant(statement) and writes_of(statement) & read:
                read |= reads_of(statement)
                kept = [*self._model._written(statement, rewriter), *kept]
        return [*kept, *lines]


def _last(call: Any) -> Any:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


_ALTERNATES = "write the train_step of optimizers that wait for one another"
_TOGETHER = "# All gradients are taken before the first variable moves."
_TRAIN_STEP = '''
    def build_optimizers(self):
        """Makes the optimizers' variables."""
{builds}

    def train_step(self, data):
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            y_pred = self(x, training=True)
            {losses} = self.compute_losses(x, y, y_pred)
{comments}
        steps = [
{steps}
        ]
        gradients = [tape.gradient(target, variables) for _, target, variables in steps]
        for (optimizer, _, variables), of_step in zip(steps, gradients):
            optimizer.apply(of_step, variables)
        return self.compute_metrics(x, y, y_pred)
'''


class SeveralOptimizers:
    """The optimizers of a model_fn, with their losses and variables.

    Args:
        model: The `ModelClass`.
        made: Name -> the call that makes the optimizer.

    Attributes:
        main: The name of the one that counts the steps.
        losses: The names of their losses.
    """

    def __init__(self, model: Any, made: Any):
        self._model, self._made = model, made
        self._statements = model.parts.optimizer
        self._values = {
            statement.targets[0].id: statement.value
            for statement in self._statements
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
        self._found: dict[Any, Any] = {}
        for statement in self._statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and _last_of_all(node) == "apply_gradients":
                    self._add(statement, node)
        counting = [name for name in made if self._counts(name)]
        self.main = (counting or list(made))[0]
        self.losses = list(dict.fromkeys(loss for loss, _ in self._found.values()))
        if set(self._found) != set(made):
            raise StaysError(model.function, "apply the gradients of each optimizer once")

    def _counts(self, name: Any) -> bool:
        text = (self._model.module.written(s) for s in self._statements)
        return any(one.startswith(f"{name}.iterations = ") for one in text)

    def _add(self, statement: Any, call: Any) -> None:
        optimizer = getattr(call.func.value, "id", None)
        if optimizer not in self._made or optimizer in self._found:
            raise StaysError(call, "apply the gradients of each optimizer once")
        self._check_order(statement)
        given = self._value(call.args[0])
        reading = self._model.reading
        gradients: Any = [n for n in ast.walk(given) if reading.called(n) == "tf.gradients"]
        of_loss: Any = gradients[0].args[:2] if len(gradients) == 1 else ()
        if len(of_loss) != 2 or not isinstance(of_loss[0], ast.Name):
            raise StaysError(call, "write what is done to gradients in train_step")
        loss, variables = of_loss
        self._found[optimizer] = (loss.id, self._variables(call, variables))

    def _value(self, node: Any) -> Any:
        return self._values.get(node.id, node) if isinstance(node, ast.Name) else node

    def _check_order(self, statement: Any) -> None:
        """Raises StaysError for an update that waits for another."""
        trained = set()
        for one in self._statements:
            if any(_last_of_all(n) == "apply_gradients" for n in ast.walk(one)):
                trained |= writes_of(one)
        while statement is not self._model.function:
            statement = statement.parent
            if isinstance(statement, ast.With):
                nodes = (n for item in statement.items for n in ast.walk(item))
                if any(isinstance(n, ast.Name) and n.id in trained for n in nodes):
                    raise StaysError(statement, _ALTERNATES)

    def _variables(self, call: Any, node: Any) -> str:
        node = self._value(node)
        if self._model.reading.called(node) != "tf.trainable_variables":
            raise StaysError(call, "give each optimizer tf.trainable_variables of a scope")
        if not node.args:
            return "self.trainable_variables"
        scope = getattr(node.args[0], "value", None)
        made = self._model.layers.made
        layers = [name for name in made if name == scope or name.startswith(f"{scope}_")]
        if not layers:
            raise StaysError(call, f"no layer of the model is in the scope {scope}")
        if len(layers) == 1:
            return f"self.{layers[0]}.trainable_variables"
        return f"[{', '.join(f'*self.{name}.trainable_variables' for name in layers)}]"

    def is_on_gradients(self, statement: Any) -> bool:
        """True for a statement of the gradients, and of what applies them."""
        taken = {name for name, value in self._values.items() if self._takes_gradients(value)}
        read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        applies = any(_last_of_all(n) == "apply_gradients" for n in ast.walk(statement))
        return bool(applies or writes_of(statement) & taken or read & taken)

    def _takes_gradients(self, value: Any) -> bool:
        called = self._model.reading.called
        return any(called(node) == "tf.gradients" for node in ast.walk(value))

    def attribute(self, name: Any) -> Any:
        """The attribute of the model that an optimizer is."""
        return "self.optimizer" if name == self.main else f"self.{name}"

    def text(self) -> Any:
        """The methods of the model."""
        builds, steps = [], []
        for name, (loss, variables) in self._found.items():
            builds.append(f"{self.attribute(name)}.build({variables})")
            steps.append(f"({self.attribute(name)}, {loss}, {variables}),")
        block = self._model._block
        above = [s for s in self._statements if self.is_on_gradients(s)]
        comments = [comment for s in above for comment in self._model._comments(s)]
        return _TRAIN_STEP.format(
            builds="\n".join(block(builds)),
            comments="\n".join(block(dict.fromkeys([*comments, _TOGETHER]))),
            steps="\n".join(block(steps, " " * 12)),
            losses=", ".join(["loss", *(loss for loss in self.losses if loss != "loss")]),
        ).splitlines()

    def returned(self, loss: Any) -> str:
        """The results of `compute_losses`."""
        return ", ".join([loss, *(name for name in self.losses if name != "loss")])


def _last_of_all(node: Any) -> Any:
    function = getattr(node, "func", None)
    return function.attr if isinstance(function, ast.Attribute) else None
