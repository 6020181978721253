r"""Names and source are shown without what acts on a terminal, a log or a CI system."""

from __future__ import annotations

import io
import json

import pytest

from estimator2strategy.tools.untrusted.printable import (
    json_text,
    printable,
    printable_lines,
    write,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("train.py", "train.py"),
        ("gr\u00fcn \u65e5\u672c \U0001f600 \U0001f469\u200d\U0001f52c", None),
        ("x[::2] a::b::c", "x[::2] a::b::c"),
        ("a\n::error file=x::b", r"a\n::error file=x::b"),
        ("::error file=x::b", r"\x3a:error file=x::b"),
        ("  ::set-output name=a::b", r"  \x3a:set-output name=a::b"),
        (
            "##vso[task.x] ##[group] ##teamcity[x]",
            r"\x23#vso[task.x] \x23#[group] \x23#teamcity[x]",
        ),
        ("## a heading", "## a heading"),
        ("\x1b[2J\x07\x9b31m", r"\x1b[2J\x07\x9b31m"),
        ("\u202ea\u2066\u2028", r"\u202ea\u2066\u2028"),
        ("\udcff\udcfe.py", r"\udcff\udcfe.py"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_acts_is_written_as_in_a_string(text, shown):
    assert printable(text) == (text if shown is None else shown)


def test_lines_keep_their_ends_and_tabs():
    text = "\ta\r\nb\rc\n ::error::d\nTitle::\n"
    assert printable_lines(text) == "\ta\r\nb\\rc\n \\x3a:error::d\nTitle::\n"


def test_json_reads_back_as_it_was():
    document = {"\udcff": "##vso[x] \x7f \u202e \n::error::x"}
    text = json_text(document)
    assert json.loads(text) == document
    assert text.isascii()
    assert text.isprintable()
    assert "##vso[" not in text


def test_a_terminal_without_the_characters_gets_escapes():
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding="ascii", write_through=True)
    write("gr\u00fcn ", stream)
    write("gr\u00fcn", stream, "xmlcharrefreplace")
    assert data.getvalue() == b"gr\\xfcn gr&#252;n"
