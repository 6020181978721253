"""The ledger of patches: each change to foreign objects has a row, and each row a change."""

from __future__ import annotations

import ast
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator2strategy.engine import patches

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "estimator2strategy"
CALLS = {"put", "scope", "noted"}
# Calls that change the process, by their last words.
CHANGES = (
    *(
        "signal.signal",
        "signal.set_wakeup_fd",
        "atexit.register",
        "os.dup2",
        "os.chdir",
        "os.umask",
    ),
    *("sys.settrace", "sys.setprofile", "sys.setrecursionlimit", "threading.settrace"),
    *("sys.meta_path.insert", "sys.meta_path.append", "sys.path.insert", "sys.path.append"),
    *("sys.path_hooks.append", "os.environ.update", "os.environ.setdefault", "os.environ.pop"),
    *("os.putenv", "gc.freeze", "gc.disable", "gc.set_threshold", "gc.callbacks.append"),
    *("warnings.filterwarnings", "warnings.simplefilter", "logging.basicConfig", "copyreg.pickle"),
    *("addFilter", "addHandler", "setLevel", "set_verbosity", "tf.RegisterGradient"),
    *("set_logical_device_configuration", "set_soft_device_placement", "set_memory_growth"),
    *("register_tensor_conversion_function", "faulthandler.enable", "np.random.seed"),
    *("jax.config.update", "set_global_attribute", "sys.monitoring.use_tool_id"),
)
# Files that run where this package is not.
ALONE = (
    *("tools/golden/recorder/", "tools/golden/record_command.py", "tools/artifact/step_loader.py"),
    *("tools/checkpoint/on_backend.py", "engine/runtime/host_watch.py"),
)
# Objects that look foreign and are this package's own.
OWN = {
    "engine/behavior.py:mark": "a mark on the graph itself",
    "engine/behavior.py:mark_seeded": "a mark on the graph itself",
    "engine/behavior.py:entering": "a mark on a function that is made there",
    "engine/runtime/session_config.py:not_rewritten": "a ConfigProto that is made there",
    "engine/runtime/session_config.py:rewritten_a_little": "a ConfigProto that is made there",
    "estimator/run_config.py:RunConfig.__deepcopy__": "the copy",
    "keras_model/executions.py:renew": "a LegacyModel, which is ours",
    "keras_model/executions.py:renew.make": "a LegacyModel, which is ours",
    "legacy/removed_names.py:module": "a copy of a module, under the program's import alone",
    "tf1/contrib/__init__.py:_module": "modules of the facade",
    "tf1/contrib/data.py:_methods_return_it": "a class of the facade",
    "tf1/facade/deep_imports.py:DeepImports.exec_module": "modules of the facade",
    "tf1/facade/changed_functions.py:RegisterGradient.__init__": "the program's own registration",
    "tf1/facade/slim_copy.py:module": "copies of tf-slim's modules, under names of ours",
    "tools/check/formats/junit.py:render": "an XML tree that is made there",
    "tools/check/formats/junit.py:_verdict": "an XML tree that is made there",
    "tools/check/levels/load.py:_intercepted": "Estimator, which is ours",
    "tools/golden/output.py:junit_of": "an XML tree that is made there",
}


def changes(tree: ast.Module, foreign: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """(function, what it changes) for each change of a foreign object in a module."""
    names = aliases(tree) | foreign

    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            inside = function
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}".lstrip(".")
                if isinstance(child, ast.FunctionDef):
                    for decorator in child.decorator_list:
                        if ast.unparse(decorator).endswith(CHANGES):
                            yield function, ast.unparse(decorator)
            if any(changed(child, names)):
                yield function, ast.unparse(child).partition("\n")[0]
            yield from walk(child, inside)

    yield from walk(tree, "")


def changed(node: ast.AST, names: frozenset[str]) -> Iterator[bool]:
    """True for each target of a statement, or call, that is foreign."""
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        yield any(called == c or called.endswith(f".{c}") for c in CHANGES)
        yield called in ("setattr", "delattr") and root(node.args[0]) not in ("self", "cls")
        return
    else:
        return
    for target in targets:
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            yield isinstance(one, ast.Attribute | ast.Subscript) and root(one) in names


def root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def aliases(tree: ast.Module) -> frozenset[str]:
    """Names of a module that are foreign modules, or parts of them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name.partition(".")[0] for a in node.names if not ours(a.name)}
        elif isinstance(node, ast.ImportFrom) and not ours(node.module or ""):
            found |= {a.asname or a.name for a in node.names}
    size = -1
    while size != len(found):
        size = len(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and root_of_alias(node) in found:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)


def root_of_alias(node: ast.Assign | ast.AnnAssign) -> str:
    """The foreign name that an assignment gives another name to, or ""."""
    return root(node.value) if isinstance(node.value, ast.Attribute | ast.Name) else ""


def ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE.name


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(ALONE) and name != "engine/patches.py":
            yield name, ast.parse(path.read_text())


def rows_named_in(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"patches.{c}" for c in CALLS}:
            yield node.args[0]


def functions(tree: ast.Module) -> dict[str, ast.AST]:
    found: dict[str, ast.AST] = {"": tree}

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{name}.{child.name}".lstrip(".")
                found[inside] = child
            walk(child, inside)

    walk(tree, "")
    return found


def unlisted(name: str, tree: ast.Module, foreign: frozenset[str]) -> Iterator[str]:
    """The changes of a module that no row of the ledger stands beside."""
    known = functions(tree)
    for function, what in changes(tree, foreign):
        place = f"{name}:{function}"
        outermost = known[function.partition(".")[0]] if function else tree
        around = known[function] if any(rows_named_in(known[function])) else outermost
        if place not in OWN and not any(rows_named_in(around)):
            yield f"{place}: {what}"


def foreign_in_ours(trees: dict[str, ast.Module], tree: ast.Module) -> frozenset[str]:
    """Names that a module imports from ours, where they are foreign."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and ours(node.module or ""):
            home = f"{(node.module or '').partition('.')[2].replace('.', '/')}.py"
            if home in trees:
                there = aliases(trees[home])
                found |= {a.asname or a.name for a in node.names if a.name in there}
    return frozenset(found)


def test_nothing_foreign_is_changed_without_a_row():
    trees = dict(modules())
    found = [
        change
        for name, tree in trees.items()
        for change in unlisted(name, tree, foreign_in_ours(trees, tree))
    ]
    assert found == []


def test_each_row_is_named_by_a_change_and_each_change_names_a_row():
    named = {
        one.value
        for _, tree in modules()
        for row in rows_named_in(tree)
        for one in ast.walk(row)
        if isinstance(one, ast.Constant)
    }
    by_decorator = {
        node.args[0].value
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_in_place_of"
    }
    assert named | by_decorator == set(patches.ledger())


def test_what_is_said_to_be_our_own_is_there():
    trees = dict(modules())
    found = {f"{name}:{f}" for name, tree in trees.items() for f, _ in changes(tree)}
    assert set(OWN) <= found


@pytest.mark.parametrize("name", patches.ledger())
def test_the_tests_of_a_row_are_there(name):
    assert (ROOT / "tests" / patches.ledger()[name].test).is_file()


@pytest.mark.parametrize(
    "line",
    [
        "import sys\nsys.excepthook = print",
        "import tensorflow as tf\n_v1 = tf.compat.v1\ndef f():\n    _v1.Session.run = None",
        "import os\nos.environ['A'] = 'b'",
        "from keras import layers\nsetattr(layers.Dense, 'call', None)",
        "import atexit\n@atexit.register\ndef f(): pass",
        "import signal\nsignal.signal(2, print)",
        "import gc\ndel gc.callbacks[:]",
    ],
)
def test_a_change_is_found(line):
    assert list(unlisted("x.py", ast.parse(line), frozenset()))


def test_a_scope_puts_back_what_was_there():
    module = types.SimpleNamespace(value=1)
    with patches.scope("sums over one core", module, "value", 2):
        assert module.value == 2
    assert module.value == 1
    assert "sums over one core" in patches.in_force()


def test_doctor_shows_the_rows_that_are_in_force():
    command = [sys.executable, "-m", PACKAGE.name, "doctor", "--patches"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, _, others = shown.partition("In force at other times:")
    assert "tensor: " not in first
    assert "facade imports\n" in first
    assert "graph switches\n" in first
    assert "signals\n" in others
