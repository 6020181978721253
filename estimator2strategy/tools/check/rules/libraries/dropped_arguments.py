"""Arguments that functions of Keras, NumPy, pandas and others took once, and refuse today."""

import ast
from collections.abc import Iterator

from estimator2strategy.engine.names import rows
from estimator2strategy.legacy import removed_names
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import library_objects, unreached
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import Source
from estimator2strategy.tools.reader.symbol_uses import Flavour

# Nothing has the place of these.
_ENDED = {
    "as_pandas", "behaviour", "bias", "compatible_hash", "convert_float", "copy_X", "count_mode",
    "ddof", "debug", "drawtype", "embeddings_data", "embeddings_layer_names", "extradoc",
    "fastpath", "fix_imports", "hold", "iid", "infer_datetime_format", "initial_lexsort",
    "keep_date_col", "mangle_dupe_cols", "n_jobs", "null_word", "numdecs", "pass_y", "pooling_func",
    "precompute_distances", "presort", "schedule_decay", "stateful_metrics", "style",
    "truediv", "tupleize_cols", "verbose", "warn", "warn_on_dtype", "write_grads",
}  # fmt: skip
# (Class, argument) -> its values that are refused today, and what has their place.
_VALUES = {
    ("sklearn.linear_model.SGDClassifier", "loss"): {"log": "log_loss"},
    ("sklearn.linear_model.SGDRegressor", "loss"): {"squared_loss": "squared_error"},
    ("sklearn.ensemble.GradientBoostingClassifier", "loss"): {"deviance": "log_loss"},
    ("sklearn.ensemble.GradientBoostingRegressor", "loss"): {"ls": "squared_error"},
    ("sklearn.ensemble.RandomForestRegressor", "criterion"): {"mse": "squared_error"},
    ("sklearn.tree.DecisionTreeRegressor", "criterion"): {"mse": "squared_error"},
    ("sklearn.ensemble.RandomForestClassifier", "max_features"): {"auto": "sqrt"},
}
# Method that tables of pandas alone have -> its arguments that pandas 3 refuses.
_OF_TABLES = {
    "bfill": {"downcast"},
    "ffill": {"downcast"},
    "fillna": {"downcast", "method"},
    "interpolate": {"downcast"},
    "to_csv": {"line_terminator"},
}
# Data that nltk.download loads -> the data that NLTK reads in its place since 3.9.
_OF_NLTK = {
    "averaged_perceptron_tagger": "averaged_perceptron_tagger_eng",
    "maxent_ne_chunker": "maxent_ne_chunker_tab",
    "punkt": "punkt_tab",
}
# Function of a list -> the advice for a call that gives the items one by one.
_OF_A_LIST = {"pandas.concat": "Put the tables into a list: pandas.concat([a, b])."}


def find(source: Source, context: Context) -> Iterator[Hit]:
    on_tf2 = context.runs_on_tensorflow2(source, Flavour.PLAIN)
    yield from _of_tables(source, context.project)
    yield from _data_of_nltk(source, context.project)
    for call in source.calls:
        name = call.name
        if (name or "@").startswith("@") and call.last in rows.of_objects():
            name = library_objects.method(call, context.project)
        if name is None or unreached.is_tried(call.node, unreached.ANY | {"TypeError"}):
            continue
        if not on_tf2 and removed_names.covers(name.rpartition(".")[0]) and _is_bridged(name):
            continue
        row = rows.find(name)
        for keyword in call.node.keywords:
            if row and keyword.arg in row.refused:
                message = f"{rows.read_off(name)}: {name} has no argument {keyword.arg!r}"
                yield Hit(call.node, message, fix=_instead(name, keyword.arg))
            value = getattr(keyword.value, "value", "")
            if today := _VALUES.get((name, keyword.arg or ""), {}).get(value):
                message = f"{rows.read_off(name)}: {name} takes no {keyword.arg}={value!r}"
                yield Hit(call.node, message, fix=f"Today: {today!r}.")
        most = row.most if row else None
        if row and most is not None and len(call.node.args) > most and not call.is_open:
            message = f"{rows.read_off(name)}: {name} takes {_counted(most)} by position"
            is_list = name in _OF_A_LIST and not isinstance(call.node.args[1], ast.Constant)
            fix = _OF_A_LIST[name] if is_list else _by_name(row, call.node.args[most:])
            yield Hit(call.node, message, fix=fix)


def _of_tables(source: Source, project: Project) -> Iterator[Hit]:
    """Arguments of methods of tables, where the class of the object is not known."""
    if "pandas" not in source.modules:
        return
    for call in source.calls:
        method = getattr(call.node.func, "attr", "")
        gone = _OF_TABLES.get(method, set()) if call.name is None else set()
        for keyword in call.node.keywords:
            if keyword.arg not in gone or library_objects.method(call, project):
                continue
            if not unreached.is_tried(call.node, ["TypeError"]):
                message = f"pandas 3: {method} has no argument {keyword.arg!r}"
                yield Hit(call.node, message, fix=_instead(f"pandas.{method}", keyword.arg))


def _data_of_nltk(source: Source, project: Project) -> Iterator[Hit]:
    """Data that is loaded under another name than today's NLTK reads."""
    for call in source.calls:
        data = call.value("info_or_id", 0) if call.name == "nltk.download" else ""
        today = _OF_NLTK.get(data)
        if today and not any(today in other.text for other in project.sources):
            message = f"NLTK reads {today!r} since 3.9, not {data!r}"
            yield Hit(call.node, message, fix=f"Today: nltk.download({today!r}).")


def _instead(name: str, argument: str) -> str | None:
    """The advice for an argument that is gone; None if nothing is known of it."""
    places = (name.rpartition(".")[0], name.partition(".")[0])
    known = rows.by_hand("argument")
    today = next((known[key] for p in places if (key := f"{p}.{argument}") in known), None)
    if today is not None:
        return f"Today: {today}."
    return "Leave it out: nothing has its place." if argument in _ENDED else None


def _is_bridged(name: str) -> bool:
    """True for functions that legacy modules get with the arguments of old."""
    home, _, last = name.rpartition(".")
    return (home, last) in removed_names.CHANGED


def _by_name(row: rows.Row, given: list[ast.expr]) -> str:
    """The advice for arguments that may stand at no position any more: `axis=1`."""
    names = row.further[: len(given)]
    others = "the others" if row.most else "them"
    if set(names) == {"-"}:
        return f"Leave {others} out: nothing has their place."
    if len(names) < len(given) or "-" in names:
        return f"Give {others} by their names."
    written = [f"{a}={ast.unparse(value)}" for a, value in zip(names, given, strict=True)]
    return f"Give {others} by name: {', '.join(map(_short, written))}."


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text.partition('=')[0]}=..."


def _counted(most: int) -> str:
    return {0: "no argument", 1: "one argument"}.get(most, f"{most} arguments")
