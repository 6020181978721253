"""The layers of a model_fn: made in a model's `__init__`, called in its `call`."""

import ast
import keyword
import re

from estimator2strategy.tools.migrate.codemods.layers_to_keras import ROWS
from estimator2strategy.tools.migrate.model_class import names, values
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments

# Attributes of a keras.Model that a layer must not hide.
_TAKEN = {
    "build", "built", "call", "compile", "dtype", "evaluate", "export", "fit", "input", "inputs",
    "layers", "loss", "losses", "metrics", "name", "optimizer", "output", "outputs", "path",
    "predict", "save", "summary", "trainable", "variables", "weights",
}  # fmt: skip
_WITHOUT_WEIGHTS = {f"layers.{row.keras}" for row in ROWS.values() if not row.has_variables}
# Arguments that are written without their names.
_FIRST = ("units", "filters", "kernel_size", "pool_size", "rate")
# What may run the code in it more than once.
_REPEATED = (
    *(ast.For, ast.While, ast.FunctionDef, ast.Lambda),
    *(ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp),
)
_GONE = ("reuse", "_reuse", "fused", "renorm", "virtual_batch_size", "adjustment")
# Those of _GONE that make another function where they are given.
_MISSED = ("renorm", "virtual_batch_size", "adjustment")
_CLASSES = {f"tf.layers.{row.keras}": row for row in ROWS.values()}


class Layers:
    """Layers by the attribute that keeps each, in the order of their calls.

    Args:
        module: The file.
        scopes: Statement -> the names of the variable scopes that it is in.

    Attributes:
        made: Attribute -> the text that makes the layer.
        is_regularized: True if a layer adds losses.
        looks_up: True if a layer looks up rows of a table.
        notes: Attribute -> a comment for the line above.
    """

    def __init__(self, module, scopes):
        self._module, self._scopes = module, scopes
        self._making = Rewriter(module, values.VALUES)
        self.made = {}
        self.notes = {}
        self.is_regularized = self.looks_up = False
        self._tables = {}  # name of a table -> its attribute

    def rule(self, node, rewriter):
        """The call of a layer, for that of a function of tf.layers, or of a layer that it makes."""
        if not isinstance(node, ast.Call):
            return None
        name = rewriter.called(node) or ""
        function = name.removeprefix("tf.layers.")
        if name == names.BATCH_NORM:
            return self._function(node, names.NORM_ROW.keras, names.NORM_ROW.arguments, rewriter)
        if name.startswith("tf.layers.") and function in ROWS:
            row = ROWS[function]
            return self._function(node, f"layers.{row.keras}", row.arguments, rewriter)
        if name in names.LOOKUPS and isinstance(node.args[0], ast.Name):
            table = self._tables.get(node.args[0].id)
            if table and len(node.args) == 2 and not node.keywords:
                return f"self.{table}({rewriter.text(node.args[1])})"
        inner = node.func
        made = rewriter.called(inner) or ""
        if made.startswith("tf.keras.layers."):
            return self._called(node, inner, made.removeprefix("tf.keras."), (), rewriter)
        if made in _CLASSES:
            row = _CLASSES[made]
            return self._called(node, inner, f"layers.{row.keras}", row.arguments, rewriter)
        if name.startswith(("tf.layers.", "tf.contrib.")):
            raise StaysError(node, f"write {name} as a layer of Keras first")
        return None

    def _function(self, call, keras, known, rewriter):
        given = arguments(call, ("inputs", *known))
        inputs = [given.pop("inputs")]
        training = given.pop("training", None)
        made = _without_gone(call, given)
        if keras == "layers.Dropout" and training is None:
            training = ast.Constant(False)
        return self._text(call, keras, (), made, inputs, training, rewriter)

    def _called(self, call, inner, keras, known, rewriter):
        """`Layer(...)(x, training=t)`."""
        made = arguments(inner, known) if known else {k.arg: k.value for k in inner.keywords}
        if None in made:
            raise StaysError(call, "its arguments cannot be told by name: write them out")
        positional = () if known else inner.args
        training = next((k.value for k in call.keywords if k.arg == "training"), None)
        others = [k for k in call.keywords if k.arg != "training"]
        made = _without_gone(call, made)
        return self._text(call, keras, positional, made, call.args, training, rewriter, others)

    def _text(self, call, keras, positional, made, inputs, training, rewriter, others=()):
        inside = [rewriter.text(node) for node in inputs]
        inside += [f"{k.arg}={rewriter.text(k.value)}" for k in others]
        if isinstance(training, ast.Constant):
            inside.append(f"training={training.value}")
        elif training is not None:
            inside.append(f"training={rewriter.text(training)}")
        name = made.pop("name", None)
        attribute = self._attribute(call, name, keras)
        positional = [*positional, *_first(made, keras)]
        written = [self._making.text(node) for node in positional]
        for name, node in made.items():
            if isinstance(node, ast.Constant) and node.value is None:
                continue
            is_activation = name.endswith("activation")
            making = self._making
            value = values.activation(node, making) if is_activation else making.text(node)
            written.append(f"{name}={value}")
            self.is_regularized |= name.endswith("regularizer")
        if keras == "layers.Embedding":
            self.looks_up = True
        if name is not None or keras not in _WITHOUT_WEIGHTS:
            written.append(f'name="{attribute}"')
        if keras == "layers.BatchNormalization" and self._has_convolutions():
            self.notes[attribute] = _OF_IMAGES
        self.made[attribute] = f"keras.{keras}({', '.join(written)})"
        return f"self.{attribute}({', '.join(inside)})"

    def _has_convolutions(self):
        return any(text.startswith("keras.layers.Conv") for text in self.made.values())

    def _attribute(self, call, given, keras):
        """The name of a layer: its own, that of its result, or that of its class."""
        if any(isinstance(outer, _REPEATED) for outer in _inside_function(call)):
            raise StaysError(call, "a layer in a loop or in a function is to be made by hand")
        if isinstance(given, ast.Constant):
            base = str(given.value)
        elif given is not None:
            raise StaysError(call, "its name is computed: a layer in a loop is to be made by hand")
        else:
            target = _target(call)
            base = target or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", keras.rpartition(".")[2]).lower()
        base = "_".join([*self._scopes.get(self._module.statement(call), ()), base])
        base = re.sub(r"\W", "_", base)
        if base in _TAKEN or keyword.iskeyword(base):
            base += "_layer"
        name, number = base, 1
        while name in self.made:
            name, number = f"{base}_{number}", number + 1
        return name

    # Variables.

    def variable(self, statement, rewriter, reads):
        """Notes `table = tf.get_variable(...)`; True if that is what the statement is."""
        call, target = statement.value, statement.targets[0]
        known = ("name", "shape", "dtype", "initializer", "regularizer", "trainable")
        given = arguments(call, known)
        name = given.get("name")
        if not isinstance(target, ast.Name) or not isinstance(name, ast.Constant):
            raise StaysError(call, "give the variable a constant name, and assign it to a name")
        attribute = self._attribute(call, name, "variable")
        first = self._making.text(given["initializer"]) if "initializer" in given else ""
        shape = given.get("shape")
        rank = len(shape.elts) if isinstance(shape, (ast.List, ast.Tuple)) else None
        if rank == 2 and reads and all(self._is_lookup(r, rewriter) for r in reads):
            sizes = ", ".join(self._making.text(size) for size in shape.elts)
            of_table = {"embeddings_initializer": first or '"glorot_uniform"'}
            if "regularizer" in given:
                of_table["embeddings_regularizer"] = self._making.text(given["regularizer"])
            self._tables[target.id] = attribute
            self.looks_up = True
            text = f'keras.layers.Embedding({sizes}, {_listed(of_table)}, name="{attribute}")'
        else:
            options = {
                n: self._making.text(v) for n, v in given.items() if n in ("shape", "trainable")
            }
            options["initializer"] = first or '"glorot_uniform"'
            if "regularizer" in given:
                options["regularizer"] = self._making.text(given["regularizer"])
            text = f'self.add_weight({_listed(options)}, name="{attribute}")'
        self.is_regularized |= "regularizer" in given
        self.made[attribute] = text
        return target.id, attribute

    def is_table(self, name):
        return name in self._tables

    @staticmethod
    def _is_lookup(node, rewriter):
        call = node.parent
        return rewriter.called(call) in names.LOOKUPS and call.args[:1] == [node]


# Of n values; TF 1 has it of the fused kernel, which takes images alone.
_OF_IMAGES = "# TF 1's moving variance of images has a factor n / (n - 1)."


def _without_gone(call, given):
    """The arguments of a layer that Keras 3 has."""
    for name in _MISSED:
        node = given.get(name)
        if node is not None and not (isinstance(node, ast.Constant) and not node.value):
            raise StaysError(call, f"no layer of Keras 3 has {name}")
    return {name: node for name, node in given.items() if name not in _GONE}


def _inside_function(node):
    """The nodes around a node, up to the statements of the model_fn."""
    while not isinstance(getattr(node.parent, "parent", None), ast.Module):
        node = node.parent
        yield node


def _first(made, keras):
    """Takes the arguments that come first, and need no name, out of a dict."""
    if keras == "layers.BatchNormalization":
        return []
    names_of = []
    for name in made:
        if name not in _FIRST:
            break
        names_of.append(name)
    return [made.pop(name) for name in names_of]


def _listed(options):
    return ", ".join(f"{name}={value}" for name, value in options.items())


def _target(call):
    """The name that is assigned a layer's result, or that of what is made of it."""
    parent = call.parent
    is_assigned = isinstance(parent, ast.Assign) and len(parent.targets) == 1
    if is_assigned and isinstance(parent.targets[0], ast.Name):
        name = parent.targets[0].id
        return name if len(name) > 2 and name not in ("net", "inputs") else None
    return None
