"""The statements of a loss without those that only metrics read."""

import ast

from estimator2strategy.tools.migrate.model_class.model_fn_parts import reads_of, writes_of


def of(statements, needed, adds):
    """Those of the statements that a loss needs, or that do more than assign.

    Args:
        statements: The statements, in order.
        needed: The names that the loss and the summaries read.
        adds: Function of a node; true for a call of tf.losses, which adds to the total loss.
    """
    kept = []
    for statement in reversed(statements):
        is_plain = isinstance(statement, ast.Assign) and not any(map(adds, ast.walk(statement)))
        if not is_plain or writes_of(statement) & needed:
            needed = needed | reads_of(statement)
            kept.insert(0, statement)
    return kept
