"""Edits of a file's text: what goes, what stays, and how a call is written anew."""

from __future__ import annotations

import ast

import pytest

from estimator2strategy.tools.migrate.apply import _edited, _innermost
from estimator2strategy.tools.migrate.call_text import CallText
from estimator2strategy.tools.migrate.module import Module, SharedLineError


def after(text, edit):
    """The text after the changes that `edit` makes of its module."""
    module = Module.parse("program.py", text)
    changes = edit(module)
    return _edited(module, changes if isinstance(changes, list) else [changes])


def second(module):
    return module.source.tree.body[1]


FUNCTION = """a = 1


# About f.
@named
def f():
    return 1  # one
    # two


# About b.
b = 2
"""


def test_a_function_that_goes_takes_its_decorators_and_comments():
    text = after(FUNCTION, lambda m: m.replace_statement(second(m), ""))
    assert text == "a = 1\n\n\n# About b.\nb = 2\n"


def test_what_replaces_a_function_stands_below_the_comment_above_it():
    text = after(FUNCTION, lambda m: m.replace_statement(second(m), "class F:\n    g = 1\n"))
    assert text == "a = 1\n\n\n# About f.\nclass F:\n    g = 1\n\n\n# About b.\nb = 2\n"


def test_a_statement_that_goes_leaves_its_comment():
    text = after(
        "a = 1\nb = 2  # two\nc = 3  # noqa\n", lambda m: m.replace_statement(second(m), "")
    )
    assert text == "a = 1\n# two\nc = 3  # noqa\n"


def test_the_last_statement_of_a_block_becomes_pass():
    text = after("a = 1\nif a:\n    b = 2\n", lambda m: m.replace_statement(second(m).body[0], ""))
    assert text == "a = 1\nif a:\n    pass\n"


def test_new_blocks_are_indented_as_the_file_is():
    text = after(
        "def f():\n  return 1\na = 2\n",
        lambda m: m.append_after(
            second(m), "\n\ndef g():\n    # Why.\n    return f(1,\n             2)\n"
        ),
    )
    assert text.endswith("a = 2\n\n\ndef g():\n  # Why.\n  return f(1,\n           2)\n")


def test_lines_end_as_those_of_the_file():
    text = after("a = 1\r\nb = 2\r\n", lambda m: m.replace_statement(second(m), "b = 3\nc = 4"))
    assert text == "a = 1\r\nb = 3\r\nc = 4\r\n"


def test_a_statement_that_shares_its_line_is_left():
    module = Module.parse("program.py", "a = 1; b = 2\n")
    with pytest.raises(SharedLineError, match="line 1 has more than one statement"):
        module.replace_statement(second(module), "")


def test_of_changes_in_one_another_the_inner_ones_come_first():
    module = Module.parse("program.py", "f(g(1), g(2))\n")
    outer = module.source.tree.body[0].value
    made = [module.replace(node, "x") for node in (outer, *outer.args, outer.args[0])]
    assert _innermost(made) == made[1:3]


def test_a_call_keeps_its_comments_and_the_parentheses_of_its_arguments():
    text = "y = (f)(\n    (a + b),  # sum\n    c = ((d)),\n)\n"
    module = Module.parse("program.py", text)
    call = CallText(module, module.source.tree.body[0].value)
    assert [(one.name, one.value) for one in call.arguments] == [(None, "(a + b)"), ("c", "((d))")]
    assert call.text("g", call.arguments[1:]) == "g(\n    c = ((d)),\n)"
    assert call.text("g", call.arguments) == text[4:-1].replace("(f)", "g")
    assert ast.parse(call.text("g", []))
