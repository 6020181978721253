"""The role of a variable, from its name: a model's variable, or a slot of an optimizer.

Example:

    identified(["hidden/kernel", "hidden/kernel/Adam"])
    # {"hidden/kernel": Identity(("hidden",), "kernel", ""), "hidden/kernel/Adam": ... "momentum"}
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from estimator2strategy.errors import CheckpointError

STEP = "step"
RATE = "learning rate"
POWER = "power"  # of a beta, which Keras computes from the step
COUNTER = "counter"  # of saves, which says nothing of the model
SETTING = "setting of the optimizer"  # of Keras 2, a variable there and an argument elsewhere


class Identity(NamedTuple):
    """The role of a variable.

    Attributes:
        owner: Tokens of the layer's name.
        role: "kernel", "bias", ...; or STEP and the like, which belong to no layer.
        slot: The name of the optimizer's slot; "" for a variable of the model.
    """

    owner: tuple[str, ...]
    role: str
    slot: str = ""

    @property
    def is_special(self) -> bool:
        return self.role in (STEP, RATE, POWER, COUNTER, SETTING)


# Slot -> how the optimizers of TF1, of Keras 2 (as a path) and of Keras 3 call it.
# Sources: get_slot_names() of tf.train in TF 1.15; `add_variable_from_reference` in keras 3.
_SLOTS = {
    "momentum": ("Adam", "adam_m", "m", "momentum"),
    "velocity": ("Adam_1", "adam_v", "v", "velocity"),
    "accumulation": ("Momentum",),  # of gradients, where Keras's SGD keeps steps
    "mean square": ("RMSProp", "rms"),
    "step": ("RMSProp_1",),
    "mean gradient": ("mg", "average_gradient"),
    "accumulator": ("Adagrad", "Ftrl", "accumulator"),
    "linear": ("Ftrl_1", "linear"),
    "accumulated grad": ("Adadelta", "accum_grad", "accumulated_grad"),
    "accumulated delta": ("Adadelta_1", "accum_var", "accumulated_delta_var"),
    "average": ("ExponentialMovingAverage", "average"),
}
_SLOT_OF = {name: slot for slot, names in _SLOTS.items() for name in names}
# The same words mean another thing to some of Keras's optimizers.
_KERAS_SLOTS = {
    ("sgd", "momentum"): "accumulation",
    ("rmsprop", "velocity"): "mean square",
    ("rmsprop", "momentum"): "step",
}
# With centered=True TF1's RMSProp keeps a mean gradient between the other two.
_CENTERED = {"RMSProp_1": "mean gradient", "RMSProp_2": "step"}
_ROLES = {
    "weights": "kernel",
    "w": "kernel",
    "matrix": "kernel",
    "biases": "bias",
    "b": "bias",
    "embeddings": "embedding",
    "embedding_weights": "embedding",
    "depthwise_weights": "depthwise_kernel",
    "pointwise_weights": "pointwise_kernel",
    "scale": "gamma",
    "offset": "beta",
    "moving_var": "moving_variance",
}
_SPECIAL = {
    "global_step": STEP,
    "iteration": STEP,
    "iterations": STEP,
    "iter": STEP,
    "_iterations": STEP,
    "learning_rate": RATE,
    "_learning_rate": RATE,
    "beta1_power": POWER,
    "beta2_power": POWER,
    "save_counter": COUNTER,
}
_UNNAMED = "optimizer/vars/"
OTHER_SLOT = "of the optimizer"

# `Adam/beta_1`: the scalars that the optimizers of Keras 2 keep in a graph, below their name.
_SETTING = re.compile(
    r"(adadelta|adagrad|adam|adamax|ftrl|nadam|rmsprop|sgd)(_\d+)?/"
    r"(beta|beta_1|beta_2|decay|l1_regularization_strength|l2_regularization_strength|"
    r"learning_rate_power|momentum|momentum_cache|rho)"
)
# Of `tf.train.experimental.DynamicLossScale`, and of Keras's LossScaleOptimizer.
_LOSS_SCALE = re.compile(
    r"current_loss_scale|good_steps|loss_scale_optimizer/(step_counter|dynamic_scale)"
)


def identified(labels: Iterable[str]) -> dict[str, Identity]:
    """Label -> what it is. Slots are told by the variables that are there as well."""
    labels = list(labels)
    centered = any(label.endswith("/RMSProp_2") for label in labels)
    slots = _SLOT_OF | (_CENTERED if centered else {})
    variables = {label for label in labels if not _slot_by_path(label, set(labels), slots)}
    flat = {label.replace("/", "_"): label for label in variables}
    return {label: _identity(label, variables, flat, slots) for label in labels}


def _identity(
    label: str, variables: set[str], flat: dict[str, str], slots: dict[str, str]
) -> Identity:
    last = label.rpartition("/")[2]
    if label.startswith(_UNNAMED):
        # A file of weights alone, without the model: the first two are always these.
        return Identity((), {"0": STEP, "1": RATE}.get(last, last), OTHER_SLOT)
    if special := _special(label, last):
        return Identity((), special)
    owner, slot = (
        _slot_by_path(label, variables, slots)
        or _slot_by_suffix(label, flat)
        or _slot_of_another_name(label, variables)
        or ("", "")
    )
    *layer, role = (owner or label).split("/")
    return Identity(tuple(layer), _ROLES.get(role, role), slot)


def _special(label: str, last: str) -> str | None:
    """The role of what belongs to no layer; a second optimizer's names end in a number."""
    without_number = re.sub(r"_\d+$", "", last)
    if last in _SPECIAL or without_number in ("beta1_power", "beta2_power"):
        return _SPECIAL.get(last, POWER)
    ending = "/".join(label.split("/")[-2:]).lower()
    if _SETTING.fullmatch(ending) or _LOSS_SCALE.fullmatch(label):
        return SETTING
    return None


def _slot_by_path(label: str, labels: set[str], slots: dict[str, str]) -> tuple[str, str] | None:
    """`hidden/kernel/Adam` -> (`hidden/kernel`, slot); also below a scope of its own.

    Keras 2 puts the optimizer first: `SGD/hidden/kernel/momentum`.
    """
    owner, _, name = label.rpartition("/")
    if name not in slots:
        return None
    kind = owner.partition("/")[0].lower()
    while owner and owner not in labels:
        owner = owner.partition("/")[2]
    return (owner, _KERAS_SLOTS.get((kind, name), slots[name])) if owner else None


def _slot_by_suffix(label: str, flat: dict[str, str]) -> tuple[str, str] | None:
    """`adam/hidden_kernel_momentum` -> (`hidden/kernel`, slot)."""
    optimizer, _, rest = label.rpartition("/")
    kind = optimizer.rpartition("/")[2].lower().replace("_", "")  # rm_sprop
    for name, slot in _SLOT_OF.items():
        owner = flat.get(rest.removesuffix(f"_{name}"))
        if rest.endswith(f"_{name}") and owner and owner != label:
            return owner, _KERAS_SLOTS.get((kind, name), slot)
    return None


def _slot_of_another_name(label: str, variables: set[str]) -> tuple[str, str] | None:
    """`hidden/kernel/MyAdam` -> (`hidden/kernel`, its slot): a name below that of a variable.

    TF1 names a slot so, by the name that the optimizer was given.
    """
    owner, _, name = label.rpartition("/")
    return (owner, f"{OTHER_SLOT}: {name}") if owner in variables else None


def tf1_name(identity: Identity, name: str, centered: bool = False) -> str:
    """Its name in TF1, from the label of the variable that it belongs to.

    Args:
        centered: The slots of RMSProp are three.

    Raises:
        CheckpointError: It cannot be told which slot it is.
    """
    names = {"momentum": "Adam", "velocity": "Adam_1", "accumulation": "Momentum"}
    if centered:
        names |= {slot: slot_name for slot_name, slot in _CENTERED.items()}
    if identity.role == STEP:
        return "global_step"
    if not identity.slot:
        return name
    if identity.slot not in _SLOTS:
        raise CheckpointError(
            f"{name} belongs to an optimizer that the file does not name; give --model, the "
            "function that builds the model"
        )
    return f"{name}/{names.get(identity.slot) or _SLOTS[identity.slot][0]}"
