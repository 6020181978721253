"""Names that the libraries around TensorFlow have dropped since TensorFlow 1.15."""

import ast
from collections.abc import Iterator

from estimator2strategy.engine.libraries import table
from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import rows
from estimator2strategy.legacy import removed_names
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import library_objects, unreached
from estimator2strategy.tools.reader.own_code import stored
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import Call, Source, arguments_of, parents
from estimator2strategy.tools.reader.symbol_uses import Flavour, imported_and_used

# Deprecated, and still there.
_STILL = {"numpy.row_stack"}
# TensorFlow 2.16 and 2.17 need NumPy 1.
_BACK = {
    "numpy.bool": "is not in NumPy 1.24 to 1.26, and is NumPy's own bool in 2",
    "numpy.long": "is not in NumPy 1.24 to 1.26, and is a C long in 2",
}
# Modules that had the names of NumPy.
_OF_NUMPY = {"numpy.core", "numpy.lib", "numpy.matlib", "scipy"}
# Names of keras.backend whose place keras.ops has, with the same first arguments.
_OPS = (
    "abs all any arange argmax argmin cast clip concatenate cos cumprod cumsum elu equal exp "
    "expand_dims eye greater greater_equal hard_sigmoid less less_equal log logsumexp max maximum "
    "mean min minimum ndim not_equal one_hot ones ones_like prod relu reshape round shape sigmoid "
    "sign sin softmax softplus softsign sqrt square squeeze stack std stop_gradient sum tanh tile "
    "transpose var zeros zeros_like"
)
_KERAS_2 = (
    "tf.keras has it, which is Keras 2 in a program that is run by this package: take all of Keras "
    "from there (`from tensorflow import keras`)."
)
# Method -> its library, what is done with it, the name of its object if others have such a method,
# the release that dropped it, and what has its place.
_METHODS: dict[str, tuple[str, type[ast.AST], str | None, str, str]] = {
    "applymap": ("pandas", ast.Call, None, "pandas 3.0", "map(function)"),
    "as_matrix": ("pandas", ast.Call, None, "pandas 1.0", "to_numpy()"),
    "ix": ("pandas", ast.Subscript, None, "pandas 1.0", "loc or iloc"),
    "tostring": ("numpy", ast.Call, None, "NumPy 2.3 and Pillow 3", "tobytes()"),
    "set_axis_bgcolor": ("matplotlib", ast.Call, None, "Matplotlib 2.2", "set_facecolor"),
    "get_axis_bgcolor": ("matplotlib", ast.Call, None, "Matplotlib 2.2", "get_facecolor"),
    "set_window_title": (
        "matplotlib", ast.Call, "canvas", "Matplotlib 3.6", "canvas.manager.set_window_title",
    ),
    "get_feature_names": (
        "sklearn", ast.Call, None, "scikit-learn 1.2", "get_feature_names_out()",
    ),
    "set_color_cycle": ("matplotlib", ast.Call, None, "Matplotlib 2.2", "set_prop_cycle"),
    "tostring_rgb": (
        "matplotlib", ast.Call, None, "Matplotlib 3.10",
        "np.asarray(canvas.buffer_rgba())[..., :3], an array of (height, width, 3)",
    ),
}  # fmt: skip
# Attributes that this rule and that of Python 2's methods know without the class.
_TOLD = {*_METHODS, "iteritems", "iterkeys", "itervalues", "has_key"}
_WITH_METHODS = {library for library, *_ in _METHODS.values()}
_VECTORS = "gensim.models.KeyedVectors"
# Attribute of a model's `wv` -> what has its place since gensim 4, which Python 3.10 needs.
_OF_VECTORS = {
    "index2entity": "index_to_key",
    "index2word": "index_to_key",
    "syn0": "vectors",
    "vectors_norm": "get_normed_vectors()",
    "vocab": "key_to_index",
}
# Those of them that word vectors alone have, if no class of the program has them.
_OF_VECTORS_ALONE = {"index2entity", "index2word", "syn0"}
# Environments of gym 0.12 to 0.19 that gym 0.26 refuses -> what it has.
_ENVIRONMENTS = {
    "BipedalWalker-v2": "BipedalWalker-v3",
    "BipedalWalkerHardcore-v2": "BipedalWalkerHardcore-v3",
    "Blackjack-v0": "Blackjack-v1",
    "CarRacing-v0": "CarRacing-v2",
    "FrozenLake-v0": "FrozenLake-v1",
    "FrozenLake8x8-v0": "FrozenLake8x8-v1",
    "Pendulum-v0": "Pendulum-v1",
    "Taxi-v2": "Taxi-v3",
}
# Functions of other libraries have this name, and take what they write: `ElementTree.tostring(x)`.
_WITHOUT_ARGUMENTS = {"tostring"}


def find(source: Source, context: Context) -> Iterator[Hit]:
    on_tf2 = context.runs_on_tensorflow2(source, Flavour.PLAIN)
    is_served = not on_tf2 or "estimator2strategy" in source.modules
    seen = set()
    for node, name in imported_and_used(source):
        if is_served and table.lost(name, ""):
            continue  # an older release has it, of which E2S802 tells
        old, now = _dropped(name)
        if old is None and on_tf2 and (today := removed_names.todays(name)):
            old, now = name, today
        if old in _STILL:
            continue
        if old in _BACK:
            hit = Hit(node, f"{old} {_BACK[old]}", severity=Severity.WARNING, fix=f"Today: {now}.")
        elif old is not None:
            hit = Hit(node, f"{old} is gone", fix=f"Today: {now}.")
        elif (lost := _lost(name)) and not removed_names.todays(lost.name):
            old = lost.name
            gone = f"{old} is gone: {rows.read_off(old)} does not have it"
            is_private = name.rpartition(".")[2].startswith("_")
            hit = Hit(node, gone, fix=_copied(old) if is_private else _instead(old, on_tf2))
        if old is None or old in seen or unreached.is_expendable(node):
            continue
        seen.add(old)
        yield hit
    for call in source.calls:
        if call.name == "google.protobuf.descriptor.FieldDescriptor" and _is_generated(source):
            message = "this file is by a protoc older than 3.19, which protobuf refuses since 4.0"
            yield Hit(call.node, message, fix="Make it again from its .proto file.")
            break
    yield from _methods(source)
    yield from _of_objects(source, context.project, on_tf2)
    yield from _word_vectors(source, context.project)
    for call in source.calls:
        if call.name == "yaml.load" and call.argument("Loader", 1) is None and not call.is_open:
            message = "yaml.load needs a Loader since PyYAML 6"
            yield Hit(call.node, message, fix="Today: yaml.safe_load.")
    yield from _environments(source, context.project)


def _environments(source: Source, project: Project) -> Iterator[Hit]:
    """Environments that `gym.make` does not know, unless the program registers its own."""
    for call in source.calls:
        name = call.value("id", 0) if call.name == "gym.make" else None
        today = _ENVIRONMENTS.get(name) if isinstance(name, str) else None
        if today is None or unreached.is_expendable(call.node):
            continue
        every = (other for each in project.sources for other in each.calls)
        if any((c.name or "").endswith("register") and c.value("id", 0) == name for c in every):
            continue
        message = f"gym.make: {name} is gone: gym 0.26 does not have it"
        yield Hit(call.node, message, fix=f"Today: {today}.")


def _methods(source: Source) -> Iterator[Hit]:
    """Methods that objects of NumPy, pandas and Matplotlib had, and that nothing else has."""
    if not source.modules & _WITH_METHODS:
        return
    for node in source.all_of(ast.Attribute):
        if node.attr not in _METHODS:
            continue
        library, kind, owner, release, today = _METHODS[node.attr]
        outer = next(parents(node), None)
        if library not in source.modules or not isinstance(outer, kind):
            continue
        if node.attr in _WITHOUT_ARGUMENTS and isinstance(outer, ast.Call) and outer.args:
            continue
        if node.attr == "ix" and _is_item_of_argument(node.value):
            continue
        used = outer.func if isinstance(outer, ast.Call) else getattr(outer, "value", None)
        named = getattr(node.value, "attr", getattr(node.value, "id", None))
        if used is node and owner in (None, named) and not unreached.is_expendable(node):
            yield Hit(node, f".{node.attr} is gone since {release}", fix=f"Today: {today}.")


def _of_objects(source: Source, project: Project, on_tf2: bool) -> Iterator[Hit]:
    """Attributes that objects of known classes have lost: `table.append(row)`."""
    for node in source.all_of(ast.Attribute):
        if node.attr not in rows.of_objects() or node.attr in _TOLD:
            continue
        if not isinstance(node.ctx, ast.Load) or not hasattr(node, "parent"):
            continue  # names in an annotation are in no scope
        scope, outer = source.scope_of(node), node.parent
        if node.attr == "wv" and getattr(outer, "attr", None) in _OF_VECTORS:
            continue  # told with what is read of it
        if isinstance(outer, ast.Call) and outer.func is node:
            name = library_objects.method(Call(outer, scope, source), project)
        else:
            of = library_objects.class_of(node.value, scope, source, project)
            # A column of this name is an attribute of its table.
            name = f"{of}().{node.attr}" if of not in (None, "pandas.DataFrame") else None
        lost = _lost(name) if name is not None else None
        if lost is not None and not unreached.is_expendable(node):
            of = lost.name.partition("()")[0]
            message = f".{node.attr} is gone: {rows.read_off(of)} does not have it ({of})"
            yield Hit(node, message, fix=_instead(lost.name, on_tf2))


def _is_item_of_argument(node: ast.expr) -> bool:
    """True in a loop over an argument, whose items are objects of any kind, and rarely tables."""
    if not isinstance(node, ast.Name):
        return False
    around = list(parents(node))
    loop = next((f for f in around if isinstance(f, ast.For) and _names(f.target, node.id)), None)
    function = next((f for f in around if isinstance(f, ast.FunctionDef)), None)
    if loop is None or function is None:
        return False
    return any(_names(loop.iter, argument) for argument in arguments_of(function))


def _names(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _word_vectors(source: Source, project: Project) -> Iterator[Hit]:
    """Attributes of the word vectors of gensim 3: `model.wv.vocab`, `vectors.vocab`."""
    if not any("gensim" in other.modules for other in [source, *project.sources]):
        return  # of the program: a model is made in one file, and read in another
    for node in source.all_of(ast.Attribute):
        if node.attr not in _OF_VECTORS or not isinstance(node.ctx, ast.Load):
            continue
        if not hasattr(node, "parent") or unreached.is_expendable(node):
            continue
        scope, today = source.scope_of(node), f"Today: {_OF_VECTORS[node.attr]}"
        if isinstance(node.value, ast.Attribute) and node.value.attr == "wv":
            # gensim 3's KeyedVectors were their own `wv`; those of 4 have none.
            made = source.calls_behind(node.value.value, scope)
            alone = bool(made) and all("KeyedVectors" in (call.name or "") for call in made)
            message = f".wv.{node.attr} is gone since gensim 4"
            yield Hit(node, message, fix=f"{today}{', without .wv' * alone}.")
        elif library_objects.class_of(node.value, scope, source, project) == _VECTORS:
            yield Hit(node, f".{node.attr} is gone since gensim 4 ({_VECTORS})", fix=f"{today}.")
        elif node.attr in _OF_VECTORS_ALONE and not _has_own(project, node.attr):
            yield Hit(node, f".{node.attr} is gone since gensim 4", fix=f"{today}.")


def _has_own(project: Project, attribute: str) -> bool:
    """True if the program sets such an attribute, or has a class or module with it."""
    return attribute in stored(project) or any(
        attribute in scope.bindings
        for source in project.sources
        for scope in (source.scope, *(inner for _, inner in source.classes))
    )


def _instead(old: str, on_tf2: bool) -> str | None:
    """The advice for a name that is gone."""
    module, _, last = old.rpartition(".")
    if today := _todays(old):
        nothing = today.startswith("nothing: ")
        return f"N{today[1:]}." if nothing else f"Today: {today}."
    if not on_tf2 and last in facade.names().get(f"tf.{module}", ()):
        return _KERAS_2
    if module == "keras.backend" and last in _OPS.split():
        return f"Today: keras.ops.{last}, whose defaults may differ."
    # The source of a method is of no use alone.
    return None if module.endswith("()") else _copied(old)


def _lost(name: str) -> rows.Row | None:
    """The row of a name that its library has no more."""
    row = rows.find(name) if rows.library_of(name) in rows.libraries() else None
    return row if row and row.gone else None


def _copied(old: str) -> str:
    release = rows.by_hand("old")[rows.library_of(old)]
    return f"{release} had it: copy what the program needs of its source."


def _todays(old: str) -> str | None:
    """The place of a name, by hand; names of NumPy in the table of NumPy, too."""
    module, _, last = old.rpartition(".")
    if today := rows.by_hand("today").get(old):
        return today
    if module not in _OF_NUMPY:
        return None
    of_numpy = f"numpy.{last}"
    return removed_names.todays(of_numpy) or (_todays(of_numpy) if _lost(of_numpy) else of_numpy)


def _dropped(name: str) -> tuple[str | None, str]:
    """(the dropped name that `name` is or lies in, what has its place)."""
    known = rows.by_hand("dropped")
    while name:
        if name in known:
            return name, known[name]
        name = name.rpartition(".")[0]
    return None, ""


def _is_generated(source: Source) -> bool:
    return source.shown.endswith("_pb2.py") and "create_key=" not in source.text
