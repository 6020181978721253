"""Runs the digits at every stage of the ladder, from one checkpoint, and draws them side by side.

    python examples/ladder/ladder.py --out=/tmp/ladder

Exits with 1 when the losses of a stage differ from those of stage 1 by more than 0.0005.
"""

import argparse
import csv
import glob
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
STAGES = {
    1: "unchanged, by e2s run",
    2: "the import changed",
    3: "Keras metrics",
    4: "datasets for a strategy, fit",
    5: "Keras optimizer",
    6: "Keras layers",
    7: "keras.Model and fit",
    8: "without the package",
}
# Keras computes the powers of Adam's betas anew at each step, in float32, where TF1 kept products.
TOLERANCE = 5e-4
# Losses are compared as means over so many steps: what Keras's fit reports of an epoch.
STEPS_OF_A_POINT = 10


def main():
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    stages = {stage: run_stage(stage, args) for stage in args.stages}
    first = stages[args.stages[0]]
    worst = 0.0
    print("stage  largest difference  accuracy  seconds")
    for stage, found in stages.items():
        found["difference"] = float(np.abs(found["losses"] - first["losses"]).max())
        worst = max(worst, found["difference"])
        print(
            f"{stage:5}  {found['difference']:18.2e}  {found['accuracy']:8.1%}"
            f"  {found['seconds']:7.0f}  {STAGES[stage]}"
        )
    draw(args.out / "ladder.png", stages)
    print(f"Picture: {args.out / 'ladder.png'}")
    return 0 if worst <= TOLERANCE else 1


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("ladder"), help="where all goes")
    parser.add_argument("--train_steps", type=int, default=100, help="a multiple of 10")
    parser.add_argument(
        "--stages", type=int, nargs="+", default=list(STAGES), choices=list(STAGES), metavar="N"
    )
    return parser.parse_args(argv)


def run_stage(stage, args):
    """Runs one stage in a process of its own.

    Returns:
        losses (mean of each ten steps), accuracy (on held-out digits), seconds.
    """
    print(f"Stage {stage}: {STAGES[stage]} ...", flush=True)
    data_dir, model_dir = args.out / "data", args.out / f"stage_{stage}"
    start = started(args)
    shutil.rmtree(model_dir, ignore_errors=True)
    if stage <= 6:
        shutil.copytree(start, model_dir)
    flags = [f"--data_dir={data_dir}", f"--model_dir={model_dir}"]
    flags.append(f"--train_steps={args.train_steps}")
    if stage == 7:
        flags.append(f"--init_checkpoint={start}")
    if stage == 8:
        if not (args.out / "stage_7" / "start.weights.h5").exists():
            run_stage(7, args)
        flags.append(f"--init_weights={args.out / 'stage_7' / 'start.weights.h5'}")
    began = time.time()
    execute(stage, flags)
    losses = from_csv(model_dir / "losses.csv") if stage >= 4 else from_events(model_dir)
    accuracy = json.loads((model_dir / "results.json").read_text())["accuracy"]
    return {"losses": losses, "accuracy": accuracy, "seconds": time.time() - began}


def started(args):
    """The folder with the checkpoint of step 0 that all stages start from; made at first."""
    start = args.out / "start"
    if not start.exists():
        import make_data

        make_data.write_digits(args.out / "data")
        made = args.out / "first_step"
        flags = [f"--data_dir={args.out / 'data'}", f"--model_dir={made}", "--train_steps=1"]
        execute(1, flags)
        start.mkdir()
        for path in glob.glob(str(made / "model.ckpt-0.*")):
            shutil.copy(path, start)
        (start / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-0"\n')
    return start


def execute(stage, flags):
    program = str(HERE / f"stage_{stage}.py")
    command = [sys.executable, program, *flags]
    if stage == 1:
        command = [sys.executable, "-m", "estimator2strategy", "run", program, *flags]
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")


def from_csv(path):
    """The loss of each epoch of ten steps."""
    with open(path) as file:
        return np.array([float(row["loss"]) for row in csv.DictReader(file)])


def from_events(model_dir):
    """The same of an Estimator's summaries, which have the loss of each step."""
    import tensorflow as tf

    losses = {}
    for path in sorted(glob.glob(str(model_dir / "events*"))):
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag == "loss":
                    losses[event.step] = value.simple_value
    in_order = np.array([losses[step] for step in sorted(losses)])
    return in_order.reshape(-1, STEPS_OF_A_POINT).mean(axis=1)


def draw(path, stages):
    """Draws the losses of all stages, and how far each is from the first."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    first = next(iter(stages.values()))["losses"]
    steps = STEPS_OF_A_POINT * (1 + np.arange(len(first)))
    markers = "os^vDP*X"
    for (stage, found), marker in zip(stages.items(), markers):
        label = f"{stage}: {STAGES[stage]}"
        size = 13 - stage  # later stages on top, smaller, so that all can be seen
        left.plot(steps, found["losses"], marker=marker, ms=size, lw=1, alpha=0.7, label=label)
    left.set(xlabel="training step", ylabel=f"loss (mean of {STEPS_OF_A_POINT} steps)")
    left.set_title("One program at eight stages, from one checkpoint", fontsize=11)
    left.legend(fontsize=8)
    names = [str(stage) for stage in stages]
    differences = [max(found["difference"], 1e-9) for found in stages.values()]
    right.bar(names, differences, color="tab:blue")
    right.axhline(TOLERANCE, color="tab:red", ls="--", label="allowed")
    right.set(yscale="log", xlabel="stage", ylabel="largest difference of the loss to the first")
    right.set_ylim(1e-9, 1e-2)
    for bar, found in enumerate(stages.values()):
        right.text(bar, differences[bar] * 1.4, f"{found['accuracy']:.1%}", ha="center", fontsize=8)
    right.set_title("Differences (numbers: held-out accuracy)", fontsize=11)
    right.legend(fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())
