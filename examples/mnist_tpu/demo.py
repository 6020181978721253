"""Trains the TF 1.x program mnist_tpu.py on emulated TPU cores of today's TensorFlow.

It makes the data, trains, evaluates on held-out digits, predicts them, and draws one picture:
the loss against the one that the real TPUEstimator had, and digits as the program read them.

example:
    python examples/mnist_tpu/demo.py --out=/tmp/mnist_demo --num_cores=8

Exits with 1 when fewer than 97% of the held-out digits are read correctly.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

GOLDEN_CURVE = Path(__file__).parent / "golden" / "curve" / "case.json"
WANTED_ACCURACY = 0.97
# Training steps per execution. SummarySaverHook writes the loss of every second execution.
ITERATIONS = 5
SMOOTHED_STEPS = 50


def main():
    args = parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"Training {args.train_steps} steps on {args.num_cores} emulated TPU cores ...")
    run = run_program(args)

    golden = json.loads(GOLDEN_CURVE.read_text())
    picture = args.out / "demo.png"
    draw(picture, run, golden)

    accuracy = float(run["metrics"]["accuracy"])
    was = golden["evaluate"]["accuracy"]
    print(f"Trained in {run['seconds']:.0f} s; final loss {run['losses'][-1]:.4f}.")
    print(f"Held-out accuracy: {accuracy:.1%} (the real TPUEstimator, TF 1.15: {was:.1%}).")
    print(f"Checkpoints and TensorBoard summaries: {run['model_dir']}")
    print(f"Picture: {picture}")
    if accuracy < WANTED_ACCURACY:
        print(f"That is less than {WANTED_ACCURACY:.0%}.", file=sys.stderr)
        return 1
    return 0


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("mnist_demo"),
        metavar="DIR",
        help="directory for data, checkpoints and demo.png (default: %(default)s)",
    )
    parser.add_argument(
        "--num_cores",
        type=int,
        default=8,
        choices=(1, 2, 4, 8),
        help="emulated TPU cores; they share the batch of 64 (default: %(default)s)",
    )
    parser.add_argument(
        "--train_steps",
        type=int,
        default=600,
        metavar="N",
        help="training steps (default: %(default)s)",
    )
    return parser.parse_args()


def run_program(args):
    """Trains, evaluates and predicts with mnist_tpu.py's own functions; returns what came out."""
    import estimator2strategy as e2s

    e2s.emulate_tpu(num_cores=args.num_cores)  # before TensorFlow starts its devices

    # Warnings of removed names are not news here.
    warnings.filterwarnings("ignore", message="`tf.layers")
    import make_data
    import mnist_tpu
    import tensorflow as tf

    data_dir = args.out / "data"
    make_data.write_digits(str(data_dir))
    model_dir = tempfile.mkdtemp(prefix="model_", dir=args.out)
    mnist_tpu.FLAGS(
        [
            "mnist_tpu.py",
            "--use_tpu=True",
            f"--iterations={ITERATIONS}",
            f"--data_dir={data_dir}",
            f"--model_dir={model_dir}",
            f"--train_steps={args.train_steps}",
        ]
    )

    estimator = mnist_tpu.build_estimator()
    start = time.time()
    estimator.train(mnist_tpu.train_input_fn, max_steps=args.train_steps)
    seconds = time.time() - start
    metrics = estimator.evaluate(mnist_tpu.eval_input_fn, steps=mnist_tpu.FLAGS.eval_steps)
    predicted = [digit["class"] for digit in estimator.predict(mnist_tpu.predict_input_fn)]

    mnist_tpu.tf.logging.set_verbosity(mnist_tpu.tf.logging.ERROR)
    steps, losses = read_losses(mnist_tpu.tf, model_dir)
    _, (images, labels) = make_data.split_digits()
    return {
        "title": f"{args.num_cores} emulated TPU cores, TensorFlow {tf.__version__}",
        "model_dir": model_dir,
        "seconds": seconds,
        "metrics": metrics,
        "steps": steps,
        "losses": losses,
        "images": images,
        "labels": labels,
        "predicted": np.array(predicted),
    }


def read_losses(tf, model_dir):
    """Returns steps and losses of the TensorBoard summaries: two arrays."""
    by_step = {}
    for path in sorted(Path(model_dir).glob("events.out.tfevents.*")):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag == "loss":
                    by_step[event.step] = value.simple_value
    steps = sorted(by_step)
    return np.array(steps), np.array([by_step[step] for step in steps])


def draw(path, run, golden):
    """Draws `run` (see `run_program`) beside the recorded `golden` and saves it to `path`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(13, 5.6), layout="constrained")
    figure.suptitle("mnist_tpu.py, a TF 1.x TPUEstimator program, unchanged", fontsize=14)
    left, right = figure.subfigures(1, 2, width_ratios=(1.05, 1))
    draw_losses(left.subplots(), run, golden)
    draw_digits(right, run)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_losses(axes, run, golden):
    recorded = np.array(golden["losses"])
    recorded_steps = np.arange(1, len(recorded) + 1)
    version = golden["versions"]["tensorflow"]
    axes.plot(recorded_steps, recorded, color="tab:gray", alpha=0.3, linewidth=0.8)
    axes.plot(
        *smooth(recorded_steps, recorded),
        color="black",
        linewidth=2,
        label=f"recorded: real TPUEstimator, TensorFlow {version}",
    )
    axes.plot(run["steps"], run["losses"], ".", color="tab:orange", markersize=4, alpha=0.5)
    axes.plot(
        *smooth(run["steps"], run["losses"]),
        color="tab:orange",
        linewidth=2,
        label=f"here: {run['title']}",
    )
    axes.set_yscale("log")
    axes.set_xlabel("training step")
    axes.set_ylabel(f"training loss (lines: mean over {SMOOTHED_STEPS} steps)")
    axes.set_title(
        f"held-out accuracy: {golden['evaluate']['accuracy']:.1%} recorded,"
        f" {run['metrics']['accuracy']:.1%} here",
        fontsize=11,
    )
    axes.legend()
    axes.grid(alpha=0.3)


def smooth(steps, values):
    """Returns the running mean over SMOOTHED_STEPS, each at the middle step of its window."""
    width = max(1, np.searchsorted(steps, steps[0] + SMOOTHED_STEPS))
    window = np.full(width, 1.0 / width)
    return np.convolve(steps, window, "valid"), np.convolve(values, window, "valid")


def draw_digits(figure, run, rows=5, columns=8):
    """Draws held-out digits with the predicted label: misread ones first, in red."""
    wrong = run["predicted"] != run["labels"]
    shown = np.argsort(~wrong, kind="stable")[: rows * columns]
    figure.suptitle(
        f"{np.sum(~wrong)} of {len(wrong)} held-out digits read correctly"
        + (f"; the {wrong.sum()} others in red" if wrong.any() else ""),
        fontsize=11,
    )
    for axes, index in zip(figure.subplots(rows, columns).flat, shown):
        axes.imshow(run["images"][index], cmap="gray_r")
        axes.set_xticks([])
        axes.set_yticks([])
        label = f"{run['predicted'][index]}"
        if wrong[index]:
            label += f", is {run['labels'][index]}"
            for spine in axes.spines.values():
                spine.set(color="red", linewidth=2)
        axes.set_title(label, fontsize=10, color="red" if wrong[index] else "black")


if __name__ == "__main__":
    sys.exit(main())
