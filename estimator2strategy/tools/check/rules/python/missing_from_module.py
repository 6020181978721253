"""Names that a program imports from modules of its own which do not have them."""

import os

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.missing_module import is_built, may_be_built
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.own_code import modules_of, names


def find(source, context):
    for target, _ in source.imports:
        if target.name in (None, "*") or unreached.is_expendable(target.node):
            continue
        modules = modules_of(source, target, context.project)
        if not modules or modules[0] is source or _may_be_file(modules[0], target.name, context):
            continue
        if _is_in_a_folder(target, context.project):
            continue
        if not any(_may_have(module, target.name, context) for module in modules):
            message = f"{_named(modules[0])} has no name {target.name}"
            yield Hit(target.node, message)


def _is_in_a_folder(target, project):
    """True if a folder, which need be no package, has the name of the module, and such a file."""
    path = os.path.join(os.sep, *target.module.split("."), target.name)
    return any(
        source.path.endswith((f"{path}.py", os.path.join(path, "__init__.py")))
        for source in project.sources
    )


def _named(module):
    """The name of a file, and of a package's `__init__.py` the folder too."""
    folder, file = os.path.split(module.path)
    return f"{os.path.basename(folder)}/{file}" if file == "__init__.py" else file


def _may_be_file(module, name, context):
    """True if a name may be a module beside a package's file that is built or generated later."""
    folder, file = os.path.split(module.path)
    if file != "__init__.py" or name != name.lower():
        return file == "__init__.py" and name.startswith("_")
    if not any(entry.endswith(".py") and entry != file for entry in os.listdir(folder)):
        return True  # none of its modules is there yet
    return may_be_built(name) or is_built(name, folder, context.project)


def _may_have(module, name, context):
    if name in module.scope.bindings:
        return True  # most are, and that is quickly known
    has = names(module, context.project)
    return has is None or name in has
