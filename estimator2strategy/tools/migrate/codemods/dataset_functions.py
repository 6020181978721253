"""Inputs as dataset functions, for a strategy."""

import ast

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod
from estimator2strategy.tools.reader.estimator_programs import input_functions, returned
from estimator2strategy.tools.reader.source import arguments_of

_NAME = "dataset_fn_of"
_FUNCTION = '''

def dataset_fn_of(input_fn, params, global_batch_size):
    """For `strategy.distribute_datasets_from_function`: the batches of `input_fn`, per replica."""

    def dataset_fn(input_context):
        batch_size = input_context.get_per_replica_batch_size(global_batch_size)
        dataset = input_fn({**params, "batch_size": batch_size})
        return dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

    return dataset_fn
'''


@codemod(
    "dataset-functions",
    stage=4,
    tier=SafetyTier.REVIEW,
    title="Adds `dataset_fn_of`, which hands an input_fn to a strategy",
    why="`strategy.distribute_datasets_from_function(dataset_fn_of(train_input_fn, params, 64))` "
    "gives each replica its part of the global batch, as TPUEstimator did with "
    "`params['batch_size']`. Nothing uses it yet: the Estimator goes on with the input_fn. "
    "For files in which an input_fn of the module takes `params` and returns a dataset.",
    proof="The input_fn is then called in eager mode: placeholders, tables and one-shot iterators "
    "in it do not work there. `get_per_replica_batch_size` refuses a batch that cannot be divided.",
)
def find(module):
    if module.tf is None or _NAME in module.source.scope.bindings:
        return
    functions = [
        definition.node
        for definition in input_functions(module.source, module.project)
        if definition.source is module.source
        and isinstance(definition.node.parent, ast.Module)
        and arguments_of(definition.node)[:1] == ["params"]
        and _returns_dataset(definition)
    ]
    if functions:
        last = max(functions, key=lambda function: function.lineno)
        yield module.append_after(last, _FUNCTION)


def _returns_dataset(definition):
    """True if all that a function returns is made by methods of a dataset."""
    values = returned(definition.node)
    return bool(values) and all(_is_dataset(definition, value, 0) for value in values)


def _is_dataset(definition, node, depth):
    if depth > 20:
        return False
    if isinstance(node, ast.Name):
        scope = definition.scope.find(node.id)
        values = scope.bindings[node.id] if scope else []
        return bool(values) and all(
            isinstance(v, ast.expr)
            and (_names(v, node.id) or _is_dataset(definition, v, depth + 1))
            for v in values
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = definition.source.name(node.func, definition.scope)
        if name is not None and name.startswith("tf.data."):
            return "make_" not in name
        if name is None:
            return node.func.attr != "get_next" and _is_dataset(
                definition, node.func.value, depth + 1
            )
    return False


def _names(node, name):
    """True if a value is made from the variable that it is assigned to: `d = d.batch(8)`."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id == name
