"""A model_fn with several optimizers, each with its own loss and variables: a `train_step`."""

import ast

from estimator2strategy.tools.migrate.model_class.model_fn_parts import writes_of
from estimator2strategy.tools.migrate.model_class.rewriting import StaysError

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

    def __init__(self, model, made):
        self._model, self._made = model, made
        self._statements = model.parts.optimizer
        self._values = {
            statement.targets[0].id: statement.value
            for statement in self._statements
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
        self._found = {}  # name of an optimizer -> (name of its loss, text of its variables)
        for statement in self._statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and _last(node) == "apply_gradients":
                    self._add(statement, node)
        counting = [name for name in made if self._counts(name)]
        self.main = (counting or list(made))[0]
        self.losses = list(dict.fromkeys(loss for loss, _ in self._found.values()))
        if set(self._found) != set(made):
            raise StaysError(model.function, "apply the gradients of each optimizer once")

    def _counts(self, name):
        text = (self._model.module.written(s) for s in self._statements)
        return any(one.startswith(f"{name}.iterations = ") for one in text)

    def _add(self, statement, call):
        optimizer = getattr(call.func.value, "id", None)
        if optimizer not in self._made or optimizer in self._found:
            raise StaysError(call, "apply the gradients of each optimizer once")
        self._check_order(statement)
        given = self._value(call.args[0])
        reading = self._model.reading
        gradients = [n for n in ast.walk(given) if reading.called(n) == "tf.gradients"]
        of_loss = gradients[0].args[:2] if len(gradients) == 1 else ()
        if len(of_loss) != 2 or not isinstance(of_loss[0], ast.Name):
            raise StaysError(call, "write what is done to gradients in train_step")
        loss, variables = of_loss
        self._found[optimizer] = (loss.id, self._variables(call, variables))

    def _value(self, node):
        return self._values.get(node.id, node) if isinstance(node, ast.Name) else node

    def _check_order(self, statement):
        """Raises StaysError for an update that waits for another."""
        trained = set()
        for one in self._statements:
            if any(_last(n) == "apply_gradients" for n in ast.walk(one)):
                trained |= writes_of(one)
        while statement is not self._model.function:
            statement = statement.parent
            if isinstance(statement, ast.With):
                nodes = (n for item in statement.items for n in ast.walk(item))
                if any(isinstance(n, ast.Name) and n.id in trained for n in nodes):
                    raise StaysError(statement, _ALTERNATES)

    def _variables(self, call, node):
        node = self._value(node)
        if self._model.reading.called(node) != "tf.trainable_variables":
            raise StaysError(call, "give each optimizer tf.trainable_variables of a scope")
        if not node.args:
            return "self.trainable_variables"
        scope = getattr(node.args[0], "value", None)
        made = self._model.layers.made
        found = [name for name in made if name == scope or name.startswith(f"{scope}_")]
        if not found:
            raise StaysError(call, f"no layer of the model is in the scope {scope}")
        if len(found) == 1:
            return f"self.{found[0]}.trainable_variables"
        return f"[{', '.join(f'*self.{name}.trainable_variables' for name in found)}]"

    def is_on_gradients(self, statement):
        """True for a statement of the gradients, and of what applies them."""
        taken = {name for name, value in self._values.items() if self._takes_gradients(value)}
        read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        applies = any(_last(n) == "apply_gradients" for n in ast.walk(statement))
        return bool(applies or writes_of(statement) & taken or read & taken)

    def _takes_gradients(self, value):
        called = self._model.reading.called
        return any(called(node) == "tf.gradients" for node in ast.walk(value))

    def attribute(self, name):
        """The attribute of the model that an optimizer is."""
        return "self.optimizer" if name == self.main else f"self.{name}"

    def text(self):
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

    def returned(self, loss):
        """The results of `compute_losses`."""
        return ", ".join([loss, *(name for name in self.losses if name != "loss")])


def _last(node):
    function = getattr(node, "func", None)
    return function.attr if isinstance(function, ast.Attribute) else None
