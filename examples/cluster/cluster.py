"""Starts ranker.py as a job with a parameter server, on this machine, with one and two workers.

    python examples/cluster/cluster.py --out=/tmp/cluster

Shows the logs of all processes side by side, and draws the chief's loss against time. With
`--python=/envs/tf115/bin/python` the processes run TensorFlow 1.15, of the same file.

Exits with 1 when a process of a job fails.
"""

import argparse
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir))
import shared

COLOURS = {"chief": 36, "worker": 32, "ps": 35, "evaluator": 33}
# Lines of a log that are shown: the rest is in the files beside the picture.
SHOWN = ("loss = ", "global_step/sec", "Saving", "Waiting", "Error", "error", "ended")
SMOOTHED = 4  # summaries
# absl's copy of a line that TensorFlow has logged, as in TF 1.15.
AGAIN = re.compile(r"[IWE]\d{4} ")


def cluster_of(workers):
    """A cluster on free ports."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(workers + 2)]
    addresses = ["localhost:%d" % each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return {"ps": addresses[:1], "chief": addresses[1:2], "worker": addresses[2:]}


def start(job, index, cluster, args, model_dir):
    """A process of the job; its log goes to a file, and in part to the terminal."""
    task = {"cluster": cluster, "task": {"type": job, "index": index}}
    command = [sys.executable, "-m", "estimator2strategy", "run"]
    if args.python:
        command = [args.python]
    process = subprocess.Popen(
        [
            *command,
            os.path.join(HERE, "ranker.py"),
            f"--model_dir={model_dir}",
            f"--max_steps={args.max_steps}",
            f"--seed={index + (job == 'chief')}",
        ],
        env={**os.environ, "TF_CONFIG": json.dumps(task), "CUDA_VISIBLE_DEVICES": "-1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    name = f"{job} {index}"
    path = os.path.join(os.path.dirname(model_dir), f"{name.replace(' ', '_')}.log")
    threading.Thread(target=show, args=(process, name, path), daemon=True).start()
    return process


def show(process, name, path):
    label = f"{name:<11}"
    if sys.stdout.isatty():
        label = f"\033[{COLOURS[name.split()[0]]}m{label}\033[0m"
    with open(path, "w") as log:
        for line in process.stdout:
            log.write(line)
            log.flush()
            if any(words in line for words in SHOWN) and not AGAIN.match(line):
                print(f"{label} | {line.rstrip()[:140]}", flush=True)


def run(workers, args):
    """Runs a job to its end; returns the folder of its model."""
    folder = os.path.join(args.out, f"{workers}_workers")
    shutil.rmtree(folder, ignore_errors=True)
    model_dir = os.path.join(folder, "model")
    os.makedirs(model_dir)
    cluster = cluster_of(workers)
    print(f"--- chief and {workers} worker(s): TF_CONFIG's cluster is {json.dumps(cluster)}")
    server = start("ps", 0, cluster, args, model_dir)
    tasks = [("chief", 0), ("evaluator", 0)]
    processes = {task: start(*task, cluster, args, model_dir) for task in tasks}
    # In any order would do, but a worker looks only every 30 s whether the chief is ready.
    wait_for_checkpoint(model_dir, processes["chief", 0])
    for index in range(len(cluster["worker"])):
        processes["worker", index] = start("worker", index, cluster, args, model_dir)
    try:
        codes = {task: process.wait() for task, process in processes.items()}
    finally:
        for process in [server, *processes.values()]:
            process.kill()  # a server waits for ever, as it always did
    failed = [f"{job} {index}" for (job, index), code in codes.items() if code]
    if failed:
        print(f"Failed: {', '.join(failed)}; see {folder}/*.log", file=sys.stderr)
        sys.exit(1)
    return model_dir


def wait_for_checkpoint(model_dir, chief):
    while chief.poll() is None and not glob.glob(os.path.join(model_dir, "*.index")):
        time.sleep(0.2)


def losses_by_time(model_dir):
    """Seconds since the first point, and means of the losses that the chief summarized."""
    import tensorflow as tf

    found = []
    for path in sorted(glob.glob(os.path.join(model_dir, "events*"))):
        for event in tf.compat.v1.train.summary_iterator(path):
            values = [value.simple_value for value in event.summary.value if value.tag == "loss"]
            found += [(event.wall_time, value) for value in values]
    found.sort()
    groups = [found[i : i + SMOOTHED] for i in range(0, len(found), SMOOTHED)]
    # The others start after the first checkpoint, so the first summaries are of the chief alone.
    seconds = [group[-1][0] - groups[0][-1][0] for group in groups]
    return seconds, [sum(loss for _, loss in group) / len(group) for group in groups]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True, help="folder for models, logs and the picture")
    parser.add_argument("--max_steps", type=int, default=1500)
    parser.add_argument("--python", help="a Python with TensorFlow 1.15, to run that instead")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    named = {f"chief and {n} worker{'s'[: n - 1]}": losses_by_time(run(n, args)) for n in (1, 2)}

    def draw(axes):
        for name, (seconds, losses) in named.items():
            axes.plot(seconds, losses, label=name)
        axes.set(xlabel="seconds", ylabel="loss of the chief")
        axes.legend()

    shared.pictures(
        os.path.join(args.out, "cluster.png"), f"A ranker, {args.max_steps} steps", [draw]
    )


if __name__ == "__main__":
    main()
