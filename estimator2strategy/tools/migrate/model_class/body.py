"""A function's statements as those of a Keras class: what `__init__` makes, `call` computes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.migrate.model_class import rewriting, values
from estimator2strategy.tools.migrate.model_class.column_layers import Columns
from estimator2strategy.tools.migrate.model_class.layer_calls import Layers, Recurrent
from estimator2strategy.tools.migrate.model_class.model_fn_parts import (
    SPEC,
    names_in,
    reads_of,
    writes_of,
)
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, arguments
from estimator2strategy.tools.migrate.model_class.scopes import scope_of_with
from estimator2strategy.tools.migrate.model_class.wrapping import joined, wrapped
from estimator2strategy.tools.migrate.module import Module
from estimator2strategy.tools.reader.python_files import comments

_MAKE = ("tf.layers.", "tf.keras.layers.", "tf.get_variable", "tf.feature_column.")


class Body:
    """Writes the statements of a function.

    Args:
        module, function, parts: The function, and its parts.
        limit: The longest line.
        helpers: The functions that make layers, a `Helpers`.
        tensors: The arguments of the function that are tensors.
        constants: The arguments that `__init__` takes.
        training: The arguments that say if the model trains.
    """

    def __init__(
        self,
        module: Module,
        function: Any,
        parts: Any,
        limit: Any,
        helpers: Any,
        *,
        tensors: Any,
        constants: Any,
        training: Any = (),
    ):
        self.module, self.function, self.parts, self.limit = module, function, parts, limit
        self.helpers, self.constants, self._training = helpers, constants, set(training)
        self.own_scope = parts.own_scope
        self.tensors = self._find_tensors(set(tensors))
        self.layers = Layers(module, self)
        self._variables: dict[Any, Any] = {}
        self._kept_constants: dict[Any, Any] = {}
        self.reading = Rewriter(module, ())
        self._recurrent, self._columns = Recurrent(self), Columns(self)
        self._called = Rewriter(
            module,
            (self._flag, values.no_mode, self._kept, *values.VALUES, self._helper,
             self._recurrent.rule, self._columns.rule, self.layers.rule, rewriting.keras_op),
        )  # fmt: skip

    # Lines.

    def _block(self, lines: Any, indent: Any = "        ") -> Any:
        """Lines of code, within the limit."""
        written: list[Any] = []
        for line in lines:
            extra = line[: len(line) - len(line.lstrip())]
            written += wrapped(line.lstrip(), self.limit, indent + extra) if line else [""]
        return written

    def _written(self, statement: Any, rewriter: Any) -> Any:
        """The lines of a statement: the comments that it has, then its code on one line."""
        comments = self._comments(statement)
        if self._makes(statement) and isinstance(statement, (ast.For, ast.If, ast.With)):
            return [*comments, *self._nested(statement, rewriter)]
        of_cell = self._recurrent.lines(statement, rewriter)
        if of_cell is not None:
            return [*comments, *of_cell]
        code = rewriter.text(statement)
        if "#" in code:
            code = "\n".join(line.partition("  #")[0] for line in code.splitlines())
        if isinstance(statement, (ast.For, ast.If, ast.While, ast.With)):
            return [*comments, *self._compound(statement, code)]
        return [*self._columns.taken_lines(), *comments, joined(code)]

    def _nested(self, statement: Any, rewriter: Any) -> Any:
        """The lines of a loop, a branch or a scope that has layers in it."""
        if isinstance(statement, ast.With):
            for item in statement.items:
                scope_of_with(self.module, statement, item)
            return [line for one in statement.body for line in self._one(one, rewriter)]
        inside = self._inner(statement.body, rewriter)
        if isinstance(statement, ast.For):
            return [self._loop_head(statement, inside, rewriter), *inside]
        lines = [f"if {joined(rewriter.text(statement.test))}:", *inside]
        if statement.orelse:
            lines += ["else:", *self._inner(statement.orelse, rewriter)]
        return lines

    def _one(self, statement: Any, rewriter: Any) -> Any:
        """The lines of a statement in a block; none for that of a variable."""
        return [] if self._is_variable(statement) else self._written(statement, rewriter)

    def _inner(self, statements: Any, rewriter: Any) -> Any:
        """The lines of a block; a constant that only layers read is left out."""
        written = [(one, self._one(one, rewriter)) for one in statements]
        found: list[Any] = []
        for one, lines in written:
            others = [line for other, more in written if other is not one for line in more]
            read = set().union(*map(names_in, others), set())
            is_read = not self.is_constant(one) or writes_of(one) & read
            found += lines if is_read else []
        return [f"    {line}" for line in found] or ["    pass"]

    def _loop_head(self, loop: Any, inside: Any, rewriter: Any) -> str:
        """`for units, dense in zip(params["units"], self.dense_layers):`."""
        of_layers = self.layers.in_loops.get(loop, {})
        iterated = dict.fromkeys(of_layers.values())
        names = [next(n for n, source in of_layers.items() if source == one) for one in iterated]
        targets, sources = names, list(iterated)
        read = set().union(*map(names_in, inside), set())
        if {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)} & read or not sources:
            target = self.module.written(loop.target)
            is_tuple = isinstance(loop.target, ast.Tuple) and sources and target[0] != "("
            targets = [f"({target})" if is_tuple else target, *targets]
            sources = [joined(rewriter.text(loop.iter)), *sources]
        if len(sources) == 1:
            return f"for {targets[0]} in {sources[0]}:"
        return f"for {', '.join(targets)} in zip({', '.join(sources)}):"

    def _compound(self, statement: Any, code: Any) -> Any:
        """A loop or a branch, with the indentation that it has in the model."""
        first, *lines = code.splitlines()
        less = statement.col_offset
        return [first, *(line[less:] if line[:less].isspace() else line for line in lines)]

    def _comments(self, statement: Any) -> Any:
        """The comments above a statement and in it."""
        lines = self.module.lines
        above = [lines[number].strip() for number in self.module.comments_above(statement)]
        above = [line for line in above if "TODO(e2s)" not in line]
        if not isinstance(statement, (ast.For, ast.If, ast.While, ast.With)):
            for line in lines[statement.lineno - 1 : statement.end_lineno]:
                code, mark, comment = line.partition("  # ")
                if mark and code.strip():
                    above.append(f"# {comment.strip()}")
        return above

    def _comments_left(self, written: Any) -> Any:
        """The comments of the function that stand at no statement of the model."""
        first, last = self.function.body[0].lineno, self.function.end_lineno
        left = []
        for number in sorted(comments(self.module.text)):
            _, _, comment = self.module.lines[number - 1].rpartition("# ")
            text = f"# {comment.strip()}"
            is_mark = "TODO(e2s)" in self.module.lines[number - 1]
            if first - 1 <= number <= last and not is_mark and text not in written:
                left.append(text)
        return left

    # Rules.

    def is_training(self, node: Any, rewriter: Any) -> bool:
        """True for a name or a test that says that the model trains."""
        return self._flag(node, rewriter) is not None

    def _flag(self, node: Any, rewriter: Any) -> Any:
        """`training` for a name or a test that says that the model trains."""
        if isinstance(node, ast.Name) and node.id in self._training:
            return "training"
        if isinstance(node, ast.Name) and node.id in self.parts.flags:
            node = self.parts.flags[node.id]
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            known = {rewriter.name(n) for n in (node.left, *node.comparators)}
            if any(values.MODES.get(name) == "train" for name in known):
                return "training"
        return None

    def _kept(self, node: Any, rewriter: Any) -> Any:
        """`self.table` for a variable of the function, `self.params` for what `__init__` takes."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id in self.constants:
                self._kept_constants[node.id] = None
                return f"self.{node.id}"
            attribute = self._variables.get(node.id)
            return f"self.{attribute}" if attribute else None
        return None

    def _helper(self, node: Any, rewriter: Any) -> Any:
        """The call of a layer, for that of a function that makes layers."""
        called = self.helpers.of_call(node)
        return called and called.text(node, self, rewriter)

    # Lines of `__init__`.

    def _made(self) -> Any:
        """The lines that make the layers, and what they are made of."""
        lines = self.layers.lines()
        lines[:0] = [f"self.{name} = {name}" for name in self._kept_constants]
        return [*self._constants_of(lines), *lines]

    def _constants_of(self, made: Any) -> Any:
        """The statements that make what the layers are made of: regularizers, say."""
        read = set().union(*map(names_in, made), set())
        kept: list[Any] = []
        for statement in reversed(self._constants):
            if writes_of(statement) & read:
                read |= reads_of(statement)
                kept.insert(0, statement)
        making = Rewriter(self.module, values.VALUES)
        return [line for statement in kept for line in self._written(statement, making)]

    def _statements(self) -> Iterator[Any]:
        """Yields each statement of `call`, with its lines."""
        self._constants = [s for s in self.parts.forward if self.is_constant(s)]
        others = [s for s in self.parts.forward if s not in self._constants]
        read = set().union(*(reads_of(s) - self._of_layers(s) for s in others), self._read_later())
        for statement in reversed(self._constants):
            if writes_of(statement) & read:
                read |= reads_of(statement)
                others.append(statement)
        for statement in self.parts.forward:
            if statement in others and not self._is_variable(statement):
                yield statement, self._written(statement, self._called)

    def _read_later(self) -> Any:
        """The names that are read behind the forward pass."""
        later = (*self.parts.loss, *self.parts.metrics, *self.parts.summaries)
        given = [arguments(spec, SPEC) for spec in self.parts.specs.values()]
        values = [one[name] for one in given for name in ("predictions", "loss") if name in one]
        return set().union(*map(reads_of, (*later, *values)), set())

    def _of_layers(self, statement: Any) -> Any:
        """The names that a statement reads as arguments of layers alone."""
        inside = set()
        node: Any
        for node in ast.walk(statement):
            name = self._called.called(node) or ""
            helper = self.helpers.of_call(node)
            if helper:
                arguments_of = helper.constants_of(node)
            elif name.startswith("tf.layers.") and not name[10:11].isupper():
                arguments_of = [*node.args[1:], *(k.value for k in node.keywords)]
            elif name.startswith(_MAKE):
                arguments_of = [*node.args, *(k.value for k in node.keywords)]
            else:
                continue
            inside |= {n for one in arguments_of for n in ast.walk(one) if isinstance(n, ast.Name)}
        all_reads = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
        outside = {n.id for n in all_reads if n not in inside}
        return {n.id for n in inside} - outside

    def _makes(self, statement: Any) -> bool:
        """True if there are layers, or variables, in a statement."""
        calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call))
        return any(self.helpers.makes_weights(call) for call in calls)

    def is_constant(self, statement: Any) -> Any:
        """True for an assignment that reads no tensor."""
        is_plain = isinstance(statement, ast.Assign) and not self._makes(statement)
        return is_plain and not reads_of(statement) & self.tensors

    def _find_tensors(self, tensors: Any) -> Any:
        """The names of what depends on tensors."""
        for _ in range(2):  # what a loop computes is read when it comes around again
            self._add_tensors([*self.parts.forward, *self.parts.loss], tensors)
        return tensors

    def _add_tensors(self, statements: Any, tensors: Any) -> None:
        for one in statements:
            if isinstance(one, (ast.For, ast.If, ast.With)):
                if isinstance(one, ast.For) and reads_of(one.iter) & tensors:
                    tensors |= writes_of(one.target)
                self._add_tensors([*one.body, *getattr(one, "orelse", ())], tensors)
            elif self._makes(one) or reads_of(one) & tensors or not isinstance(one, ast.Assign):
                tensors |= writes_of(one)

    def _is_variable(self, statement: Any) -> bool:
        if self._recurrent.is_cell(statement):
            return True
        call = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign) or self._called.called(call) != "tf.get_variable":
            return False
        name = getattr(statement.targets[0], "id", None)
        reads = [
            node
            for node, scope in self.module.source.chains
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and node.id == name
            and scope.function is self.function
        ]
        name, attribute = self.layers.variable(statement, self._called, reads)
        if not self.layers.is_table(name):
            self._variables[name] = attribute
        return True
