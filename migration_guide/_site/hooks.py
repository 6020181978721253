"""Fits the repository's pages to the site: links, the page of all names, the search for messages.

A build fails if a page loads anything from elsewhere.
"""

import html as html_lib
import json
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

# Links that lead out of the guide, into the repository, are names on the site.
_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+(?:examples|benchmarks|README|ARCHITECTURE|CONTRIBUTING)[^)]*\)"
)
_LEGACY = re.compile(r"^```python legacy$", re.MULTILINE)
_OF_TESTS = re.compile(r"\s+Each row names the tests.*?is missing\.", re.DOTALL)
_RULE = re.compile(r"^## (E2S\d+) (\S+)\n\n(.+)\. \((\w+)\)$", re.MULTILINE)
_ROW = re.compile(r"^\|.*\|$")

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_TABLE_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_HEAD = re.compile(r"<th[^>]*>(.*?)</th>", re.DOTALL)
_CELL = re.compile(r"<td\b")
_CELLS = re.compile(r"<td\b[^>]*>(.*?)</td>", re.DOTALL)
_LOADED = re.compile(
    r"<(?:script|img|iframe|link(?=[^>]*stylesheet))\b[^>]*?\b(?:src|href)=[\"']?"
    r"((?:https?:)?//[^\"' >]+)"
)
_TAG = re.compile(r"<[^>]+>|\"")

_MESSAGES = "troubleshooting.md"
_WIDE = {"contract.md", "names.md", "programs.md"}  # tables that need the room of the side bar

_NAMES = """# Every name of TensorFlow 1.x that was found in use

The names that public programs use, in how many of the 51 repositories, and what each stands for
here. The search of this site finds them, too. [How to read it](symbols.md).

| name | repositories | status | note |
| --- | --- | --- | --- |
"""


def on_files(files, config, **unused):
    """Adds symbols.tsv as a page, so that the search finds its names."""
    lines = Path(config.docs_dir, "symbols.tsv").read_text(encoding="utf-8").splitlines()
    rows = sorted((line.split("\t") for line in lines[1:]), key=lambda row: (-int(row[1]), row[0]))
    text = "".join(
        f"| `{name}` | {repositories} | {status} | {note.replace('|', '&#124;')} |\n"
        for name, repositories, _, status, note in rows
    )
    files.append(File.generated(config, "names.md", content=_NAMES + text))
    return files


def on_page_markdown(markdown, page, **unused):
    if page.file.src_uri == _MESSAGES:
        page.meta["search"] = {"boost": 4}  # who searches for a message wants this page
    if page.file.src_uri in _WIDE:
        page.meta["hide"] = ["toc"]
    if page.file.src_uri.startswith("rules/"):
        markdown = _RULE.sub(_titled, markdown)
    # Python-Markdown knows one word after the fence.
    markdown = _LEGACY.sub("```python", _OUTSIDE.sub(r"`\1`", markdown))
    if page.file.src_uri == "contract.md":  # which test shows a row is for those who change it
        return "\n".join(map(_without_last_cell, _OF_TESTS.sub("", markdown).splitlines()))
    return markdown


def on_page_content(html, page, **unused):
    """Gives each cell the head of its column, which a phone shows before it: _site.css."""
    if page.file.src_uri == _MESSAGES:
        html = _with_addresses(html)
    return _TABLE.sub(lambda table: _labelled(table[0]), html)


def _with_addresses(html):
    """Gives each row about a message an address, at which the search finds it."""
    rows = iter(range(len(_TABLE_ROW.findall(html))))
    return _TABLE_ROW.sub(lambda row: f'<tr id="message-{next(rows)}">{row[0][4:]}', html)


def on_post_build(config, **unused):
    """Adds each message to the search, and sees to it that nothing is loaded from elsewhere."""
    site = Path(config.site_dir)
    path = site / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    page = _MESSAGES.replace(".md", ".html")
    index["docs"] += messages((site / page).read_text(encoding="utf-8"), page)
    path.write_text(json.dumps(index), encoding="utf-8")
    for file in sorted(site.rglob("*.html")):
        if found := _LOADED.search(file.read_text(encoding="utf-8")):
            raise PluginError(f"{file.relative_to(site)} loads {found[1]}")


def messages(html, page):
    """A document of the search for each row of the tables of messages: it is titled by them."""
    found = []
    for number, row in re.findall(r'<tr id="message-(\d+)">(.*?)</tr>', html, re.DOTALL):
        cells = [html_lib.unescape(_TAG.sub("", cell)) for cell in _CELLS.findall(row)]
        if cells:
            text = html_lib.escape(" ".join(cells[1:]), quote=False)
            title = html_lib.escape(cells[0], quote=False)
            address = f"{page}#message-{number}"
            found.append({"location": address, "title": title, "text": text, "boost": 4})
    return found


def _titled(rule):
    """The heading of a rule says what it finds; its address stays, as reports name it."""
    number, name, title, severity = rule.groups()
    anchor = f"{number}-{name}".lower()
    return f"## {number}: {title} {{ #{anchor} }}\n\n`{name}`, {severity}."


def _labelled(table):
    heads = [_TAG.sub("", head).strip() for head in _HEAD.findall(table)]

    def row(match):
        cells = iter(heads)
        return _CELL.sub(lambda _: f'<td data-head="{next(cells, "")}"', match[0])

    return _TABLE_ROW.sub(row, table)


def _without_last_cell(line):
    return line.rstrip("|").rpartition("|")[0] + "|" if _ROW.match(line) else line
