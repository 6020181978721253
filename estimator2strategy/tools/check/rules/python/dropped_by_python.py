"""Modules and names of Python's own library that are gone."""

import ast
import os

from estimator2strategy.legacy import removed_names
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import MODULES, unguarded
from estimator2strategy.tools.names import libraries
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.estimator_programs import all_of
from estimator2strategy.tools.reader.own_code import stored
from estimator2strategy.tools.reader.symbol_uses import imported_and_used

_NEWEST = "3.13"
# Functions of `string` that are methods of text.
_OF_TEXT = (
    "capitalize center count expandtabs find index join ljust lower lstrip replace rfind rindex "
    "rjust rsplit rstrip split strip swapcase translate upper zfill"
)
_URLS = (
    "FancyURLopener URLopener getproxies pathname2url url2pathname urlcleanup urlopen urlretrieve"
)
# Modules that go on as packages.
_PACKAGES = "aifc asynchat asyncore chunk mailcap nntplib smtpd sndhdr sunau telnetlib uu xdrlib"
# Names of `types` -> the built-in classes.
_TYPES = {
    "BooleanType": "bool", "ClassType": "type", "ComplexType": "complex", "DictType": "dict",
    "DictionaryType": "dict", "FloatType": "float", "IntType": "int", "ListType": "list",
    "LongType": "int", "ObjectType": "object", "SliceType": "slice", "StringType": "str",
    "StringTypes": "str", "TupleType": "tuple", "TypeType": "type", "UnicodeType": "str",
    "XRangeType": "range",
}  # fmt: skip
# Names of old that legacy programs use -> those of today.
_TODAY = {
    **{name: f"the same module, by pip install standard-{name}" for name in _PACKAGES.split()},
    "cgi": "the same module, by pip install legacy-cgi",
    "asyncio.coroutine": "a function that begins with `async def`",
    "compiler": "ast",
    "configparser.SafeConfigParser": "configparser.ConfigParser",
    "contextlib.nested": "contextlib.ExitStack, or one `with` of several",
    "dummy_threading": "threading",
    "exceptions": "builtins, whose exceptions need no import",
    "imghdr": "PIL.Image.open(file).format",
    "importlib.find_loader": "importlib.util.find_spec",
    "inspect.ArgSpec": "inspect.FullArgSpec",
    "inspect.formatargspec": "inspect.signature",
    "itertools.ifilterfalse": "itertools.filterfalse",
    "locale.format": "locale.format_string",
    "md5": "hashlib.md5",
    "new": "types",
    "operator.isCallable": "callable",
    "operator.sequenceIncludes": "operator.contains",
    "os.errno": "errno, a module to import",
    "plistlib.readPlist": "plistlib.load",
    "plistlib.writePlist": "plistlib.dump",
    "popen2": "subprocess",
    "sets": "set, which needs no import",
    "sha": "hashlib.sha1",
    "ssl.wrap_socket": "ssl.SSLContext.wrap_socket",
    "string.atof": "float",
    "string.atoi": "int",
    "string.atol": "int",
    "sys.exc_type": "sys.exc_info",
    "sys.setcheckinterval": "sys.setswitchinterval",
    "typing.GenericMeta": "type",
    "unittest.makeSuite": "unittest.TestLoader.loadTestsFromTestCase",
    "urllib.ContentTooShortError": "urllib.error.ContentTooShortError",
    "xml.etree.ElementTree.XMLTreeBuilder": "xml.etree.ElementTree.XMLParser",
    **{f"os.{name}": "subprocess.Popen" for name in ("popen2", "popen3", "popen4")},
    **{f"os.{name}": "tempfile.mkstemp" for name in ("tempnam", "tmpnam")},
    "os.tmpfile": "tempfile.TemporaryFile",
    **{f"string.{name}": f"the method {name} of the text itself" for name in _OF_TEXT.split()},
    **{f"types.{name}": today for name, today in _TYPES.items()},
    "itertools.ifilter": "filter",
    "itertools.imap": "map",
    "itertools.izip": "zip",
    "itertools.izip_longest": "itertools.zip_longest",
    "operator.div": "operator.truediv, or operator.floordiv for whole numbers",
    "os.getcwdu": "os.getcwd",
    "parser": "ast.parse; an import that nothing uses, beside argparse's parser, may be deleted",
    "platform.dist": "platform.freedesktop_os_release",
    "platform.linux_distribution": "platform.freedesktop_os_release",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.maketrans": "str.maketrans",
    "string.uppercase": "string.ascii_uppercase",
    "sys.maxint": "sys.maxsize",
    **{f"urllib.{name}": f"urllib.request.{name}" for name in _URLS.split()},
    **{
        f"urllib.{name}": f"urllib.parse.{name}"
        for name in ("quote", "quote_plus", "unquote", "unquote_plus", "urlencode")
    },
}
_ENCODING = "sys.setdefaultencoding"
_FIELD_TYPES = "_field_types"
_UNICODE = "Delete this line, and `reload(sys)` before it: text is Unicode in Python 3."


def find(source, context):
    seen = set()
    for node, name in imported_and_used(source):
        lost = libraries.of_python(name)
        if (
            lost is None
            or lost[0] in seen
            or lost[0] in (*MODULES, "imp")
            or removed_names.todays(lost[0])
        ):
            continue
        old, since = lost
        if unreached.is_expendable(node) or not unguarded(node) or _is_own(old, context.project):
            continue
        seen.add(old)
        severity = Severity.WARNING if since == _NEWEST else None
        fix = _UNICODE if old == _ENCODING else None
        if old in _TODAY:
            fix = f"Today: {_TODAY[old]}."
        gone = f"{old} is gone: Python {since} does not have it"
        yield Hit(node, gone, severity=severity, fix=fix)
    yield from _field_types(source, context.project)


def _field_types(source, project):
    """`Row._field_types` of a typing.NamedTuple; no other class of Python's had it."""
    if _FIELD_TYPES in stored(project):
        return
    for node in all_of(source, ast.Attribute):
        if node.attr == _FIELD_TYPES and isinstance(node.ctx, ast.Load) and unguarded(node):
            gone = "_field_types of a NamedTuple is gone: Python 3.9 does not have it"
            yield Hit(node, gone, fix="Today: __annotations__.")


def _is_own(module, project):
    """True if the program may have a module of this name somewhere."""
    if "." in module:
        return False
    ends = (f"{os.sep}{module}.py", f"{os.sep}{module}{os.sep}__init__.py")
    return any(source.path.endswith(ends) for source in project.sources)
