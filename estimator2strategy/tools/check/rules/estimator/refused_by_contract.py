"""Results of model_fn that Estimator's contract refuses, where no other rule is more exact."""

from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    # Two of these have a rule of their own: E2S604 and E2S611.
    said = str(recorded.refused or "")
    if said and not ("static shape" in said or said.startswith("CrossShardOptimizer must be")):
        where = "on cores" if recorded.on_cores else "on one device"
        yield Hit(None, f"{recorded.mode} {where}: {said}")
