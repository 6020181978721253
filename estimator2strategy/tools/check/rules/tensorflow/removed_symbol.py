"""Names of TF 1.15 that TensorFlow 2.16 does not have and this package does."""

from estimator2strategy.tools.check import symbol_uses, tensorflow2_homes
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit

_ELSEWHERE = (symbol_uses.Flavour.FACADE, symbol_uses.Flavour.V2)
_GONE = "is not in TensorFlow 2.16 or newer"
_ON_TF2 = (
    "`e2s migrate` rewrites what it can; until then `e2s run` runs the program, or "
    "`import estimator2strategy.tf1 as tf`."
)


def find(source, context):
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if use.row is None or use.row.status == "refused" or use.flavour in _ELSEWHERE:
            continue
        if use.in_tensorflow is not False or use.needs_keras_2:
            continue
        on_tf2 = context.runs_on_tensorflow2(source, use.flavour)
        times = f", used {use.count} times here," if use.count > 1 else ""
        home = tensorflow2_homes.home(use.name, use.row.advice)
        instead = f"On TensorFlow 2: {home}." if home else None
        gone = f"is not in TensorFlow: {use.row.left}" if use.row.left else _GONE
        yield Hit(
            use.node,
            f"{use.name}{times} {gone}" + ("" if on_tf2 else "; this package has it"),
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
            fix=instead or (_ON_TF2 if on_tf2 else None),
        )
