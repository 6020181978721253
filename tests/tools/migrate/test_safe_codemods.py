"""A script does after all safe codemods what it did before, however it is written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.preview import make_plan
from tests import fresh

ROOT = Path(__file__).resolve().parents[3]
# Script -> a part of what it becomes. `tf.app.run` overlooks a flag that nobody defines.
SCRIPTS = {
    "flags without a guard": (
        """\
import tensorflow as tf

flags = tf.app.flags  # All that this script takes.
flags.DEFINE_integer("size", 1, docstring="A number.")
FLAGS = flags.FLAGS


def main():
    print(FLAGS.size, tf.log(1.0).dtype.name)


main()
""",
        "# TODO(e2s): flags: absl reads the command line in app.run only",
    ),
    "a flag that a function reads before app.run": (
        """\
import tensorflow as tf

tf.flags.DEFINE_integer("size", 1, "A number.")
FLAGS = tf.flags.FLAGS


class Settings:
    def __init__(self):
        self.size = FLAGS.size


SETTINGS = Settings()


def main(_):
    print(SETTINGS.size)


if __name__ == "__main__":
    tf.app.run()
""",
        "# TODO(e2s): flags: absl reads the command line in app.run only",
    ),
    "app.run without a guard": (
        """\
import tensorflow as tf

# The flags.
flags = tf.flags  # Of today.

flags.DEFINE_integer("size", 1, "A number.")


def double(flags):
    return flags.size + tf.flags.FLAGS.size


def main(argv):
    print(double(tf.flags.FLAGS), argv[1:])


tf.app.run(main)
""",
        "# Of today.\n",
    ),
    "names that are imported one by one": (
        """\
from tensorflow.contrib.layers import fully_connected as dense
from tensorflow.gfile import Exists, Glob
from tensorflow import app, flags, log, reduce_sum, to_float
import tensorflow as tf
from tensorflow.python.framework import ops

flags.DEFINE_integer(flag_name="size", default_value=1, docstring="A number.")


def main(_):
    found = Exists(filename=__file__), len(Glob(filename=__file__))
    with tf.Session() as session:
        total = reduce_sum(log(to_float([[1, 1]])), reduction_indices=1, keep_dims=True)
        made = dense(total, flags.FLAGS.size, weights_initializer=tf.ones_initializer())
        session.run(tf.global_variables_initializer())
        print(found, session.run(made).tolist(), ops.get_default_graph() is session.graph)


if __name__ == "__main__":
    app.run()
""",
        "import estimator2strategy.tf1 as tf\ndense = tf.contrib.layers.fully_connected\n",
    ),
    "an input_fn that the program calls itself": (
        """\
import tensorflow as tf


def input_fn():
    dataset = tf.data.Dataset.range(8).batch(2)  # The data.
    # Drawn at once.
    batch = dataset.make_one_shot_iterator().get_next()  # Of two.

    return batch


if __name__ == "__main__":
    drawn = input_fn()
    with tf.Session() as session:
        print(session.run([drawn + 1]), session.run(drawn))
""",
        "make_one_shot_iterator",
    ),
    "names that Python and NumPy have dropped": (
        """\
import collections
from time import clock
import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_integer("size", 1, "A number.")


def main(_):
    sizes = np.array([tf.app.flags.FLAGS.size, 2.5], np.int).astype(np.float)
    print(sizes.tolist(), np.product(sizes).item(), sizes.dtype == np.float_)
    print(np.bool.__name__, np.Inf, -np.Infinity, isinstance({}, collections.Mapping), clock() > 0)


if __name__ == "__main__":
    tf.app.run()
""",
        "np.inf, -np.inf, isinstance({}, collections.abc.Mapping), clock() > 0)",
    ),
}  # fmt: skip


def printed(*command: object, flags: list[str]) -> str:
    done = subprocess.run(
        [fresh.python(), *map(str, command), "--size=3", *flags],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_prints_the_same_after_all_safe_codemods(name, tmp_path):
    text, part = SCRIPTS[name]
    path = tmp_path / "script.py"
    path.write_text(text)
    flags = [] if "TODO(e2s): flags" in part else ["--nobody_defines=1"]
    before = printed("-m", "estimator2strategy", "run", path, flags=flags)
    for stage in range(2, 8):
        chosen = [codemod for codemod in codemods().values() if codemod.stage == stage]
        plan = make_plan([str(path)], chosen, tier=SafetyTier.SAFE)
        assert not plan.problems
        for planned in plan.changed:
            path.write_text(planned.migrated.text)
    assert part in path.read_text()
    assert before
    assert printed(path, flags=flags) == before


def test_flags_of_a_file_that_others_import_are_to_review(tmp_path):
    (tmp_path / "task.py").write_text(SCRIPTS["app.run without a guard"][0])
    (tmp_path / "task_test.py").write_text("import tensorflow as tf\nimport task\n\nx = tf.log\n")
    plan = make_plan([str(tmp_path)], [codemods()["flags"]], tier=SafetyTier.SAFE)
    assert not plan.counts
    assert plan.withheld["flags"]
