"""The rows of the table of hostile trees."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

from tests.hostile.trees import Tree

_CODE = "import tensorflow as tf\nz = tf.to_int32(1)\n"


def _file(name: str | bytes, text: str | bytes = _CODE) -> Callable[[Path], object]:
    """A file of this name, with this text."""
    data = text.encode() if isinstance(text, str) else text

    def make(folder: Path) -> None:
        path = Path(folder, os.fsdecode(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    return make


def _link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: os.symlink(target, folder / name)


def _socket(folder: Path) -> None:
    before = os.getcwd()
    os.chdir(folder)  # a path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("odd.py")
    finally:
        os.chdir(before)


def _both(*makers: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [make(folder) for make in makers]


def _fifo(name: str) -> Callable[[Path], object]:
    return lambda folder: os.mkfifo(folder / name)


def _outside(folder: Path) -> None:
    (folder.parent / "outside.py").write_text(_CODE)
    os.symlink("../outside.py", folder / "odd.py")


def _deep(folder: Path) -> None:
    before = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(1200):  # longer than a path may be
            os.mkdir("deep")
            os.chdir("deep")
        Path("odd.py").write_text(_CODE)
    finally:
        os.chdir(before)


def _sparse(folder: Path) -> None:
    with (folder / "odd.py").open("wb") as file:
        file.truncate(10 << 30)


def _no_permission(name: str, mode: int) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(_CODE)
        (path if mode else path.parent).chmod(0)

    return make


_KINDS = (
    Tree("a FIFO", _fifo("odd.py"), ("odd.py: a FIFO",)),
    Tree("a socket", _socket, ("odd.py: a socket",)),
    Tree(
        "a link to a FIFO",
        _both(_fifo("pipe"), _link("odd.py", "pipe")),
        ("odd.py: a link to a FIFO",),
    ),
    Tree("a link to a device", _link("odd.py", "/dev/zero"), ("odd.py: a link to a device",)),
    Tree("a link to a terminal", _link("odd.py", "/dev/tty"), ("odd.py: a link to a device",)),
    Tree("a link to the memory of the process", _link("odd.py", "/proc/self/mem"), ("odd.py",)),
    Tree("a folder called .py", lambda folder: (folder / "odd.py").mkdir()),
    Tree("a link to a folder called .py", _link("odd.py", "/tmp"), ("odd.py: a link to a folder",)),
    Tree(
        "an import of a FIFO",
        _both(_fifo("odd.py"), _file("other.py", "import odd\nodd.tf.x()\n")),
        ("a FIFO",),
    ),
    Tree(
        "a FIFO that is a package",
        _both(
            lambda f: (f / "odd").mkdir(),
            _fifo("odd/__init__.py"),
            _file("other.py", "from odd import x\nx()\n"),
        ),
        ("a FIFO",),
    ),
)
_LINKS = (
    Tree("a link to nothing", _link("odd.py", "nowhere"), ("odd.py: a link to nothing",)),
    Tree(
        "a link to itself", _link("odd.py", "odd.py"), ("odd.py: a link that cannot be followed",)
    ),
    Tree(
        "two links to one another",
        _both(_link("odd.py", "even.py"), _link("even.py", "odd.py")),
        ("odd.py: a link", "even.py: a link"),
    ),
    Tree("a folder that links to itself", _link("loop", "."), ("loop: a link to a folder",)),
    Tree(
        "a folder that links to its parent",
        _both(lambda f: (f / "in").mkdir(), _link("in/up", "..")),
        ("in/up: a link to a folder",),
    ),
    Tree("a link to the root", _link("root", "/"), ("root: a link to a folder",)),
    Tree("a link to a file of the tree", _link("odd.py", "program.py")),
    Tree("a link that sorts before its file", _link("a.py", "program.py")),
    Tree("two links to one file", _both(_link("a.py", "program.py"), _link("b.py", "a.py"))),
    Tree("a link to a file outside", _outside, (), ("odd.py: a link to a file outside",)),
    Tree("a link to a file of the system", _link("odd.py", "/etc/hostname"), (), ("odd.py",)),
)
_PERMISSIONS = (
    Tree(
        "a file that may not be read",
        _no_permission("odd.py", 1),
        ("odd.py: Permission denied",),
        as_nobody=True,
    ),
    Tree(
        "a folder that may not be read",
        _no_permission("locked/odd.py", 0),
        ("locked: Permission denied",),
        as_nobody=True,
    ),
    Tree(
        "an import from a folder that may not be read",
        _both(
            _no_permission("locked/odd.py", 0),
            _file("other.py", "from locked import odd\nodd.x()\n"),
        ),
        ("locked: Permission denied",),
        as_nobody=True,
    ),
)
_SIZES = (
    Tree("a file of 6 MB", _file("odd.py", "x = 1\n" * 1_000_000), ("odd.py: larger than 5 MB",)),
    Tree("a sparse file of 10 GB", _sparse, ("odd.py: larger than 5 MB",)),
    Tree(
        "a file of 2 MB on one line",
        _file("odd.py", "x = [" + "1," * 100_000 + "]\n# " + "x" * 1_800_000 + "\n"),
    ),
    Tree("a file of null bytes", _file("odd.py", bytes(1_000_000)), ("odd.py",)),
    Tree("an empty file", _file("odd.py", b"")),
    Tree(
        "500 files", lambda folder: [_file(f"many/m{i}.py", "x = 1\n")(folder) for i in range(500)]
    ),
    Tree("folders deeper than a path may be", _deep, ("deep/deep",)),
    Tree("a name of 255 bytes", _file("x" * 252 + ".py"), ("xxx.py",), ()),
)


def _declared(encoding: str, *says: str) -> Tree:
    text = f"# coding: {encoding}\nimport tensorflow as tf\nx = 'a'\n"
    return Tree(f"coding: {encoding}", _file("odd.py", text), says)


_ENCODINGS = (
    *(
        _declared(name, "odd.py")
        for name in ("undefined", "punycode", "rot13", "zlib", "hex", "base64")
    ),
    *(
        _declared(name, "odd.py")
        for name in ("bz2", "uu", "quopri", "no-such", "string_escape", "mbcs")
    ),
    *(
        _declared(name)
        for name in ("idna", "unicode_escape", "raw_unicode_escape", "utf-7", "utf-16")
    ),
    *(
        _declared(name)
        for name in ("utf-32", "hz", "iso-2022-jp", "cp037", "charmap", "...", "aliases")
    ),
    Tree("bytes that are not UTF-8", _file("odd.py", b"x = '\xff\xfe'\n"), (), ("odd.py",)),
    Tree("UTF-16 with its mark", _file("odd.py", "x = 1\n".encode("utf-16")), ("odd.py",)),
    Tree(
        "a mark of UTF-8, and coding: latin-1", _file("odd.py", b"\xef\xbb\xbf# coding: latin-1\n")
    ),
    Tree("two marks of UTF-8", _file("odd.py", b"\xef\xbb\xbf\xef\xbb\xbfx = 1\n"), ("odd.py",)),
    Tree(
        "unicode_escape with escapes",
        _file("odd.py", b"# coding: unicode_escape\nx = 1\\nimport os\n"),
    ),
)


def _called(name: str | bytes, shown: str, what: str = "") -> Tree:
    return Tree(f"a file called {what or shown}", _file(name), (shown,), ())


_NAMES = (
    _called("a\n::error file=x::pwned.py", r"a\n::error"),
    _called("::error file=x::pwned.py", r"\x3a:error"),
    _called("  ::set-output name=x::y.py", r"\x3a:set-output"),
    _called("##vso[task.complete result=Failed].py", r"\x23#vso["),
    _called("##[error]x.py", r"\x23#[error]"),
    _called("##teamcity[buildStop].py", r"\x23#teamcity["),
    _called("\x1b[2J\x1b[31mred.py", r"\x1b[2J"),
    _called("\x1b]0;title\x07.py", r"\x1b]0;title\x07"),
    _called("\u202egnp.py", r"\u202e"),
    _called("\u2066x\u2069.py", r"\u2066"),
    _called("a\u2028b.py", r"\u2028"),
    _called("a\x9b31m.py", r"\x9b"),
    _called(b"\xff\xfe.py", r"\udcff\udcfe"),
    _called("a\rb.py", r"a\rb"),
    _called("a\tb.py", r"a\tb"),
    _called("%0A::error::x.py", "%0A"),
    _called("a:1:2,line=3::x.py", "a:1:2"),
    _called("<script>alert(1)<\\script>.py", "<script>"),
    _called("\"'&]]>.py", "]]>"),
    _called("-rf.py", "-rf.py"),
    _called(" .py", " .py", "a space"),
    _called("\N{SNOWMAN}\N{GRINNING FACE}.py", r"\u2603", "a snowman"),
    _called("\U000e0041.py", r"\U000e0041"),
    _called("a\x7fb.py", r"\x7f"),
    _called(b"\xed\xa0\x80.py", r"\udced"),
    _called("folder\n::error::x/odd.py", r"folder\n"),
    _called(b"\xff/odd.py", r"\udcff/odd.py"),
    Tree(
        "a FIFO with a name that injects", _fifo("a\n::error::x.py"), (r"a\n::error::x.py: a FIFO",)
    ),
    Tree("a notebook with a name that injects", _file("a\n::error::x.ipynb"), (r"a\n::error",)),
    Tree(
        "a linked folder with a name that injects", _link("\x1b[2J", "/tmp"), (r"\x1b[2J: a link",)
    ),
)


def _source(name: str, text: str | bytes, *says: str) -> Tree:
    return Tree(name, _file("odd.py", text), says, ())


def _nested(depth: int, opening: str, last: str = "pass") -> str:
    lines = [f"{' ' * i}{opening.format(i)}" for i in range(depth)]
    return "\n".join([*lines, f"{' ' * depth}{last}", ""])


_TF = "import tensorflow as tf\n"
_SOURCES = (
    _source("escape codes in a line", _TF + "tf.to_float(1)  # \x1b[2J\x1b[31m\n", r"\x1b[2J"),
    _source("marks that turn a line around", _TF + "tf.to_float(1)  # \u202e \u2066\n", r"\u202e"),
    _source(
        "a command in a line of a string", _TF + "x = f'''\n::error file=x::{tf.to_float(1)}\n'''\n"
    ),
    _source(
        "a command of Azure in a comment", _TF + "tf.to_float(1)  # ##vso[task.x]\n", r"\x23#vso["
    ),
    _source("commands in a text that is changed", _TF + "'''\n::error::x\n'''\ntf.to_float(1)\n"),
    _source("form feeds", _TF + "\x0c\ntf.to_float(1)\x0c\n"),
    _source("carriage returns alone", _TF.replace("\n", "\r") + "tf.to_float(1)\r"),
    _source("line ends of all kinds", _TF + "x = 1\r\ny = 2\rtf.to_float(1)\n"),
    _source("U+2028 in a string", _TF + "tf.to_float('\u2028')\n"),
    _source("U+0085 in a string", _TF + "tf.to_float('\x85')\n"),
    _source("the end of a script", _TF + "tf.to_float('</script><img src=x onerror=alert(1)>')\n"),
    _source("the end of CDATA", _TF + "tf.to_float(']]>&amp;')\n"),
    _source("a null byte", _TF + "x = '\x00'\n", "odd.py"),
    _source("a syntax error with escape codes", "x = = \x1b[2J\n", "odd.py"),
    _source("names of rules in a comment", _TF + "tf.to_float(1)  # e2s: ignore[\x1b,E2S999] x\n"),
    _source("300 parentheses", "x = " + "(" * 300 + ")" * 300 + "\n", "odd.py"),
    _source("90 parentheses", _TF + "x = " + "(" * 90 + "tf.to_float(1)" + ")" * 90 + "\n"),
    _source("90 lists", _TF + "x = " + "[" * 90 + "tf.to_float(1)" + "]" * 90 + "\n"),
    _source("20,000 minus signs", "x = " + "-" * 20_000 + "1\n", "odd.py"),
    _source("600 minus signs", _TF + "x = " + "-" * 600 + "tf.to_float(1)\n"),
    _source("a sum of 20,000", "x = " + "1 + " * 20_000 + "1\n", "odd.py"),
    _source("a sum of 800", _TF + "x = " + "tf.to_float(1) + " * 800 + "1\n"),
    _source("5,000 attributes", "import x\nx" + ".a" * 5_000 + "\n"),
    _source("500 attributes of TensorFlow", _TF + "tf" + ".a" * 500 + "\n"),
    _source("300 calls in a chain", _TF + "x = tf" + ".a()" * 300 + "\n"),
    _source("95 ifs", _TF + _nested(95, "if x{}:", "tf.to_float(1)")),
    _source("95 functions", _TF + _nested(95, "def f{}():", "tf.to_float(1)")),
    _source("95 classes", _TF + _nested(95, "class C{}:", "x = tf.to_float(1)")),
    _source("200 lambdas", _TF + "x = " + "lambda: " * 200 + "tf.to_float(1)\n"),
    _source("100 conditions", _TF + "x = " + "1 if tf.to_float(1) else " * 100 + "0\n"),
    _source(
        "1,000 elifs", _TF + "if x:\n  pass\n" + "elif x:\n  tf.to_float(1)\n" * 1_000, "odd.py"
    ),
    _source("500 decorators", _TF + "@tf.x\n" * 500 + "def f(): pass\n"),
    _source("calls in calls", _TF + "x = " + "tf.to_float(" * 60 + "1" + ")" * 60 + "\n"),
    _source("an integer of 5,000 digits", "x = " + "1" * 5_000 + "\n", "odd.py"),
    _source("a class of itself", _TF + "class A(A): pass\nA = A\nA.x.y(A)\n"),
    _source("names of one another", "a = b\nb = c\nc = a\na.x()\n"),
    _source("a star import of itself", "from odd import *\nfrom . import *\nx()\n"),
    _source("imports beyond the root", "from " + "." * 60 + " import x\nx()\n"),
    Tree(
        "star imports in a circle",
        _both(
            _file("odd.py", "from even import *\nx()\n"),
            _file("even.py", "from odd import *\nx()\n"),
        ),
    ),
)
AREAS: dict[str, tuple[Tree, ...]] = {
    "what is no file": _KINDS,
    "links": _LINKS,
    "permissions": _PERMISSIONS,
    "sizes": _SIZES,
    "encodings": _ENCODINGS,
    "names": _NAMES,
    "source": _SOURCES,
}
