"""Paths that only Windows reads as folders."""

import re

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_PATH = re.compile(r"[\w.:~ -]*(\\[\w.~ -]+)+\\?")
# Functions whose first argument is a path.
_FIRST = {
    "builtins.open", "io.open", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.save",
    "os.listdir", "os.makedirs", "os.mkdir", "cv2.imread", "cv2.imwrite", "PIL.Image.open",
    "tf.gfile.GFile", "tf.gfile.Open", "tf.gfile.Exists", "tf.gfile.ListDirectory",
    "tf.gfile.MakeDirs", "tf.gfile.Glob", "tf.data.TextLineDataset", "tf.data.TFRecordDataset",
    "tf.train.latest_checkpoint", "tf.summary.FileWriter", "tf.python_io.TFRecordWriter",
}  # fmt: skip
_READERS = re.compile(r"pandas\.read_\w+")
_KEYWORDS = {"model_dir", "filepath_or_buffer"}


@rule(
    "E2S025",
    "windows-path",
    Severity.WARNING,
    title="A path with backslashes, which only Windows reads as folders",
    why="On Linux and macOS a backslash is a letter of a file's name: the file is not found, or a "
    "folder of that name is made.",
    fix="Write it with slashes, which Windows takes as well, or use os.path.join.",
    bad="import pandas as pd\n\ntable = pd.read_csv('data\\\\train.csv')\n",
    good="import pandas as pd\n\ntable = pd.read_csv('data/train.csv')\n",
)
def find(source, context):
    del context
    for call in source.calls:
        name = call.name or ""
        given = [k.value for k in call.node.keywords if k.arg in _KEYWORDS]
        if name in _FIRST or _READERS.fullmatch(name):
            given += call.node.args[:1]
        for value in given:
            path = source.constant(value, call.scope)
            if isinstance(path, str) and _PATH.fullmatch(path):
                yield Hit(value, f"{path!r} is one name, not a path, where this is not Windows")
