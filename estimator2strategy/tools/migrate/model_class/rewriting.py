"""Expressions of a model_fn as they are written in a Keras model.

    Rewriter(module, [rule]).text(node)     # the node's text, with what the rules replace

A rule takes a node and the rewriter, and returns a text or None.

    ROWS["tf.concat"].keras       # "concatenate"

A function that is in no row, or has an argument that Keras's lacks, stays TensorFlow's.
"""

import ast
import dataclasses

from estimator2strategy.tools.migrate.module import legacy_name

_DTYPES = {
    f"tf.{name}": f'"{name}"'
    for name in ("float16", "bfloat16", "float32", "float64", "int32", "int64", "bool")
}


@dataclasses.dataclass(frozen=True)
class OpRow:
    """The function of `keras.ops` that takes the place of one of TensorFlow.

    Attributes:
        keras: Its name.
        arguments: TensorFlow's arguments in their order, as Keras calls them; "name" goes.
        first: How many of them are written without their names.
        by_name: TensorFlow's other names of arguments -> Keras's.
        defaults: What TensorFlow has, and Keras has not, where an argument is left out.
        form: The expression; {} is the call.
    """

    keras: str
    arguments: tuple[str, ...] = ("x", "name")
    first: int = 1
    by_name: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    form: str = "{}"


_AXIS = (("dimension", "axis"), ("reduction_indices", "axis"), ("dim", "axis"))
_SIZES = (*_AXIS, ("squeeze_dims", "axis"), ("keep_dims", "keepdims"))


def _unary(*names):
    return {name: OpRow(name.rpartition(".")[2]) for name in names}


def _binary(*names, **keras):
    rows = {f"tf.{name}": OpRow(name, ("x1", "x2", "name"), 2) for name in names}
    return rows | {f"tf.{n}": OpRow(op, ("x1", "x2", "name"), 2) for n, op in keras.items()}


def _reduced(**keras):
    known = ("x", "axis", "keepdims", "name", "axis", "keepdims")
    return {f"tf.{name}": OpRow(op, known, 1, _SIZES) for name, op in keras.items()}


ROWS = {
    **_unary(
        *("tf.nn.relu", "tf.nn.relu6", "tf.nn.elu", "tf.nn.selu", "tf.nn.softplus"),
        *("tf.sigmoid", "tf.nn.sigmoid", "tf.tanh", "tf.nn.tanh", "tf.exp", "tf.sqrt", "tf.rsqrt"),
        *("tf.log", "tf.log1p", "tf.square", "tf.abs", "tf.sign", "tf.round", "tf.floor"),
        *("tf.sin", "tf.cos", "tf.erf", "tf.logical_not", "tf.zeros_like", "tf.ones_like"),
        *("tf.stop_gradient", "tf.shape"),
    ),
    "tf.ceil": OpRow("ceil"),
    "tf.negative": OpRow("negative"),
    **_binary(
        *("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"),
        *("add", "subtract", "multiply", "divide", "maximum", "minimum"),
        *("logical_and", "logical_or"),
        matmul="matmul",
        pow="power",
    ),
    **_reduced(
        reduce_sum="sum",
        reduce_mean="mean",
        reduce_max="max",
        reduce_min="min",
        reduce_prod="prod",
        reduce_any="any",
        reduce_all="all",
        reduce_logsumexp="logsumexp",
    ),
    "tf.nn.softmax": OpRow("softmax", ("x", "axis", "name"), 1, _AXIS),
    "tf.nn.log_softmax": OpRow("log_softmax", ("x", "axis", "name"), 1, _AXIS),
    "tf.concat": OpRow("concatenate", ("x", "axis", "name"), 1),
    "tf.stack": OpRow("stack", ("x", "axis", "name"), 1),
    "tf.squeeze": OpRow("squeeze", ("x", "axis", "name"), 1, _SIZES),
    "tf.expand_dims": OpRow("expand_dims", ("x", "axis", "name", "axis"), 1, _AXIS),
    "tf.reshape": OpRow("reshape", ("x", "newshape", "name"), 2),
    "tf.transpose": OpRow("transpose", ("x", "axes", "name"), 1, (("perm", "axes"),)),
    "tf.cast": OpRow("cast", ("x", "dtype", "name"), 2),
    "tf.to_float": OpRow("cast", ("x", "name"), 1, (), (("dtype", '"float32"'),)),
    # As many bits as TensorFlow's: serving clients read them.
    "tf.argmax": OpRow(
        "argmax", ("x", "axis", "name"), 1, _AXIS, (("axis", "0"),), 'keras.ops.cast({}, "int64")'
    ),
    "tf.argmin": OpRow(
        "argmin", ("x", "axis", "name"), 1, _AXIS, (("axis", "0"),), 'keras.ops.cast({}, "int64")'
    ),
    "tf.where": OpRow("where", ("condition", "x1", "x2", "name"), 3),
    "tf.clip_by_value": OpRow("clip", ("x", "x_min", "x_max", "name"), 3),
    "tf.one_hot": OpRow("one_hot", ("x", "num_classes"), 2),
    "tf.gather": OpRow("take", ("x", "indices"), 2, (), (("axis", "0"),)),
    "tf.tile": OpRow("tile", ("x", "repeats", "name"), 2),
}
_OPS = {legacy_name(name): row for name, row in ROWS.items()} | ROWS
# How many arguments a function needs that Keras cannot do without.
_WHOLE = {"tf.where": 3}
_KNOWN = {"name", "axis", "keepdims", "dtype"}


def rule(node, rewriter):
    """The text of a call of TensorFlow's as one of `keras.ops`; None for another one."""
    if not isinstance(node, ast.Call):
        return None
    name = rewriter.called(node)
    row = _OPS.get(name)
    if row is None:
        return None
    given = _given(node, row)
    if given is None or len(given) < _WHOLE.get(name, 1):
        return None
    texts = {one: _text(value, rewriter) for one, value in given.items()}
    texts |= {one: value for one, value in row.defaults if one not in texts}
    first = [texts.pop(one) for one in row.arguments[: row.first] if one in texts]
    if len(first) < row.first:
        return None
    inside = ", ".join([*first, *(f"{one}={value}" for one, value in texts.items())])
    return row.form.format(f"keras.ops.{row.keras}({inside})")


def _given(node, row):
    """The arguments of a call by Keras's names; None if Keras's function has not all of them."""
    try:
        found = arguments(node, [f"{number}" for number in range(len(row.arguments))])
    except StaysError:
        return None
    others, given = dict(row.by_name), {}
    for position, (one, value) in enumerate(found.items()):
        if isinstance(value, ast.Constant) and value.value is None:
            continue
        if one.isdigit():
            known = row.arguments[int(one)]
        elif position < row.first:
            known = row.arguments[position]  # by its name, in its place
        else:
            known = others.get(one, one)
        if known not in row.arguments:
            return None
        if known != "name":
            given[known] = value
    return given


def _text(node, rewriter):
    return _DTYPES.get(rewriter.name(node)) or rewriter.text(node)


class StaysError(Exception):
    """A place for which there is no Keras code.

    Attributes:
        node: The place.
        message: What to do, in one sentence.
    """

    def __init__(self, node, message):
        super().__init__(message)
        self.node, self.message = node, message


class Rewriter:
    """Writes nodes with other texts in the place of some.

    Args:
        module: The file.
        rules: Functions of a node and this object that return a text, or None for another rule.
    """

    def __init__(self, module, rules):
        self.module, self.rules = module, rules

    def text(self, node):
        """The text of a node."""
        own = self._replaced(node)
        if own is not None:
            return own
        parts = {}
        self._collect(node, parts)
        return self._module_of(node).written_with(node, parts)

    def _module_of(self, node):
        """The file of a node, which may be another's of the program."""
        program = self.module.program
        return (program.module_of(node) if program else None) or self.module

    def _collect(self, node, parts):
        for child in ast.iter_child_nodes(node):
            new = self._replaced(child) if hasattr(child, "lineno") else None
            if new is None:
                self._collect(child, parts)
            else:
                parts[child] = new

    def _replaced(self, node):
        for rule in self.rules:
            text = rule(node, self)
            if text is not None:
                return text
        return None

    def name(self, node):
        """The canonical name of an expression, of TensorFlow or of this package."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        module = self._module_of(node)
        name = module.name(node)
        if name is None:
            name = module.source.name(node, module.source.scope_of(node))
        return name

    def called(self, node):
        """The name of what a call calls; None for no call."""
        return self.name(node.func) if isinstance(node, ast.Call) else None


def arguments(call, names):
    """The arguments of a call by name, in the order in which they are written.

    Raises:
        StaysError: They cannot be seen.
    """
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(names):
        raise StaysError(call, "its arguments cannot be told by name: write them out")
    found = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise StaysError(call, "its arguments cannot be told by name: write them out")
        found[keyword.arg] = keyword.value
    return found
