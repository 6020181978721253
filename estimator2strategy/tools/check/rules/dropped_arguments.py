"""Arguments that functions of Keras, NumPy, pandas and others took once, and refuse today."""

from estimator2strategy.legacy import removed_names
from estimator2strategy.tools.check import libraries, unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.symbol_uses import Flavour

# Library -> its arguments of old, and what has their place.
_TODAY = {
    "flask": {
        "attachment_filename": "download_name",
        "cache_timeout": "max_age",
        "filename_or_fp": "path_or_file",
    },
    "gensim": {"size": "vector_size", "iter": "epochs"},
    "gin": {"blacklist": "denylist", "whitelist": "allowlist"},
    "keras": {
        "batch_input_shape": "batch_shape of a keras.Input",
        "lr": "learning_rate",
        "period": "save_freq",
        "weights": "set_weights, or an initializer",
    },
    "matplotlib": {
        "b": "visible",
        "labels": "tick_labels",
        "lineprops": "props",
        "marker_props": "handle_props",
        "markerprops": "handle_props",
        "maxdist": "grab_range",
        "normed": "density",
        "rectprops": "props",
        "span_stays": "interactive",
        "vertex_select_radius": "grab_range",
    },
    "numpy": {"interpolation": "method", "newshape": "shape", "normed": "density"},
    "pandas": {"delim_whitespace": r"sep=r'\s+'", "error_bad_lines": "on_bad_lines"},
    "scipy": {"tol": "rtol"},
    "seaborn": {"size": "height"},
    "skimage": {"multichannel": "channel_axis", "selem": "footprint"},
    "sklearn": {
        "affinity": "metric",
        "base_estimator": "estimator",
        "multi_class": "sklearn.multiclass.OneVsRestClassifier around the classifier for 'ovr'; "
        "'multinomial' is what it does without the argument",
        "n_iter": "max_iter",
        "sparse": "sparse_output",
    },
}
# Nothing has the place of these.
_ENDED = {
    "behaviour", "drawtype", "embeddings_data", "embeddings_layer_names", "hold", "iid",
    "infer_datetime_format", "n_jobs", "precompute_distances", "presort", "style",
    "warn_on_dtype", "write_grads",
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


@rule(
    "E2S114",
    "dropped-arguments",
    Severity.ERROR,
    title="An argument that Keras 3, NumPy, SciPy, pandas, scikit-learn or Matplotlib has dropped",
    why="The function is still there and takes other arguments, or takes them by name only: the "
    "call is a TypeError or ValueError. `import keras` is Keras 3, also where `tf.keras` is 2.",
    fix="Give the argument by its name of today, or leave it out if it has none.",
    bad="from keras.optimizers import Adam\n\noptimizer = Adam(lr=0.001)\n",
    good="from keras.optimizers import Adam\n\noptimizer = Adam(learning_rate=0.001)\n",
)
def find(source, context):
    on_tf2 = context.runs_on_tensorflow2(source, Flavour.PLAIN)
    for call in source.calls:
        name = call.name
        if name is None or unreached.is_tried(call.node, unreached.ANY | {"TypeError"}):
            continue
        if not on_tf2 and removed_names.covers(name.rpartition(".")[0]) and _is_bridged(name):
            continue
        for keyword in call.node.keywords:
            if keyword.arg in libraries.refused(name):
                message = f"{libraries.release(name)}: {name} has no argument {keyword.arg!r}"
                yield Hit(call.node, message, fix=_instead(name, keyword.arg))
            value = getattr(keyword.value, "value", None)
            if today := _VALUES.get((name, keyword.arg), {}).get(value):
                message = f"{libraries.release(name)}: {name} takes no {keyword.arg}={value!r}"
                yield Hit(call.node, message, fix=f"Today: {today!r}.")
        most = libraries.most(name)
        if most is not None and len(call.node.args) > most and not call.is_open:
            message = f"{libraries.release(name)}: {name} takes {_counted(most)} by position"
            yield Hit(call.node, message, fix=f"Give {_OTHERS[most > 0]} by their names.")


def _instead(name: str, argument: str) -> str | None:
    """The advice for an argument that is gone; None if nothing is known of it."""
    today = _TODAY.get(name.partition(".")[0], {}).get(argument)
    if today is not None:
        return f"Today: {today}."
    return "Leave it out: nothing has its place." if argument in _ENDED else None


def _is_bridged(name: str) -> bool:
    """True for functions that legacy modules get with the arguments of old."""
    home, _, last = name.rpartition(".")
    return (home, last) in removed_names.CHANGED


_OTHERS = {False: "them", True: "the others"}


def _counted(most: int) -> str:
    return {0: "no argument", 1: "one argument"}.get(most, f"{most} arguments")
