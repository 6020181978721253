"""Flags of a program that absl has defined already."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_HOMES = ("tf.flags.DEFINE", "tf.app.flags.DEFINE", "absl.flags.DEFINE")
_TAKEN = {
    "alsologtostderr", "log_dir", "logger_levels", "logtostderr", "only_check_args", "pdb",
    "pdb_post_mortem", "profile_file", "run_with_pdb", "run_with_profiling",
    "showprefixforinfo", "stderrthreshold", "use_cprofile_for_profiling", "v", "verbosity",
}  # fmt: skip


@rule(
    "E2S111",
    "taken-flag",
    Severity.ERROR,
    title="A flag that absl defines itself",
    why="`tf.app.flags` are absl's flags since TF 1.5, and `absl.logging` and `absl.app` define "
    "some of their own: absl.flags.DuplicateFlagError when the program defines one of that name.",
    fix="Leave the definition out and read absl's flag; or give the flag another name; or pass "
    "allow_override=True.",
    bad="""\
import tensorflow as tf

tf.app.flags.DEFINE_string("log_dir", "/tmp/logs", "Where to write logs.")
""",
    good="""\
import tensorflow as tf

tf.app.flags.DEFINE_string("summary_dir", "/tmp/logs", "Where to write summaries.")
""",
)
def find(source, context):
    for call in source.calls:
        first = call.argument("name", 0)
        if not isinstance(first, ast.Constant) or first.value not in _TAKEN or call.is_open:
            continue
        if (call.name or "").startswith(_HOMES) and call.argument("allow_override") is None:
            yield Hit(call.node, f"absl has a flag {first.value!r} already")
