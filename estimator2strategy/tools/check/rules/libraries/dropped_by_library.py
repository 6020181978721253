"""Names that the newest releases of libraries built on Estimators have dropped."""

from estimator2strategy.engine.libraries import served, table
from estimator2strategy.tools.check.pinned_releases import pinned
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.symbol_uses import imported_and_used


def find(source, context):
    if context.runs_on_tensorflow2(source) and "estimator2strategy" not in source.modules:
        return  # an older release needs Estimators
    seen = set()
    for node, name in imported_and_used(source):
        module, _, rest = name.partition(".")
        lost = f"{module}.{rest.partition('.')[0]}"
        if lost in seen or not table.known(module):
            continue
        release = pinned(module, source.path) or served.release_of(module)
        row = table.lost(lost, release)
        if row is None or unreached.is_expendable(node):
            continue
        seen.add(lost)
        yield Hit(
            node,
            f"{lost} is gone: {row.distribution} {release or 'of today'} does not have it",
            fix=f"{row.release} has it, and runs unchanged: `{row.install}`.",
        )
