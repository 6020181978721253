"""Values that are taken from the program's own functions, which return more or fewer."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

TWO = "def model(x):\n    return x, x\n\n\n"
METHOD = (
    "class Model:\n    def model(self, x):\n        return x, x\n\n    def run(self):\n        {}\n"
)


def messages(text):
    return [f.message for f in check_text(text, Settings()).findings if f.rule == "E2S023"]


@pytest.mark.parametrize(
    "text",
    [
        f"{TWO}a, b, c = model(1)\n",
        f"{TWO}a, = model(1)\n",
        f"{TWO}[a, b, c] = model(1)\n",
        f"{TWO}pair = a, b, c = model(1)\n",
        METHOD.format("a, b, c = self.model(1)"),
        "def model(x):\n    if x: return x, x\n    return [x, 1]\n\n\na, b, c = model(1)\n",
    ],
)
def test_another_number_than_is_returned_is_found(text):
    (message,) = messages(text)
    assert message.startswith("model (")
    assert ") returns 2 values, not " in message


@pytest.mark.parametrize(
    "text",
    [
        f"{TWO}a, b = model(1)\n",
        f"{TWO}a, *b = model(1)\n",
        f"{TWO}a = model(1)\n",
        f"{TWO}try:\n    a, b, c = model(1)\nexcept ValueError:\n    a, b = model(1)\n",
        f"@wrapped\n{TWO}a, b, c = model(1)\n",
        f"{TWO}model = other(model)\na, b, c = model(1)\n",
        f"{TWO}def main(model):\n    a, b, c = model(1)\n",
        f"{TWO}(a, b), c = model(1), 1\n",
        "def model(x):\n    return x\n\n\na, b = model(1)\n",
        "def model(x):\n    return (x, *x)\n\n\na, b = model(1)\n",
        "def model(x):\n    yield 1\n    return x, x\n\n\na, b, c = model(1)\n",
        "def model(x):\n    if x:\n        return x\n    return x, x\n\n\na, b, c = model(1)\n",
        "def model(x):\n    def inner(): return 1, 2\n    return inner\n\n\na, b, c = model(1)\n",
        "def model(x):\n    if x: return x, x\n    return x, x, x\n\n\na, b, c = model(1)\n",
        METHOD.format("a, b, c = self.other(1)"),
    ],
)
def test_what_fits_or_is_not_known_is_none(text):
    assert not messages(text)


def test_a_method_that_a_class_below_replaces_is_none():
    below = "\n\nclass Below(Model):\n    def model(self, x):\n        return x, x, x\n"
    assert not messages(METHOD.format("a, b, c = self.model(1)") + below)
