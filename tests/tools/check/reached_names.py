"""Which names of TensorFlow a program's lines reach, and which of them `e2s check` does not tell.

    python tests/tools/check/reached_names.py FOLDER train.py --steps=5

Runs a program of FOLDER as `e2s run` does, and notes each name that its files ask of TensorFlow's
modules. Of these, TensorFlow 2 lacks some, or has lost an argument that the program gives: each is
a failure on TensorFlow 2 that `e2s check FOLDER --target tf2` has to tell in that file. Prints how
many there are, and those that were not told.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.machinery
import inspect
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

_FACADE = "estimator2strategy.tf1"


class Reached(NamedTuple):
    """A name, where a file asks for it: `tf.layers.dense`, with the arguments of its call."""

    file: str
    line: int
    name: str
    arguments: tuple[str, ...] = ()


class _Noting(ast.NodeTransformer):
    """Has attributes and imports of TensorFlow noted as they are evaluated."""

    def __init__(self, file: str):
        self.file = file

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._noted(node, ()) or self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        given = tuple(keyword.arg for keyword in node.keywords if keyword.arg)
        function = self._noted(node.func, given) or self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        node.func = function
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if (node.module or "").partition(".")[0] != "tensorflow":
            return node
        parts = node.module.split(".")
        above = [".".join(parts[:i]) for i in range(2, len(parts) + 1)]
        names = [*above, *(f"{node.module}.{alias.name}" for alias in node.names)]
        return [node, self._statement(node, names)]

    def _noted(self, node: ast.expr, arguments: tuple[str, ...]) -> ast.expr | None:
        is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        if not is_read or node.attr.startswith("__"):
            return None
        place = (self.file, node.lineno, node.attr, arguments)
        return ast.copy_location(_call("__e2s_reach__", self.visit(node.value), *place), node)

    def _statement(self, node: ast.stmt, names: list[str]) -> ast.stmt:
        call = _call("__e2s_import__", ast.Constant(tuple(names)), self.file, node.lineno)
        return ast.copy_location(ast.Expr(call), node)


def _call(name: str, value: ast.expr, *constants: Any) -> ast.Call:
    # Names with underscores at both ends are not mangled in classes.
    arguments = [value, *(ast.Constant(constant) for constant in constants)]
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def _path_of(module: types.ModuleType) -> str | None:
    """The name that a program has for a module of TensorFlow."""
    if path := vars(module).get("_path"):
        return path
    name = module.__name__
    if name == _FACADE or name.startswith(f"{_FACADE}.contrib"):
        return f"tf{name.removeprefix(_FACADE)}"
    return name if name.partition(".")[0] == "tensorflow" else None


def _run(folder: Path, command: list[str], out: Path) -> None:
    """Runs `e2s run` in this process, and writes what was reached."""
    reached: dict[Reached, None] = {}
    compiled = builtins.compile

    def reach(value: Any, file: str, line: int, attribute: str, arguments: tuple) -> Any:
        path = _path_of(value) if isinstance(value, types.ModuleType) else None
        if path:
            reached[Reached(file, line, f"{path}.{attribute}", arguments)] = None
        return getattr(value, attribute)

    def note(names: tuple[str, ...], file: str, line: int) -> None:
        reached.update({Reached(file, line, name): None for name in names})

    def is_ours(file: Any) -> bool:
        return folder in Path(os.fsdecode(file)).resolve().parents

    def noting(source: Any, file: Any, mode: str, flags: int = 0, *rest: Any, **more: Any) -> Any:
        if mode == "exec" and not flags & ast.PyCF_ONLY_AST and is_ours(file):
            tree = compiled(source, file, mode, flags | ast.PyCF_ONLY_AST)
            source = ast.fix_missing_locations(_Noting(str(Path(file).resolve())).visit(tree))
        return compiled(source, file, mode, flags, *rest, **more)

    loader = importlib.machinery.SourceFileLoader
    get_code = loader.get_code

    def without_cache(self, name):
        path = self.get_filename(name)
        if not is_ours(path):
            return get_code(self, name)
        return noting(self.get_data(path), path, "exec", 0, True)

    builtins.__e2s_reach__, builtins.__e2s_import__ = reach, note
    builtins.compile, loader.get_code = noting, without_cache
    from estimator2strategy.__main__ import main

    sys.argv = ["e2s", "run", *command]
    try:
        main()
    finally:
        out.write_text(json.dumps(list(reached)))


def failures(reached: list[Reached]) -> dict[str, list[Reached]]:
    """The names that TensorFlow 2 lacks, or `name(argument)`, and where each is reached."""
    found: dict[str, list[Reached]] = {}
    for each in reached:
        there, value = _value(each.name)
        if not there and _value(each.name.rpartition(".")[0])[0]:
            found.setdefault(each.name, []).append(each)
        for argument in each.arguments if there else ():
            if not _takes(value, argument):
                found.setdefault(f"{each.name}({argument})", []).append(each)
    return found


def _value(name: str) -> tuple[bool, Any]:
    """(True if TensorFlow 2 has the name, its value)."""
    first, *rest = name.split(".")
    path = "tensorflow" if first == "tf" else first
    value: Any = importlib.import_module(path)
    for part in rest:
        path = f"{path}.{part}"
        if hasattr(value, part):
            value = getattr(value, part)
        elif part == "*":
            return True, value
        else:
            try:
                value = importlib.import_module(path)
            except ImportError:
                return False, None
    return True, value


def _takes(function: Any, argument: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return is_open or argument in parameters


def not_told(folder: Path, reached: list[Reached]) -> tuple[int, dict[str, Reached]]:
    """(the number of different failures on TensorFlow 2, those that `e2s check` does not tell)."""
    command = ["check", ".", "--target", "tf2", "--format", "json", "--fail-on", "never"]
    said = subprocess.run(
        [sys.executable, "-m", "estimator2strategy", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        check=True,
    )
    findings = json.loads(said.stdout)["findings"]
    told = [(str((folder / f["path"]).resolve()), f["line"], f["message"]) for f in findings]
    found = failures(reached)
    missed = {}
    for name, places in found.items():
        last = re.compile(rf"\b{re.escape(name.partition('(')[0].rpartition('.')[2])}\b")
        is_told = any(
            file == place.file and (line == place.line or last.search(message))
            for place in places
            for file, line, message in told
        )
        if not is_told:
            missed[name] = places[0]
    return len(found), missed


def reached_by(folder: Path, command: list[str], out: Path, seconds: int = 300) -> list[Reached]:
    """The names that a program of `folder` reaches.

    Args:
        folder: Its files.
        command: The arguments of `e2s run`.
        out: A file to write.
        seconds: The time that it may take.
    """
    subprocess.run(
        [sys.executable, __file__, "--run", str(folder), str(out), *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=seconds,
        check=True,
    )
    return [
        Reached(file, line, name, tuple(a)) for file, line, name, a in json.loads(out.read_text())
    ]


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        _run(Path(sys.argv[2]).resolve(), sys.argv[4:], Path(sys.argv[3]))
    else:
        _folder = Path(sys.argv[1]).resolve()
        _number, _missed = not_told(
            _folder, reached_by(_folder, sys.argv[2:], Path("reached.json"))
        )
        print(f"{_number} names or arguments that TensorFlow 2 lacks, {len(_missed)} not told")
        for _name, _place in _missed.items():
            print(f"  {_name}: {_place.file}:{_place.line}")
