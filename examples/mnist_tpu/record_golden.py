"""Records what the real TPUEstimator does with mnist_tpu.py; golden/README.md has the commands.

    python make_data.py --data_dir=/tmp/digits
    taskset -c 0 python record_golden.py parity --data_dir=/tmp/digits --out=golden/parity

Meant for TensorFlow 1.15, on a CPU with one thread. Other versions can run it too, from the
recorded step-0 checkpoint (`--init golden/parity/init`), to be compared with the golden.
"""

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile

import mnist_tpu
import numpy as np

tf = mnist_tpu.tf

# Flags of the program, on top of --data_dir and --model_dir.
CASES = {
    "parity": ["--use_tpu=False", "--train_steps=20", "--dropout=0", "--shuffle=False"],
    "curve": ["--use_tpu=False", "--train_steps=600"],
}
ONE_THREAD = tf.ConfigProto(
    allow_soft_placement=True, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
)


class LossRecorder(tf.train.SessionRunHook):
    """Keeps the loss of every session run; with use_tpu=False that is every step."""

    def begin(self):
        self.losses = []
        self._loss = tf.losses.get_losses()[0]

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.losses.append(run_values.results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--data_dir", required=True, help="what make_data.py wrote")
    parser.add_argument("--out", required=True, help="directory to write the golden to")
    parser.add_argument("--init", help="directory with a step-0 checkpoint; default: a new one")
    args = parser.parse_args()

    scratch = tempfile.mkdtemp()
    try:
        record(args.case, args.data_dir, args.out, args.init, scratch)
    finally:
        shutil.rmtree(scratch)


def record(case, data_dir, out, init, scratch):
    """Runs `case` in the empty directory `scratch` and writes case.json (and checkpoints)."""
    model_dir = os.path.join(scratch, "model")
    flags = ["--data_dir=" + data_dir, "--model_dir=" + model_dir]
    mnist_tpu.FLAGS([sys.argv[0]] + flags + CASES[case])

    steps = mnist_tpu.FLAGS.train_steps
    if case == "parity":
        if init is None:
            init = os.path.join(scratch, "init")
            write_initial_checkpoint(init)
        copy_checkpoint(init, 0, model_dir)
        copy_checkpoint(init, 0, os.path.join(out, "init"))
    golden = run_program(model_dir)
    if case == "parity":
        copy_checkpoint(model_dir, steps, os.path.join(out, "final"))
        golden["continued_losses"] = train(mnist_tpu.build_estimator(ONE_THREAD), 2 * steps)

    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "case.json"), "w") as case_file:
        json.dump(dict(golden, argv=CASES[case]), case_file, indent=1, sort_keys=True)
        case_file.write("\n")
    print(f"{case}: loss {golden['losses'][0]} to {golden['losses'][-1]}")
    print(f"evaluate: {golden['evaluate']}")


def write_initial_checkpoint(init_dir):
    """Lets the program save its initial weights in `init_dir`."""
    recorded_model_dir = mnist_tpu.FLAGS.model_dir
    mnist_tpu.FLAGS.model_dir = init_dir
    train(mnist_tpu.build_estimator(ONE_THREAD), max_steps=1)
    mnist_tpu.FLAGS.model_dir = recorded_model_dir


def train(estimator, max_steps):
    """Trains up to global step `max_steps`; returns the loss of each step."""
    recorder = LossRecorder()
    estimator.train(mnist_tpu.train_input_fn, max_steps=max_steps, hooks=[recorder])
    return [plain(loss) for loss in recorder.losses]


def run_program(model_dir):
    """Trains, evaluates and predicts as the program's main does; returns what came out."""
    flags = mnist_tpu.FLAGS
    estimator = mnist_tpu.build_estimator(ONE_THREAD)
    losses = train(estimator, flags.train_steps)
    metrics = estimator.evaluate(mnist_tpu.eval_input_fn, steps=flags.eval_steps)
    predictions = estimator.predict(mnist_tpu.predict_input_fn)
    return {
        "versions": {
            "tensorflow": tf.__version__,
            "python": sys.version.split()[0],
            "numpy": np.__version__,
        },
        "losses": losses,
        "evaluate": {name: plain(value) for name, value in metrics.items()},
        "predict": [
            {name: plain(value) for name, value in digit.items()}
            for digit in itertools.islice(predictions, flags.predictions)
        ],
        "final_variables": describe_variables(estimator.latest_checkpoint()),
        "summaries": describe_summaries(model_dir),
        "model_dir_files": list_files(model_dir),
    }


def describe_variables(checkpoint):
    """Returns name, shape, dtype, sum and l2 norm of each variable in `checkpoint`."""
    reader = tf.train.load_checkpoint(checkpoint)
    rows = []
    for name in sorted(reader.get_variable_to_shape_map()):
        value = np.asarray(reader.get_tensor(name))
        wide = value.astype(np.float64)
        rows.append(
            {
                "name": name,
                "shape": list(value.shape),
                "dtype": value.dtype.name,
                "sum": float(wide.sum()),
                "l2": float(np.sqrt(np.square(wide).sum())),
            }
        )
    return rows


def describe_summaries(model_dir):
    """Returns {directory: {tag: [steps at which it was written]}}."""
    summaries = {}
    for directory, _, names in os.walk(model_dir):
        tags = {}
        for name in sorted(names):
            if "tfevents" in name:
                for event in tf.train.summary_iterator(os.path.join(directory, name)):
                    for value in event.summary.value:
                        tags.setdefault(value.tag, []).append(event.step)
        if tags:
            summaries[os.path.relpath(directory, model_dir)] = tags
    return summaries


def list_files(model_dir):
    """Returns relative paths; the part of an event file's name that varies becomes a star."""
    files = []
    for directory, _, names in os.walk(model_dir):
        for name in names:
            if "tfevents" in name:
                name = name[: name.index("tfevents")] + "tfevents.*"
            files.append(os.path.relpath(os.path.join(directory, name), model_dir))
    return sorted(files)


def copy_checkpoint(source_dir, step, target_dir):
    """Makes `target_dir` a model directory that holds the checkpoint of `step`, without graph."""
    prefix = f"model.ckpt-{step}"
    os.makedirs(target_dir, exist_ok=True)
    for ending in (".index", ".data-00000-of-00001"):
        source, target = [os.path.join(d, prefix + ending) for d in (source_dir, target_dir)]
        if os.path.abspath(source) != os.path.abspath(target):
            shutil.copyfile(source, target)
    with open(os.path.join(target_dir, "checkpoint"), "w") as state:
        state.write(f'model_checkpoint_path: "{prefix}"\n')


def plain(value):
    """numpy -> JSON; a float32 becomes the shortest decimal that reads back as that float32."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.float32):
        return float(str(value))
    return value.item()


if __name__ == "__main__":
    main()
