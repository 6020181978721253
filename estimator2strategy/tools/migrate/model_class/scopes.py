"""Variable scopes around a node, and names that are computed of what a loop goes through.

    joined_name(module, [node, "conv"])     # ('f"block_{i}_conv"', "block_conv")

For the node `"block_%d" % i`, in a loop over i.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from estimator2strategy.tools.migrate.model_class.rewriting import StaysError
from estimator2strategy.tools.migrate.module import Module

_SCOPES = ("tf.variable_scope", "tf.name_scope", "tf.control_dependencies")
_REUSE = ("tf.AUTO_REUSE",)
_OPTIONS = {"reuse", "values", "default_name", "regularizer"}


def scope_of_with(module: Module, statement: Any, item: Any) -> Any:
    """The node that names the variable scope of a `with`; None for what is no such scope.

    Raises:
        StaysError: It is another `with`, or a scope with options.
    """
    call = item.context_expr
    name = module.name(call.func) if isinstance(call, ast.Call) else None
    if name not in _SCOPES:
        raise StaysError(statement, f"take the layers out of {module.written(call)}")
    if name != "tf.variable_scope":
        return None
    scope = call.args[0] if call.args else None
    given = {keyword.arg for keyword in call.keywords}
    if scope is None or len(call.args) > 1 or given - {"reuse"}:
        raise StaysError(statement, "give this scope a name, and no options but reuse")
    return scope


def scopes_around(module: Module, node: Any, function: Any) -> Any:
    """The nodes that name the variable scopes around a node, and True if one is entered again."""
    is_shared = False
    names: list[Any] = []
    while node is not function:
        node = node.parent
        if isinstance(node, ast.With):
            inner = []
            item: Any
            for item in node.items:
                scope = scope_of_with(module, node, item)
                if scope is not None:
                    inner.append(scope)
                    is_shared |= bool(item.context_expr.keywords)
            names = [*inner, *names]
    return names, is_shared


def joined_name(module: Module, parts: Any, text_of: Any = None) -> Any:
    """(text, base) of a name of nodes and strings: an expression, and what is constant in it."""
    text_of = text_of or module.written
    pieces: list[Any] = []
    for part in parts:
        pieces += [*(["_"] if pieces else []), *_pieces(part, text_of)]
    if all(isinstance(piece, str) for piece in pieces):
        base = "".join(pieces)
        return f'"{base}"', base
    base = "".join(piece if isinstance(piece, str) else " " for piece in pieces)
    base = re.sub(r"[_ /]*\s[_ ]*", "_", base).strip("_")
    if len(parts) == 1 and not isinstance(parts[0], str):
        return text_of(parts[0]), base
    inside = "".join(p if isinstance(p, str) else f"{{{text_of(p[0])}}}" for p in pieces)
    return f'f"{inside}"', base


def _pieces(node: Any, text_of: Any) -> Any:
    """Strings, and (node,) for what is computed."""
    if isinstance(node, str):
        return [node]
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_pieces(node.left, text_of), *_pieces(node.right, text_of)]
    template, values = _template(node)
    if template is None:
        return [(node,)]
    texts = template.split("\0")
    if len(texts) != len(values) + 1:
        return [(node,)]
    pieces = [texts[0]]
    for value, text in zip(values, texts[1:], strict=True):
        pieces += [(value,), text]
    return [one for one in pieces if one != ""]


def _template(node: Any) -> Any:
    """The text of `"a_%d" % i` or `"a_{}".format(i)` with a NUL for each value, and the values."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return re.sub(r"%[ds]", "\0", node.left.value), values
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        text = node.func.value
        if node.func.attr == "format" and isinstance(text, ast.Constant) and not node.keywords:
            return re.sub(r"\{\d?\}", "\0", str(text.value)), node.args
    elif isinstance(node, ast.JoinedStr):
        parts: Any = node.values
        texts = ["" if isinstance(v, ast.FormattedValue) else v.value for v in parts]
        values = [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
        marked = [
            "\0" if isinstance(v, ast.FormattedValue) else t
            for v, t in zip(node.values, texts, strict=True)
        ]
        return "".join(marked), values
    return None, ()
