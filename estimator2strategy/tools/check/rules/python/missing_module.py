"""Modules that a program imports from a folder of its own which does not have them."""

import contextlib
import dataclasses
import os
import re

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import unguarded
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.python_files import read_source

# The ends of names that a build may make.
_BUILT = ("_pb2", "_pb2_grpc", "version", "_ext", "_op", "_ops", "_cuda")
# How many folders above the program's are searched for a setup.py that cannot be parsed.
_CLIMB = 3


def find(source, context):
    seen = set()
    for target, _ in source.imports:
        parts = target.module.split(".")
        if target.level or len(parts) < 2 or target.module in seen:
            continue
        if unreached.is_expendable(target.node) or not unguarded(target.node):
            continue
        found = source.follow(source, dataclasses.replace(target, name=None))
        if found is not None and found.startswith("@"):
            continue
        missing = _missing(parts, source, context.project)
        if missing is None or missing in seen or _is_elsewhere(parts, context.project):
            continue
        if is_built(missing[1], _folder(parts[0], source, context.project), context.project):
            continue
        seen |= {target.module, missing}
        yield Hit(target.node, f"the folder {missing[0]} has no module {missing[1]}")


def may_be_built(module):
    """True for names of the kind that a build gives to modules: `_C`, `example_pb2`."""
    return module.startswith("_") or module.endswith(_BUILT)


def is_built(module, folder, project):
    """True if a setup.py of the program names such a module: `Extension("utils.cython_bbox")`."""
    named = re.compile(rf"[\"'.]{re.escape(module)}[\"']")
    return any(named.search(text) for text in _setups(folder, project))


def _setups(folder, project):
    """The text of each setup.py of the program, and of those above a folder, if of Python 2."""
    for other in project.sources:
        if os.path.basename(other.path) == "setup.py":
            yield other.text
    for _ in range(_CLIMB):
        folder = os.path.dirname(folder)
        path = os.path.join(folder, "setup.py")
        if os.path.isfile(path):
            with contextlib.suppress(OSError, ValueError, SyntaxError):
                yield read_source(path)
        if os.path.exists(os.path.join(folder, ".git")):
            return


def _missing(parts, source, project):
    """(folder, the module that it lacks), if the first folder is one that imports read."""
    folder = _folder(parts[0], source, project)
    if folder is None:
        return None
    shown = parts[0]
    for part in parts[1:]:
        entries = os.listdir(folder)
        if part in entries and os.path.isdir(os.path.join(folder, part)):
            folder, shown = os.path.join(folder, part), f"{shown}/{part}"
            continue
        if may_be_built(part) or any(e.partition(".")[0] == part and e != part for e in entries):
            return None
        return shown, part
    return None


def _folder(top, source, project):
    """The nearest folder of this name around a file out of which another import of it reads."""
    around = os.path.dirname(source.path)
    while True:
        folder = os.path.join(around, top)
        # In a package a plain `import luigi` is the library's, whatever folders are beside it.
        if os.path.isdir(folder) and not os.path.isfile(os.path.join(around, "__init__.py")):
            return folder if _is_read(top, folder, source, project) else None
        outer = os.path.dirname(around)
        if outer == around or not any(
            other.path.startswith(outer + os.sep) and not other.path.startswith(around + os.sep)
            for other in project.sources
        ):
            return None
        around = outer


def _is_read(top, folder, source, project):
    """True if an import of the program that begins with this folder's name finds a file in it."""
    for other in (source, *project.sources):
        for target, _ in other.imports:
            if not target.level and target.module.partition(".")[0] == top:
                # The file is there, also where the value of one of its names is unknown.
                module = dataclasses.replace(target, name=None) if "." in target.module else target
                found = (other.follow(other, target), other.follow(other, module))
                if any(each and each.startswith(f"@{folder}{os.sep}") for each in found):
                    return True
    return False


def _is_elsewhere(parts, project):
    """True if the program has such a file below another folder, and may be started from there."""
    path = os.path.join(os.sep, *parts)
    ends = (f"{path}.py", os.path.join(path, "__init__.py"))
    return any(source.path.endswith(ends) for source in project.sources)
