"""The names of what takes the place of functions, in all files that name the functions."""

import ast

from estimator2strategy.tools.migrate.model_class import line_limit
from estimator2strategy.tools.migrate.model_class.rewriting import StaysError
from estimator2strategy.tools.reader.source import Import


class NewNames:
    """Spells new names, and imports them where the old ones were imported.

    Args:
        program: The files.
    """

    def __init__(self, program):
        self._program = program
        self._imports = {}  # statement -> old name -> new names, in order
        self._spelled = set()  # the nodes whose function another name stands for

    def spelled(self, node, new):
        """The spelling of a new name in the place of a node that names a function."""
        module = self._program.module_of(node)
        self._spelled.add(node)
        if isinstance(node, ast.Attribute):
            return f"{module.written(node.value)}.{new}"
        scope = module.source.scope_of(node).find(node.id)
        if scope is None:
            raise StaysError(node, f"import {node.id} by its name first")
        for value in scope.bindings[node.id]:
            if isinstance(value, Import):
                of_statement = self._imports.setdefault(value.node, {})
                of_statement.setdefault(value.name, {})[new] = None
        return new

    def check_reads(self, converted):
        """Raises StaysError if a file would still read one of the functions.

        Args:
            converted: The functions.
        """
        inside = {node for function in converted for node in ast.walk(function)}
        for function in converted:
            name = self._program.name_of(function)
            message = f"{function.name} becomes a part of a Keras model: change this first"
            for module in self._program.readers(function):
                source = module.source
                for node, scope in source.chains:
                    known = node in self._spelled or node in inside
                    if not known and source.resolve(node, scope) == name:
                        raise StaysError(node, message)
                for target, _ in source.imports:
                    is_imported = target.name == function.name and target.node not in self._imports
                    if is_imported and source.follow(source, target) == name:
                        raise StaysError(target.node, message)

    def changes(self):
        """Yields a change for each import."""
        for statement, names in self._imports.items():
            module = self._program.module_of(statement)
            found = {}
            for alias in statement.names:
                found |= names.get(alias.name, {ast.unparse(alias): None})
            limit = line_limit.of(module.source.path)
            head = f"from {'.' * statement.level}{statement.module or ''} import "
            text = head + ", ".join(found)
            if len(text) + statement.col_offset > limit:
                indent = " " * statement.col_offset
                listed = "".join(f"{indent}    {name},\n" for name in found)
                text = f"{head}(\n{listed}{indent})"
            yield module.replace_statement(statement, text, is_dedented=True)
