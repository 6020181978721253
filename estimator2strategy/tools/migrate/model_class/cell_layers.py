"""Cells and `tf.nn.dynamic_rnn` as layers of Keras.

    cell = tf.nn.rnn_cell.LSTMCell(12)  ->  self.rnn = keras.layers.LSTM(12, ...)
    tf.nn.dynamic_rnn(cell, x, lengths)  ->  outputs, state_h, ... = self.rnn(x)

The gates of Keras's layers are in another order than TensorFlow 1's.
"""

import ast

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError, arguments

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

    def __init__(self, body):
        self._body, self._module = body, body.module
        self._cells = {}  # name -> the call that makes it
        self._states = {}  # name of a state -> the names of its parts: c, h

    def is_cell(self, statement):
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

    def _kind(self, call):
        name = self._body.reading.called(call) or ""
        for module in _MODULES:
            if name.startswith(module) and name.endswith(("Cell", "Wrapper")):
                return name.removeprefix(module)
        return None

    def lines(self, statement, rewriter):
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

    def _layer(self, call, cell, has_outputs, has_state, is_masked):
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

    def _reads(self, state):
        """The parts of a state that are read."""
        found = set()
        for node in ast.walk(self._body.function):
            is_state = isinstance(node, ast.Name) and node.id == state
            if is_state and isinstance(node.ctx, ast.Load):
                found.add(_part(node))
        if None in found:
            raise StaysError(self._body.function, f"read {state}.h or {state}.c, not all of it")
        self._only_h = found == {"h"}
        return found

    def _is_read(self, name):
        nodes = (n for n in ast.walk(self._body.function) if isinstance(n, ast.Name))
        return any(n.id == name and isinstance(n.ctx, ast.Load) for n in nodes)

    def rule(self, node, rewriter):
        """The name of a part of a state."""
        value = getattr(node, "value", None)
        if isinstance(value, ast.Name) and value.id in self._states:
            part = _part(value)
            return self._states[value.id].get(part)
        return None


def _part(name):
    """ "h" for `state.h` and `state[1]`, "c" for the others; None for all of it."""
    outer = name.parent
    if isinstance(outer, ast.Attribute) and outer.attr in _STATES:
        return outer.attr
    index = outer.slice if isinstance(outer, ast.Subscript) and outer.value is name else None
    value = getattr(index, "value", None)
    return {0: "c", 1: "h", -1: "h"}.get(value) if isinstance(value, int) else None
