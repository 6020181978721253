"""Iterators in an input_fn: it returns the dataset instead."""

import ast

from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Todo,
    codemod,
)
from estimator2strategy.tools.reader.estimator_programs import input_functions, own_nodes

_MAKES = ("make_one_shot_iterator", "make_initializable_iterator")


@codemod(
    "one-shot-iterators",
    stage=4,
    tier=SafetyTier.REVIEW,
    words=_MAKES,
    title="An input_fn returns its dataset, and not what an iterator takes from it",
    why="Both are input to an Estimator; only a dataset can be handed to a strategy. Where "
    "something is done to the batch after it was taken, that has to go into a `dataset.map` "
    "first; and where the program calls the input_fn itself, that has to take a batch from the "
    "dataset. Both are left to you.",
    proof="tests/tools/migrate/test_parity.py: the metrics and predictions of TF 1.15. Random ops "
    "without a seed of their own (initial weights, dropout) draw other numbers, as in any graph "
    "with another number of ops. Another file that calls the input_fn is not seen.",
)
def find(module):
    for definition in input_functions(module.source, module.project):
        if definition.source is not module.source:
            continue
        function = definition.node
        for node in own_nodes(function):
            if not isinstance(node, ast.Call) or _dataset(module, node) is None:
                continue
            if _is_called_otherwise(module, function):
                todo = "the program calls this itself: take a batch from the dataset there"
                yield Todo(node, todo)
            else:
                yield from _found(module, function, node)


def _is_called_otherwise(module, function):
    """True if the file uses what a function returns; `lambda: f(1)`, `return f(1)` hand it on."""
    called = [call.node for call in module.calls() if call.last == getattr(function, "name", None)]
    return any(not isinstance(node.parent, (ast.Lambda, ast.Return)) for node in called)


def _found(module, function, made):
    """The change of one iterator; `made` is the call that makes it."""
    todo = Todo(made, "do what follows in a dataset.map(...), and return the dataset")
    dataset = module.written(_dataset(module, made))
    statement = module.statement(made)
    gone = []
    taken = _taken_at_once(made)
    if taken is None:
        name = _name(statement, made)
        taken = _only_taking(function, name) if name else None
        if taken is None:
            yield todo
            return
        gone.append(statement)
    statement = module.statement(taken)
    if isinstance(statement, ast.Return) and statement.value is taken:
        last = statement
    elif isinstance(statement, ast.Assign) and statement.value is taken:
        last = _returns_as_taken(function, statement)
        gone.append(statement)
    else:
        last = None
    if last is None or not all(module.is_alone(s) for s in (*gone, last)):
        yield todo
        return
    for line in gone:
        yield module.replace_statement(line, "")
    yield module.replace_statement(last, f"return {dataset}")


def _dataset(module, call):
    """The dataset of which a call makes a one-shot iterator; None if it does not."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _MAKES:
        return None
    owner = module.name(function.value) if isinstance(function.value, ast.Attribute) else None
    if owner == "tf.data":
        return call.args[0] if len(call.args) == 1 else None
    return function.value if not call.args and not call.keywords else None


def _taken_at_once(made):
    """The call in `dataset.make_one_shot_iterator().get_next()`."""
    attribute = made.parent
    if isinstance(attribute, ast.Attribute) and attribute.attr == "get_next":
        call = attribute.parent
        return call if isinstance(call, ast.Call) and not call.args else None
    return None


def _name(statement, value):
    if isinstance(statement, ast.Assign) and statement.value is value:
        (target, *others) = statement.targets
        if isinstance(target, ast.Name) and not others:
            return target.id
    return None


def _only_taking(function, name):
    """The call `name.get_next()`, if that is all that the function does with `name`."""
    uses = _uses(function, name)
    if len(uses) != 1:
        return None
    attribute = uses[0].parent
    if isinstance(attribute, ast.Attribute) and attribute.attr == "get_next":
        call = attribute.parent
        return call if isinstance(call, ast.Call) and not call.args else None
    return None


def _uses(function, name):
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _returns_as_taken(function, statement):
    """The `return` that gives back, untouched, all that a statement has taken."""
    (target, *others) = statement.targets
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    if others or not all(isinstance(name, ast.Name) for name in names):
        return None
    written = [name.id for name in names]
    uses = [use for name in written for use in _uses(function, name)]
    returns = [node for node in own_nodes(function) if isinstance(node, ast.Return)]
    if len(returns) != 1 or len(uses) != len(written):
        return None
    value = returns[0].value
    given = value.elts if isinstance(value, ast.Tuple) else [value]
    if isinstance(target, ast.Tuple) != isinstance(value, ast.Tuple):
        return None
    same = [getattr(node, "id", None) for node in given] == written
    return returns[0] if same else None
