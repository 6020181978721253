from __future__ import annotations

import inspect

import pytest
import tensorflow as tf

from estimator2strategy.engine.wrong_argument import ArgumentRule, checked, shown, wrong_argument

HERE = __file__
RULES = {"size": ArgumentRule(lambda value: value != "big", "must not be big", "Pass a number.")}


SOURCE = """
def make(size, color="red", **others):
    if size == 0:
        raise ValueError("size must be positive.")
    if size == 1:
        raise ValueError("something else")
    if size == 2:
        raise OSError("size")
    if callable(size):
        size()
    return size, color, others

def each(size):
    yield size
    raise ValueError("size is too small")
"""
OURS = {"__name__": "estimator2strategy.of_a_test"}  # whose code functions are is told by this
exec(SOURCE, OURS)
make, each = checked(RULES)(OURS["make"]), checked(RULES)(OURS["each"])


def line_of(call):
    return call.__code__.co_firstlineno


def message_of(call, error=TypeError):
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def test_a_message_has_the_value_the_line_and_what_to_pass():
    call = lambda: make("big")  # noqa: E731
    assert message_of(call) == (
        "size must not be big, given: 'big'\n"
        f'  At {HERE}:{line_of(call)}: call = lambda: make("big")  # noqa: E731\n'
        "  Pass a number."
    )


def test_an_error_of_the_function_gets_the_same_form_and_keeps_its_class():
    message = message_of(lambda: make(0), ValueError)
    assert message.startswith(f"size must be positive, given: 0\n  At {HERE}:")
    assert message.endswith("\n  Pass a number.")


@pytest.mark.parametrize(("size", "error"), [(1, ValueError), (2, OSError)])
def test_an_error_that_is_about_no_argument_stays_as_it_is(size, error):
    assert " At " not in message_of(lambda: make(size), error)


def test_an_error_of_the_users_function_stays_as_it_is():
    def broken():
        raise ValueError("`size` is mine")

    assert message_of(lambda: make(broken), ValueError) == "`size` is mine"


def test_a_call_that_does_not_fit_names_the_nearest_argument():
    @checked({})
    def train(steps):
        return steps

    assert "step', given: 3" in message_of(lambda: train(step=3))
    assert "Did you mean steps?" in message_of(lambda: train(step=3))
    assert "missing a required argument: 'steps'" in message_of(lambda: train())


def test_an_argument_given_twice_is_named_and_nothing_that_the_function_takes_is_left_out():
    message = message_of(lambda: make(3, other=1, size=4))
    assert message.startswith("make got multiple values for argument 'size', given: 4\n  At ")
    assert message.endswith(
        "\n  Pass it once: argument 1 by position is size, too. make takes size, color, **others."
    )

    class Model:
        @checked({})
        def __init__(self, folder, config=None, **options):
            self.options = options

    message = message_of(lambda: Model("a", "b", seed=7, config="c"))
    assert "__init__ got multiple values for argument 'config', given: 'c'" in message
    assert "argument 2 by position is config, too" in message
    assert Model("a", self_made=1).options == {"self_made": 1}


def test_a_call_with_too_much_or_too_little_says_how_much_it_gives():
    assert "missing a required argument: 'size', given: 0 by position, 1 by name" in message_of(
        lambda: make(other=1)
    )
    message = message_of(lambda: make(3, "red", "blue", other=1))
    assert "too many positional arguments, given: 3 by position, 1 by name" in message
    assert "Leave it out" not in message


def test_a_checked_function_keeps_its_signature():
    assert str(inspect.signature(make)) == "(size, color='red', **others)"
    assert inspect.getfullargspec(make).args == ["size", "color"]


def test_what_a_generator_raises_later_gets_the_form_too():
    results = each(3)
    assert next(results) == 3
    assert f"given: 3\n  At {HERE}:" in message_of(lambda: next(results), ValueError)


class Odd:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("10", "'10'"),
        (None, "None"),
        (tf.compat.v1.ConfigProto(), "ConfigProto()"),
        (Odd(), "? (Odd)"),
        ("a\nb", "'a\\nb'"),
    ],
)
def test_a_value_is_shown_on_one_line(value, text):
    assert shown(value) == text


def test_a_long_value_is_cut():
    assert len(shown("x" * 1000)) == 160


def test_the_line_is_the_users_and_not_that_of_generated_code():
    error = wrong_argument("x is wrong", 1, "Pass 2.")
    assert f"\n  At {HERE}:" in str(error)
