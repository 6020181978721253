"""Libraries that were written for Estimators."""

import ast
from collections.abc import Iterator

from estimator2strategy.engine.libraries import served, table
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.pinned_releases import admits, pinned
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.source import Source, parents
from estimator2strategy.tools.reader.symbol_uses import imported_and_used


def served_library(source: Source, context: Context) -> Iterator[Hit]:
    on_tf2 = context.runs_on_tensorflow2(source) and "estimator2strategy" not in source.modules
    seen = set()
    for target, _ in source.imports:
        module = target.module.partition(".")[0]
        if target.level or module in seen or f"/{module}/" in f"/{source.shown}":
            continue
        seen.add(module)
        if (source.follow(source, target) or "@").startswith("@"):
            continue  # a module of the program
        found = _served(module, source.path)
        if found is None:
            continue
        name = f"{module} {found.release}".strip()
        fate = "and does not import without this package" if on_tf2 else "and is served"
        rows = table.known(module)
        install = f" It is installed by `{rows[-1].install}`." if rows else ""
        yield Hit(
            target.node,
            f"{name} was written for Estimators, {fate}",
            severity=Severity.ERROR if on_tf2 else None,
            fix=f"Run the program with `e2s run`.{install}",
        )


def _served(module: str, path: str) -> served.Served | None:
    """The library that a program would import: as it is pinned, as installed, or the newest."""
    rows = table.known(module)
    if rows and (release := pinned(module, path)):
        return served.of_release(module, release)
    found = served.of_installed(module)
    if found or not rows or served.release_of(module) or rows[-1].below:
        return found
    newest = served.of_release(module, rows[-1].release)
    return served.Served("", newest.world) if newest else None


_RUN = "Run the program with `e2s run`."
_OLD = "it was written for TF 1.x"
_ALONE = "TensorFlow 2.21 does not install it along, as TF 1.15 did"
# Top-level module -> what became of it, and what to do.
_LIBRARIES = {
    "tensorflow_addons": (
        "it ended with TensorFlow 2.15, and does not import beside Keras 3",
        "Take what Keras 3 has (AdamW, whose decay is multiplied by the learning rate, and "
        "GroupNormalization) from there, what `tf.contrib` of this package has (crf, image, opt, "
        "seq2seq) from there, and copy the rest.",
    ),
    "tensorflow_estimator": ("it cannot be imported since TensorFlow 2.16", _RUN),
    "tflearn": (
        f"{_OLD}, with tf.contrib",
        "Write its layers as `tf.layers` or `tf.slim`. Its to_categorical and pad_sequences are in "
        "tf.keras, where pad_sequences pads at the front unless padding='post' is given.",
    ),
    "imgaug": (
        "its last release, 0.4, does not import beside NumPy 2",
        'pip install "numpy<2", or write it with albumentations.',
    ),
    "tensorflow_hub": (
        "it imports pkg_resources, which setuptools 82 has not",
        'pip install "setuptools<82"',
    ),
    "hbconfig": (
        "its last release, 0.5, calls yaml.load without a Loader, which PyYAML 6 refuses",
        "Read the file with yaml.safe_load, or mend that line of hbconfig.",
    ),
    "tensorboard": (_ALONE, "pip install tensorboard"),
    "keras_applications": (_ALONE, "Take it from tf.keras.applications."),
    "keras_preprocessing": (_ALONE, "Take it from tf.keras.preprocessing."),
}
_SERVED = {"tensorflow_estimator"}
# Those that run beside a release of another distribution: nothing is wrong where that one is.
_RUNS_BESIDE = {
    "hbconfig": "pyyaml<6",
    "imgaug": "numpy<2",
    "tensorboard": "tensorboard",
    "tensorflow_hub": "setuptools<82",
}


def dead_library(source: Source, context: Context) -> Iterator[Hit]:
    seen = set()
    for target, _ in source.imports:
        top = target.module.partition(".")[0]
        if target.level or top not in _LIBRARIES or top in seen:
            continue
        if f"/{top}/" in f"/{source.shown}":
            continue  # the library itself
        if (source.follow(source, target) or "@").startswith("@"):
            continue
        seen.add(top)
        if top in _RUNS_BESIDE and admits(_RUNS_BESIDE[top], top, source.path):
            continue
        served = top in _SERVED and not context.runs_on_tensorflow2(source)
        # An import under a condition is one that the program may do without.
        optional = any(isinstance(outer, (ast.Try, ast.If)) for outer in parents(target.node))
        severity = Severity.INFO if served or optional else None
        fate, remedy = _LIBRARIES[top]
        yield Hit(target.node, f"{top}: {fate}", severity=severity, fix=remedy)


def dropped_by_library(source: Source, context: Context) -> Iterator[Hit]:
    if context.runs_on_tensorflow2(source) and "estimator2strategy" not in source.modules:
        return  # an older release needs Estimators
    seen = set()
    for node, name in imported_and_used(source):
        module, _, rest = name.partition(".")
        lost = f"{module}.{rest.partition('.')[0]}"
        if lost in seen or not table.known(module):
            continue
        release = pinned(module, source.path) or served.release_of(module)
        row = table.lost(lost, release)
        if row is None or unreached.is_expendable(node):
            continue
        seen.add(lost)
        yield Hit(
            node,
            f"{lost} is gone: {row.distribution} {release or 'of today'} does not have it",
            fix=f"{row.release} has it, and runs unchanged: `{row.install}`.",
        )
