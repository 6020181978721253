"""Expressions of a model_fn as they are written in a Keras model.

    Rewriter(module, [rule]).text(node)     # the node's text, with what the rules replace

A rule takes a node and the rewriter, and returns a text or None.
"""

import ast


class StaysError(Exception):
    """A place for which there is no Keras code.

    Attributes:
        node: The place.
        message: What to do, in one sentence.
    """

    def __init__(self, node, message):
        super().__init__(message)
        self.node, self.message = node, message


class Rewriter:
    """Writes nodes with other texts in the place of some.

    Args:
        module: The file.
        rules: Functions of a node and this object that return a text, or None for another rule.
    """

    def __init__(self, module, rules):
        self.module, self.rules = module, rules

    def text(self, node):
        """The text of a node."""
        own = self._replaced(node)
        if own is not None:
            return own
        parts = {}
        self._collect(node, parts)
        return self._module_of(node).written_with(node, parts)

    def _module_of(self, node):
        """The file of a node, which may be another's of the program."""
        program = self.module.program
        return (program.module_of(node) if program else None) or self.module

    def _collect(self, node, parts):
        for child in ast.iter_child_nodes(node):
            new = self._replaced(child) if hasattr(child, "lineno") else None
            if new is None:
                self._collect(child, parts)
            else:
                parts[child] = new

    def _replaced(self, node):
        for rule in self.rules:
            text = rule(node, self)
            if text is not None:
                return text
        return None

    def name(self, node):
        """The canonical name of an expression, of TensorFlow or of this package."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        module = self._module_of(node)
        name = module.name(node)
        if name is None:
            name = module.source.name(node, module.source.scope_of(node))
        return name

    def called(self, node):
        """The name of what a call calls; None for no call."""
        return self.name(node.func) if isinstance(node, ast.Call) else None


def arguments(call, names):
    """The arguments of a call by name, in the order in which they are written.

    Raises:
        StaysError: They cannot be seen.
    """
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(names):
        raise StaysError(call, "its arguments cannot be told by name: write them out")
    found = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise StaysError(call, "its arguments cannot be told by name: write them out")
        found[keyword.arg] = keyword.value
    return found
