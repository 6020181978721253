"""The tensors that a hook fetches, as what a Keras callback finds in their place.

    fetches = HookFetches(module, class_node)
    node, text = fetches.results(read)     # `run_values.results`, and what stands for it

A callback has the global step and the loss of the step. Anything else that a hook fetches has to
become a metric of the model, which is for the user to do.
"""

import ast

STEP = "self.model.global_step"
LOSS = 'logs["loss"]'
_STEPS = ("tf.train.get_global_step", "tf.train.get_or_create_global_step")
_LOSSES = ("tf.losses.get_total_loss",)
_ARGS = ("tf.train.SessionRunArgs", "tf.estimator.SessionRunArgs")
# Names that a program's hook looks up in the graph.
_NAMED = {"global_step:0": STEP, "loss:0": LOSS, "total_loss:0": LOSS}


class UnknownFetchError(Exception):
    """A fetch that a callback cannot have.

    Attributes:
        what: The fetch, as it is written.
    """

    def __init__(self, what):
        super().__init__(what)
        self.what = what


class HookFetches:
    """The fetches of a hook.

    Attributes:
        statements: The statements that ask for them, which a callback does without.
        uses_loss: True if the loss is among them.
    """

    def __init__(self, module, node):
        self._module, self._class = module, node
        self.statements = []
        self.uses_loss = False
        self._attributes = {}  # name of `self.name` -> the statement that assigns it
        for statement in ast.walk(node):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                name = _of_self(statement.targets[0])
                if name:
                    self._attributes.setdefault(name, []).append(statement)
        self._fetched = self._asked_for()
        if self._fetched is not None:
            self.text(self._fetched)

    def _asked_for(self):
        """The node of what before_run asks for; None if it asks for nothing."""
        for method in self._class.body:
            if isinstance(method, ast.FunctionDef) and method.name == "before_run":
                for statement in method.body:
                    if isinstance(statement, ast.Return) and statement.value is not None:
                        self.statements.append(statement)
                        return self._argument(statement.value)
        return None

    def _argument(self, value):
        if isinstance(value, ast.Constant) and value.value is None:
            return None
        if not isinstance(value, ast.Call) or self._module.name(value.func) not in _ARGS:
            raise UnknownFetchError(self._module.written(value))
        first = value.args[:1] or [k.value for k in value.keywords if k.arg == "fetches"]
        if len(value.args) + len(value.keywords) != 1 or not first:
            raise UnknownFetchError(self._module.written(value))
        return first[0]

    def _assigned(self, node):
        """What a node stands for: itself, or what is assigned to the attribute that it reads."""
        name = _of_self(node)
        found = self._attributes.get(name, []) if name else []
        if len(found) != 1:
            return node
        if found[0] not in self.statements:
            self.statements.append(found[0])
        return found[0].value

    def text(self, node):
        """What a callback has for a fetch."""
        node = self._assigned(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [self.text(part) for part in node.elts]
            return ", ".join(parts) if len(parts) > 1 else f"({parts[0]},)"
        if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
            pairs = zip(node.keys, node.values, strict=True)
            written = (f"{key.value!r}: {self.text(value)}" for key, value in pairs)
            return f"{{{', '.join(written)}}}"
        name = isinstance(node, ast.Call) and self._module.name(node.func)
        if name in _STEPS:
            return STEP
        if name in _LOSSES:
            self.uses_loss = True
            return _total_loss(self._module)
        if _named(node) == LOSS:
            self.uses_loss = True
            return LOSS
        if _named(node):
            return _named(node)
        raise UnknownFetchError(self._module.written(node))

    def results(self, node):
        """The text for `run_values.results`, or for an item of it, and the node that it is for."""
        fetched = self._fetched
        outer = node.parent
        if isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant):
            item = self._item(self._assigned(fetched), outer.slice.value)
            if item is not None:
                return outer, self.text(item)
        text = self.text(fetched)
        alone = isinstance(outer, ast.Assign) or not text.count(", ")
        return node, text if alone or text[0] in "{(" else f"({text})"

    def _item(self, node, key):
        if isinstance(node, (ast.List, ast.Tuple)) and isinstance(key, int):
            return node.elts[key] if -len(node.elts) <= key < len(node.elts) else None
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return next((v for k, v in pairs if getattr(k, "value", None) == key), None)
        return None


def _total_loss(module):
    """The loss that a hook gets of `tf.losses.get_total_loss()`, in those of the callback.

    An Estimator adds the spec's loss to the losses of tf.losses, so that a hook sees both. They
    are equal where the spec's loss is all of the others.
    """
    calls = [module.name(call.node.func, call.scope) or "" for call in module.calls()]
    kinds = [name for name in calls if name.startswith("tf.losses.")]
    added = [name for name in kinds if "get_" not in name and not name.startswith("tf.losses.R")]
    is_regularized = any(
        k.arg and "regularizer" in k.arg for c in module.calls() for k in c.node.keywords
    )
    totals = len(kinds) - len(added)  # one of them is the hook's
    if not added and not is_regularized:
        return LOSS
    if totals > 1 or (len(added) == 1 and not is_regularized):
        return f"2 * {LOSS}"
    raise UnknownFetchError("tf.losses.get_total_loss()")


def _named(node):
    """What stands for a tensor that is named in the graph: "loss:0"."""
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]  # graph.get_tensor_by_name("loss:0")
    return _NAMED.get(node.value) if isinstance(node, ast.Constant) else None


def _of_self(node):
    """The name in `self.name`."""
    is_self = isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "self"
    return node.attr if is_self else None
