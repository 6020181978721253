"""Writes `Python.csv` of estimator2strategy/engine/names/read_off/: names that Python has dropped.

    for version in 2.7 3.6 3.10 3.11 3.12 3.13; do
        python$version tests/engine/names/python_names.py --names 2.7.json 3.6.json > $version.json
    done
    python tests/engine/names/python_names.py *.json

A name that 2.7 or 3.6 has is gone with the first release from which on none has it; the release is
written for those that the oldest supported one (3.10) still has. It runs on all of them.
"""

import importlib
import io
import json
import os
import pkgutil
import re
import sys
import warnings

_OLDEST = "3.10"
_ELSEWHERE = {"os.lchmod"}  # other systems have it
_SKIPPED = re.compile(
    r"^(_|antigravity|this|idlelib|test$|tests$|turtledemo|lib2to3\.pgen2|ensurepip|pydoc_data|plat-"
    r"|site$|sitecustomize|pip|setuptools|pkg_resources|easy_install|wheel|encodings\.|venv)"
    r"|(^|\.)(tests?|__main__|_[^.]*)(\.|$)"
)


def names(old):
    """Module -> its public names, those of `old` included that it makes when asked for them."""
    found = {}
    folder = os.path.dirname(os.__file__)
    paths = [folder, os.path.join(folder, "lib-dynload"), os.path.join(folder, "lib-tk")]
    modules = {m[1] for m in pkgutil.iter_modules(paths)} | set(sys.builtin_module_names)
    todo = sorted(modules)
    while todo:
        name = todo.pop()
        if _SKIPPED.search(name) or name in found:
            continue
        try:
            module = importlib.import_module(name)
        except BaseException:  # whatever a module needs: Tk, another system
            if name in modules:
                found[name] = []  # it is there
            continue
        has = {key for key in dir(module) if key[:1] != "_"}
        has.update(key for key in old.get(name, ()) if hasattr(module, key))
        found[name] = sorted(has)
        todo += [m[1] for m in pkgutil.iter_modules(getattr(module, "__path__", []), name + ".")]
    return found


def gone(releases):
    """Module or "" -> "name:release" of each name that is gone."""
    order = sorted(releases, key=_number)
    found = {}
    for old in order[:2]:
        for module, has in releases[old].items():
            parent, _, last = module.rpartition(".")
            since = _since(order, lambda release, m=module: m in releases[release])
            if since:
                is_there = last in releases[order[-1]].get(parent, ())  # a function, or a class
                if not parent or (parent in releases[order[-1]] and not is_there):
                    found.setdefault(parent, {})[last] = since
                continue
            for name in has:
                inner = module + "." + name

                def there(release, m=module, n=name, i=inner):
                    known = releases[release]
                    return n in known.get(m, ()) or i in known

                since = _since(order, there)
                if since and module + "." + name not in _ELSEWHERE:
                    found.setdefault(module, {})[name] = since
    found["sys"]["setdefaultencoding"] = _OLDEST  # 2.7 has it after reload(sys)
    return {
        module: " ".join(
            sorted(n + ":" * (s != _OLDEST) + s.replace(_OLDEST, "") for n, s in names.items())
        )
        for module, names in sorted(found.items())
    }


def _since(order, there):
    """The first supported release from which on it is not there; None if the newest has it."""
    since = None
    for release in order[2:]:
        if there(release):
            since = None
        elif since is None:
            since = release
    return since


def _number(release):
    return [int(part) for part in release.split(".")]


def _read(path):
    if not os.path.exists(path) or not os.path.getsize(path):
        return {}  # the first of them, which is being made
    with open(path) as file:
        return json.load(file)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--names":
        before = {}
        for path in sys.argv[2:]:
            for module, has in _read(path).items():
                before.setdefault(module, []).extend(has)
        out, sys.stdout = sys.stdout, io.StringIO() if sys.version_info[0] > 2 else io.BytesIO()
        sys.argv = sys.argv[:1]
        json.dump(names(before), out)
        out.flush()
        os._exit(0)  # threads that some of them started
    read = {}
    for path in sys.argv[1:]:
        read[os.path.basename(path)[: -len(".json")]] = _read(path)
    root = os.path.abspath(__file__)
    for _ in range(4):
        root = os.path.dirname(root)
    made = [("name", "fact", "value"), ("Python", "made by", "tests/engine/names/python_names.py")]
    made.append(("Python", "release", max(read, key=_number)))
    made += [(module, "gone", has) for module, has in sorted(gone(read).items())]
    table = os.path.join(root, "estimator2strategy/engine/names/read_off/Python.csv")
    with open(table, "w") as file:
        file.writelines(",".join(row) + "\n" for row in made)
