"""Learning rates that decay, to Keras schedules."""

from estimator2strategy.tools.migrate.call_text import CallText
from estimator2strategy.tools.migrate.codemod import (
    Change,
    SafetyTier,
    codemod,
)

_RATE = ("learning_rate", "global_step", "decay_steps")
# Function of tf.train -> class of Keras, the function's arguments.
_SCHEDULES = {
    "tf.train.cosine_decay": ("CosineDecay", (*_RATE, "alpha")),
    "tf.train.cosine_decay_restarts": (
        "CosineDecayRestarts",
        ("learning_rate", "global_step", "first_decay_steps", "t_mul", "m_mul", "alpha"),
    ),
    "tf.train.exponential_decay": ("ExponentialDecay", (*_RATE, "decay_rate", "staircase")),
    "tf.train.inverse_time_decay": ("InverseTimeDecay", (*_RATE, "decay_rate", "staircase")),
    "tf.train.piecewise_constant": ("PiecewiseConstantDecay", ("x", "boundaries", "values")),
    "tf.train.piecewise_constant_decay": ("PiecewiseConstantDecay", ("x", "boundaries", "values")),
    "tf.train.polynomial_decay": (
        "PolynomialDecay",
        (*_RATE, "end_learning_rate", "power", "cycle"),
    ),
}
_STEPS = ("global_step", "x")
_RENAMED = {"learning_rate": "initial_learning_rate"}


@codemod(
    "schedules",
    stage=5,
    tier=SafetyTier.SAFE,
    title="`tf.train.exponential_decay(...)` and its kin to Keras schedules",
    why="The schedule is called with the global step at the same place, so what follows still gets "
    "a tensor. `noisy_linear_cosine_decay` and the like stay; Keras has none.",
    proof="tests/tools/migrate/test_parity.py: the losses of TF 1.15 to 1e-5; "
    "tests/tools/migrate/test_proofs.py: each schedule, step by step.",
)
def find(module):
    if module.tf is None:
        return
    for call in module.calls(*_SCHEDULES):
        if call.is_open:
            continue
        keras, names = _SCHEDULES[module.name(call.node.func, call.scope)]
        old = CallText(module, call.node)
        given = list(zip(names, old.arguments, strict=False))
        given = [(one.name or name, one) for name, one in given]
        given += [(one.name, one) for one in old.arguments[len(given) :] if one.name]
        step = next((argument for name, argument in given if name in _STEPS), None)
        if step is None:
            continue
        # A name, which comes last by position, is dropped with the scope that it made.
        kept = [
            argument.renamed(_RENAMED.get(name, name))
            for name, argument in given
            if name not in (*_STEPS, "name")
        ]
        schedule = old.text(f"{module.tf}.keras.optimizers.schedules.{keras}", kept)
        yield Change(*old.span, f"{schedule}({step.value})")
