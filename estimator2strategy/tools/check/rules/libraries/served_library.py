"""Libraries that were written for Estimators, and are served."""

from estimator2strategy.engine.libraries import served, table
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.pinned_releases import pinned
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    on_tf2 = context.runs_on_tensorflow2(source) and "estimator2strategy" not in source.modules
    seen = set()
    for target, _ in source.imports:
        module = target.module.partition(".")[0]
        if target.level or module in seen or f"/{module}/" in f"/{source.shown}":
            continue
        seen.add(module)
        if (source.follow(source, target) or "@").startswith("@"):
            continue  # a module of the program
        found = _served(module, source.path)
        if found is None:
            continue
        name = f"{module} {found.release}".strip()
        fate = "and does not import without this package" if on_tf2 else "and is served"
        rows = table.known(module)
        install = f" It is installed by `{rows[-1].install}`." if rows else ""
        yield Hit(
            target.node,
            f"{name} was written for Estimators, {fate}",
            severity=Severity.ERROR if on_tf2 else None,
            fix=f"Run the program with `e2s run`.{install}",
        )


def _served(module: str, path: str) -> served.Served | None:
    """The library that a program would import: as it is pinned, as installed, or the newest."""
    rows = table.known(module)
    if rows and (release := pinned(module, path)):
        return served.of_release(module, release)
    found = served.of_installed(module)
    if found or not rows or served.release_of(module) or rows[-1].below:
        return found
    return served.Served("", rows[-1].world)
