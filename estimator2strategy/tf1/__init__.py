"""The `tensorflow` of TF 1.15, on today's: `import estimator2strategy.tf1 as tf`.

`tf.compat.v1` is the base. `tf1/facade/symbols.csv` names the replacement of each name that it
lacks, or that Keras 3 took from it. `tf.layers`, `tf.keras` and `tf.nn.rnn_cell` are tf-keras's,
for any value of TF_USE_LEGACY_KERAS; `tf.estimator` and `tf.contrib` are this package's. A name
that cannot work can be imported, and its use is an error that says what to do instead. Names are
looked up at their first use.
"""

from typing import Any

from estimator2strategy.engine.libraries import served as _served
from estimator2strategy.tf1.facade import deep_imports as _deep_imports

_deep_imports.install()
_served.install()


def __getattr__(name: str) -> Any:
    # All is imported here: `from tensorflow import *` must not find it.
    from importlib import import_module

    if name == "__path__":
        raise AttributeError(name)

    from estimator2strategy.engine import quiet_import

    quiet_import.import_tensorflow()
    from estimator2strategy.engine import _tf_switches, behavior
    from estimator2strategy.tf1.facade import by_caller, namespace

    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    _tf_switches.give_variables_what_references_have()
    behavior.install()
    by_caller.tell_tensors_apart()
    by_caller.tell_keras_apart()
    by_caller.hold_notices_back()
    value = namespace.member("tf", [import_module("tensorflow.compat.v1")], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from importlib import import_module

    from estimator2strategy.tf1.facade import namespace

    return namespace.names_in("tf", [import_module("tensorflow.compat.v1")])
