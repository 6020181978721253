"""Generators that raise StopIteration, which has been an error since Python 3.7."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings


def count(body):
    report = check_text("def f(rows):\n    yield 1\n" + body, Settings())
    return sum(f.rule == "E2S019" for f in report.findings)


@pytest.mark.parametrize(
    "body",
    [
        "    raise StopIteration\n",
        "    raise StopIteration('no more')\n",
        "    try:\n        yield next(rows)\n    except (ValueError, StopIteration):\n"
        "        raise\n",
    ],
)
def test_an_end_by_an_error_is_found(body):
    assert count(body) == 1


@pytest.mark.parametrize(
    "body",
    [
        "    try:\n        raise StopIteration\n    except StopIteration:\n        return\n",
        "    try:\n        yield next(rows)\n    except ValueError:\n        raise\n",
        "    raise\n",
        "    def end():\n        raise StopIteration\n    yield end\n",
        "\n\nclass Rows:\n    def __next__(self):\n        raise StopIteration\n",
    ],
)
def test_an_iterator_and_an_error_that_is_caught_are_not(body):
    assert count(body) == 0
