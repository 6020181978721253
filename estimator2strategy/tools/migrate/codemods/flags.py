"""`tf.flags` and `tf.app` to absl."""

import ast

from estimator2strategy.tools.check.source import parents
from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Sample,
    Todo,
    codemod,
)
from estimator2strategy.tools.migrate.era import is_program
from estimator2strategy.tools.migrate.module import is_below

_ARGUMENTS = {"flag_name": "name", "default_value": "default", "docstring": "help"}


@codemod(
    "flags",
    stage=2,
    tier=SafetyTier.SAFE,
    title="`tf.flags` and `tf.app` to `absl.flags` and `absl.app`",
    why="tf.flags is absl's, but for two things: it parses the command line when a flag is first "
    "read, and it overlooks flags that nobody defines. absl parses in app.run, so files that read "
    "flags before that are left alone. A flag that nobody defines is an error from here on.",
    proof="The flags are the same objects; tests/tools/migrate/test_parity.py runs both.",
    samples=[
        Sample(
            "import tensorflow as tf\n\n"
            "flags = tf.app.flags\nFLAGS = flags.FLAGS\n"
            "flags.DEFINE_integer(flag_name='n', default_value=1, docstring='Number.')\n\n\n"
            "def main(_):\n    print(FLAGS.n)\n\n\n"
            "if __name__ == '__main__':\n    tf.app.run()\n",
            "from absl import app\nfrom absl import flags\nimport tensorflow as tf\n\n"
            "FLAGS = flags.FLAGS\n"
            "flags.DEFINE_integer(name='n', default=1, help='Number.')\n\n\n"
            "def main(_):\n    print(FLAGS.n)\n\n\n"
            "if __name__ == '__main__':\n    app.run(main)\n",
        ),
        Sample(
            "import tensorflow as tf\n\n"
            "tf.flags.DEFINE_string('out', None, 'Where to.')\n"
            "x = lambda: tf.flags.FLAGS.out\n\n"
            "if __name__ == '__main__':\n    tf.app.run(main=x)\n",
            "from absl import app\nfrom absl import flags\nimport tensorflow as tf\n\n"
            "flags.DEFINE_string('out', None, 'Where to.')\n"
            "x = lambda: flags.FLAGS.out\n\n"
            "if __name__ == '__main__':\n    app.run(main=x)\n",
        ),
        Sample(
            "import tensorflow as tf\n\n"
            "FLAGS = tf.flags.FLAGS\nsize = FLAGS.size\n",
            "import tensorflow as tf\n\n"
            "FLAGS = tf.flags.FLAGS\n"
            "# TODO(e2s): flags: absl reads the command line in app.run only; move this below it\n"
            "size = FLAGS.size\n",
        ),
    ],
    unchanged=[
        "from absl import app, flags\n\nFLAGS = flags.FLAGS\n",
        "import tensorflow as tf\n\nx = tf.reduce_sum\n",
    ],
)  # fmt: skip
def find(module):
    used = [node for node, _ in module.uses("tf.flags")]
    if not used and not any(module.uses("tf.app")):
        return
    early = [node for node in used if _is_read_early(module, node)]
    for node in early:
        yield Todo(node, "absl reads the command line in app.run only; move this below it")
    runs = [*module.calls("tf.app.run", "absl.app.run")]
    if used and not early and not runs and is_program(module.source):
        yield Todo(used[0], "nothing parses the flags here but tf.flags: call app.run(main)")
        return
    if early:
        return
    yield from _flags(module)
    yield from _app(module)


def _flags(module):
    alias = module.assigned_to("tf.flags")
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


def _is_read_early(module, node):
    """True if a flag is read while the file is imported."""
    name = module.name(node)
    if not is_below(name, "tf.flags.FLAGS") or name == "tf.flags.FLAGS":
        return False
    if any(isinstance(outer, (ast.FunctionDef, ast.Lambda)) for outer in parents(node)):
        return False
    called = getattr(node, "parent", None)
    return not (isinstance(called, ast.Call) and called.func is node)
