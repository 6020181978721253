"""A call as its text, with other arguments and all white space and comments that stay.

    call = CallText(module, node)
    call.arguments[0].value          # "(x + y)"
    call.text("tf.cast", call.arguments[1:])

An argument keeps its parentheses, and the comments behind it.
"""

from __future__ import annotations

import ast
import dataclasses

from estimator2strategy.tools.migrate.module import Module


@dataclasses.dataclass(frozen=True)
class ArgumentText:
    """An argument of a call.

    Attributes:
        name: Its keyword; None for one by position.
        value: The text of its value, with the parentheses around it.
        between: The text between its keyword and the value: "=".
        gap: The text behind it: a comma, white space, comments.
    """

    name: str | None
    value: str
    between: str
    gap: str

    @property
    def text(self) -> str:
        return self.value if self.name is None else f"{self.name}{self.between}{self.value}"

    def named(self, name: str) -> ArgumentText:
        """This argument by its keyword."""
        return self if self.name else dataclasses.replace(self, name=name, between="=")

    def renamed(self, name: str) -> ArgumentText:
        """This argument by another keyword, if it has one."""
        return dataclasses.replace(self, name=name) if self.name else self


class CallText:
    """The text of a call that has no starred arguments.

    Attributes:
        arguments: Its arguments, in the order of the text.
    """

    def __init__(self, module: Module, node: ast.Call):
        self._text = module.text
        self.span = module.span(node)
        self._open = self._skip(module.span(node.func)[1], ")") + 1
        given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        places = sorted(((module.span(one), one) for one in given), key=lambda place: place[0])
        spans = [self._with_parentheses(place) for place, _ in places]
        ends = [first for first, _ in spans[1:]] + [self.span[1] - 1]
        self._before = self._text[self._open : spans[0][0]] if spans else ""
        self.arguments = [
            self._argument(one, span, module, following)
            for (_, one), span, following in zip(places, spans, ends, strict=True)
        ]

    def _argument(
        self, one: ast.expr | ast.keyword, span: tuple[int, int], module: Module, following: int
    ) -> ArgumentText:
        start, end = span
        name, between = None, ""
        if isinstance(one, ast.keyword):
            name = one.arg
            value, _ = self._with_parentheses(module.span(one.value))
            between = self._text[start + len(name or "") : value]
            start = value
        return ArgumentText(name, self._text[start:end], between, self._text[end:following])

    def _with_parentheses(self, span: tuple[int, int]) -> tuple[int, int]:
        """The place of an expression with the parentheses around it."""
        start, end = span
        while True:
            before = start - 1
            while before >= self._open and self._text[before].isspace():
                before -= 1
            if before < self._open or self._text[before] != "(":
                return start, end
            start, end = before, self._skip(end, "") + 1

    def _skip(self, at: int, also: str) -> int:
        """The place of the next character that is no space, comment or one of these."""
        while True:
            character = self._text[at]
            if character == "#":
                at = self._text.index("\n", at)
            elif not character.isspace() and character not in (also or " ") and character != "\\":
                return at
            at += 1

    def text(self, function: str, arguments: list[ArgumentText]) -> str:
        """The call of a function, with arguments that end as those of this one."""
        if not arguments:
            return f"{function}()"
        last = self.arguments[-1].gap
        inner = "".join(one.text + one.gap for one in arguments[:-1])
        return f"{function}({self._before}{inner}{arguments[-1].text}{last})"
