"""Files of bytes that are given text, as Python 2 allowed."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

START = "import csv\nimport tempfile\n\n\ndef f(lines, path):\n"


def count(body):
    report = check_text(START + body, Settings())
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
