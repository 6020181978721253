"""Names that the newest releases of libraries built on Estimators have dropped."""

from estimator2strategy.engine.libraries import served, table
from estimator2strategy.tools.check import unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.pinned_releases import pinned
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.symbol_uses import imported_and_used


@rule(
    "E2S802",
    "dropped-by-library",
    Severity.ERROR,
    title="A name that the release of a library built on Estimators has dropped",
    why="pip installs the newest release, which does not have it; an older one runs unchanged. The "
    "release is that of the requirements (requirements*.txt, setup.py, pyproject.toml), or the "
    "installed one.",
    fix="Install the release that has it, as the finding says.",
    guide="libraries.md",
    bad="import tensorflow_lattice as tfl\n\nmodel = tfl.estimators.CannedClassifier\n",
    good="import tensorflow_lattice as tfl\n\nlayer = tfl.layers.Lattice\n",
)
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
