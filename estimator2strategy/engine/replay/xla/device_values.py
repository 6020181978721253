"""The values of variables on devices of JAX, beside TensorFlow's variables on the host.

    values = DeviceValues(state, devices, Precision.DEFAULT)
    arrays = values.take(["w", "b"])           # to the devices, if they are not there
    values.put(["w", "b"], arrays, changed=[0])  # the host has an old w now
    values.to_host(["w"])                      # until somebody there reads it

A value is copied only when the other side needs it: between blocks of a training nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator2strategy.engine.plan.rewrites import SEED_STRIDE
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.xla.block import REPLICAS
from estimator2strategy.engine.replay.xla.target import Precision


class DeviceValues:
    """The values of a state's variables on the devices of a mesh.

    Args:
        state: TensorFlow's variables; one copy of each, for the host.
        devices: The devices of JAX; each has all variables, and is a replica. Those of a host are
            in a row.
        precision: Of float32 products on them.
        checks: True if steps watch for failures that XLA does not report.

    Attributes:
        mesh: The devices, on one axis.
        precision, checks: As above.
        here: The numbers of the replicas of this host.
        have_run: True if a program has changed them.
        steps, programs: Steps as functions of JAX, and compiled programs of them, which the engines
            of several requests share.
    """

    def __init__(
        self, state: State, devices: Sequence[Any], precision: Precision, checks: bool = False
    ):
        self._state = state
        self.mesh = Mesh(np.array(devices), (REPLICAS,))
        self.precision = precision
        self.checks = checks
        me = jax.process_index()
        mine = [i for i, device in enumerate(devices) if device.process_index == me]
        self.here = range(mine[0], mine[-1] + 1)
        self.have_run = False
        self.steps: dict[tuple[Any, ...], Any] = {}
        self.programs: dict[tuple[Any, ...], Any] = {}
        self._everywhere = NamedSharding(self.mesh, PartitionSpec())
        self._of_each = NamedSharding(self.mesh, PartitionSpec(REPLICAS))
        self._values: dict[str, Any] = {}
        self._newer: set[str] = set()  # than on the host
        # By the id of a block of random streams: it, and the places in it.
        self._places: dict[int, tuple[tf.Variable, Any]] = {}

    @property
    def replicas(self) -> int:
        return int(self.mesh.devices.size)

    @property
    def of_several_hosts(self) -> bool:
        """True if other processes have some of the devices."""
        return len(self.here) < self.replicas

    @property
    def shardings_of_results(self) -> tuple[NamedSharding, NamedSharding]:
        """(that of variables and of what every host needs, that of random streams)."""
        return self._everywhere, self._of_each

    @property
    def platform(self) -> str:
        """The name of JAX's platform: cpu, gpu, tpu."""
        platform: str = self.mesh.devices.flat[0].platform
        return platform

    def take(self, nodes: Sequence[str]) -> list[Any]:
        """The arrays of variables, to be given to a program that uses up their memory.

        Args:
            nodes: VarHandleOps. `put` must follow for all of them.
        """
        missing = [node for node in nodes if node not in self._values]
        # No copy: TensorFlow writes to no memory that somebody else holds, and JAX gives none away
        # that is not its own.
        host = [np.asarray(self._state.variable(node).read_value()) for node in missing]
        self._values.update(zip(missing, self._on_all(host), strict=True))
        return [self._values.pop(node) for node in nodes]

    def _on_all(self, host: Sequence[np.ndarray]) -> Sequence[Any]:
        """Arrays of which each device has all; several hosts have the same values already."""
        if not self.of_several_hosts:
            arrays: Sequence[Any] = jax.device_put(host, self._everywhere)
            return arrays
        return [jax.make_array_from_process_local_data(self._everywhere, value) for value in host]

    def _of_each_replica(self, sharding: NamedSharding, of_mine: np.ndarray) -> Any:
        """The array of which each replica has a part; the host gives those of its own."""
        if not self.of_several_hosts:
            return jax.device_put(of_mine, sharding)
        return jax.make_array_from_process_local_data(sharding, of_mine)

    def put(self, nodes: Sequence[str], arrays: Sequence[Any], changed: Iterable[int]) -> None:
        """Keeps the values of variables after a block.

        Args:
            nodes: As for `take`.
            arrays: A value for each.
            changed: The numbers of those that the block may have changed.
        """
        self.have_run = True
        self._values.update(zip(nodes, arrays, strict=True))
        self._newer.update(nodes[number] for number in changed)

    def read(self, node: str) -> np.ndarray:
        """The value of one variable."""
        return np.asarray(self._values[node])

    def to_host(self, nodes: Iterable[str]) -> None:
        """Gives TensorFlow's variables the values that the devices have."""
        for node in self._newer.intersection(nodes):
            self._state.variable(node).assign(self.read(node), read_value=False)
            self._newer.discard(node)

    def forget(self, nodes: Iterable[str]) -> None:
        """Drops the values of variables that the host has written."""
        for node in nodes:
            self._values.pop(node, None)
            self._newer.discard(node)

    def give_back(self) -> None:
        """Gives the host all values, and drops them here: others share its variables."""
        self.to_host(list(self._newer))
        self.clear()

    def clear(self) -> None:
        """Drops all values."""
        self._values.clear()
        self._newer.clear()
        self.have_run = False

    def take_streams(self, blocks: Sequence[tf.Variable]) -> list[Any]:
        """The places of random ops in their streams: one for each replica, on a mesh of several.

        Replica 0 draws what one device would.
        """
        kept = [self._places.pop(id(block), (block, None))[1] for block in blocks]
        return [
            self._from_host(block) if place is None else place
            for block, place in zip(blocks, kept, strict=True)
        ]

    def _from_host(self, block: tf.Variable) -> Any:
        place = block.numpy()
        if self.replicas == 1:
            return jax.device_put(place, self._everywhere)
        shifts = np.array(self.here, np.int64)[:, None, None] * [[[0, SEED_STRIDE]]]
        return self._of_each_replica(self._of_each, place + shifts)

    def put_streams(self, blocks: Sequence[tf.Variable], places: Sequence[Any]) -> None:
        """Keeps the places of random ops after a launch; `streams_to_host` must follow."""
        for block, place in zip(blocks, places, strict=True):
            self._places[id(block)] = block, place

    def streams_to_host(self) -> None:
        """Gives TensorFlow's variables the places that the devices have got to."""
        for block, place in self._places.values():
            block.assign(self._of_replica_0(place), read_value=False)
        self._places.clear()

    def _of_replica_0(self, place: Any) -> np.ndarray:
        if self.replicas == 1:
            return np.asarray(place)
        mine = min(place.addressable_shards, key=lambda shard: shard.index[0].start or 0)
        shift = np.array([[0, self.here[0] * SEED_STRIDE]], np.int64)
        of_0: np.ndarray = np.asarray(mine.data)[0] - shift
        return of_0

    def deal_out(self, stacked: Sequence[np.ndarray]) -> Sequence[Any]:
        """Puts the batches of some steps on the devices.

        Args:
            stacked: Feeds: [steps, ...], or on a mesh of several [steps, replicas of this host,
                ...].
        """
        if not stacked:
            return []
        parts = PartitionSpec() if self.replicas == 1 else PartitionSpec(None, REPLICAS)
        sharding = NamedSharding(self.mesh, parts)
        if self.of_several_hosts:
            return [self._of_each_replica(sharding, of_feed) for of_feed in stacked]
        batches: Sequence[Any] = jax.device_put(stacked, sharding)
        return batches
