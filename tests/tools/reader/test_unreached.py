"""Code that a program keeps for another TensorFlow or Python is no finding."""

from __future__ import annotations

import time

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings, Target

TF = "import sys\n\nimport six\nimport tensorflow as tf\n\n"


def found(text, target=Target.TF2):
    findings = check_text(TF + text, Settings(target=target)).findings
    of_names = [f for f in findings if f.rule.startswith("E2S1") and f.severity.name != "INFO"]
    return [f"{f.rule} {f.line - 5}" for f in of_names]


def branches(question):
    return f"if {question}:\n    y = tf.to_float(1)\nelse:\n    y = tf.mul(1, 2)\n"


@pytest.mark.parametrize(
    "question",
    [
        "tf.__version__ < '2'",
        "tf.version.VERSION.startswith('1.')",
        "int(tf.__version__.split('.')[0]) < 2",
        "tuple(map(int, tf.__version__.split('.')[:2])) < (2, 0)",
        "LooseVersion(tf.__version__) < LooseVersion('2.0.0')",
        "not tf.__version__ >= '2'",
        "hasattr(tf, 'contrib')",
        "hasattr(tf, 'to_float')",
    ],
)
def test_only_the_branch_of_the_target_is_read(question):
    assert found(branches(question), Target.FACADE) == []
    assert found(branches(question), Target.TF2) == ["E2S105 4"]
    swapped = branches(f"not ({question})")
    assert found(swapped, Target.FACADE) == ["E2S105 4"]
    assert found(swapped, Target.TF2) == ["E2S102 2"]


def test_a_version_that_was_named_before_is_known():
    text = "is_tf1 = tf.__version__.startswith('1')\n" + branches("is_tf1 and flags.fast")
    assert found(text) == ["E2S105 5"]


def test_a_function_of_the_program_that_asks_is_known():
    text = "def is_later_than(v):\n    return LooseVersion(tf.__version__) > LooseVersion(v)\n"
    assert found(text + branches("is_later_than('1.8')"), Target.FACADE) == []
    assert found(text + branches("not is_later_than('1.8')"), Target.FACADE) == ["E2S105 6"]
    assert found(text + branches("is_later_than('1.16')"), Target.TF2) == ["E2S102 4"]


def test_both_branches_of_another_question_are_read():
    assert found(branches("params.use_version_b")) == ["E2S102 2", "E2S105 4"]


def test_an_answer_of_the_program_itself_is_taken_on_trust():
    assert found(branches("get_tf_version_tuple() <= (1, 12)")) == []


@pytest.mark.parametrize(
    "text",
    [
        "text = unicode if six.PY2 else str\n",
        "if sys.version_info[0] < 3:\n    text = unicode\n",
        "if sys.version_info >= (3, 0):\n    text = str\nelse:\n    text = unicode\n",
        "import inspect\nspec = inspect.getfullargspec if six.PY3 else inspect.getargspec\n",
    ],
)
def test_code_for_python_2_is_no_finding(text):
    assert found(text) == []


def test_a_name_that_is_tried_is_no_finding_and_what_follows_is():
    text = "try:\n    y = tf.to_float(1)\nexcept AttributeError:\n    y = tf.mul(1, 2)\n"
    assert found(text) == ["E2S105 4"]


def test_a_name_whose_import_is_tried_may_be_used_later():
    text = (
        "try:\n    from tensorflow.contrib import slim\nexcept ImportError:\n"
        "    import tf_slim as slim\n\ny = slim.conv2d(x, 1, 1)\n"
    )
    assert found(text) == []


@pytest.mark.parametrize(
    "handler",
    ["except AttributeError:\n    raise SystemExit(1)\n", "except ValueError:\n    pass\n"],
)
def test_a_try_that_does_not_go_on_without_the_name_excuses_nothing(handler):
    assert found(f"try:\n    y = tf.to_float(1)\n{handler}") == ["E2S102 2"]


def test_a_function_in_a_try_runs_outside_of_it():
    text = "try:\n    def f():\n        return tf.to_float(1)\nexcept AttributeError:\n    pass\n"
    assert found(text) == ["E2S102 3"]


def test_the_first_place_that_is_reached_is_named():
    text = "if tf.__version__ < '2':\n    y = tf.to_float(1)\nz = tf.to_float(2)\n"
    assert found(text) == ["E2S102 3"]


def test_arguments_that_are_tried_are_no_finding():
    text = (
        "try:\n    y = tf.reduce_sum(x, keep_dims=True)\n"
        "except TypeError:\n    y = tf.reduce_sum(x, keepdims=True)\n"
    )
    assert found(text) == []


def test_a_private_module_that_is_tried_is_no_finding():
    text = (
        "try:\n    from tensorflow.python.ops import init_ops as ops\n"
        "except ImportError:\n    from tensorflow.python.ops import init_ops_v2 as ops\n"
    )
    assert found(text) == []


DIV = "import operator\n\nclass A:\n    def __div__(self, x):\n        return operator.div(1, x)\n"


def test_the_text_of_a_file_is_searched_once_for_such_methods():
    names = "".join(f"        tf.name_{n}(x)\n" for n in range(400))
    comments = f"# {'word ' * 2000}\n" * 100  # a million characters
    started = time.process_time()
    assert check_text(TF + DIV + names + comments).findings == ()
    assert time.process_time() - started < 5  # 30 s if each name searches


def test_a_method_that_only_python_2_calls_is_no_finding():
    rules = {f.rule for f in check_text(DIV).findings}
    assert "E2S012" not in rules
    again = check_text(DIV + "    __truediv__ = __div__\n").findings
    assert "E2S012" in {f.rule for f in again}
