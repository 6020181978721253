"""The rules of ARCHITECTURE.md that the source shows: who may import whom, and where tests are.

Its table of rooms is the only list of them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from benchmarks import house, imports

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = imports.read(ROOT / "estimator2strategy")
ROOMS = imports.rooms_of((ROOT / "ARCHITECTURE.md").read_text())

_AT_ITS_USE = "the name that legacy code asks for is all that may be imported"
_WITHOUT_TENSORFLOW = "the command reads its arguments, and refuses them, without TensorFlow"
# Module -> why it imports others of the package inside functions.
LAZY = {
    "__main__": "most commands are spelt well",
    "engine/command_line": "most options are spelt well",
    "engine/libraries/served": "few programs import a library that must be read first",
    "engine/replay/batched_predict": "JAX is an extra, and imported where it was asked for",
    "tools/artifact/export_command": _WITHOUT_TENSORFLOW,
    "tools/artifact/step_export": "JAX is an extra, and the message that says so comes first",
    "engine/replay/engines": "JAX is an extra, and takes a second to import",
    "engine/runtime/jax_devices": "JAX is an extra, and takes a second to import",
    "engine/runtime/jax_hosts": "JAX is an extra, and takes a second to import",
    "engine/runtime/requested_strategy": "`e2s run` checks the strategy's name without TensorFlow",
    "estimator/canned/recurrent_estimators": "tf-keras takes seconds to import",
    "estimator/estimator": "Keras takes longer to import than all else, and few programs need it",
    "estimator/heads/metric_rows": "tf-keras takes seconds to import, and few heads need it",
    "legacy/importing": "a program starts without TensorFlow, and may set it up before it imports",
    "tf1": _AT_ITS_USE,
    "tf1/facade/deep_imports": _AT_ITS_USE,
    "tools/check/rules/estimator/recorded_models": "rules are read without TensorFlow",
    "tools/check/rules/tpu/core_graphs": "rules are read without TensorFlow",
    "tools/check/checking": "few files are notebooks, or Python 2's",
    "tools/check/rules/tensorflow/tensorflow_names": "most names are spelt well",
    "tools/reader/python_files": "few files are notebooks",
    "tools/check/rules/python/lost_names": "few programs use what legacy modules get back",
    "tools/check/check_command": "a check that only reads starts no process",
    "tools/check/formats/text": "a check that only reads measures nothing",
    "tools/check/levels/process": "a level reports that TensorFlow is missing",
    "tools/check/pytest_plugin": "pytest loads the plugin for projects that do not use it, too",
    "tools/checkpoint/checkpoint_command": _WITHOUT_TENSORFLOW,
    "tools/checkpoint/keras_file": "files are read without Keras; only a model needs it",
    "tools/exports/export_for": _WITHOUT_TENSORFLOW,
    "tools/golden/record_command": _WITHOUT_TENSORFLOW,
    "tools/golden/verify": _WITHOUT_TENSORFLOW,
}
# Folders of tests/ that are about no room; `fresh` is a tool of the tests.
NO_ROOMS = {
    "conformance",
    "examples",
    "exports",
    "fresh",
    "goldens",
    "hostile",
    "ladder",
    "libraries",
    "longtail",
    "parity",
    "programs",
    "shapes",
    "versions",
}


def test_every_module_is_in_a_room():
    outside = [module for module in PACKAGE.trees if imports.room_of(module, ROOMS) is None]
    # `engine` and `tools`, which say in a docstring what their rooms have in common.
    assert [m for m in outside if len(PACKAGE.trees[m].body) > 1] == []


def test_every_room_is_there():
    for room in ROOMS:
        assert any(imports.room_of(module, ROOMS) == room.name for module in PACKAGE.trees), room


def test_no_room_imports_one_that_its_row_does_not_name():
    allowed = {room.name: room.imports | {room.name} for room in ROOMS}
    assert [
        str(found)
        for found in PACKAGE.imports
        if (room := imports.room_of(found.importer, ROOMS)) is not None
        and imports.room_of(found.imported, ROOMS) not in allowed[room]
    ] == []


def test_no_row_names_a_room_that_is_not_imported():
    used = {
        (imports.room_of(found.importer, ROOMS), imports.room_of(found.imported, ROOMS))
        for found in PACKAGE.imports
    }
    named = {(room.name, other) for room in ROOMS for other in room.imports}
    assert named - used == set()


def test_no_import_climbs():
    above: set[str] = set()
    for room in ROOMS:
        assert room.imports <= above, f"{room.name} names rooms that do not stand above it"
        above.add(room.name)
    assert list(map(str, imports.climbs(PACKAGE, ROOMS))) == []


# The storeys of the house, lowest first; those beside them open a door to all.
_STOREYS = ("engine", "estimator", "keras_model", "tf1 legacy", "tools")


def test_no_wing_imports_one_that_stands_higher_whatever_the_table_says():
    storey = {wing: i for i, wings in enumerate(_STOREYS) for wing in wings.split()}
    assert set(storey) == {f.parent.name for f in (ROOT / PACKAGE.name).glob("*/__init__.py")}
    wings = [(i.importer.partition("/")[0], i.imported.partition("/")[0]) for i in PACKAGE.imports]
    assert [
        str(found)
        for found, (here, there) in zip(PACKAGE.imports, wings, strict=True)
        if here in storey and there in storey and storey[there] > storey[here]
    ] == []


def test_no_modules_import_one_another_in_a_circle():
    assert imports.circles(PACKAGE) == []


def test_an_import_inside_a_function_has_its_reason_in_the_list():
    lazy = {found.importer: str(found) for found in PACKAGE.imports if found.is_lazy}
    assert {module: said for module, said in lazy.items() if module not in LAZY} == {}
    assert set(LAZY) - set(lazy) == set()


# The recorder also runs under TensorFlow 1.15, whose Estimators have no other door.
_MEETS_OTHER_ESTIMATORS = "tools/golden/recorder/"


def _classes_of(root: str) -> list[ast.ClassDef]:
    """The classes of this name, their subclasses, theirs, ... and the bases of the first."""
    classes = [
        (node, {ast.unparse(base).rpartition(".")[2] for base in node.bases})
        for tree in PACKAGE.trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    names = {root}
    while new := {node.name for node, bases in classes if bases & names} - names:
        names |= new
    names |= {base for node, bases in classes if node.name == root for base in bases}
    return [node for node, _ in classes if node.name in names]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_nobody_but_its_class_touches_a_private_attribute_of_an_estimator():
    """Others ask for its parts (`e2s_parts`), or for a copy with others (`e2s_copy`)."""
    classes = _classes_of("Estimator")
    own = {name for cls in classes for name in house.attributes(cls)}
    own |= {n.name for c in classes for n in c.body if isinstance(n, ast.FunctionDef)}
    own = set(filter(_is_private, own))
    assert {"_config", "_placement", "_batch_sizes", "_model_fn", "_warm_start_settings"} <= own
    assert [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module, tree in PACKAGE.trees.items()
        if not module.startswith(_MEETS_OTHER_ESTIMATORS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in own
        and ast.unparse(node.value) not in ("self", "cls", "super()", "type(self)")
    ] == []


def test_nobody_else_sets_an_attribute_of_a_replay_session():
    (session,) = (c for c in _classes_of("ReplaySession") if c.name == "ReplaySession")
    own = house.attributes(session)
    assert {"ran", "runs"} <= own
    assert [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module, tree in PACKAGE.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr in own
        and ast.unparse(node.value) != "self"
    ] == []


def test_only_engines_and_the_step_of_a_tpu_write_gauges():
    (gauges,) = _classes_of("Gauges")
    reads = {"last_loss", "steps_since_nan", "waited", "reset"}
    writes = {n.name for n in gauges.body if isinstance(n, ast.FunctionDef)} - reads
    assert {"hold_loss", "keep_loss", "note_nan", "add_wait"} <= writes
    writers = {
        module
        for module, tree in PACKAGE.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in writes - {"__init__"}
    }
    assert writers <= {
        *("engine/replay/gauges", "engine/replay/tpu_step"),
        *(m for m in PACKAGE.trees if m.startswith("engine/replay/engines/")),
    }


_PRIVATE_MODULE = re.compile(r"(tensorflow\.python|(tf_)?keras\.src|jax(lib)?\._src)\b")
# Modules that ask objects of TensorFlow, Keras or Python for private attributes; all others do not.
_ASK_FOR_PRIVATE_ATTRIBUTES = """
    engine/_tf_private engine/_tf_switches engine/callers engine/command_line
    engine/libraries/served engine/metrics/observe engine/record/recording_strategy
    engine/runtime/evaluation
    engine/runtime/input_position engine/runtime/interruption engine/runtime/jax_hosts
    engine/runtime/lookahead engine/runtime/saving engine/runtime/training
    engine/runtime/unfinished_saves engine/wrong_argument estimator/keras_models
    estimator/tpu_outfeed legacy/children legacy/run tf1/contrib/feature_column
    tf1/contrib/lookup tf1/contrib/opt/optimizers_of_1_15 tf1/contrib/opt/sign_optimizers
    tf1/facade/namespace tf1/facade/refused tools/check/levels/process
    tools/golden/recorder/batches
"""


def test_private_modules_of_libraries_are_imported_in_two_places():
    importers = {
        module
        for module, tree in PACKAGE.trees.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and _PRIVATE_MODULE.match(node.module or ""))
        or (isinstance(node, ast.Import) and any(map(_PRIVATE_MODULE.match, _names(node))))
    }
    assert importers <= {"engine/_tf_private", "engine/_tf_switches"}
    assert "engine/_tf_private" in importers


def _names(node: ast.Import) -> list[str]:
    return [alias.name for alias in node.names]


def test_no_other_module_asks_for_a_private_attribute_that_is_not_ours():
    ours = set(dir(tuple)) | {"_replace", "_fields", "_asdict", "_make"}
    for node in (n for tree in PACKAGE.trees.values() for n in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            ours.add(node.name)
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            ours.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    asking = {
        module
        for module, tree in PACKAGE.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in ours
    }
    assert asking == set(_ASK_FOR_PRIVATE_ATTRIBUTES.split())


TABLE = """
| room | idea | imports |
| --- | --- | --- |
| `low` | `x` | |
| `wing/b` | | |
| `wing` | | `low`, `wing/b` |

"""
SOURCES = {
    "one/__init__.py": "from one.low import constant\n",
    "one/low.py": "",
    "one/wing/__init__.py": "",
    "one/wing/a.py": "from . import b\nfrom ..low import name\n",
    "one/wing/b.py": "def late():\n    import one.wing.a as a, one.wing.a.name\n",
    "one/top.py": "import os, one\nfrom one import wing, nothing\nfrom one.wing.b import late\n",
}


@pytest.fixture
def package(tmp_path):
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return imports.read(tmp_path / "one")


def test_imports_are_read_in_all_forms(package):
    assert [(i.importer, i.imported, i.line, i.is_lazy) for i in package.imports] == [
        ("__init__", "low", 1, False),
        ("top", "__init__", 1, False),
        ("top", "__init__", 2, False),
        ("top", "wing", 2, False),
        ("top", "wing/b", 3, False),
        ("wing/a", "wing/b", 1, False),
        ("wing/a", "low", 2, False),
        ("wing/b", "wing/a", 2, True),
    ]


def test_circles_and_climbs_are_found(package):
    rooms = imports.rooms_of(TABLE)
    assert [room.imports for room in rooms] == [set(), set(), {"low", "wing/b"}]
    assert imports.circles(package) == [("wing/a", "wing/b")]
    assert [str(found) for found in imports.climbs(package, rooms)] == ["wing/b:2 imports wing/a"]
    assert imports.room_of("wing/b", rooms) == "wing/b"
    assert imports.room_of("top", rooms) is None


def test_every_folder_of_tests_is_one_of_the_package():
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    names = {folder.relative_to(ROOT / "tests").as_posix() for folder in folders} - {"."}
    assert [
        name
        for name in sorted(names)
        if name.partition("/")[0] not in NO_ROOMS and not (ROOT / PACKAGE.name / name).is_dir()
    ] == []


@pytest.mark.parametrize(
    "room", [room.name for room in ROOMS if (ROOT / PACKAGE.name / room.name).is_dir()]
)
def test_every_room_has_tests_in_a_folder_of_its_name(room):
    assert list((ROOT / "tests" / room).glob("test_*.py"))


@pytest.mark.parametrize(
    "page",
    [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "architecture").rglob("*.md"))],
    ids=lambda page: page.stem,
)
def test_files_and_folders_that_a_page_names_are_there(page):
    """By the end of their path, as the page gives them."""
    found = [*ROOT.glob("[!.]*"), *ROOT.glob("[!.]*/**/*")]
    paths = [path.relative_to(ROOT).as_posix() for path in found]
    named = re.findall(r"`([\w/]+(?:\.(?:py|csv|json|md|txt)|/))`", page.read_text())
    assert named
    assert [
        name
        for name in named
        if not any(f"/{path}".endswith(f"/{name.rstrip('/')}") for path in paths)
    ] == []


def test_the_figures_of_the_house_are_those_that_its_page_has(capsys):
    house.main([])
    rows = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines()[2:]]
    # A figure may say besides which function or module it is.
    found = {name.strip(): value.partition("(")[0].strip() for name, value in rows}
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("## The house in figures")[2]
    table = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| ")][2:]
    assert {name.strip(): now.strip() for name, _, now in table} == found
    assert found["circles of imports"] == found["imports that climb"] == "0"
    assert found["names typed `session: Any`"] == "0"
    assert int(found["entries at the top of the package"]) <= 12


def test_attributes_are_those_that_methods_assign_and_the_body_annotates():
    body = "x: int\n    def f(self, b):\n        self.y, b.z = 1, 2\n        self.w += 1\n"
    (cls,) = ast.parse(f"class A:\n    {body}").body
    assert house.attributes(cls) == {"w", "x", "y"}
