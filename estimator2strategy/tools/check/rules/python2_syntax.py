"""Files in Python 2."""

from estimator2strategy.legacy.python2 import CONVERT
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S002",
    "python2-syntax",
    Severity.ERROR,
    title="A file that only Python 2 can read",
    why="TensorFlow 2.16 needs Python 3.9 at least. Nothing else in the file was checked.",
    fix=CONVERT,
    bad='print "loss", 1.0\n',
    good='print("loss", 1.0)\n',
)
def find(source, context):
    return ()  # found where files are read
