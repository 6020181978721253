"""Where a layer is made and where it is called: an attribute, or a list of them for a loop.

    joined_name(module, [node, "conv"])     # ('f"block_{i}_conv"', "block_conv")

For the node `"block_%d" % i`, in a loop over i.
"""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any

from estimator2strategy.tools.migrate.model_class import values
from estimator2strategy.tools.migrate.model_class.model_fn_parts import reads_of, writes_of
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError
from estimator2strategy.tools.migrate.model_class.scopes import joined_name, scopes_around
from estimator2strategy.tools.migrate.model_class.wrapping import joined
from estimator2strategy.tools.migrate.module import Module

# Attributes of a keras.Model that a layer must not hide.
_TAKEN = {
    "build", "built", "call", "compile", "dtype", "evaluate", "export", "fit", "input", "inputs",
    "layers", "loss", "losses", "metrics", "name", "optimizer", "output", "outputs", "path",
    "predict", "save", "summary", "trainable", "variables", "weights",
}  # fmt: skip
# These may run the code in them more than once, and are no loops of statements.
_REPEATED = (
    *(ast.While, ast.FunctionDef, ast.Lambda),
    *(ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp),
)


class Placing:
    """The attributes of a class that layers are kept in.

    Args:
        module: The file.
        body: The `Body` that calls the layers.

    Attributes:
        made: Attribute -> the text that makes the layer, or one of the layers of a list.
        notes: Attribute -> a comment for the line above.
        in_loops: Loop -> the names of its layers, each with what it goes through.
    """

    def __init__(self, module: Module, body: Any):
        self._module, self._body = module, body
        self.making = Rewriter(module, (self._of_loop, *values.VALUES))
        self.made: dict[Any, Any] = {}
        self.notes: dict[Any, Any] = {}
        self.in_loops: dict[Any, Any] = {}
        self._places: dict[Any, Any] = {}
        self._calls: dict[Any, Any] = {}
        self._shared: dict[Any, Any] = {}

    def make_text(self, node: Any) -> Any:
        """The text of an expression in `__init__`.

        Raises:
            StaysError: It reads a tensor.
        """
        if not hasattr(node, "lineno"):
            return ast.unparse(node)  # of ours
        self._check(node)
        return joined(self.making.text(node))

    def _check(self, node: Any) -> None:
        tensors = {n for n in reads_of(node) & self._body.tensors if n not in self._in_loop(node)}
        if tensors:
            name = min(tensors)
            raise StaysError(node, f"a layer is made before {name} is known: use a number here")

    def _in_loop(self, node: Any) -> Any:
        """The constants that are assigned in the loop around a node: name -> value."""
        constants: dict[Any, Any] = {}
        for outer in self.around(node):
            for statement in outer.body:
                if self._body.is_constant(statement):
                    constants |= dict.fromkeys(writes_of(statement), statement.value)
        return constants

    def _of_loop(self, node: Any, rewriter: Any) -> Any:
        """The value of what a loop assigns, in its place."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value = self._in_loop(node).get(node.id)
            if value is not None:
                text = rewriter.text(value)
                return text if isinstance(value, (ast.Name, ast.Constant)) else f"({text})"
        return None

    def around(self, node: Any) -> Any:
        """The loops and branches around a node, the outermost first."""
        blocks: list[Any] = []
        while node not in self._body.parts.modes and node.parent is not self._body.function:
            inner, node = node, node.parent
            if isinstance(node, _REPEATED) and inner not in getattr(node, "decorator_list", ()):
                raise StaysError(node, "write this as a loop of statements, for its layers")
            if isinstance(node, (ast.For, ast.If)) and inner in (*node.body, *node.orelse):
                blocks.insert(0, node)
        return blocks

    def scoped(self, call: Any, *more: Any) -> Any:
        """The nodes and texts that name what a call makes, and True if it is shared."""
        scopes, is_shared = scopes_around(self._module, call, self._body.function)
        if self._body.own_scope is not None:
            scopes = scopes[1:]
        return [*scopes, *more], is_shared

    def name_of(self, parts: Any) -> Any:
        """(text, base) of a name for `__init__`."""
        return joined_name(self._module, parts, self.make_text)

    def place(
        self,
        call: Any,
        parts: Any,
        base: Any,
        make: Any,
        *,
        is_plain: Any = False,
        plural: Any = "{}_layers",
    ) -> Any:
        """Finds an attribute, and notes what it is made of.

        Args:
            call: The call of the layer.
            parts: What its name is made of.
            base: The name of the attribute, where `parts` say none.
            make: Returns the text that makes it, of the text of its name.
            is_plain: True if the layer has no variables.
            plural: The name of a list of them.

        Returns:
            The attribute, and the text that is called.
        """
        name, known = self.name_of(parts) if parts else ("", "")
        places = [p for p in self.around(call) if not self._is_mode(p)]
        loops = [place for place in places if isinstance(place, ast.For)]
        of_loops = set().union(*(writes_of(loop.target) for loop in loops), set())
        attribute = self._free(known or base, plural if loops else "{}")
        is_numbered = known == name.strip('"') and attribute not in (known, f"{known}_layer")
        if not loops and (not name or is_numbered):
            name = f'"{attribute}"'
        text = make(name)
        if is_plain and loops and not reads_of(ast.parse(text)) & of_loops:
            loops, places = [], []
            attribute = self._free(known or base, "{}")
            text = make("")
        self.made[attribute], self._places[attribute] = text, places
        self._calls[attribute] = call
        if not loops:
            return attribute, f"self.{attribute}"
        singular = self._variable(known or base, loops[-1])
        source = f"self.{attribute}"
        for loop, level in zip(loops, reversed(range(len(loops))), strict=True):
            variable = singular + "s" * level
            self.in_loops.setdefault(loop, {})[variable] = source
            source = variable
        return attribute, singular

    def share(self, key: Any, place: Any) -> Any:
        """The text that is called for what several calls share."""
        if key not in self._shared:
            self._shared[key] = place()
        return self._shared[key]

    def _is_mode(self, place: Any) -> bool:
        is_flag = self._body.is_training
        return isinstance(place, ast.If) and any(
            is_flag(node, self.making) for node in ast.walk(place.test)
        )

    def _free(self, base: Any, form: Any) -> Any:
        name = form.format(re.sub(r"\W", "_", base) or "layer")
        if name in _TAKEN or keyword.iskeyword(name):
            name += "_layer"
        free, number = name, 1
        while free in self.made:
            free, number = f"{name}_{number}", number + 1
        return free

    def _variable(self, base: Any, loop: Any) -> Any:
        """The name for a layer in a loop."""
        name = re.sub(r"\W", "_", base)
        function = self._body.function
        taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        taken -= set(self._body.helpers.names)
        taken |= {argument.arg for argument in function.args.args}
        taken |= set(self.in_loops.get(loop, ()))
        return f"{name}_layer" if name in taken else name

    def lines(self) -> Any:
        """The lines of `__init__` that make the layers."""
        written = []
        for attribute, text in self.made.items():
            places = list(self._places.get(attribute, ()))
            tests = []
            while places and isinstance(places[0], ast.If):
                tests.append(self._test(places.pop(0), attribute))
            for place in reversed(places):
                if isinstance(place, ast.If):
                    text = f"{text} if {self._test(place, attribute)} else None"
                else:
                    target, iterated = self._module.written(place.target), place.iter
                    text = f"[{text} for {target} in {self.make_text(iterated)}]"
            indent = "    " if tests else ""
            written += [f"if {' and '.join(tests)}:"] if tests else []
            written += [indent + self.notes[attribute]] if attribute in self.notes else []
            written.append(f"{indent}self.{attribute} = {text}")
        return written

    def _test(self, branch: Any, attribute: Any) -> Any:
        text = self.make_text(branch.test)
        call = self._calls[attribute]
        while call.parent is not branch:
            call = call.parent
        return text if call in branch.body else f"not ({text})"


def base_of(call: Any, fallback: Any) -> Any:
    """The name that is assigned a layer's result, if it says more than `net`; or the fallback."""
    parent = call.parent
    is_assigned = isinstance(parent, ast.Assign) and len(parent.targets) == 1
    if is_assigned and isinstance(parent.targets[0], ast.Name):
        name = parent.targets[0].id
        return name if len(name) > 2 and name not in ("net", "inputs") else fallback
    return fallback


def snake(name: Any) -> Any:
    """`MaxPooling2D` as `max_pooling2d`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
