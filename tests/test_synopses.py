"""Synopses in docstrings of modules are code, and call what there is, with arguments that it takes.

A synopsis is a block that is indented by four spaces and is Python; drawings and commands are not.
Its names are those of its module, of the package, and of `OF_THE_READER`. What it calls must take
these arguments, and what it asks of a value of this package must be there.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import contextlib
import dataclasses
import enum
import functools
import importlib
import inspect
import re
import textwrap
import types
import typing
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import estimator2strategy
from estimator2strategy import estimator, legacy
from estimator2strategy.engine.names import name_table

PACKAGE = Path(estimator2strategy.__file__).parent
EXTRAS = ("jax", "jaxlib", "flatbuffers")  # a user may not have them

# What whoever reads a synopsis has: a model, its input, a graph, files.
OF_THE_READER = frozenset(
    {
        *(
            "arguments",
            "average",
            "block",
            "class_node",
            "eval_input_fn",
            "iterator",
            "make",
            "new",
        ),
        *("failures", "new", "outputs", "parts", "read", "rewrite", "rule", "target", "w"),
        *("base", "costs", "row", "rows"),
        "helpers",
        "batches",
        "devices",
        "importer",
        "lowered",
        "nodes",
        "place",
        "precision",
        "queues_of",
        "runners_of",
        "seed",
        "seed2",
        "shape",
        "state",
        "step",
        "v",
        "variables",
        "batch",
        "call",
        "call_model_fn",
        "calls",
        "chosen",
        "cluster",
        "compile_batch",
        "computation",
        "config",
        "dataset",
        "features",
        "fed",
        "feeds",
        "files",
        "FLAGS",
        "folder",
        "graph",
        "handle_of",
        "held_out",
        "hlo_module",
        "ids",
        "images",
        "init_op",
        "input_fn",
        "keras_model",
        "labels",
        "logits",
        "loss",
        "metric_fn",
        "mode",
        "model",
        "model_dir",
        "model_fn",
        "program",
        "function",
        "shown",
        "module",
        "my_auc",
        "network",
        "node",
        "observed",
        "optimizer",
        "options",
        "pairs",
        "params",
        "parser",
        "path",
        "predictions",
        "recorded",
        "recording",
        "replay",
        "report",
        "run_config",
        "run_metadata",
        "scope",
        "serving_input_receiver_fn",
        "spec",
        "strategy",
        "subject",
        "tensors",
        "text",
        "train_op",
        "update",
        "value",
        "values_of",
        "word",
        "word_x_color",
        "x",
    }
)
SHARED = {
    **{name: getattr(estimator, name) for name in estimator.__all__},
    "estimator": estimator,
    "estimator2strategy": estimator2strategy,
    "keras": keras,
    "legacy": legacy,
    "name_table": name_table,
    "tf": tf,
}
# Whoever imports it is a legacy program from then on.
NOT_IMPORTED = {"legacy_pytest.py"}
UNKNOWN = object()


@dataclasses.dataclass(frozen=True)
class InstanceOf:
    """Some object of a class of this package."""

    kind: type


def blocks(docstring: str, indented: bool) -> list[str]:
    """The paragraphs after the first that are Python, indented or not; indented ones as one."""
    found = []
    for paragraph in re.split(r"\n(?:\s*\n)+", docstring.rstrip())[1:]:
        if paragraph.startswith("    ") is not indented:
            continue
        code = textwrap.dedent(paragraph)
        with contextlib.suppress(SyntaxError):
            ast.parse(code)
            found.append(code)
    return ["\n".join(found)] if found and indented else found


DOCSTRINGS = {
    path.relative_to(PACKAGE).as_posix(): ast.get_docstring(
        ast.parse(path.read_text()), clean=False
    )
    or ""
    for path in sorted(PACKAGE.rglob("*.py"))
}
SYNOPSES = {path: code for path, text in DOCSTRINGS.items() for code in blocks(text, indented=True)}


def test_code_of_a_docstring_is_indented():
    assert [path for path, text in DOCSTRINGS.items() if blocks(text, indented=False)] == []


@pytest.mark.parametrize("path", SYNOPSES)
def test_a_synopsis_calls_what_there_is(path):
    names = {**vars(builtins), **SHARED}
    if path not in NOT_IMPORTED:
        module = ".".join(["estimator2strategy", *Path(path).with_suffix("").parts])
        try:
            names |= vars(importlib.import_module(module.removesuffix(".__init__")))
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            pytest.skip(f"{error.name} is not installed")
    reading = Reading(names)
    reading.visit(ast.parse(SYNOPSES[path]))
    assert reading.wrong == []


class Reading(ast.NodeVisitor):
    """Reads code from top to bottom; `wrong` says what it asks for that is not there."""

    def __init__(self, names: dict[str, Any]):
        self.wrong: list[str] = []
        self._names = {**dict.fromkeys(OF_THE_READER, UNKNOWN), **names}

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assign(node.targets, self._value(node.value))

    def visit_For(self, node: ast.For) -> None:
        self._assign([node.target], element(self._value(node.iter)))
        self._each(node.body)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            entered = self._value(item.context_expr)
            if item.optional_vars:
                self._assign([item.optional_vars], element(entered))
        self._each(node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self._value(decorator)
        self._names[node.name] = UNKNOWN
        self._names.update((argument.arg, UNKNOWN) for argument in node.args.args)
        self._each(node.body)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._names[alias.asname or alias.name] = importlib.import_module(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = importlib.import_module(node.module or "")
        for alias in node.names:
            self._names[alias.asname or alias.name] = getattr(module, alias.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._names.update((argument.arg, UNKNOWN) for argument in node.args.args)
        self._value(node.body)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, [node.key, node.value])

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_Name(self, node: ast.Name) -> None:
        self._value(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._value(node)

    def visit_Call(self, node: ast.Call) -> None:
        self._value(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._value(node)

    def _each(self, nodes: list[Any]) -> None:
        for node in nodes:
            self.visit(node)

    def _comprehension(self, generators: list[ast.comprehension], values: list[ast.expr]) -> None:
        for generator in generators:
            self._assign([generator.target], element(self._value(generator.iter)))
        self._each(values)

    def _assign(self, targets: list[ast.expr], value: Any) -> None:
        for target in targets:
            if isinstance(target, ast.Name):
                self._names[target.id] = value
            else:
                names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
                self._names.update(dict.fromkeys(names, UNKNOWN))

    def _value(self, node: ast.expr) -> Any:
        """What an expression is, as far as it is known."""
        if isinstance(node, ast.Name):
            if node.id not in self._names:
                self.wrong.append(f"there is no {node.id}")
            return self._names.get(node.id, UNKNOWN)
        if isinstance(node, ast.Attribute):
            return self._attribute(self._value(node.value), node)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            self.visit(node.slice)
            return element(self._value(node.value))
        if isinstance(node, ast.Lambda | ast.DictComp | ast.ListComp):
            self.visit(node)
        else:
            self.generic_visit(node)
        return UNKNOWN

    def _attribute(self, owner: Any, node: ast.Attribute) -> Any:
        if owner is UNKNOWN or typing.get_origin(owner):
            return UNKNOWN
        if not isinstance(owner, InstanceOf):
            if not hasattr(owner, node.attr):
                self.wrong.append(f"there is no {ast.unparse(node)}")
            return getattr(owner, node.attr, UNKNOWN)
        if node.attr not in members(owner.kind):
            self.wrong.append(f"{owner.kind.__name__} has no {node.attr}")
        return attribute_of(owner.kind, node.attr)

    def _called(self, node: ast.Call) -> Any:
        function = self._value(node.func)
        self._each([*node.args, *(keyword.value for keyword in node.keywords)])
        if function is UNKNOWN or isinstance(function, InstanceOf) or typing.get_origin(function):
            return UNKNOWN
        self._check_arguments(function, node)
        return result_of(function)

    def _check_arguments(self, function: Any, node: ast.Call) -> None:
        some_are_left_out = any(
            isinstance(argument, ast.Starred) or is_ellipsis(argument) for argument in node.args
        )
        if some_are_left_out or any(keyword.arg is None for keyword in node.keywords):
            return
        keywords = {str(keyword.arg): keyword.value for keyword in node.keywords}
        try:
            inspect.signature(function).bind(*node.args, **keywords)
        except TypeError as error:
            self.wrong.append(f"{ast.unparse(node)}: {error}")
        except ValueError:
            return  # a function of C, which does not say what it takes


def is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def is_ours(kind: Any) -> bool:
    return isinstance(kind, type) and kind.__module__.startswith("estimator2strategy")


def members(kind: type) -> set[str]:
    """All that an object of a class has, by the class and by what its methods set."""
    found = {*dir(kind), *(("name", "value") if issubclass(kind, enum.Enum) else ())}
    for base in kind.__mro__:
        found |= set(getattr(base, "__annotations__", {}))
        with contextlib.suppress(OSError, TypeError):
            found |= set(re.findall(r"\bself\.(\w+)\b[^=\n]* = ", inspect.getsource(base)))
    return found


def attribute_of(kind: type, name: str) -> Any:
    """A method of an object, or an object of the class that an attribute is annotated with."""
    value = inspect.getattr_static(kind, name, None)
    if isinstance(value, property):
        return from_annotation(hints(value.fget).get("return"))
    if isinstance(value, types.FunctionType):
        return functools.partial(value, None)  # bound to some object
    return from_annotation(hints(kind).get(name))


def result_of(function: Any) -> Any:
    if isinstance(function, type):
        return InstanceOf(function) if is_ours(function) else UNKNOWN
    return from_annotation(hints(function).get("return"))


def hints(thing: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing)
    except (NameError, TypeError, AttributeError):
        return {}


def from_annotation(annotation: Any) -> Any:
    """An object as it is annotated; of a collection, what `element` takes apart."""
    if isinstance(annotation, types.UnionType):  # something of ours, or None
        annotation = typing.get_args(annotation)[0]
    if is_ours(annotation):
        return InstanceOf(annotation)
    return annotation if typing.get_origin(annotation) else UNKNOWN


def element(value: Any) -> Any:
    """What is in a collection, an iterator or a context manager of this package."""
    if isinstance(value, InstanceOf):
        return value  # our context managers give themselves
    arguments = typing.get_args(value)
    origin = typing.get_origin(value)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        return from_annotation(arguments[1])
    return from_annotation(arguments[0]) if arguments else UNKNOWN


def test_only_what_is_true_or_false_says_true_if():
    assert [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name} -> {ast.unparse(node.returns)}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.returns is not None
        if (ast.get_docstring(node) or "").startswith("True if")
        and not re.search(r"\b(bool|Any|Tensor|TypeGuard)\b", ast.unparse(node.returns))
    ] == []
