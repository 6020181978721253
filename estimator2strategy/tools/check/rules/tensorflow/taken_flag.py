"""Flags of a program that absl has defined already."""

import ast

from estimator2strategy.tools.check.rule import Hit

_HOMES = ("tf.flags.DEFINE", "tf.app.flags.DEFINE", "absl.flags.DEFINE")
_TAKEN = {
    "alsologtostderr", "log_dir", "logger_levels", "logtostderr", "only_check_args", "pdb",
    "pdb_post_mortem", "profile_file", "run_with_pdb", "run_with_profiling",
    "showprefixforinfo", "stderrthreshold", "use_cprofile_for_profiling", "v", "verbosity",
}  # fmt: skip


def find(source, context):
    for call in source.calls:
        first = call.argument("name", 0)
        if not isinstance(first, ast.Constant) or first.value not in _TAKEN or call.is_open:
            continue
        if (call.name or "").startswith(_HOMES) and call.argument("allow_override") is None:
            yield Hit(call.node, f"absl has a flag {first.value!r} already")
