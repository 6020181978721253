"""Updates that nothing orders with a use of their variable."""

from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if recorded.on_cores or recorded.mode != "train":
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.engine.plan.races import races

    for race in races(recorded.graph, [recorded.train_op.name]):
        use = recorded.graph.get_operation_by_name(race.use)
        yield Hit(
            use, f"nothing orders {race.use!r} with {race.write!r}, a write of {race.variable!r}"
        )
