"""Feature columns as preprocessing layers of Keras.

    tf.feature_column.input_layer(features, columns)  ->  keras.ops.concatenate([...], axis=1)

A category is its one-hot vector; an embedding, and the weights of a linear model, are a Dense layer
without a bias on that.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from typing import Any

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError, arguments

_MODULE = "tf.feature_column."
_LAYERS = {
    f"{_MODULE}input_layer": ("features", "feature_columns"),
    f"{_MODULE}linear_model": ("features", "feature_columns", "units"),
}
_MOST = 10_000  # categories in a one-hot vector
_KINDS = {
    "numeric_column": ("key", "shape"),
    "bucketized_column": ("source_column", "boundaries"),
    "categorical_column_with_vocabulary_list": ("key", "vocabulary_list", "dtype"),
    "categorical_column_with_hash_bucket": ("key", "hash_bucket_size", "dtype"),
    "crossed_column": ("keys", "hash_bucket_size"),
    "indicator_column": ("categorical_column",),
    "embedding_column": ("categorical_column", "dimension", "combiner", "initializer"),
}


@dataclasses.dataclass(frozen=True)
class _Column:
    """A column.

    Attributes:
        name: Its name, by which TensorFlow sorts columns.
        kind: The function that makes it.
        given: The arguments by name.
        source: The column that it is made of, if any.
    """

    name: str
    kind: str
    given: dict[Any, Any]
    source: _Column | None = None


class Columns:
    """The feature columns of a body.

    Args:
        body: The `Body`.
    """

    def __init__(self, body: Any):
        self._body, self._module = body, body.module
        self._lines: list[Any] = []
        self._known: dict[Any, Any] = {}

    def taken_lines(self) -> Any:
        """The lines that the text written last needs above it."""
        lines, self._lines = self._lines, []
        return lines

    def rule(self, node: Any, rewriter: Any) -> Any:
        """The text of `input_layer` and of `linear_model`."""
        name = rewriter.called(node)
        if name not in _LAYERS:
            return None
        given = arguments(node, _LAYERS[name])
        odd = set(given) - set(_LAYERS[name])
        if odd:
            raise StaysError(node, f"write what {min(odd)} does here in Keras")
        columns = sorted(self._all(given["feature_columns"]), key=lambda column: column.name)
        features = rewriter.text(given["features"])
        if name.endswith("linear_model"):
            units = self._body.layers.make_text(given["units"]) if "units" in given else "1"
            return self._linear(node, columns, features, units)
        texts = [self._dense(node, column, features) for column in columns]
        return (
            texts[0] if len(texts) == 1 else f"keras.ops.concatenate([{', '.join(texts)}], axis=1)"
        )

    def _linear(self, call: Any, columns: Any, features: Any, units: Any) -> str:
        added = [
            self._weights(
                call, "linear_model", column, f"{units}, use_bias=False, "
                'kernel_initializer="zeros"', self._values(call, column, features)
            )
            for column in columns
        ]  # fmt: skip
        layers = self._body.layers
        parts, _ = layers.scoped(call, "linear_model", "bias_weights")
        options = f'shape=({units},), initializer="zeros"'
        _, bias = layers.place(
            call, parts, "bias", lambda name: f"self.add_weight({options}, name={name})"
        )
        total = added[0] if len(added) == 1 else f"sum([{', '.join(added)}])"
        return f"{total} + {bias}"

    def _weights(self, call: Any, scope: Any, column: Any, options: Any, inside: Any) -> str:
        layers = self._body.layers
        parts, _ = layers.scoped(call, scope, re.sub(r"\W", "_", column.name))
        _, called = layers.place(
            call, parts, column.name, lambda name: f"keras.layers.Dense({options}, name={name})"
        )
        return f"{called}({inside})"

    # The values of columns.

    def _dense(self, call: Any, column: Any, features: Any) -> Any:
        """The text of a column in the input of a network."""
        if column.kind != "embedding_column":
            return self._values(call, column, features)
        size = self._body.layers.make_text(column.given["dimension"])
        first = f"keras.initializers.TruncatedNormal(stddev={size}**-0.5)"
        if "initializer" in column.given:
            first = self._body.layers.make_text(column.given["initializer"])
        options = f"{size}, use_bias=False, kernel_initializer={first}"
        inside = self._values(call, column.source, features)
        return self._weights(call, "input_layer", column, options, inside)

    def _values(self, call: Any, column: Any, features: Any) -> Any:
        """The name of a variable with the values of a column: numbers, or one-hot vectors."""
        if column.kind == "indicator_column":
            return self._values(call, column.source, features)
        if column.name not in self._known:
            text = getattr(self, f"_{column.kind}")(call, column, features)
            name = self._free(column.name)
            self._lines.append(f"{name} = {text}")
            self._known[column.name] = name
        return self._known[column.name]

    def _free(self, name: Any) -> Any:
        name = re.sub(r"\W", "_", name)
        tensors = self._body.tensors | set(self._known.values())
        return f"{name}_column" if name in tensors else name

    def _layer(self, call: Any, column: Any, text: Any) -> Any:
        _, called = self._body.layers.place(
            call,
            [],
            re.sub(r"\W", "_", column.name),
            lambda _: f"keras.layers.{text}",
            is_plain=True,
        )
        return called

    def _feature(self, column: Any, features: Any) -> str:
        return f"{features}[{self._module.written(column.given['key'])}]"

    def _numeric_column(self, call: Any, column: Any, features: Any) -> str:
        shape = column.given.get("shape", ast.Constant(1))
        if isinstance(shape, (ast.Tuple, ast.List)) and len(shape.elts) == 1:
            shape = shape.elts[0]
        size = getattr(shape, "value", None)
        if not isinstance(size, int):
            raise StaysError(call, f"flatten the feature {column.name} first")
        feature = self._feature(column, features)
        return f'keras.ops.reshape(keras.ops.cast({feature}, "float32"), (-1, {size}))'

    def _bucketized_column(self, call: Any, column: Any, features: Any) -> str:
        boundaries = self._body.layers.make_text(column.given["boundaries"])
        layer = self._layer(call, column, f'Discretization({boundaries}, output_mode="one_hot")')
        return f"{layer}({self._values(call, column.source, features)})"

    def _categorical_column_with_vocabulary_list(
        self, call: Any, column: Any, features: Any
    ) -> str:
        words = self._body.layers.make_text(column.given["vocabulary_list"])
        is_text = "int" not in ast.unparse(column.given.get("dtype", ast.Constant("")))
        kind = "StringLookup" if is_text else "IntegerLookup"
        layer = self._layer(call, column, f'{kind}(vocabulary={words}, output_mode="one_hot")')
        return f"{layer}({self._feature(column, features)})[:, 1:]"  # without that of others

    def _categorical_column_with_hash_bucket(self, call: Any, column: Any, features: Any) -> str:
        size = self._size(call, column)
        options = 'mask_value="", output_mode="one_hot"'
        layer = self._layer(call, column, f"Hashing({size} + 1, {options})")
        return f"{layer}({self._feature(column, features)})[:, 1:]"  # without that of ""

    def _crossed_column(self, call: Any, column: Any, features: Any) -> str:
        keys = [self._module.written(key) for key in column.given["keys"].elts]
        size = self._size(call, column)
        layer = self._layer(call, column, f'HashedCrossing({size}, output_mode="one_hot")')
        return f"{layer}(({', '.join(f'{features}[{key}]' for key in keys)}))"

    def _size(self, call: Any, column: Any) -> Any:
        size = column.given["hash_bucket_size"]
        rows: Any = size.value if isinstance(size, ast.Constant) else 0
        if rows > _MOST:
            raise StaysError(call, f"write the {rows} rows of {column.name} as an Embedding")
        return self._body.layers.make_text(size)

    # Reading them.

    def _all(self, node: Any) -> Any:
        """The columns of a list."""
        node = self._value(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [column for one in node.elts for column in self._all(one)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [*self._all(node.left), *self._all(node.right)]
        return [self._column(node)]

    def _value(self, node: Any) -> Any:
        """The value of a name that is assigned once, in the function or the file."""
        if not isinstance(node, ast.Name):
            return node
        scope = self._module.source.scope_of(node).find(node.id)
        values: Any = scope.bindings.get(node.id, ()) if scope else ()
        return values[0] if len(values) == 1 and isinstance(values[0], ast.expr) else node

    def _column(self, node: Any) -> Any:
        node = self._value(node)
        kind = (self._body.reading.called(node) or "").removeprefix(_MODULE)
        if kind not in _KINDS:
            raise StaysError(node, "write out this column, as a call or a name for one")
        given = arguments(node, _KINDS[kind])
        odd = set(given) - set(_KINDS[kind])
        if odd:
            raise StaysError(node, f"write what {min(odd)} of this column does in Keras")
        if kind == "crossed_column":
            return self._cross(node, given)
        inner = given.get("source_column") or given.get("categorical_column")
        if inner is None:
            if not isinstance(given["key"], ast.Constant):
                raise StaysError(node, "give this column a constant key")
            return _Column(str(given["key"].value), kind, given)
        source = self._column(inner)
        return _Column(f"{source.name}_{kind.partition('_')[0]}", kind, given, source)

    def _cross(self, node: Any, given: Any) -> Any:
        keys = getattr(given["keys"], "elts", ())
        if not keys or not all(isinstance(getattr(k, "value", None), str) for k in keys):
            raise StaysError(node, "cross features by their names: Keras hashes others otherwise")
        return _Column("_X_".join(sorted(k.value for k in keys)), "crossed_column", given)
