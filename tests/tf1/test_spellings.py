"""A program of TF 1.15 means the same, however it is started and its import is spelled.

`tests/programs/spelled.py` is the program; TensorFlow 1.15 has printed the golden. Each way to
write it is a process of its own.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import fresh
from tests.legacy_programs import FOLDER

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "goldens" / "spelled.json").read_text())
SOURCE = (FOLDER / "spelled.py").read_text()
FACADE = "estimator2strategy.tf1"
IMPORT = "import tensorflow as tf\n"
MAIN = "json.dumps(main(), indent=1)"

# Code of TF 2, which calls what it is given in a graph that it has made.
MODERN = """
import threading
import tensorflow as tf

def in_a_graph(question):
    with tf.Graph().as_default():
        found = question()
        assert tf.compat.v1.get_variable("after", []).op.type == "VarHandleOp"
        assert isinstance(tf.ones([1]).shape[0], int)
    return found

def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]
"""


def with_import(statement: str) -> str:
    assert SOURCE.count(IMPORT) == 1
    return SOURCE.replace(IMPORT, f"{statement}\n")


def by_names() -> str:
    names = sorted(set(re.findall(r"\btf\.(\w+)", SOURCE)))
    imported = with_import(f"from {FACADE} import {', '.join(names)}")
    return re.sub(r"\btf\.(?=\w)", "", imported)


def passed_to_modern_code() -> str:
    graphs = "    with tf.Graph().as_default():\n        return question()\n"
    assert SOURCE.count(graphs) == 1
    passed = with_import(f"import {FACADE} as tf\nimport modern")
    return passed.replace(graphs, "    return modern.in_a_graph(question)\n")


def in_a_thread() -> str:
    threaded = with_import(f"import {FACADE} as tf\nimport modern")
    return threaded.replace(MAIN, "json.dumps(modern.in_a_thread(main))")


# Ways to write the program -> the files that it consists of; the first is run.
WRITTEN: dict[str, Callable[[], dict[str, str]]] = {
    "import as tf": lambda: {"program.py": with_import(f"import {FACADE} as tf")},
    "import the module": lambda: {
        "program.py": re.sub(r"\btf\.(?=\w)", f"{FACADE}.", with_import(f"import {FACADE}"))
    },
    "from the package": lambda: {
        "program.py": with_import("from estimator2strategy import tf1 as tf")
    },
    "import of names": lambda: {"program.py": by_names()},
    "through a helper": lambda: {
        "program.py": with_import("from helper import tf"),
        "helper.py": f"import {FACADE} as tf\n",
    },
    "passed to modern code": lambda: {"program.py": passed_to_modern_code(), "modern.py": MODERN},
    "in a thread": lambda: {"program.py": in_a_thread(), "modern.py": MODERN},
    "imported as legacy": lambda: {
        "program.py": (
            "import json\n"
            "from estimator2strategy import legacy\n"
            "print(json.dumps(legacy.import_module('spelled').main()))\n"
        ),
        "spelled.py": SOURCE,
    },
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Callable[[str], dict]:
    """What the program prints, written in one of these ways."""

    @functools.cache
    def ran(way: str) -> dict:
        folder = tmp_path_factory.mktemp("written")
        files = WRITTEN[way]() if way in WRITTEN else {"program.py": SOURCE}
        for name, source in files.items():
            (folder / name).write_text(source)
        if way == "migrated":
            _run(
                folder,
                "-m",
                "estimator2strategy",
                "migrate",
                "--stage=2",
                "--write",
                "--allow-dirty",
                ".",
            )
            assert IMPORT not in (folder / "program.py").read_text()
        command = ["-m", "estimator2strategy", "run"] if way == "e2s run" else []
        return json.loads(_run(folder, *command, "program.py"))

    return ran


def _run(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [fresh.python(), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.oldest
@pytest.mark.parametrize("question", GOLDEN)
@pytest.mark.parametrize("way", ["e2s run", *WRITTEN, "migrated"])
def test_a_program_means_what_it_meant_on_tf_1_15(way, question, printed):
    assert printed(way)[question] == GOLDEN[question]
