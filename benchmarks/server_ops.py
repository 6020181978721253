"""Processor time of what a step with parameter servers is made of, in two versions of TensorFlow.

    python -m benchmarks.server_ops --legacy-python /envs/tf215/bin/python --rounds 5

TensorFlow alone, without this package: kernels on tables of server_ranker.py, each with as many
rows as a step of it has, and tensors that go from one server to another. The versions take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

ROWS, DIMENSIONS, TAKEN, TENSORS = 1_000_000, 32, 1344, 10
SENT = f"{TENSORS} small tensors sent"
BLOCKS, RUNS = 12, 50


def kernels() -> dict[str, float]:
    """Name of a kernel -> milliseconds of a run, less those of a run of nothing."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    rng = np.random.default_rng(0)
    picks = [rng.choice(ROWS, TAKEN, replace=False).astype(np.int32) for _ in range(16)]
    ops, shape = tf.raw_ops, [ROWS, DIMENSIONS]
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int32, [TAKEN])
        rows = tf.constant(rng.normal(0.0, 0.001, [TAKEN, DIMENSIONS]).astype(np.float32))
        table, slot = (
            ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name=name)
            for name in ("table", "slot")
        )
        for resource in (table, slot):
            value = tf.fill(shape, tf.constant(0.1))
            session.run(ops.AssignVariableOp(resource=resource, value=value))
        on_table = {"resource": table, "indices": ids}
        found = {
            "nothing": ids + 0,
            "ResourceGather": ops.ResourceGather(**on_table, dtype=tf.float32),
            "Unique": tf.unique(ids).idx,
            "UnsortedSegmentSum": tf.math.unsorted_segment_sum(rows, ids % TAKEN, TAKEN),
            "ResourceScatterAdd": ops.ResourceScatterAdd(**on_table, updates=rows),
            "ResourceSparseApplyAdagrad": ops.ResourceSparseApplyAdagrad(
                var=table, accum=slot, lr=0.05, grad=rows, indices=ids
            ),
        }
        runs = {
            name: session.make_callable(getattr(op, "op", op), feed_list=[ids])
            for name, op in found.items()
        }
        return milliseconds(runs, [[each] for each in picks])


def sent() -> dict[str, float]:
    """Milliseconds that it takes both servers, which are in this process but talk by gRPC."""
    import tensorflow.compat.v1 as tf

    cluster = {job: [f"localhost:{free_port()}"] for job in ("ps", "worker")}
    servers = [tf.distribute.Server(cluster, job) for job in cluster]
    runs = {}
    with tf.Graph().as_default(), tf.Session(servers[1].target) as session:
        for name, job in (("nothing", "worker"), (SENT, "ps")):
            with tf.device(f"/job:{job}"):
                made = [tf.random.uniform([16]) for _ in range(TENSORS)]
            with tf.device("/job:worker"):
                taken = tf.group(*[tf.identity(each) for each in made])
            runs[name] = session.make_callable(taken)
        return milliseconds(runs, [[]])


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as free:
        return free.getsockname()[1]


def milliseconds(runs: dict, feeds: list[list]) -> dict[str, float]:
    """Processor time of a run, of all threads, less that of "nothing".

    Blocks of runs take turns, and the least is taken: other load only adds to processor time.
    """
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(BLOCKS):
        for name, run in runs.items():
            began = time.process_time()
            for index in range(RUNS):
                run(*feeds[index % len(feeds)])
            least[name] = min(least[name], 1000 * (time.process_time() - began) / RUNS)
    nothing = least.pop("nothing")
    return {name: each - nothing for name, each in least.items()}


def sample() -> None:
    """Prints the times of this process's TensorFlow, as JSON."""
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    print(json.dumps({**kernels(), **sent()}), flush=True)
    os._exit(0)  # a server has no other end


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--legacy-python", help="a Python with TensorFlow 2.15")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sample", action="store_true", help="measure this Python's own")
    args = parser.parse_args()
    if args.sample:
        sample()
    quiet = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    pythons = [args.legacy_python, sys.executable]
    rounds = []
    for _ in range(args.rounds):
        commands = [[python, __file__, "--sample"] for python in pythons]
        rounds.append([json.loads(subprocess.check_output(each, env=quiet)) for each in commands])
    print(f"{'milliseconds of processor time':36} legacy   now  ratio")
    for name in rounds[0][0]:
        legacy, now = (statistics.median(pair[i][name] for pair in rounds) for i in (0, 1))
        print(f"{name:36} {legacy:6.2f} {now:5.2f} {now / legacy:6.1f}")


if __name__ == "__main__":
    main()
