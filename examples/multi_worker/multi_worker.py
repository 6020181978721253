"""Two processes that train one legacy model together over loopback, and one that does it alone.

    python examples/multi_worker/multi_worker.py --out=/tmp/multi_worker

Exits with 1 when their losses differ by more than 0.0001.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir))
import shared

TOLERANCE = 1e-4


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run(out, workers, steps):
    """Returns the losses that the chief saw, and its accuracy."""
    model_dir = os.path.join(out, f"{workers}_workers")
    shutil.rmtree(model_dir, ignore_errors=True)
    addresses = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    command = [sys.executable, os.path.join(HERE, "digits.py"), f"--train_steps={steps}"]
    processes = []
    for index in range(workers):
        environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
        folder = model_dir
        if workers > 1:
            cluster = {"chief": addresses[:1], "worker": addresses[1:]}
            task = (
                {"type": "worker", "index": index - 1} if index else {"type": "chief", "index": 0}
            )
            environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
            folder = f"{model_dir}_{index}" if index else model_dir
        processes.append(
            subprocess.Popen(
                [*command, f"--model_dir={folder}"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    printed = [process.communicate() for process in processes]
    for process, (_, errors) in zip(processes, printed):
        if process.returncode:
            sys.exit(f"A worker failed:\n{errors[-3000:]}")
    accuracy = json.loads(printed[0][0].splitlines()[-1])["accuracy"]
    return shared.event_losses(model_dir), accuracy


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="multi_worker", help="where all goes")
    parser.add_argument("--train_steps", type=int, default=200, help="number of steps")
    args = parser.parse_args(argv)
    os.makedirs(args.out, exist_ok=True)
    alone, accuracy = run(args.out, 1, args.train_steps)
    together, of_both = run(args.out, 2, args.train_steps)
    difference = shared.largest_difference(alone, together)
    print(f"Held-out digits: {accuracy:.1%} alone, {of_both:.1%} together")
    print(f"Largest difference of the losses: {difference:.1e}")
    named = {"one process": alone, "two processes": together}
    title = f"held-out digits: {accuracy:.1%} alone, {of_both:.1%} together"
    path = os.path.join(args.out, "multi_worker.png")
    shared.pictures(path, "Two workers on loopback", [shared.curves(named, title=title)])
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
