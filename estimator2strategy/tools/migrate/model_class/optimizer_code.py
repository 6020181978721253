"""The optimizer of a model_fn as a function that makes one of Keras, and its learning rate."""

import ast

from estimator2strategy.tools.migrate import core_sums
from estimator2strategy.tools.migrate.model_class import names, values
from estimator2strategy.tools.migrate.model_class.model_fn_parts import (
    names_in,
    reads_of,
    writes_of,
)
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments
from estimator2strategy.tools.migrate.model_class.several_optimizers import SeveralOptimizers
from estimator2strategy.tools.migrate.model_class.wrapping import joined

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

    def __init__(self, model):
        self._model, self._module = model, model.module
        self.above, self._options, self._lines = [], {}, []
        self.several, self.made = None, []
        self._steps, self._in_schedule = set(), ()
        self._rewriter = Rewriter(
            model.module, (values.schedule, self._momentum, self._class, *values.VALUES)
        )

    def text(self):
        """The lines of the function."""
        made = self._find_optimizers()
        returned = made.get(self.several.main) if self.several else None
        for statement in self._model.parts.optimizer:
            call = getattr(statement, "value", None)
            name = self._rewriter.called(call) or ""
            if statement in self._in_schedule:
                continue
            if name in names.STEPS:
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

    def _find_optimizers(self):
        """Name -> the call that makes it; notes if there are several."""
        made = {}
        for statement in self._model.parts.optimizer:
            call = getattr(statement, "value", None)
            if self._is_optimizer(self._rewriter.called(call) or ""):
                made |= dict.fromkeys(writes_of(statement), call)
        if len(made) > 1:
            self.several = SeveralOptimizers(self._model, made)
        return made

    def _other(self, call):
        """The text of an optimizer that the model makes itself."""
        text = joined(self._rewriter.text(call))
        written = set().union(*(writes_of(s) for s in self._model.parts.optimizer))
        if names_in(text) & written:
            raise StaysError(call, "write the learning rate of this optimizer into its call")
        return text

    def _is_optimizer(self, name):
        is_keras = name.startswith("tf.keras.optimizers.") and "schedules" not in name
        return is_keras or name == _MOMENTUM_OF_TF

    # Gradients.

    def _is_on_gradients(self, statement):
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

    def _optimizer(self, call):
        text = joined(self._rewriter.text(call))
        if self._options:
            more = ", ".join(f"{name}={value}" for name, value in self._options.items())
            text = f"{text[:-1]}, {more})"
        return text

    def _momentum(self, node, rewriter):
        """MomentumOptimizer, which multiplies the rate into each step only."""
        if rewriter.called(node) != _MOMENTUM_OF_TF:
            return None
        if self._model.is_looking_up():
            raise StaysError(node, "momentum of Keras moves rows that nobody looks up")
        given = arguments(node, _MOMENTUM_ARGUMENTS)
        found = {
            n: rewriter.text(v) for n, v in given.items() if n in ("learning_rate", "momentum")
        }
        if "use_nesterov" in given:
            found["nesterov"] = rewriter.text(given["use_nesterov"])
        self.above.append(_MOMENTUM)
        return f"Momentum({', '.join(f'{n}={v}' for n, v in found.items())})"

    def _class(self, node, rewriter):
        name = rewriter.name(node) if isinstance(node, ast.Attribute) else None
        kind = (name or "").rpartition(".")[2]
        is_optimizer = name and name.startswith("tf.keras.optimizers.") and "sched" not in name
        if is_optimizer and self._model.is_looking_up() and kind in names.SUMMED:
            norm = self._options.pop("global_clipnorm", None)
            self.above.append(_SUMMED.format(kind, _CLIPPED.format(norm) if norm else ""))
            return f"Summed{kind}"
        return None

    # The learning rate.

    def _of_rate(self, statement):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            raise StaysError(statement, "write this beside fit: it is no part of an optimizer")
        lines = self._model._written(statement, self._rewriter)
        if not any(self._reads_step(line) for line in lines):
            return lines
        return self._schedule(statement)

    def _reads_step(self, line):
        return names_in(line) & self._steps or "get_global_step" in line

    def _schedule(self, last):
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
            is_step = (self._rewriter.called(getattr(one, "value", None)) or "") in names.STEPS
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

    def _step_of(self, step):
        def rule(node, rewriter):
            return step if rewriter.called(node) in names.STEPS else None

        return rule

    def _kept(self, node, rewriter):
        is_params = isinstance(node, ast.Name) and node.id == "params"
        return "self.params" if is_params and isinstance(node.ctx, ast.Load) else None

    def _of_names(self, lines, but=()):
        """The lines, behind those of the model_fn's constants that they read."""
        read = set().union(*map(names_in, lines), set()) - set(but)
        kept = []
        rewriter = Rewriter(self._module, values.VALUES)
        for statement in reversed(self._model.parts.forward):
            if self._model.is_constant(statement) and writes_of(statement) & read:
                read |= reads_of(statement)
                kept = [*self._model._written(statement, rewriter), *kept]
        return [*kept, *lines]


def _last(call):
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
