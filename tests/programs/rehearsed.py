"""`e2s run` on a machine with a TPU, for which `tests/rehearsal.py` stands.

python rehearsed.py 1x8 PROGRAM --flag     # one host of eight cores
"""

from __future__ import annotations

import sys

import tensorflow as tf

from estimator2strategy.engine.runtime import devices
from estimator2strategy.legacy import run
from tests.rehearsal import rehearsal

if __name__ == "__main__":
    _, machine, *arguments = sys.argv
    num_hosts, cores_per_host = map(int, machine.split("x"))
    devices.split_cpu(num_hosts * cores_per_host, "The rehearsal")
    tf.config.list_logical_devices()
    with rehearsal(num_hosts, cores_per_host):
        run.main(arguments)
