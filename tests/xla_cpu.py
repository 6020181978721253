"""Executes XLA's program of a core's step: on XLA's CPU devices, one for each core.

    module = lower(program)                 # the bytes that a TPU's compiler is given
    after = execute(program, module, batches, variables)
    after.outputs["loss:0"], after.variables["weights"]     # of each core

The client is jaxlib's, without JAX: PJRT's for CPUs, on which all-reduces meet as on a TPU. It
takes programs as StableHLO, so the bytes are translated first; nothing is traced or lowered again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.replay.xla.core import CoreProgram


@dataclasses.dataclass(frozen=True)
class Executed:
    """A step that was run; everything by the recorded name, with one value for each core.

    Attributes:
        outputs: The tensors that the program returns.
        variables: The variables that the step has changed.
    """

    outputs: dict[str, list[np.ndarray]]
    variables: dict[str, list[np.ndarray]]


def execute(
    program: CoreProgram,
    module: bytes,
    batches: Sequence[Sequence[np.ndarray]],
    variables: Mapping[str, np.ndarray],
) -> Executed:
    """Runs one step on all cores.

    Args:
        program: The program that was lowered.
        module: What `lower` made of it.
        batches: Of each core, its part of the batch, in the order of `program.feeds`.
        variables: The values of the program's variables before the step, the same on all cores.
    """
    values = [variables[name] for name in program.variables]
    results = run(module, [[*batch, *values] for batch in batches])
    first = len(program.feeds)
    changed = {
        entry.output_shape_index[0]: program.variables[entry.parameter_number - first]
        for entry in _tf_private.HloModule.FromString(module).input_output_alias.entries
    }
    outputs = [result for index, result in enumerate(results) if index not in changed]
    return Executed(
        dict(zip(program.outputs, outputs, strict=True)),
        {name: results[index] for index, name in changed.items()},
    )


def run(module: bytes, arguments: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """Runs a program on as many devices as there are lists of arguments.

    Args:
        module: A serialised HloModuleProto.
        arguments: Of each device, the values of the program's parameters.

    Returns:
        For each result of the program, its value on each device.
    """
    pytest.importorskip("jaxlib", minversion="0.10")
    from jaxlib import _jax, xla_client

    replicas = len(arguments)
    client = xla_client.make_cpu_client(num_devices=replicas)
    devices = xla_client.DeviceList(tuple(client.devices()))
    options = xla_client.CompileOptions()
    options.num_replicas = replicas
    options.device_assignment = xla_client.DeviceAssignment.create(
        np.arange(replicas).reshape(replicas, 1)
    )
    # The one private name: no public function takes a HloModuleProto.
    stablehlo = _jax.mlir.hlo_to_stablehlo(module)
    executable = client.compile_and_load(stablehlo, devices, options)

    def whole(*places: Any) -> Any:
        """The sharding of arrays that are whole on each device."""
        places = xla_client.DeviceList(places)
        return xla_client.GSPMDSharding(places, xla_client.HloSharding.replicate())

    def on_devices(values: Sequence[np.ndarray]) -> Any:
        arrays = [np.array(value, order="C") for value in values]
        kind = _Kind(arrays[0].shape, arrays[0].dtype)
        # Put one by one: an array that is whole on all devices would have the first one's values.
        parts = [
            xla_client.batched_device_put(kind, whole(device), [array], [device], enable_x64=True)
            for device, array in zip(client.devices(), arrays, strict=True)
        ]
        everywhere = whole(*client.devices())
        return xla_client.ArrayImpl(kind, everywhere, parts, committed=True, _skip_checks=True)

    results = executable.execute_sharded([on_devices(values) for values in zip(*arguments)])
    return [
        [np.array(value) for value in of_devices]
        for of_devices in results.disassemble_into_single_device_arrays()
    ]


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What an array of jaxlib's is asked about itself."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool = False
