"""Changes of a column that pandas 3 makes in a copy of it."""

import ast

from estimator2strategy.tools.check import library_objects
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import all_of
from estimator2strategy.tools.check.rule import Hit, rule

_INDEXERS = {"at", "iat", "iloc", "loc"}


@rule(
    "E2S119",
    "chained-assignment",
    Severity.ERROR,
    title="A change of a column that pandas 3 makes in a copy",
    why="`table['a']` is a copy since pandas 3: what is assigned to its items, or done with "
    "inplace=True, is lost, and only a warning says so.",
    fix="Change the table itself: table.loc[rows, 'a'] = value, or table['a'] = "
    "table['a'].fillna(0).",
    bad="import pandas as pd\n\ntable = pd.read_csv('a.csv')\n"
    "table['age'][table['age'] < 0] = 0\ntable['age'].fillna(0, inplace=True)\n",
    good="import pandas as pd\n\ntable = pd.read_csv('a.csv')\n"
    "table.loc[table['age'] < 0, 'age'] = 0\ntable['age'] = table['age'].fillna(0)\n",
)
def find(source, context):
    if "pandas" not in source.modules:
        return
    for node in all_of(source, ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            column = _column(node.value, source, context.project)
            if column is not None:
                yield Hit(node, _message(column))
    for call in source.calls:
        if isinstance(call.node.func, ast.Attribute) and call.value("inplace") is True:
            column = _column(call.node.func.value, source, context.project)
            if column is not None:
                yield Hit(call.node, _message(column))


def _column(node, source, project):
    """The `table['a']` that a statement changes; None if it is no column of a table."""
    if isinstance(node, ast.Attribute) and node.attr in _INDEXERS:
        node = node.value
    if not isinstance(node, ast.Subscript):
        return None
    of = library_objects.class_of(node, source.scope_of(node), source, project)
    return node if of == "pandas.Series" else None


def _message(column):
    return f"pandas 3: this changes a copy, and {ast.unparse(column)} stays as it was"
