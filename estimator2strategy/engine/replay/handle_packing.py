"""Packs the handles of replicas that share one CPU, as emulated cores do, and sums their values.

A function takes each handle that it uses as an input, as do the loop and the function around it.
TensorFlow would take longer to trace the variables of eight replicas than the step itself. So the
handles of a replica are one tensor on the way to its step. Replicas on one CPU also need no copies
of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.replay.tpu_variables import is_tpu


def share_a_cpu(strategy: tf.distribute.Strategy | None) -> bool:
    """True if there are several replicas, all on the CPU of this machine."""
    if strategy is None or is_tpu(strategy) or strategy.num_replicas_in_sync == 1:
        return False
    used = [tf.DeviceSpec.from_string(name) for name in strategy.extended.worker_devices]
    on_cpus = all(spec.device_type == "CPU" for spec in used)
    return on_cpus and len(used) == strategy.num_replicas_in_sync


def pack(handles: Sequence[tf.Tensor], device: str) -> tf.Tensor:
    """One tensor of several handles of variables on `device`; made outside of all functions."""
    with tf.init_scope(), tf.device(device):
        return tf.stack(handles)


def unpack(packed: tf.Tensor, handles: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The handles in `packed`, which was made of `handles`; called where a function is traced."""
    unpacked: list[tf.Tensor] = tf.unstack(packed)
    for inside, outside in zip(unpacked, handles, strict=True):
        _tf_private.copy_handle_data(outside, inside)  # or reads would be of unknown shape
    return unpacked


def totals(
    strategy: tf.distribute.Strategy, parts: Sequence[Sequence[tf.Tensor]]
) -> list[Sequence[tf.Tensor]]:
    """The sums of the replicas' `parts`, for each replica.

    Args:
        parts: For each replica as many tensors, of which the first ones are added up, and so on.
    """
    if share_a_cpu(strategy):
        with tf.device(strategy.extended.worker_devices[0]):
            return [[tf.add_n(each) for each in zip(*parts, strict=True)]] * len(parts)

    def all_reduce() -> Sequence[tf.Tensor]:
        context = tf.distribute.get_replica_context()
        replica = int(tf.get_static_value(context.replica_id_in_sync_group))
        summands = list(parts[replica])
        sums: list[tf.Tensor] = context.all_reduce(tf.distribute.ReduceOp.SUM, summands)
        return sums

    reduced = map(strategy.experimental_local_results, strategy.run(all_reduce))
    return [list(of_replica) for of_replica in zip(*reduced, strict=True)]
