"""Dicts that NumPy saved as an array, which it loads only if it is told so."""

import ast

from estimator2strategy.tools.check import unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import all_of
from estimator2strategy.tools.check.rule import Hit, rule

_OF_DICTS = {"get", "items", "iteritems", "iterkeys", "itervalues", "keys", "values"}


@rule(
    "E2S118",
    "pickled-arrays",
    Severity.ERROR,
    title="A pickled dict that numpy.load refuses",
    why="`numpy.load(file).item()` reads a dict that `numpy.save` has pickled. Since 1.16.3 NumPy "
    "asks for allow_pickle=True: a ValueError, object arrays cannot be loaded.",
    fix="Write numpy.load(file, allow_pickle=True), for files that you trust.",
    bad="import numpy as np\n\nweights = np.load('vgg16.npy').item()\nkernel = weights['conv1']\n",
    good="import numpy as np\n\nweights = np.load('vgg16.npy', allow_pickle=True).item()\n"
    "kernel = weights['conv1']\n",
)
def find(source, context):
    del context
    for call in source.calls:
        if call.last != "item" or call.node.args or not isinstance(call.node.func, ast.Attribute):
            continue
        load = source.call(call.node.func.value, call.scope)
        if load is None or load.name != "numpy.load" or load.is_open:
            continue
        if load.argument("allow_pickle", 2) is not None or unreached.is_tried(
            load.node, unreached.ANY
        ):
            continue
        if load.argument("encoding") is not None or _is_dict(call.node, call.scope, source):
            yield Hit(load.node, "numpy.load refuses the pickled dict of this file")


def _is_dict(item, scope, source):
    """True if the program takes what `.item()` returned for a dict."""
    if _used_as_dict(item):
        return True
    return any(
        _used_as_dict(name)
        for name in all_of(source, ast.Name)
        if (source.assigned(name, source.scope_of(name)) or (None,))[0] is item
    )


def _used_as_dict(node):
    parent = node.parent
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return isinstance(getattr(parent.slice, "value", None), str)
    return isinstance(parent, ast.Attribute) and parent.attr in _OF_DICTS
