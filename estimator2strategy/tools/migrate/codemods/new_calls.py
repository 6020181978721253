"""Calls that TensorFlow 2 takes with other names, arguments or forms."""

import ast
import dataclasses

from estimator2strategy.tools.check.rules.tensorflow.changed_calls import reads
from estimator2strategy.tools.migrate.call_text import ArgumentText, CallText
from estimator2strategy.tools.migrate.codemod import Change, SafetyTier, codemod

_REDUCTIONS = tuple(
    f"tf.{module}reduce_{what}"
    for what in ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")
    for module in ("", "math.")
)
# Old name -> new name, and the functions of TF 1.15 that take both.
ARGUMENTS = {
    "keep_dims": (
        "keepdims",
        (
            *_REDUCTIONS, "tf.count_nonzero", "tf.math.count_nonzero", "tf.norm", "tf.linalg.norm",
            "tf.nn.moments", "tf.nn.weighted_moments",
        ),
    ),
    "reduction_indices": ("axis", (*_REDUCTIONS, "tf.count_nonzero", "tf.math.count_nonzero")),
    "dimension": ("axis", ("tf.argmax", "tf.argmin", "tf.math.argmax", "tf.math.argmin")),
    "dim": (
        "axis",
        (
            "tf.expand_dims", "tf.nn.softmax", "tf.nn.log_softmax", "tf.nn.l2_normalize",
            "tf.math.l2_normalize", "tf.math.softmax", "tf.math.log_softmax",
            "tf.nn.softmax_cross_entropy_with_logits_v2",
        ),
    ),
    "squeeze_dims": ("axis", ("tf.squeeze",)),
    "seq_dim": ("seq_axis", ("tf.reverse_sequence",)),
    "batch_dim": ("batch_axis", ("tf.reverse_sequence",)),
    "preferred_dtype": ("dtype_hint", ("tf.convert_to_tensor",)),
    "concat_dim": ("axis", ("tf.sparse_concat", "tf.sparse.concat")),
}  # fmt: skip


@codemod("arguments", stage=2, tier=SafetyTier.SAFE)
def find_arguments(module):
    for call in module.calls():
        name = module.name(call.node.func, call.scope)
        for keyword in call.node.keywords:
            new, functions = ARGUMENTS.get(keyword.arg or "", ("", ()))
            if name in functions:
                yield module.rename_keyword(call, keyword.arg, new)


_DTYPES = {
    "tf.to_bfloat16": "bfloat16",
    "tf.to_complex128": "complex128",
    "tf.to_complex64": "complex64",
    "tf.to_double": "float64",
    "tf.to_float": "float32",
    "tf.to_int32": "int32",
    "tf.to_int64": "int64",
}


@codemod("casts", stage=2, tier=SafetyTier.SAFE, words=("to_",))
def find_casts(module):
    if module.tf is None:
        return
    for call in module.calls(*_DTYPES):
        x = call.argument("x", 0)
        if x is None or call.is_open:
            continue
        old = CallText(module, call.node)
        if old.arguments[0].name not in (None, "x"):
            continue
        dtype = _DTYPES[module.name(call.node.func, call.scope)]
        arguments = _with_dtype(old.arguments, f"{module.tf}.{dtype}")
        yield Change(*old.span, old.text(f"{module.tf}.cast", arguments))


def _with_dtype(arguments, dtype):
    """The arguments with a dtype as the second one."""
    x, *rest = arguments
    name, between = ("dtype", x.between) if x.name else (None, "")
    given = ArgumentText(name, dtype, between, x.gap)
    if rest:
        rest[0] = rest[0].named("name")
    return [dataclasses.replace(x, gap=", "), given, *rest]


@codemod("dimension-value", stage=2, tier=SafetyTier.SAFE, words=("value",))
def find_dimensions_to_ints(module):
    if module.tf is None:
        return
    for node in reads(module.source):
        written = f"{module.tf}.compat.dimension_value({module.written(node.value)})"
        yield module.replace(node, written)


_NAMES = {
    "Copy": "copy",
    "DeleteRecursively": "rmtree",
    "Exists": "exists",
    "FastGFile": "GFile",
    "GFile": "GFile",
    "Glob": "glob",
    "IsDirectory": "isdir",
    "ListDirectory": "listdir",
    "MakeDirs": "makedirs",
    "MkDir": "mkdir",
    "Open": "GFile",
    "Remove": "remove",
    "Rename": "rename",
    "Stat": "stat",
    "Walk": "walk",
}
_ARGUMENTS = {
    "filename": {"Exists": "path", "Remove": "path", "Stat": "path", "Glob": "pattern"},
    "dirname": dict.fromkeys(
        ("DeleteRecursively", "IsDirectory", "ListDirectory", "MakeDirs", "MkDir"), "path"
    ),
    "oldname": {"Rename": "src"},
    "newname": {"Rename": "dst"},
    "oldpath": {"Copy": "src"},
    "newpath": {"Copy": "dst"},
    "in_order": {"Walk": "topdown"},
}


@codemod("gfile", stage=2, tier=SafetyTier.SAFE)
def find_gfile(module):
    if module.tf is None:
        return
    for node, name in module.uses("tf.gfile"):
        last = name.removeprefix("tf.gfile.")
        part = module.part(node, name)
        if last in _NAMES and part is not None:
            yield module.replace(part, f"{module.tf}.io.gfile.{_NAMES[last]}")
    for call in module.calls():
        name = module.name(call.node.func, call.scope) or ""
        # `from tensorflow.gfile import Exists` keeps its function, and so its arguments.
        if not name.startswith("tf.gfile.") or _is_imported(module, call.node.func):
            continue
        for keyword in call.node.keywords:
            new = _ARGUMENTS.get(keyword.arg or "", {}).get(name.removeprefix("tf.gfile."))
            if new:
                yield module.rename_keyword(call, keyword.arg, new)


def _is_imported(module, function):
    """True if a function is called by a name that an import statement gives it."""
    return isinstance(function, ast.Name) and any(
        alias.name.rpartition(".")[2] != "gfile" and (alias.asname or alias.name) == function.id
        for target, _ in module.source.imports
        for alias in target.node.names
    )


_RATE = ("learning_rate", "global_step", "decay_steps")
# Function of tf.train -> class of Keras, the function's arguments.
_SCHEDULES = {
    "tf.train.cosine_decay": ("CosineDecay", (*_RATE, "alpha")),
    "tf.train.cosine_decay_restarts": (
        "CosineDecayRestarts",
        ("learning_rate", "global_step", "first_decay_steps", "t_mul", "m_mul", "alpha"),
    ),
    "tf.train.exponential_decay": ("ExponentialDecay", (*_RATE, "decay_rate", "staircase")),
    "tf.train.inverse_time_decay": ("InverseTimeDecay", (*_RATE, "decay_rate", "staircase")),
    "tf.train.piecewise_constant": ("PiecewiseConstantDecay", ("x", "boundaries", "values")),
    "tf.train.piecewise_constant_decay": ("PiecewiseConstantDecay", ("x", "boundaries", "values")),
    "tf.train.polynomial_decay": (
        "PolynomialDecay",
        (*_RATE, "end_learning_rate", "power", "cycle"),
    ),
}
_STEPS = ("global_step", "x")
_RENAMED = {"learning_rate": "initial_learning_rate"}


@codemod("schedules", stage=5, tier=SafetyTier.SAFE)
def find_schedules(module):
    if module.tf is None:
        return
    for call in module.calls(*_SCHEDULES):
        if call.is_open:
            continue
        keras, names = _SCHEDULES[module.name(call.node.func, call.scope)]
        old = CallText(module, call.node)
        given = list(zip(names, old.arguments, strict=False))
        given = [(one.name or name, one) for name, one in given]
        given += [(one.name, one) for one in old.arguments[len(given) :] if one.name]
        step = next((argument for name, argument in given if name in _STEPS), None)
        if step is None:
            continue
        # A name, which comes last by position, is dropped with the scope that it made.
        kept = [
            argument.renamed(_RENAMED.get(name, name))
            for name, argument in given
            if name not in (*_STEPS, "name")
        ]
        schedule = old.text(f"{module.tf}.keras.optimizers.schedules.{keras}", kept)
        yield Change(*old.span, f"{schedule}({step.value})")
