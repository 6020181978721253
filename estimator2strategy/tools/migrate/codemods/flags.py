"""`tf.flags` and `tf.app` to absl."""

import ast
import dataclasses
from pathlib import Path

from estimator2strategy.tools.migrate import flag_reads
from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Todo,
    codemod,
)
from estimator2strategy.tools.migrate.era import is_program

_ARGUMENTS = {"flag_name": "name", "default_value": "default", "docstring": "help"}


@codemod(
    "flags",
    stage=2,
    tier=SafetyTier.SAFE,
    title="`tf.flags` and `tf.app` to `absl.flags` and `absl.app`",
    why="tf.flags is absl's, but for two things: it parses the command line when a flag is first "
    "read, and tf.app.run overlooks flags that nobody defines. absl parses in app.run, so files "
    "that read flags before that (also in a function that is called before) are left alone. To "
    "review: flags of a file that does not call app.run itself, or that others import; and "
    "app.run, for which a flag that nobody defines is an error.",
    proof="The flags are the same objects; tests/tools/migrate/test_parity.py and "
    "test_safe_codemods.py run both.",
)  # fmt: skip
def find(module):
    used = [node for node, _ in module.uses("tf.flags")]
    if not used and not any(module.uses("tf.app")):
        return
    early = list(flag_reads.early(module))
    for node in early:
        yield Todo(node, "absl reads the command line in app.run only; move this below it")
    runs = [*module.calls("tf.app.run", "absl.app.run")]
    if used and not early and not runs and is_program(module.source):
        yield Todo(used[0], "nothing parses the flags here but tf.flags: call app.run(main)")
        return
    if early:
        return
    alone = Path(module.source.path).stem not in module.facts.imported
    tier = SafetyTier.SAFE if runs and alone else SafetyTier.REVIEW
    for change in _flags(module):
        yield dataclasses.replace(change, tier=tier)
    for found in _app(module):
        yield dataclasses.replace(found, tier=SafetyTier.REVIEW)


def _flags(module):
    alias = module.assigned_to("tf.flags")
    if alias is not None and module.is_shadowed(alias.targets[0].id):
        alias = None
    if alias is not None:
        bound = alias.targets[0].id
        imported = ("absl", "flags", None if bound == "flags" else bound)
        if module.is_alone(alias):
            yield module.replace_statement(alias, "", [imported])
    else:
        bound, imported = module.needed("absl", "flags", "absl_flags")
    for node, _ in module.uses("tf.flags"):
        part = module.part(node, "tf.flags")
        if part is not None and not (alias is not None and part is alias.value):
            yield module.replace(part, bound, [imported])
    for call in module.calls():
        name = module.name(call.node.func, call.scope) or ""
        if name.startswith("tf.flags.DEFINE_"):
            for keyword in call.node.keywords:
                if keyword.arg in _ARGUMENTS:
                    yield module.rename_keyword(call, keyword.arg, _ARGUMENTS[keyword.arg])


def _app(module):
    bound, imported = module.needed("absl", "app", "absl_app")
    for call in module.calls("tf.app.run"):
        if not isinstance(call.node.func, ast.Attribute):
            continue
        if call.node.args or any(keyword.arg == "main" for keyword in call.node.keywords):
            yield module.replace(call.node.func, f"{bound}.run", [imported])
        elif "main" in module.source.scope.bindings and not call.node.keywords:
            yield module.replace(call.node, f"{bound}.run(main)", [imported])
        else:
            yield Todo(call.node, "absl's app.run must be given the function to run")
