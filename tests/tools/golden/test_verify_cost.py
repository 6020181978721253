"""Work that `e2s verify` does no oftener, and modules that it loads no more, than it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]

# Verifies a golden of TF 1.15, and tells in JSON what that took.
PROGRAM = """\
import json, sys
from estimator2strategy.tools.golden import verify

told = {"first line before TensorFlow": None, "recorded": []}

def tell(said, line=verify._tell):
    if told["first line before TensorFlow"] is None:
        told["first line before TensorFlow"] = "tensorflow" not in sys.modules
        from estimator2strategy.engine import quiet_import
        quiet_import.import_tensorflow()
        from estimator2strategy.engine.record.on_host import OnHost
        record = OnHost.record_model
        def counted(self, program, mode, inputs):
            told["recorded"].append(mode)
            return record(self, program, mode, inputs)
        OnHost.record_model = counted
    line(said)

verify._tell = tell
told["code"] = verify.main(sys.argv[1:])
told["imported"] = [m for m in ("keras", "jax", "sklearn", "matplotlib") if m in sys.modules]
sys.stderr.write("\\n" + json.dumps(told))
"""


def test_a_verification_records_each_mode_once_and_says_so_before_tensorflow_is_there():
    golden = str(TESTS / "ladder" / "goldens" / "bikes_tf115")
    program = str(TESTS / "ladder" / "programs" / "bikes.py")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, golden, "--cores=0", "--program", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = json.loads(ran.stderr.splitlines()[-1])
    assert told["code"] == 0, ran.stdout
    assert told["first line before TensorFlow"]
    # Predictions are those of the golden's first and last checkpoint.
    assert sorted(told["recorded"]) == ["eval", "infer", "infer", "train"]
    assert told["imported"] == []
