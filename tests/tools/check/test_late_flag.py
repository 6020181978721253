"""Flags that are defined after FLAGS was read, and so unknown where they are given."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check
from estimator2strategy.tools.check.settings import Settings

HEAD = "import tensorflow as tf\n\nFLAGS = tf.app.flags.FLAGS\n"
LAYERS = HEAD + "tf.app.flags.DEFINE_integer('size', 8, '')\n\n\n{}\n"
START = (
    "import tensorflow as tf\nfrom {} import layers\n\n"
    "tf.app.flags.DEFINE_bool('dev', False, '')\ntf.app.flags.DEFINE_bool('fast', False, '')\n\n\n"
    "if __name__ == '__main__':\n    tf.app.run()\n"
)


@pytest.fixture
def late(tmp_path):
    def run(layers, start=START):
        (tmp_path / ".git").mkdir()
        (tmp_path / "nets").mkdir()
        (tmp_path / "nets" / "__init__.py").touch()
        (tmp_path / "nets" / "layers.py").write_text(LAYERS.format(layers))
        (tmp_path / "evaluate.py").write_text(start.format("nets"))
        found = check([str(tmp_path)], Settings()).findings
        return [(f.line, f.message) for f in found if f.rule == "E2S024"]

    return run


@pytest.mark.parametrize(
    "layers",
    [
        "SHAPE = [FLAGS.size, 1]",
        "def conv(size=FLAGS.size):\n    pass",
        "@register(FLAGS.size)\ndef conv():\n    pass",
        "class Conv:\n    size = FLAGS.size",
    ],
)
def test_flags_that_are_defined_after_a_module_that_reads_are_found(late, layers):
    ((line, message),) = late(layers)
    assert line == 4
    assert "layers.py:" in message
    assert message.endswith("reads FLAGS before the flag 'dev' and 1 more are defined")


@pytest.mark.parametrize(
    "layers",
    [
        "def conv():\n    return FLAGS.size",
        "SIZE = lambda: FLAGS.size",
        "if __name__ == '__main__':\n    print(FLAGS.size)",
        "PARSED = FLAGS.is_parsed()",
    ],
)
def test_flags_that_are_read_later_are_no_reason(late, layers):
    assert late(layers) == []


def test_a_file_that_is_only_imported_is_no_start(late):
    assert late("SIZE = FLAGS.size", START.partition("\n\n\n")[0] + "\n") == []


def test_flags_above_the_import_are_in_time(late):
    start = START.replace("from {} import layers\n\n", "")
    start = start.replace("\n\n\nif", "\nfrom nets import layers\n\n\nif")
    assert late("SIZE = FLAGS.size", start) == []
