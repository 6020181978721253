"""Calls and attributes of the program's own functions, classes and modules, flags, names."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check, check_text
from estimator2strategy.tools.check.settings import Settings
from tests.tools.check.checked_programs import write


def messages(text, rule):
    return [f.message for f in check_text(text, Settings()).findings if f.rule == rule]


FUNCTION = "def f(a, b, *, c=1):\n    return a, b, c\n\n\n"
CLASSES = """\
class A:
    def __init__(self, a):
        self.a = a

    def f(self, x):
        return x

    @staticmethod
    def g(x):
        return x


class B(A):
    def __init__(self):
        super().__init__({given})


"""


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("f(1)", "needs b, too"),
        ("f(1, 2, 3)", "takes 2 arguments by position, not 3"),
        ("f(1, b=2, d=3)", "has no argument 'd'"),
        ("f(1, 2, a=3)", "gets 'a' twice"),
    ],
)
def test_a_call_that_its_function_refuses_is_found(call, why):
    assert [m.partition(") ")[2] for m in messages(f"{FUNCTION}x = {call}\n", "E2S013")] == [why]


@pytest.mark.parametrize("call", ["f(1, 2)", "f(1, b=2, c=3)", "f(*[1, 2])", "f(1, **{'b': 2})"])
def test_a_call_that_its_function_takes_is_no_finding(call):
    assert messages(f"{FUNCTION}x = {call}\n", "E2S013") == []


@pytest.mark.parametrize("call", ["A()", "A(1).f(2)\nA(1, 2)", "a = A(1)\na.f()", "A.g()"])
def test_classes_and_methods_are_held_to_their_arguments(call):
    assert len(messages(f"{CLASSES.format(given='1')}{call}\n", "E2S013")) == 1


def test_another_name_for_self_is_the_object():
    own = "class A:\n    def f(self, x):\n        return x\n\n    def g(self):\n        me = self\n"
    assert messages(f"{own}        return me.f(1)\n", "E2S013") == []
    assert len(messages(f"{own}        return me.f()\n", "E2S013")) == 1


def test_the_arguments_of_super_are_those_of_the_base():
    assert messages(CLASSES.format(given="1"), "E2S013") == []
    assert len(messages(CLASSES.format(given=""), "E2S013")) == 1


def test_the_class_that_is_called_is_named_where_a_base_takes_the_arguments():
    first = "class A:\n    def __init__(self, x):\n        pass\n\n\n"
    text = f"{first}class B(A):\n    pass\n\n\nB()\n"
    assert messages(text, "E2S013") == ["B, by A (program.py:2) needs x, too"]


BASE = """\
class Base:
    def run(self):
        return self.step(1, 2)

    def step(self, a, b):
        return a, b


class Sub(Base):
    def step(self, a{rest}):
        return a
{more}


Sub().run()
"""


def test_the_method_of_a_subclass_is_held_to_what_the_base_gives_it():
    found = ["step, by Sub.step (program.py:10) takes 1 argument by position, not 2"]
    assert messages(BASE.format(rest="", more=""), "E2S013") == found
    assert messages(BASE.format(rest=", b, c=3", more=""), "E2S013") == []
    # Then nothing of the base calls it.
    own = "\n    def run(self):\n        return self.step(1)\n"
    assert messages(BASE.format(rest="", more=own), "E2S013") == []
    # Nor where no object has it.
    assert messages(BASE.format(rest="", more="").replace("Sub()", "Base()"), "E2S013") == []


def test_functions_that_are_decorated_bound_twice_replaced_or_items_are_no_finding():
    assert messages(f"@wraps\n{FUNCTION}f(1)\n", "E2S013") == []
    assert messages(f"{FUNCTION}{FUNCTION}f(1)\n", "E2S013") == []
    assert (
        messages("class A:\n    def f(self):\n        g = self.f\n        g(1)\n", "E2S013") == []
    )
    called = "class A:\n    def __init__(self):\n        self(1)\n"
    assert messages(called, "E2S013") == []
    replaced = "class A:\n    def f(self):\n        pass\n\n\nA.f = print\na = A()\na.f(1)\n"
    assert messages(replaced, "E2S013") == []
    item = "class A:\n    def f(self):\n        self[0](1)\n\n\nclass B(A):\n    pass\n"
    assert messages(item, "E2S013") == []


OBJECT = "class A{base}:\n    def __init__(self):\n        self.a = 1\n\n    def f(self):\n"


def test_an_attribute_that_nothing_gives_is_found():
    text = f"{OBJECT.format(base='')}        return self.b\n"
    assert messages(text, "E2S014") == ["nothing gives A the attribute b"]


@pytest.mark.parametrize(
    "text",
    [
        f"{OBJECT.format(base='')}        return self.a\n",
        f"{OBJECT.format(base='(Unknown)')}        return self.b\n",
        f"{OBJECT.format(base='')}        setattr(self, 'b', 1)\n        return self.b\n",
        f"{OBJECT.format(base='')}        return self.b\n\n\nA().b = 1\n",
        f"{OBJECT.format(base='')}        return self.b\n\n\nclass C(A, D):\n    pass\n",
        f"@maker\n{OBJECT.format(base='')}        return self.b\n",
    ],
)
def test_an_attribute_that_something_may_give_is_no_finding(text):
    assert messages(text, "E2S014") == []


def test_a_name_that_a_module_of_the_program_does_not_have_is_found(tmp_path):
    write(tmp_path, helper="size = 1\n", main="import helper\n\nx = helper.size\ny = helper.sise\n")
    found = [f for f in check([str(tmp_path)], Settings()).findings if f.rule == "E2S014"]
    assert [(f.line, f.message) for f in found] == [(4, "helper.py has no name sise")]


def test_a_name_that_a_module_of_the_same_package_does_not_have_is_found(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "layers.py").write_text("size = 1\n")
    text = "from package import layers\n\nx = layers.size\ny = layers.sise\n"
    (folder / "main.py").write_text(text)
    found = [f for f in check([str(tmp_path)], Settings()).findings if f.rule == "E2S014"]
    assert [(f.line, f.message) for f in found] == [(4, "layers.py has no name sise")]


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (["io.py", "__init__.py"], "import io\n\nx = io.BytesIO()\n"),
        (["jax/__init__.py"], "import jax\n\nx = jax.pmap\n"),
        (["utils.py"], "from flax import utils\n\nx = utils.replicate\n"),
        (["fast.py", "fast.cpython-311.so"], "import fast\n\nx = fast.go\n"),
    ],
    ids=["a module of Python's", "a library", "a library's module", "a compiled module"],
)
def test_a_module_that_may_be_another_is_no_finding(tmp_path, files, line):
    folder = tmp_path / "flax"
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("size = 1\n")
    (folder / "main.py").write_text(line)
    assert [f for f in check([str(tmp_path)], Settings()).findings if f.rule == "E2S014"] == []


FLAGS = "import tensorflow as tf\n\ntf.flags.DEFINE_integer('steps', 1, '')\nF = tf.flags.FLAGS\n"


def test_a_flag_that_nothing_declares_is_found():
    assert messages(f"{FLAGS}x = F.step, F.steps\n", "E2S015") == [
        "no DEFINE_... declares the flag step"
    ]
    assert messages(f"import unknown\n{FLAGS}x = F.step\n", "E2S015") == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("import seqeval", 1),
        ("from bert import modeling", 1),
        ("import bert.tokenization", 1),
        ("from bert import run_classifier", 0),
        ("import google.unknown", 0),
    ],
)
def test_a_library_that_declares_no_flags_hides_none(line, count):
    assert len(messages(f"{line}\n{FLAGS}x = F.step\n", "E2S015")) == count


PARSER = "import argparse\n\np = argparse.ArgumentParser()\np.add_argument('-n', '--my-steps')\n"


@pytest.mark.parametrize(
    ("rest", "count"),
    [
        ("a = p.parse_args()\nx = a.my_steps\n", 0),
        ("a = p.parse_args()\nx = a.n\n", 1),
        ("add(p)\na = p.parse_args()\nx = a.n\n", 0),
        ("add(to=p)\na = p.parse_args()\nx = a.n\n", 0),
        ("g = p.add_argument_group('g')\nadd(g, 'n')\na = p.parse_args()\nx = a.n\n", 0),
        ("add(p.add_mutually_exclusive_group())\na = p.parse_args()\nx = a.n\n", 0),
        ("g = p.add_argument_group('g')\nprint(1)\na = p.parse_args()\nx = a.n\n", 1),
        ("a = p.parse_args()\na.n = 1\nx = a.n\n", 0),
    ],
)
def test_an_argument_of_the_command_line_that_nothing_declares_is_found(rest, count):
    assert len(messages(PARSER + rest, "E2S015")) == count


@pytest.mark.parametrize(
    "text",
    [
        "def f(rows):\n    y = [x for x in rows]\n    return x\n",
        "try:\n    pass\nexcept OSError as error:\n    pass\nprint(error)\n",
        "x = 1\n\n\ndef f():\n    y = x\n    x = y\n    return x\n",
        "print(f())\n\n\ndef f():\n    pass\n",
    ],
)
def test_a_name_that_is_not_bound_there_is_found(text):
    assert len(messages(text, "E2S016")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def f(rows):\n    x = 0\n    y = [x for x in rows]\n    return x, y\n",
        "def f():\n    global x\n    y = x\n    x = y\n",
        "def f(rows):\n    for r in rows:\n        if r:\n            print(x)\n        x = r\n",
        "def f():\n    return g()\n\n\ndef g():\n    pass\n",
        "def f(x):\n    x += 1\n    return [y for y in x if y]\n",
        "def f(x):\n    while x:\n        with x as y:\n            print(y)\n        for z in y:\n"
        "            print(z)\n    import os\n    return os\n",
    ],
)
def test_a_name_that_may_be_bound_there_is_no_finding(text):
    assert messages(text, "E2S016") == []


@pytest.mark.parametrize(
    "line",
    [
        "import cgi",
        "import Tkinter",
        "from itertools import izip",
        "import urllib\nurllib.urlretrieve('a')",
        "import string\nx = string.letters",
    ],
)
def test_names_that_python_has_dropped_are_found(line):
    assert len(messages(f"{line}\n", "E2S012")) == 1


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("import sys\nsys.setdefaultencoding('utf8')", "Delete this line, and `reload(sys)`"),
        ("import sys\nx = sys.maxint", "Today: sys.maxsize."),
        ("import urllib\nurllib.quote('a b')", "Today: urllib.parse.quote."),
        ("import Tkinter", "2to3"),
    ],
)
def test_what_has_the_place_of_a_dropped_name_is_said(line, advice):
    (finding,) = [f for f in check_text(f"{line}\n").findings if f.rule == "E2S012"]
    assert advice in finding.fix


@pytest.mark.parametrize(
    "line",
    [
        "import time\nx = time.clock()",  # `e2s run` brings it
        "try:\n    import Tkinter\nexcept ImportError:\n    import tkinter",
        "from urllib import parse",
        "import sys\nif sys.version_info[0] == 2:\n    import Tkinter as t\nelse:\n"
        "    import tkinter as t\nx = t.Tk()",
        "import distutils.version",
    ],
)
def test_names_that_python_has_or_gets_back_are_no_finding(line):
    assert messages(f"{line}\n", "E2S012") == []


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("from PIL import Image\n\nx = Image.ANTIALIAS\n", "E2S109"),
        ("from skimage.measure import compare_ssim\n", "E2S109"),
        ("from gensim.models import Word2Vec\n\nm = Word2Vec([], size=3)\n", "E2S114"),
        ("import tensorflow_hub as hub\n\nspec = hub.create_module_spec(f)\n", "E2S802"),
        ("import gin.tf\n\n@gin.configurable('f', whitelist=[])\ndef f():\n    pass\n", "E2S114"),
    ],
)
def test_names_and_arguments_of_further_libraries_are_found(line, rule):
    assert len(messages(line, rule)) == 1


def test_a_module_that_a_folder_of_the_program_lacks(tmp_path):
    program = (
        "import src.models\nimport src.inputs\nimport src.built_pb2\nimport other.inputs\n"
        "import src.inputs.images\n"
        "try:\n    import src.extra\nexcept ImportError:\n    pass\n"
    )
    write(tmp_path, src__models="size = 3\n", train=program)
    report = check([tmp_path], Settings(root=tmp_path))
    found = [f.message for f in report.findings if f.rule == "E2S017"]
    assert found == ["the folder src has no module inputs"]


def test_a_folder_of_settings_is_the_program_s(tmp_path):
    program = "from config.fm import rates\nfrom config.afm import rates as more\n"
    found = missing_modules(tmp_path, config__fm="rates = {'train': 0.1}\n", train=program)
    assert found == ["the folder config has no module afm"]


def missing_modules(tmp_path, **files):
    write(tmp_path, **files)
    report = check([tmp_path], Settings(root=tmp_path))
    return [f.message for f in report.findings if f.rule == "E2S017"]


IMPORTS = "from utils import boxes\nfrom utils.cython_bbox import overlaps\n"


def test_a_module_that_setup_builds_is_no_finding(tmp_path):
    program = {"train": IMPORTS, "utils__boxes": "x = 1\n", "setup": "names = ['utils.other']\n"}
    assert len(missing_modules(tmp_path, **program)) == 1
    program["setup"] = "names = ['utils.cython_bbox']\n"
    assert missing_modules(tmp_path, **program) == []


def test_a_module_that_a_package_lacks_is_a_name_that_it_lacks(tmp_path):
    names = ("boxes", "masks", "cython_bbox", "labels_pb2", "_native", "anchors")
    program = {"train": f"from utils import {', '.join(names)}\n", "utils__boxes": "x = 1\n"}
    write(tmp_path, **program, setup="names = ['utils.cython_bbox']\n")
    (tmp_path / "utils/__init__.py").touch()
    (tmp_path / "utils/anchors.pyx").touch()
    report = check([tmp_path], Settings(root=tmp_path))
    found = [f.message for f in report.findings if f.rule == "E2S010"]
    assert found == ["utils/__init__.py has no name masks"]


def test_a_setup_of_python_2_is_read_too(tmp_path):
    program = {"train": IMPORTS, "utils__boxes": "x = 1\n"}
    program["setup"] = "print 'build'\nnames = ['utils.cython_bbox']\n"
    assert missing_modules(tmp_path, **program) == []


def test_a_library_of_the_name_of_a_folder_in_a_package_is_no_finding(tmp_path):
    tasks = "import luigi\nfrom luigi.task import Task\nfrom flow.luigi import paths\n"
    program = {f"flow__{name}": "x = 1\n" for name in ("other", "luigi__paths")}
    program["flow__luigi__tasks"] = tasks
    (tmp_path / "flow/luigi").mkdir(parents=True)
    (tmp_path / "flow/luigi/__init__.py").touch()
    assert len(missing_modules(tmp_path, **program)) == 1
    (tmp_path / "flow/__init__.py").touch()
    assert missing_modules(tmp_path, **program) == []


def test_a_module_of_a_folder_that_no_import_reads_may_be_a_library_s(tmp_path):
    write(tmp_path, datasets__mine="size = 3\n", train="import datasets.theirs\n")
    report = check([tmp_path], Settings(root=tmp_path))
    assert not [f for f in report.findings if f.rule == "E2S017"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('assert "1.4" <= tf.__version__', 1),
        ('if tf.__version__ < "1.4":\n    raise ImportError', 1),
        ('if tf.__version__ < "1.1":\n    raise ImportError', 0),
        ('if tf.__version__ > "1.13":\n    raise ImportError', 1),
        ('if tf.__version__ > "1.13":\n    print("new")', 0),
        ('try:\n    assert "1.4" <= tf.__version__\nexcept AssertionError:\n    pass', 0),
        ("assert tf.__version__ in known()", 0),
    ],
)
def test_a_check_of_the_version_that_ends_the_program(line, found):
    assert len(messages(f"import tensorflow as tf\n\n{line}\n", "E2S018")) == found


FLAG = "import tensorflow as tf\n\ntf.app.flags.DEFINE_string('{}', '', ''{})\n"


def flags_of_two_modules(folder):
    found = check([str(folder)], Settings()).findings
    return [finding.message for finding in found if finding.rule == "E2S020"]


def test_a_flag_of_two_imported_modules_is_found_where_they_meet(tmp_path):
    write(
        tmp_path,
        first=FLAG.format("steps", ""),
        second=FLAG.format("steps", "") + FLAG.format("lr", ""),
        middle="import second\n",
        main="import first\nimport middle\n",
        outer="import main\n",
    )
    (message,) = flags_of_two_modules(tmp_path)
    assert "both define the flag 'steps'" in message


def test_a_flag_of_a_module_and_of_one_that_it_imports_is_found(tmp_path):
    write(tmp_path, first=FLAG.format("lr", ""), main="import first\n" + FLAG.format("lr", ""))
    (message,) = flags_of_two_modules(tmp_path)
    assert "defines the flag 'lr', too" in message


@pytest.mark.parametrize(
    "main",
    [
        "import first\n",
        "import first\n\n\ndef f():\n    import second\n",
        "import first\ntry:\n    import second\nexcept Exception:\n    pass\n",
        "import first\nimport third\n",
        "import first\nimport second\nfirst.tf.flags.FLAGS.remove_flag_values(['lr'])\n",
    ],
)
def test_modules_that_are_not_both_imported_may_define_the_same_flag(tmp_path, main):
    second, third = FLAG.format("lr", ""), FLAG.format("lr", ", allow_override=True")
    write(tmp_path, first=FLAG.format("lr", ""), second=second, third=third, main=main)
    assert flags_of_two_modules(tmp_path) == []


@pytest.mark.parametrize(
    ("caught", "found"),
    [
        ("ValueError", True),
        ("(OSError, KeyError)", True),
        ("NameError", False),
        ("Exception", False),
        ("(ValueError, own.Errors)", False),
    ],
)
def test_a_name_in_a_try_is_found_where_no_handler_takes_its_error(caught, found):
    text = f"import own\n\ntry:\n    own.f(nowhere)\nexcept {caught}:\n    own.g()\n"
    assert bool(messages(text, "E2S007")) == found


ARRAY = """\
import numpy as np
import tensorflow as tf

def scaled(x):
    size = {made}
    return np.abs(size)

def model_fn(features, labels, mode):
    return tf.estimator.EstimatorSpec(mode, loss=scaled(features))
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [("tf.transpose(x)", 1), ("x", 0), ("len(x)", 0), ("tf.shape(x).numpy()", 0)],
)
def test_numpy_makes_no_array_of_a_tensor(made, found):
    assert len(messages(ARRAY.format(made=made), "E2S021")) == found


def test_tensors_have_values_in_eager_programs_and_py_functions():
    text = ARRAY.format(made="tf.transpose(x)")
    assert messages(text + "\ntf.enable_eager_execution()\n", "E2S021") == []
    assert messages(text + "\ntf.py_function(scaled, [1.0], [tf.float32])\n", "E2S021") == []


def test_field_types_of_a_named_tuple_are_gone():
    assert len(messages("import rows\n\nprint(rows.Row._field_types)\n", "E2S012")) == 1
    own = "class Row:\n    def __init__(self):\n        self._field_types = 1\n"
    assert messages(own + "\nprint(Row()._field_types)\n", "E2S012") == []


def test_the_logger_of_tf_logging_is_gone():
    line = "import tensorflow as tf\n\ntf.logging._logger.setLevel(30)\n"
    assert len(messages(line, "E2S105")) == 1


def test_what_a_file_that_cannot_be_parsed_sets_in_a_module_is_not_missing(tmp_path):
    (tmp_path / "settings.py").write_text("depth = 3\n")
    (tmp_path / "model.py").write_text(
        "import settings\n\nprint(settings.width, settings.length)\n"
    )
    (tmp_path / "train.py").write_text("import settings\n<<<<<<< HEAD\nsettings.width   = 3\n")
    found = [f.message for f in check([str(tmp_path)], Settings()).findings if f.rule == "E2S014"]
    assert found == ["settings.py has no name length"]
