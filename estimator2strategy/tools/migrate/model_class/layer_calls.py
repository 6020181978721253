"""The layers of a model_fn: made in a model's `__init__`, called in its `call`.

    cell = tf.nn.rnn_cell.LSTMCell(12)  ->  self.rnn = keras.layers.LSTM(12, ...)
    tf.nn.dynamic_rnn(cell, x, lengths)  ->  outputs, state_h, ... = self.rnn(x)

The gates of Keras's layers are in another order than TensorFlow 1's.
"""

from __future__ import annotations

import ast
from typing import Any

from estimator2strategy.tools.migrate.codemods.layers_to_keras import ROWS
from estimator2strategy.tools.migrate.model_class import values
from estimator2strategy.tools.migrate.model_class.placing import Placing, base_of, snake
from estimator2strategy.tools.migrate.model_class.rewriting import StaysError, arguments
from estimator2strategy.tools.migrate.module import Module

_UNROLL = "tf.nn.dynamic_rnn"
_UNROLL_ARGUMENTS = (
    *("cell", "inputs", "sequence_length", "initial_state", "dtype"),
    *("parallel_iterations", "swap_memory", "time_major", "scope"),
)
_CELL_ARGUMENTS = (
    "num_units",
    "forget_bias",
    "state_is_tuple",
    "activation",
    "reuse",
    "name",
    "dtype",
)
# Cells -> Keras's layer, and their arguments in order.
_CELLS = {
    "LSTMCell": (
        "LSTM",
        ("num_units", "use_peepholes", "cell_clip", "initializer", "num_proj", "proj_clip",
         "num_unit_shards", "num_proj_shards", "forget_bias", "state_is_tuple", "activation"),
    ),
    "BasicLSTMCell": ("LSTM", _CELL_ARGUMENTS),
}  # fmt: skip
_MODULES = ("tf.nn.rnn_cell.", "tf.contrib.rnn.")
_PLAIN = {"num_units", "state_is_tuple", "forget_bias", "initializer", "dtype", "reuse", "name"}
_STATES = {"c": 0, "h": 1}
_NOTE = "# TF 1's gates are in another order, and its bias lacks the forget gate's 1."


class Recurrent:
    """The cells of a body, and what unrolls them.

    Args:
        body: The `Body`.
    """

    def __init__(self, body: Any):
        self._body, self._module = body, body.module
        self._cells: dict[Any, Any] = {}
        self._states: dict[Any, Any] = {}

    def is_cell(self, statement: Any) -> bool:
        """Notes `cell = LSTMCell(...)`; True if that is what the statement is."""
        call = getattr(statement, "value", None)
        kind = self._kind(call)
        if not isinstance(statement, ast.Assign) or kind is None:
            return False
        if kind not in _CELLS:
            raise StaysError(call, f"write {kind} as a layer of Keras first")
        if not isinstance(statement.targets[0], ast.Name):
            raise StaysError(call, "give this cell a name, in a statement of its own")
        self._cells[statement.targets[0].id] = call
        return True

    def _kind(self, call: Any) -> Any:
        name = self._body.reading.called(call) or ""
        for module in _MODULES:
            if name.startswith(module) and name.endswith(("Cell", "Wrapper")):
                return name.removeprefix(module)
        return None

    def lines(self, statement: Any, rewriter: Any) -> Any:
        """The line of `outputs, state = tf.nn.dynamic_rnn(...)`; None for another statement."""
        call = getattr(statement, "value", None)
        if self._body.reading.called(call) != _UNROLL:
            return None
        given = arguments(call, _UNROLL_ARGUMENTS)
        cell = self._cells.get(getattr(given.get("cell"), "id", None))
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        names = [one.id for one in getattr(target, "elts", ()) if isinstance(one, ast.Name)]
        if cell is None or len(names) != 2 or "inputs" not in given:
            raise StaysError(call, "write this as `outputs, state = tf.nn.dynamic_rnn(cell, ...)`")
        odd = {"initial_state", "time_major", "scope"} & set(given)
        if odd:
            raise StaysError(call, f"write the {min(odd)} of this for a layer of Keras")
        outputs, state = names
        reads = self._reads(state)
        reads_outputs = outputs != "_" and self._is_read(outputs)
        is_masked = "sequence_length" in given
        called = self._layer(call, cell, reads_outputs, bool(reads), is_masked)
        inputs = rewriter.text(given["inputs"])
        if is_masked:
            if not isinstance(given["inputs"], ast.Name):
                raise StaysError(call, "give the inputs of this a name, in a statement before")
            lengths = rewriter.text(given["sequence_length"])
            inputs = f"{inputs}, mask={self._module.tf}.sequence_mask({lengths}, {inputs}.shape[1])"
        if not reads:
            return [f"{outputs} = {called}({inputs})"]
        parts = {"c": f"{state}_c", "h": f"{state}_h"}
        if reads == {"h"} and not reads_outputs:
            self._states[state] = {"h": parts["h"]}
            return [f"{parts['h']} = {called}({inputs})"]
        self._states[state] = parts
        first = outputs if reads_outputs else "_"
        last = parts["c"] if "c" in reads else "_"
        return [f"{first}, {parts['h']}, {last} = {called}({inputs})"]

    def _layer(self, call: Any, cell: Any, has_outputs: Any, has_state: Any, is_masked: Any) -> Any:
        """Places the layer; returns the text that is called."""
        layers = self._body.layers
        kind, known = _CELLS[self._kind(cell)]
        given = arguments(cell, known)
        odd = set(given) - _PLAIN
        if odd:
            raise StaysError(cell, f"write the {min(odd)} of this cell for a layer of Keras")
        bias = given.get("forget_bias")
        if bias is not None and getattr(bias, "value", None) != 1.0:
            raise StaysError(cell, "a forget_bias but 1 is an initializer of Keras: write it")
        if "num_units" not in given:
            raise StaysError(cell, "give this cell its num_units")
        options = [layers.make_text(given["num_units"])]
        if "initializer" in given:
            options.append(f"kernel_initializer={layers.make_text(given['initializer'])}")
        only_last = has_state and not has_outputs and self._only_h
        options += ["return_sequences=True"] if has_outputs else []
        options += ["return_state=True"] if has_state and not only_last else []
        options += ["zero_output_for_mask=True"] if has_outputs and is_masked else []
        parts, _ = layers.scoped(call, "rnn")
        attribute, called = layers.place(
            call,
            parts,
            "rnn",
            lambda name: f"keras.layers.{kind}({', '.join(options)}, name={name})",
        )
        layers.notes[attribute] = _NOTE
        return called

    def _reads(self, state: Any) -> Any:
        """The parts of a state that are read."""
        parts = set()
        node: Any
        for node in ast.walk(self._body.function):
            is_state = isinstance(node, ast.Name) and node.id == state
            if is_state and isinstance(node.ctx, ast.Load):
                parts.add(_part(node))
        if None in parts:
            raise StaysError(self._body.function, f"read {state}.h or {state}.c, not all of it")
        self._only_h = parts == {"h"}
        return parts

    def _is_read(self, name: Any) -> bool:
        nodes = (n for n in ast.walk(self._body.function) if isinstance(n, ast.Name))
        return any(n.id == name and isinstance(n.ctx, ast.Load) for n in nodes)

    def rule(self, node: Any, rewriter: Any) -> Any:
        """The name of a part of a state."""
        value = getattr(node, "value", None)
        if isinstance(value, ast.Name) and value.id in self._states:
            part = _part(value)
            return self._states[value.id].get(part)
        return None


def _part(name: Any) -> Any:
    """ "h" for `state.h` and `state[1]`, "c" for the others; None for all of it."""
    outer = name.parent
    if isinstance(outer, ast.Attribute) and outer.attr in _STATES:
        return outer.attr
    index = outer.slice if isinstance(outer, ast.Subscript) and outer.value is name else None
    value = getattr(index, "value", None)
    return {0: "c", 1: "h", -1: "h"}.get(value) if isinstance(value, int) else None


_WITHOUT_WEIGHTS = {f"layers.{row.keras}" for row in ROWS.values() if not row.has_variables}
# Arguments that are written without their names.
_FIRST = ("units", "filters", "kernel_size", "pool_size", "rate")
_GONE = ("reuse", "_reuse", "fused", "renorm", "virtual_batch_size", "adjustment")
# Those of _GONE that make another function where they are given.
_MISSED = ("renorm", "virtual_batch_size", "adjustment")
_LAYER_NORM = "tf.contrib.layers.layer_norm"
_CLASSES = {f"tf.layers.{row.keras}": row for row in ROWS.values()}


class Layers(Placing):
    """Layers by the attribute that keeps each, in the order of their calls.

    Args:
        module: The file.
        body: The `Body` that calls them.

    Attributes:
        is_regularized: True if a layer adds losses.
        looks_up: True if a layer looks up rows of a table.
    """

    def __init__(self, module: Module, body: Any):
        super().__init__(module, body)
        self.is_regularized = self.looks_up = False
        self._tables: dict[Any, Any] = {}

    def rule(self, node: Any, rewriter: Any) -> Any:
        """The call of a layer, for that of a function of tf.layers, or of a layer that it makes."""
        if not isinstance(node, ast.Call):
            return None
        name = rewriter.called(node) or ""
        function = name.removeprefix("tf.layers.")
        if name == values.BATCH_NORM:
            return self._function(node, values.NORM_ROW.keras, values.NORM_ROW.arguments, rewriter)
        if name == _LAYER_NORM:
            return self._layer_norm(node, rewriter)
        if name.startswith("tf.layers.") and function in ROWS:
            row = ROWS[function]
            return self._function(node, f"layers.{row.keras}", row.arguments, rewriter)
        if name in values.LOOKUPS and isinstance(node.args[0], ast.Name):
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

    def _function(self, call: Any, keras: Any, known: Any, rewriter: Any) -> Any:
        given = arguments(call, ("inputs", *known))
        inputs = [given.pop("inputs")]
        training = given.pop("training", None)
        made = _without_gone(call, given)
        if keras == "layers.Dropout" and training is None:
            training = ast.Constant(False)
        return self._text(call, keras, (), made, inputs, training, rewriter)

    def _layer_norm(self, call: Any, rewriter: Any) -> Any:
        given = arguments(call, ("inputs", "center", "scale", "activation_fn"))
        inputs, axis = given.pop("inputs"), given.pop("begin_norm_axis", None)
        given.pop("begin_params_axis", None)
        if axis is None or ast.unparse(axis) != "-1":
            raise StaysError(call, "normalize the last axis alone here: begin_norm_axis=-1")
        made = {name: node for name, node in given.items() if name in ("center", "scale")}
        made["epsilon"] = ast.Constant(1e-12)
        if set(given) - {"center", "scale", "scope"}:
            raise StaysError(call, f"write what {min(set(given) - set(made))} does here in Keras")
        if "scope" in given:
            made["name"] = given["scope"]
        return self._text(call, "layers.LayerNormalization", (), made, [inputs], None, rewriter)

    def _called(self, call: Any, inner: Any, keras: Any, known: Any, rewriter: Any) -> Any:
        """`Layer(...)(x, training=t)`."""
        made = arguments(inner, known) if known else {k.arg: k.value for k in inner.keywords}
        if None in made:
            raise StaysError(call, "its arguments cannot be told by name: write them out")
        positional = () if known else inner.args
        training = next((k.value for k in call.keywords if k.arg == "training"), None)
        others = [k for k in call.keywords if k.arg != "training"]
        made = _without_gone(call, made)
        return self._text(call, keras, positional, made, call.args, training, rewriter, others)

    def _text(
        self,
        call: Any,
        keras: Any,
        positional: Any,
        made: Any,
        inputs: Any,
        training: Any,
        rewriter: Any,
        others: Any = (),
    ) -> str:
        inside = [rewriter.text(node) for node in inputs]
        inside += [f"{k.arg}={rewriter.text(k.value)}" for k in others]
        if isinstance(training, ast.Constant):
            inside.append(f"training={training.value!s}")
        elif training is not None:
            inside.append(f"training={rewriter.text(training)}")
        name = made.pop("name", None)
        written = [self.make_text(node) for node in (*positional, *_first(made, keras))]
        for option, node in made.items():
            if isinstance(node, ast.Constant) and node.value is None:
                continue
            is_activation = option.endswith("activation")
            value = values.activation(node, self.making) if is_activation else self.make_text(node)
            written.append(f"{option}={value}")
            self.is_regularized |= option.endswith("regularizer")
        self.looks_up |= keras == "layers.Embedding"
        is_plain = keras in _WITHOUT_WEIGHTS

        def make(text: Any) -> str:
            is_named = text and (name is not None or not is_plain)
            named = [f"name={text}"] if is_named else []
            return f"keras.{keras}({', '.join([*written, *named])})"

        base = base_of(call, snake(keras.rpartition(".")[2]))
        parts, is_shared = self.scoped(call, *([name] if name is not None else [base]))
        if name is None and self.around(call):
            parts = []
        is_constant = name is None or isinstance(name, ast.Constant)
        if is_shared and is_constant:
            key = (keras, tuple(p if isinstance(p, str) else ast.dump(p) for p in parts))
            attribute, called = self.share(key, lambda: self.place(call, parts, base, make))
        else:
            attribute, called = self.place(call, parts, base, make, is_plain=is_plain)
        if keras == "layers.BatchNormalization" and self._has_convolutions():
            self.notes[attribute] = _OF_IMAGES
        return f"{called}({', '.join(inside)})"

    def _has_convolutions(self) -> bool:
        known = ("tf.layers.conv", "tf.layers.Conv", "tf.keras.layers.Conv")
        return any(
            (self._module.name(call.node.func, call.scope) or "").startswith(known)
            for call in self._module.source.calls
        )

    # Variables.

    def variable(self, statement: Any, rewriter: Any, reads: Any) -> Any:
        """Notes `table = tf.get_variable(...)`; True if that is what the statement is."""
        call, target = statement.value, statement.targets[0]
        known = ("name", "shape", "dtype", "initializer", "regularizer", "trainable")
        given = arguments(call, known)
        name = given.get("name")
        if not isinstance(target, ast.Name) or not isinstance(name, ast.Constant):
            raise StaysError(call, "give the variable a constant name, and assign it to a name")
        first = self.make_text(given["initializer"]) if "initializer" in given else ""
        shape = given.get("shape")
        rank = len(shape.elts) if isinstance(shape, (ast.List, ast.Tuple)) else None
        if rank == 2 and reads and all(self._is_lookup(r, rewriter) for r in reads):
            sizes = ", ".join(self.make_text(size) for size in shape.elts)
            of_table = {"embeddings_initializer": first or '"glorot_uniform"'}
            if "regularizer" in given:
                of_table["embeddings_regularizer"] = self.make_text(given["regularizer"])
            self.looks_up = True
            text = f"keras.layers.Embedding({sizes}, {_listed(of_table)}"
        else:
            options = {
                n: self.make_text(v) for n, v in given.items() if n in ("shape", "trainable")
            }
            options["initializer"] = first or '"glorot_uniform"'
            if "regularizer" in given:
                options["regularizer"] = self.make_text(given["regularizer"])
            text = f"self.add_weight({_listed(options)}"
        self.is_regularized |= "regularizer" in given
        parts, _ = self.scoped(call, name)
        attribute, called = self.place(
            call, parts, "variable", lambda name: f"{text}, name={name})"
        )
        if called != f"self.{attribute}":
            raise StaysError(call, "take this variable out of the loop")
        if "Embedding(" in text:
            self._tables[target.id] = attribute
        return target.id, attribute

    def is_table(self, name: Any) -> Any:
        return name in self._tables

    @staticmethod
    def _is_lookup(node: Any, rewriter: Any) -> Any:
        call = node.parent
        return rewriter.called(call) in values.LOOKUPS and call.args[:1] == [node]


# Of n values; TF 1 has it of the fused kernel, which takes images alone.
_OF_IMAGES = "# TF 1's moving variance of images has a factor n / (n - 1)."


def _without_gone(call: Any, given: Any) -> Any:
    """The arguments of a layer that Keras 3 has."""
    for name in _MISSED:
        node = given.get(name)
        if node is not None and not (isinstance(node, ast.Constant) and not node.value):
            raise StaysError(call, f"no layer of Keras 3 has {name}")
    return {name: node for name, node in given.items() if name not in _GONE}


def _first(made: Any, keras: Any) -> Any:
    """Takes the arguments that come first, and need no name, out of a dict."""
    if keras == "layers.BatchNormalization":
        return []
    names_of = []
    for name in made:
        if name not in _FIRST:
            break
        names_of.append(name)
    return [made.pop(name) for name in names_of]


def _listed(options: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
