"""The classes of other libraries' objects, where the source says them for certain.

The table that `pandas.read_csv(path)` returns is a "pandas.DataFrame", and so is its `dropna()`;
its item "age" is a "pandas.Series". `method` gives a call of `table.drop` the name by
which the tables of `libraries` know it: "pandas.DataFrame().drop".
"""

from __future__ import annotations

import ast
import re
from typing import Any

from estimator2strategy.tools.reader import own_code
from estimator2strategy.tools.reader.estimator_programs import returned
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import Call, LexicalScope, Source, arguments_of, parents

_ITSELF = ""
_DATA_FRAME, _SERIES = "pandas.DataFrame", "pandas.Series"
_IMAGE = "PIL.Image.Image"
_ENVIRONMENT = "gym.Env"
# Functions, by a pattern of their whole names -> the class of what they return.
_MAKERS = tuple(
    (re.compile(pattern), made)
    for pattern, made in (
        (r"pandas\.(read_(csv|table|fwf|excel|sql(_query|_table)?|feather|parquet))", _DATA_FRAME),
        (
            r"pandas\.(concat|merge|get_dummies|pivot_table|crosstab|DataFrame\.from_\w+)",
            _DATA_FRAME,
        ),
        (r"pandas\.date_range", "pandas.DatetimeIndex"),
        (r"PIL\.Image\.(open|new|fromarray|frombytes|frombuffer|merge|blend|composite)", _IMAGE),
        (r"PIL\.ImageOps\.\w+", _IMAGE),
        (r"PIL\.ImageDraw\.Draw", "PIL.ImageDraw.ImageDraw"),
        (r"PIL\.ImageFont\.(truetype|load_default)", "PIL.ImageFont.FreeTypeFont"),
        (r"matplotlib\.pyplot\.(figure|gcf)", "matplotlib.figure.Figure"),
        (r"matplotlib\.pyplot\.(axes|gca|subplot)", "matplotlib.axes.Axes"),
        (r"networkx\.(\w+_graph|from_\w+|read_(edgelist|weighted_edgelist))", "networkx.Graph"),
        (r"keras\.models\.Sequential", "keras.Sequential"),
        (r"keras\.models\.(Model|load_model|model_from_json)", "keras.Model"),
        (
            r"numpy\.(arange|array|asarray|ascontiguousarray|concatenate|empty|full|hstack|linspace"
            r"|ones|ones_like|reshape|stack|vstack|zeros|zeros_like|random\.rand|random\.randn)",
            "numpy.ndarray",
        ),
        (r"gensim\.models\.(?:word2vec\.)?Word2Vec(?:\.load)?", "gensim.models.Word2Vec"),
        (r"gensim\.models\.(?:doc2vec\.)?Doc2Vec(?:\.load)?", "gensim.models.Doc2Vec"),
        (r"gensim\.models\.(?:fasttext\.)?FastText(?:\.load)?", "gensim.models.FastText"),
        (r"gensim\.models\.(?:keyedvectors\.)?KeyedVectors\.load\w*", "gensim.models.KeyedVectors"),
        (r"scipy\.sparse\.csr_matrix", _ITSELF),
        (r"sklearn\.[\w.]+\.[A-Z]\w*|(pandas|networkx)\.[A-Z]\w+|keras\.Model", _ITSELF),
        (r"h5py\.File", _ITSELF),
        (r"gym\.(make|wrappers\.\w+)", _ENVIRONMENT),
    )
)
# Arguments with which a maker returns something else.
_OTHERWISE = {"chunksize", "iterator", "sheetname", "squeeze", "typ", "axis"}
# Class -> its methods that return another object of it.
_SAME = {
    _DATA_FRAME: "append assign copy drop drop_duplicates dropna fillna head join merge query "
    "rename replace reset_index sample set_index sort_index sort_values tail",
    _SERIES: "append astype copy dropna fillna head map replace sort_index sort_values tail",
    _IMAGE: "convert copy crop filter resize rotate transpose",
    "networkx.Graph": "copy",
}
# (Class, method) -> the class of what it returns.
_OTHERS = {
    ("matplotlib.figure.Figure", "add_subplot"): "matplotlib.axes.Axes",
    ("matplotlib.figure.Figure", "gca"): "matplotlib.axes.Axes",
}
# (Class, attribute) -> the class of what it holds.
_PARTS = {(_ENVIRONMENT, "env"): _ENVIRONMENT, (_ENVIRONMENT, "unwrapped"): _ENVIRONMENT}
# A group of an h5py file has no attribute that a data set in it lacks.
_ITEMS = {_DATA_FRAME: _SERIES, "h5py.File": "h5py.Dataset", "h5py.Dataset": "h5py.Dataset"}
# Classes all of whose items are of one class, whatever the index is.
_ALIKE = {"h5py.File", "h5py.Dataset"}
# Classes of which an item by several names, a slice or a condition is another one.
_IN_PARTS = {_DATA_FRAME, _SERIES}
_SEVERAL = (ast.List, ast.ListComp, ast.Slice, ast.Compare)
# Objects that `with` binds itself.
_ENTERED = {"h5py.File", _IMAGE}
# (Method, argument) that tables of pandas alone have.
_OF_TABLES = {("append", "ignore_index"), ("append", "verify_integrity"), ("sort", "columns")}
# The possible values of a name, each with its scope; None for what is no expression.
_Values = list[tuple[Any, LexicalScope]]
# How many expressions are read for one answer.
_MOST = 200


def method(call: Call, project: Project) -> str | None:
    """The name of the method that a call of `object.method` runs; None if not known."""
    function = call.node.func
    if not isinstance(function, ast.Attribute):
        return None
    of = class_of(function.value, call.scope, call.source, project)
    if of is None and "pandas" in call.source.modules and _is_of_table(call, function.value):
        of = _DATA_FRAME
    return f"{of}().{function.attr}" if of else None


def _is_of_table(call: Call, owner: ast.expr) -> bool:
    """True for calls by whose arguments one sees that the object is a table: `x.drop("a", 1)`."""
    if any((call.last, keyword.arg) in _OF_TABLES for keyword in call.node.keywords):
        return True
    second = call.argument("axis", 1) if call.last == "drop" else None
    found = call.source.assigned(owner, call.scope)
    if getattr(found[0] if found else owner, "attr", None) in ("columns", "index"):
        return False  # the second argument of Index.drop is another one
    return getattr(second, "value", None) in (0, 1)


def class_of(node: ast.AST, scope: LexicalScope, source: Source, project: Project) -> str | None:
    """The class of the object that an expression is; None if it may be another."""
    return _Reader(project).read(node, scope, source)


class _Reader:
    """One question: the names on the way to its answer, and what those were taken for."""

    def __init__(self, project: Project):
        self._project = project
        self._left = _MOST
        self._taken: dict[tuple[LexicalScope, str], str | None] = {}

    def read(self, node: ast.AST, scope: LexicalScope, source: Source) -> str | None:
        self._left -= 1
        if self._left < 0:
            return None
        if isinstance(node, ast.Call):
            return self._made(Call(node, scope, source))
        if isinstance(node, ast.Subscript):
            of = self.read(node.value, scope, source)
            if of in _IN_PARTS and _is_several(source.assigned(node.slice, scope), node.slice):
                return of
            is_one = of in _ALIKE or self._is_name(node.slice, scope, source)
            return _ITEMS.get(of or "") if is_one else None
        if isinstance(node, ast.Name):
            where = scope.find(node.id)
            if where is None:
                return self._entered(node, scope, source)
            values: _Values = [(value, where) for value in where.bindings[node.id]]
            if all(value is None for value, _ in values):
                return self._entered(node, scope, source) or self._given(where, node.id)
            return self._one((where, node.id), values, source)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "self":
            return self._one((source.scope, f"self.{node.attr}"), _of_self(node, source), source)
        if isinstance(node, ast.Attribute) and any(node.attr == part for _, part in _PARTS):
            return _PARTS.get((self.read(node.value, scope, source) or "", node.attr))
        return None

    def _one(self, key: tuple[LexicalScope, str], values: _Values, source: Source) -> str | None:
        """The class that all values of a name have; those made of the name itself included."""
        if key in self._taken:
            return self._taken[key]
        if not all(isinstance(value, ast.expr) for value, _ in values):
            return None
        # An attribute of None is an error of its own.
        values = [(v, where) for v, where in values if getattr(v, "value", 0) is not None]
        self._taken[key] = None
        first = {self.read(value, where, source) for value, where in values} - {None}
        if len(first) == 1:
            self._taken[key] = next(iter(first))
            first = {self.read(value, where, source) for value, where in values}
        del self._taken[key]
        return first.pop() if len(first) == 1 else None

    def _entered(self, node: ast.Name, scope: LexicalScope, source: Source) -> str | None:
        """The class of what a `with` around a name binds it to."""
        for outer in parents(node):
            for item in outer.items if isinstance(outer, ast.With) else ():
                if getattr(item.optional_vars, "id", None) == node.id:
                    of = self.read(item.context_expr, scope, source)
                    return of if of in _ENTERED else None
        return None

    def _given(self, where: LexicalScope, name: str) -> str | None:
        """The class of what all calls of a function give for an argument."""
        calls = own_code.given(where, name, self._project)
        function = where.function
        if not calls or function is None or (where, name) in self._taken:
            return self._taken.get((where, name))
        self._taken[where, name] = None
        place = arguments_of(function).index(name)
        found: set[str | None] = set()
        for call in calls:
            value = None if call.is_open else call.argument(name, place)
            found.add(None if value is None else self.read(value, call.scope, call.source))
        del self._taken[where, name]
        return found.pop() if len(found) == 1 else None

    def _is_name(self, key: ast.expr, scope: LexicalScope, source: Source) -> bool:
        """True if an index is one name, and not several: "age", or a column in a loop over them."""
        if isinstance(source.constant(key, scope), str):
            return True
        if not isinstance(key, ast.Name):
            return False
        for loop in parents(key):
            if isinstance(loop, ast.For) and getattr(loop.target, "id", None) == key.id:
                where = scope.find(key.id)
                if where is None or any(value is not None for value in where.bindings[key.id]):
                    return False
                found = source.assigned(loop.iter, scope)
                names = found[0] if found else loop.iter
                if isinstance(names, ast.Attribute) and names.attr == "columns":
                    return self.read(names.value, scope, source) == _DATA_FRAME
                elements = getattr(names, "elts", ())
                return bool(elements) and all(
                    isinstance(getattr(e, "value", None), str) for e in elements
                )
        return False

    def _made(self, call: Call) -> str | None:
        """The class of what a call returns."""
        name, function = call.name, call.node.func
        if name is not None and not name.startswith("@"):
            if any(keyword.arg in _OTHERWISE for keyword in call.node.keywords):
                return None
            sheet = call.argument("sheet_name", 1) if call.last == "read_excel" else None
            if sheet is not None and not isinstance(call.value("sheet_name", 1), (int, str)):
                return None  # of several sheets a dict is made
            made = next((made for maker, made in _MAKERS if maker.fullmatch(name)), None)
            return name if made == _ITSELF else made
        if isinstance(function, ast.Attribute):
            of = self.read(function.value, call.scope, call.source)
            if of is not None:
                is_same = function.attr in _SAME.get(of, "").split()
                return of if is_same else _OTHERS.get((of, function.attr))
        found = self._project.definition(call.source.resolve(function, call.scope))
        if found is None or not isinstance(found.node, ast.FunctionDef):
            return None
        values = [(value, found.scope) for value in returned(found.node)]
        return self._one((found.scope, "return"), values, found.source)


def _is_several(assigned: tuple[ast.expr, LexicalScope] | None, key: ast.expr) -> bool:
    key = assigned[0] if assigned else key
    if isinstance(key, ast.BinOp):
        return isinstance(key.op, ast.BitAnd | ast.BitOr)
    return isinstance(key, _SEVERAL) or isinstance(getattr(key, "op", None), ast.Invert)


def _of_self(node: ast.Attribute, source: Source) -> _Values:
    """All that a file assigns to attributes of this name; None for what is no expression."""
    found: _Values = []
    for store, scope in source.stores:
        if store.attr == node.attr:
            outer = getattr(store, "parent", None)
            found.append((outer.value if isinstance(outer, ast.Assign) else None, scope))
    return found
