"""Files of bytes that are given text, as Python 2 allowed."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

START = "import csv\nimport tempfile\n\n\ndef f(lines, path):\n"


def count(body, start=START):
    report = check_text(start + body, Settings())
    return sum(f.rule == "E2S011" for f in report.findings)


@pytest.mark.parametrize(
    "body",
    [
        "    with tempfile.NamedTemporaryFile() as x:\n        x.write(''.join(lines))\n",
        "    x = tempfile.TemporaryFile()\n    x.write('%s' % path)\n",
        "    return csv.reader(open(path, 'rb'))\n",
        "    with open(path, 'wb') as x:\n        return csv.writer(x)\n",
    ],
)
def test_text_for_a_file_of_bytes_is_found(body):
    assert count(body) == 1


@pytest.mark.parametrize(
    "body",
    [
        "    with tempfile.NamedTemporaryFile('w') as x:\n        x.write('a')\n",
        "    with tempfile.NamedTemporaryFile(mode='w+') as x:\n        x.write('a')\n",
        "    with tempfile.NamedTemporaryFile() as x:\n        x.write(b''.join(lines))\n",
        "    with tempfile.NamedTemporaryFile() as x:\n        x.write(lines)\n",
        "    return csv.reader(open(path))\n",
        "    return csv.reader(open(path, path))\n",
    ],
)
def test_files_of_text_and_unknown_content_are_not(body):
    assert count(body) == 0


PICKLE = "import pickle\nimport tensorflow as tf\n\n\ndef f(path, x):\n"


@pytest.mark.parametrize(
    "body",
    [
        "    return pickle.load(open(path))\n",
        "    pickle.dump(x, open(path, 'w'))\n",
        "    with open(path, 'r') as a:\n        y = pickle.load(a)\n"
        "    with open(path, 'rb') as a:\n        return y, pickle.load(a)\n",
        "    with tf.gfile.Open(path) as a:\n        return pickle.load(a)\n",
        "    with tf.python.lib.io.file_io.FileIO(path, mode='r') as a:\n"
        "        return pickle.load(a)\n",
    ],
)
def test_a_pickle_of_a_file_of_text_is_found(body):
    assert count(body, PICKLE) == 1


@pytest.mark.parametrize(
    "body",
    [
        "    return pickle.load(open(path, 'rb'))\n",
        "    return pickle.load(open(path, x))\n",
        "    return pickle.load(path)\n",
        "    with open(path) as a:\n        a = x(a)\n        return pickle.load(a)\n",
        "    with tf.gfile.Open(path, 'w') as a:\n        pickle.dump(x, a)\n",
    ],
)
def test_pickles_of_bytes_and_of_unknown_files_are_not(body):
    assert count(body, PICKLE) == 0


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ("    pickle.load(open(path))\n", 'Open it with "rb".'),
        ("    pickle.dump(x, open(path, 'a'))\n", 'Open it with "ab".'),
        ("    csv.writer(open(path, 'ab'))\n", 'Open it with "a" and newline="".'),
        (
            "    tempfile.NamedTemporaryFile().write('a' + path)\n",
            'Write NamedTemporaryFile(mode="w+").',
        ),
    ],
)
def test_the_advice_says_how_to_open_the_file(body, advice):
    findings = check_text(f"import pickle\n{START}{body}", Settings()).findings
    assert [f.fix for f in findings if f.rule == "E2S011"] == [advice]
