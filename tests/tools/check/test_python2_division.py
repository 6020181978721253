"""Quotients that must be whole numbers, and those that need not."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

START = "import numpy as np\nimport random\nimport tensorflow as tf\n\n\ndef f(n, x):\n    "


def quotients(line):
    report = check_text(f"{START}{line}\n", Settings())
    return [
        f.message.partition("`")[2].partition("`")[0] for f in report.findings if f.rule == "E2S009"
    ]


@pytest.mark.parametrize(
    ("line", "quotient"),
    [
        ("return range(0, n / 2 + 1)", "n / 2 + 1"),
        ("return np.zeros((n / 2, 3))", "n / 2"),
        ("return np.random.randint(0, 9, size=n / 2)", "n / 2"),
        ("return x[: n / 2]", "n / 2"),
        ("return x[:, n / 2 :]", "n / 2"),
        ("return [0] * (len(x) / 2)", "len(x) / 2"),
        ("return tf.reshape(x, [-1, n / 2])", "n / 2"),
        ("half = n / 2\n    return range(half)", "half"),
    ],
)
def test_a_quotient_where_python_takes_whole_numbers_is_found(line, quotient):
    assert quotients(line) == [quotient]


@pytest.mark.parametrize(
    "line",
    [
        "return range(n // 2)",
        "return range(int(n / 2))",
        "half = n / 2\n    half = int(half)\n    return range(half)",
        "n /= 2\n    return range(n)",
        "return x[n / 2]",
        "return [1.0, 2.0] * (x / 2)",
        "return np.repeat(x, n / 2)",
        "return tf.zeros([n / 2])",
        "return tf.get_variable('v', [n / 2, 3])",
        "try:\n        return range(n / 2)\n    except TypeError:\n        return []",
    ],
)
def test_a_quotient_that_may_do_is_not(line):
    assert quotients(line) == []


def test_the_labels_of_a_series_may_be_floats():
    assert quotients("import pandas\n    return x[: n / 2]") == []
