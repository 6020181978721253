"""Functions that make layers for a model_fn: each becomes a `keras.layers.Layer`.

    def block(net, filters, training): ...      # class Block(keras.layers.Layer)
    net = block(net, 16, training)              # net = self.block(net, training=training)

A function that returns one layer's result returns that layer. The function may be in another file
of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate.model_class import wrapping
from estimator2strategy.tools.migrate.model_class.body import Body
from estimator2strategy.tools.migrate.model_class.model_fn_parts import (
    ModelFnParts,
    makes_weights,
    reads_of,
)
from estimator2strategy.tools.migrate.model_class.placing import base_of
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments
from estimator2strategy.tools.migrate.model_class.scopes import scope_of_with
from estimator2strategy.tools.migrate.model_class.wrapping import joined
from estimator2strategy.tools.migrate.module import Module
from estimator2strategy.tools.reader.source import Import


class NewNames:
    """Spells new names, and imports them where the old ones were imported.

    Args:
        program: The files.
    """

    def __init__(self, program: Any):
        self._program = program
        self._imports: dict[Any, Any] = {}
        self._spelled: set[Any] = set()

    def spelled(self, node: Any, new: Any) -> Any:
        """The spelling of a new name in the place of a node that names a function."""
        module = self._program.module_of(node)
        self._spelled.add(node)
        if isinstance(node, ast.Attribute):
            return f"{module.written(node.value)}.{new}"
        scope = module.source.scope_of(node).find(node.id)
        if scope is None:
            raise StaysError(node, f"import {node.id} by its name first")
        for value in scope.bindings[node.id]:
            if isinstance(value, Import):
                of_statement = self._imports.setdefault(value.node, {})
                of_statement.setdefault(value.name, {})[new] = None
        return new

    def check_reads(self, converted: Any) -> None:
        """Raises StaysError if a file would still read one of the functions.

        Args:
            converted: The functions.
        """
        inside = {node for function in converted for node in ast.walk(function)}
        for function in converted:
            name = self._program.name_of(function)
            message = f"{function.name} becomes a part of a Keras model: change this first"
            for module in self._program.readers(function):
                source = module.source
                for node, scope in source.chains:
                    known = node in self._spelled or node in inside
                    if not known and source.resolve(node, scope) == name:
                        raise StaysError(node, message)
                for target, _ in source.imports:
                    is_imported = target.name == function.name and target.node not in self._imports
                    if is_imported and source.follow(source, target) == name:
                        raise StaysError(target.node, message)

    def changes(self) -> Iterator[Any]:
        """Yields a change for each import."""
        for statement, names in self._imports.items():
            module = self._program.module_of(statement)
            imports: dict[Any, Any] = {}
            for alias in statement.names:
                imports |= names.get(alias.name, {ast.unparse(alias): None})
            limit = wrapping.line_limit_of(module.source.path)
            head = f"from {'.' * statement.level}{statement.module or ''} import "
            text = head + ", ".join(imports)
            if len(text) + statement.col_offset > limit:
                indent = " " * statement.col_offset
                listed = "".join(f"{indent}    {name},\n" for name in imports)
                text = f"{head}(\n{listed}{indent})"
            yield module.replace_statement(statement, text, is_dedented=True)


TENSOR, TRAINING, CONSTANT = "tensor", "training", "constant"
_OF_LAYER = ("tf.layers.", "tf.keras.layers.")


class Helpers:
    """The functions that make layers: those of a file, and those of others that it calls.

    Args:
        module: The file.
        model_fn: The function that calls them.
        new_names: Spells the names of their layers, a `NewNames`.
    """

    def __init__(self, module: Module, model_fn: Any, new_names: Any):
        self.module, self.new_names = module, new_names
        self._program = module.program
        self._rewriter = Rewriter(module, ())
        self._of: dict[Any, Any] = {}
        functions = [
            node
            for node in module.source.tree.body
            if isinstance(node, ast.FunctionDef) and node is not model_fn
        ]
        functions += self._of_others([model_fn, *functions])
        makers: Any = [None]
        while makers:  # functions that call those that were found make layers too
            makers = [f for f in functions if f not in self._of and self._makes(f)]
            self._of |= {function: HelperFunction(self, function) for function in makers}

    def _of_others(self, functions: Any) -> Any:
        """The functions of other files that these call, directly or not."""
        todo = list(functions)
        others: dict[Any, Any] = {}
        while todo:
            for node in ast.walk(todo.pop()):
                called = isinstance(node, ast.Call) and self._program.defined(node.func)
                is_function = isinstance(called, ast.FunctionDef)
                if is_function and called not in others and called not in functions:
                    others[called] = None
                    todo.append(called)
        return list(others)

    def _makes(self, function: Any) -> bool:
        calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
        return any(self.makes_weights(call) for call in calls)

    @property
    def names(self) -> Any:
        """The names of the functions."""
        return [function.name for function in self._of]

    def functions(self) -> Any:
        """The functions."""
        return list(self._of)

    def makes_weights(self, call: Any) -> Any:
        """True for a call of a layer, or of a function that makes one."""
        name = self._rewriter.called(call) or ""
        return makes_weights(name) or self.of_call(call) is not None

    def of_call(self, node: Any) -> Any:
        """The helper that a node calls; None for another node."""
        if not isinstance(node, ast.Call) or not self._of:
            return None
        return self._of.get(self._program.defined(node.func))

    def learn(self, body: Any) -> None:
        """Finds out what each argument of the helpers is, from the calls in a body on."""
        bodies, changed = {None: body}, True
        while changed:
            changed = False
            for caller in list(bodies.values()):
                for node in ast.walk(caller.function):
                    helper = self.of_call(node)
                    if helper is not None and (helper.learn(node, caller) or helper not in bodies):
                        bodies[helper] = helper.make_body()
                        changed = True
        unused = [h for h in self._of.values() if h not in bodies]
        if unused:
            raise StaysError(unused[0].function, "bring this layer into the model_fn first")
        for helper in self._of.values():
            helper.write()

    def changes(self) -> Iterator[Any]:
        """Yields a change for each function."""
        for helper in self._of.values():
            imports = [("keras", None, None)]
            yield helper.module.replace_statement(helper.function, helper.written, imports)

    def is_regularized(self) -> bool:
        """True if one of their layers adds losses."""
        return any(helper.body.layers.is_regularized for helper in self._of.values())

    def looks_up(self) -> bool:
        """True if one of their layers looks up rows of a table."""
        return any(helper.body.layers.looks_up for helper in self._of.values())


class HelperFunction:
    """A function that makes layers.

    Attributes:
        function: The function.
        written: The class, or the function, in its place.
    """

    def __init__(self, helpers: Any, function: Any):
        self.helpers, self.function = helpers, function
        self.module = helpers.module.program.module_of(function)
        self.limit = wrapping.line_limit_of(self.module.source.path)
        if not self.module.program.may_change(self.module):
            where = self.module.source.path
            raise StaysError(function, f"migrate {where} with this file: it makes layers for it")
        given = function.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            raise StaysError(function, "write out the arguments of this function")
        self._names = [argument.arg for argument in given.args]
        values = given.defaults
        self._defaults = dict(
            zip(self._names[len(self._names) - len(values) :], values, strict=True)
        )
        self._kinds = dict.fromkeys(self._names, CONSTANT)
        self._statements, self._scope, self._is_shared = self._read()
        self.body: Any = None
        self.written = ""

    def _read(self) -> Any:
        """The statements, the node that names the scope around all, and if it is entered again."""
        statements = list(self.function.body)
        if ast.get_docstring(self.function):
            statements = statements[1:]
        if len(statements) == 1 and isinstance(statements[0], ast.With):
            (outer,) = statements
            if len(outer.items) == 1:
                scope = scope_of_with(self.module, outer, outer.items[0])
                if scope is not None:
                    return outer.body, scope, bool(outer.items[0].context_expr.keywords)
        return statements, None, False

    # Its arguments.

    def learn(self, call: Any, caller: Any) -> Any:
        """Notes what the arguments of a call are; True if that is news."""
        before = dict(self._kinds)
        for name, node in arguments(call, self._names).items():
            if name not in self._kinds:
                raise StaysError(call, f"{self.function.name} takes no {name}")
            if caller.is_training(node, caller.reading) or _is_mode(node):
                self._kinds[name] = TRAINING
            elif reads_of(node) & caller.tensors or self._makes(node):
                self._kinds[name] = TENSOR
        return before != self._kinds

    def _makes(self, node: Any) -> bool:
        calls = (n for n in ast.walk(node) if isinstance(n, ast.Call))
        return any(self.helpers.makes_weights(call) for call in calls)

    def _of(self, kind: Any) -> Any:
        return [name for name, known in self._kinds.items() if known == kind]

    def constants_of(self, call: Any) -> Any:
        """The arguments of a call that go to `__init__`."""
        given = arguments(call, self._names)
        return [node for name, node in given.items() if self._kinds.get(name) == CONSTANT]

    def make_body(self) -> Any:
        """The statements, with what is known of the arguments."""
        parts = ModelFnParts(forward=self._statements, own_scope=self._scope)
        parts.modes = {statement: {"train"} for statement in self._statements}
        self.body = Body(
            self.module, self.function, parts, self.limit, self.helpers,
            tensors=self._of(TENSOR), constants=self._of(CONSTANT), training=self._of(TRAINING),
        )  # fmt: skip
        return self.body

    # The function.

    def _is_maker(self) -> Any:
        """True if it returns what one layer makes of its argument."""
        (last,) = self._statements[-1:]
        call = getattr(last, "value", None)
        if len(self._statements) != 1 or not isinstance(call, ast.Call) or self._scope is not None:
            return False
        rewriter = self.body.reading
        name = rewriter.called(call) or rewriter.called(call.func) or ""
        tensors = self._of(TENSOR)
        takes = reads_of(call) & {*tensors}
        of_one = call.args[:1] or [k.value for k in call.keywords if k.arg == "inputs"]
        is_one = len(tensors) == 1 and isinstance(of_one[0], ast.Name) and takes == {*tensors}
        return isinstance(last, ast.Return) and name.startswith(_OF_LAYER) and is_one

    def write(self) -> None:
        """Writes the class, or the function that returns a layer."""
        body, name = self.body, self.function.name
        lines = [line for _, written in body._statements() for line in written]
        lines[-1:-1] = body._comments_left("\n".join(lines))
        scope = self._scope
        named = scope.id if isinstance(scope, ast.Name) and scope.id in body.constants else None
        taken = [n for n in self._of(CONSTANT) if n != named]
        if self._is_maker():
            made = next(iter(body.layers.made.values()))
            head = f"def {name}({', '.join(self._signature(taken))}):"
            lines = body._block(
                [*self._doc(), *body._constants_of([made]), f"return {made}"], "    "
            )
            self.written = "\n".join([*wrapped_head(head, body.limit), *lines]) + "\n"
            return
        takes = self._signature(self._of(TENSOR))
        trains = self._of(TRAINING) or any("training" in line for line in lines)
        made = body._made()
        of_class = self._signature([n for n in taken if n != "name"])
        head = f"    def __init__({', '.join(['self', *of_class, 'name=None'])}):"
        call = ["self", *takes, *(["training=False"] if trains else [])]
        text = [
            f"class {self.class_name()}(keras.layers.Layer):",
            *body._block(self._doc(), "    "),
            "",
            *wrapped_head(head, body.limit),
            *body._block(["super().__init__(name=name)", *made]),
            "",
            *wrapped_head(f"    def call({', '.join(call)}):", body.limit),
            *body._block(lines),
        ]
        self.written = "\n".join(text) + "\n"

    def _doc(self) -> Any:
        written = ast.get_docstring(self.function)
        return [f'"""{written.splitlines()[0]}"""'] if written else []

    def _signature(self, names: Any) -> Any:
        return [
            f"{name}={joined(self.module.written(self._defaults[name]))}"
            if name in self._defaults
            else name
            for name in names
        ]

    def class_name(self) -> str:
        """The name of the class: `ResidualBlock`."""
        return "".join(word.capitalize() for word in self.function.name.split("_") if word)

    # A call of it.

    def text(self, call: Any, caller: Any, rewriter: Any) -> str:
        """The call of the layer that takes its place."""
        given = arguments(call, self._names)
        inside = [
            f"{'' if n < len(call.args) else name + '='}{rewriter.text(given[name])}"
            for n, name in enumerate(self._names)
            if name in given and self._kinds[name] == TENSOR
        ]
        for name in self._of(TRAINING):
            if name in given:
                is_mode = _is_mode(given[name])
                text = "training" if is_mode else joined(rewriter.text(given[name]))
                inside.append(f"training={text}")
        _, called = self._placed(call, given, caller)
        return f"{called}({', '.join(inside)})"

    def _placed(self, call: Any, given: Any, caller: Any) -> Any:
        layers, scope = caller.layers, self._scope
        own = []
        if isinstance(scope, ast.Name) and scope.id in given:
            own = [given.pop(scope.id)]
        elif isinstance(scope, ast.Name) and scope.id in self._defaults:
            own = [self._defaults[scope.id]]
        elif scope is not None:
            own = [scope]
        elif "name" in given:
            own = [given.pop("name")]
        kept = {name: given[name] for name in given if self._kinds[name] == CONSTANT}
        parts, is_shared = layers.scoped(call, *own)
        by_place = {id(node) for node in call.args}
        constants = ", ".join(
            layers.make_text(node) if id(node) in by_place else f"{name}={layers.make_text(node)}"
            for name, node in kept.items()
        )
        new = self.function.name if self._is_maker() else self.class_name()
        function = self.helpers.new_names.spelled(call.func, new)

        def make(name: Any) -> str:
            inside = [one for one in (constants, f"name={name}" if name else "") if one]
            return f"{function}({', '.join(inside)})"

        base = base_of(call, self.function.name) if not parts else self.function.name
        if not self._is_maker() and not own and any(not isinstance(p, ast.Constant) for p in parts):
            base = self.function.name

        def place() -> Any:
            return layers.place(
                call, parts or [], base, make, plural="{}_layers" if self._is_maker() else "{}s"
            )

        if is_shared or self._is_shared:
            dumped = tuple(p if isinstance(p, str) else ast.dump(p) for p in parts)
            return layers.share((function, dumped, constants), place)
        return place()


def wrapped_head(line: Any, limit: Any) -> Any:
    """The lines of a `def`."""
    if len(line) <= limit:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    name, _, rest = line.partition("(")
    return [f"{name}(", f"{indent}    {rest.removesuffix('):')}", f"{indent}):"]


def _is_mode(node: Any) -> Any:
    return isinstance(node, ast.Name) and node.id == "mode"
