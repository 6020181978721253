"""Runs exported steps on an accelerator, beside hand-written JAX steps of the same mathematics.

    python benchmarks/device/measure.py build/device --out results.json

Needs jax, numpy and flatbuffers, and nothing of this package but the folder beside it. Prints a
table; each case is measured in this one process.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import by_hand
import generated

# Dense bfloat16 FLOP/s of an H100 or H200 with SXM, as NVIDIA gives it.
PEAK = 989e12
# The precision of JAX that a precision of ours is measured beside.
# JAX's own "bfloat16" is TF32 on a GPU: there is no step by hand to be measured beside ours.
_BESIDE = {"highest": "highest", "high": "high", "default": "default"}
_SECONDS = 4.0


def loader_of(folder: Path):
    """The module `run.py` of an exported step."""
    spec = importlib.util.spec_from_file_location("run_of_step", folder / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def values_of(step, loader):
    """The initial values, from the file or made from their names."""
    if (Path(step.folder) / "values.npz").exists():
        return step.values()
    rows = step.variables
    return {r["name"]: generated.value_of(r["name"], r["shape"], r["dtype"]) for r in rows}


def median_seconds(run, steps):
    """The median of the seconds of a step; `run()` runs `steps` of them and waits."""
    run()
    times, until = [], time.perf_counter() + _SECONDS
    while len(times) < 5 or time.perf_counter() < until:
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) / steps)
        if len(times) >= 200:
            break
    return float(np.median(times))


def measured(folder: Path, platform):
    """One row: an exported step beside the hand-written one."""
    facts = json.loads((folder / "case.json").read_text())
    loader = loader_of(folder)
    step = loader.ExportedStep(str(folder), platform)
    arrays = loader.arrays_in(str(folder / "batches.npz"))
    steps, precision = step.steps_per_block, step.description["precision"]
    count = len(next(iter(arrays.values())))
    batches = [{name: value[i % count] for name, value in arrays.items()} for i in range(64)]
    values = values_of(step, loader)
    row = {"case": facts["case"], "precision": precision, "steps of a launch": steps}

    began = time.perf_counter()
    compiled = step.compile()
    row["compile s"] = time.perf_counter() - began
    row["device bytes"] = memory_of(compiled)

    losses, variables, number = [], step.on_devices(values), 0
    while len(losses) < len(facts["losses"]):
        # A whole block, whatever is wanted of it: another count would be another compilation.
        variables, outputs = step(variables, step.stacked(batches[number : number + steps]), steps)
        losses += step.losses(outputs, steps).tolist()
        number += steps
    losses = losses[: len(facts["losses"])]
    row["losses"], row["expected"] = losses, facts["losses"]
    differences = np.abs(np.array(losses) / np.array(facts["losses"]) - 1)
    row["greatest difference"] = float(differences.max())

    state, on_device = [variables], jax.device_put(step.stacked(batches[:steps]))

    def ours():
        state[0], outputs = step(state[0], on_device, steps)
        jax.block_until_ready(outputs)

    row["ours ms"] = 1e3 * median_seconds(ours, steps)
    if precision in _BESIDE:
        row |= beside(facts, step, values, batches, precision)
        row["ratio"] = row["by hand ms"] / row["ours ms"]
    if facts["case"] == "bert_base":
        flops = flops_of_bert(facts["settings"])
        row["share of the bfloat16 peak"] = flops / (row["ours ms"] / 1e3) / PEAK
    return row


def beside(facts, step, values, batches, precision):
    """The figures of the hand-written step, in a loop of as many steps."""
    names = [row["name"] for row in step.feeds]
    settings = facts["settings"]
    known = {row["name"] for row in step.variables}
    by_name = by_hand.STEPS[facts["by_hand"]]
    steps = step.steps_per_block

    def block(state, stacked):
        def one(state, batch):
            return by_name(state, batch, settings)

        if steps == 1:
            state, loss = one(state, [b[0] for b in stacked])
            return state, loss[None]
        return jax.lax.scan(one, state, stacked)

    with jax.default_matmul_precision(_BESIDE[precision]), jax.enable_x64(False):
        state = {n: jnp.asarray(v) for n, v in values.items() if n in known}
        state = {n: v.astype(jnp.int32) if v.dtype == jnp.int64 else v for n, v in state.items()}
        stacked = [jnp.asarray(np.stack([b[n] for b in batches[:steps]])) for n in names]
        began = time.perf_counter()
        compiled = jax.jit(block, donate_argnums=0).lower(state, stacked).compile()
        seconds = time.perf_counter() - began
        state, losses = compiled(state, stacked)
        first = np.asarray(losses).tolist()[: len(facts["losses"])]
        kept = [state]

        def run():
            kept[0], losses = compiled(kept[0], stacked)
            losses.block_until_ready()

        took = 1e3 * median_seconds(run, steps)
    difference = np.abs(np.array(first) / np.array(facts["losses"][: len(first)]) - 1).max()
    return {
        "by hand ms": took,
        "by hand compile s": seconds,
        "by hand difference": float(difference),
    }


def memory_of(compiled):
    """Bytes of arguments, results, and of what they share, by the compiler's own account."""
    try:
        found = compiled.memory_analysis()
        return {
            "arguments": found.argument_size_in_bytes,
            "results": found.output_size_in_bytes,
            "shared": found.alias_size_in_bytes,
            "temporary": found.temp_size_in_bytes,
        }
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def flops_of_bert(settings):
    """Multiplications and additions of a training step's matrix products: three times forward's."""
    batch, length = settings["batch_size"], settings["length"]
    width, inner, layers = settings["width"], settings["inner"], settings["layers"]
    tokens = batch * length
    of_layer = 2 * tokens * (4 * width * width + 2 * width * inner) + 4 * tokens * length * width
    return 3 * layers * of_layer


def card():
    """The name of the accelerator and its driver."""
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return str(jax.devices()[0].device_kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what benchmarks.device.export wrote")
    parser.add_argument("--out", type=Path, help="a JSON file for all figures")
    parser.add_argument("--platform", help="default: JAX's choice")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--seconds", type=float, default=320.0, help="start no case after these")
    options = parser.parse_args()
    started, rows = time.monotonic(), []
    facts = {"card": card(), "jax": jax.__version__, "date": str(datetime.date.today())}
    sys.stdout.write(f"{facts}\n")
    for folder in sorted(options.folder.iterdir()):
        if not (folder / "case.json").exists() or not folder.name.startswith(options.only):
            continue
        if time.monotonic() - started > options.seconds:
            sys.stdout.write(f"{folder.name}: no time left\n")
            continue
        try:
            row = measured(folder, options.platform)
        except Exception:
            row = {"case": folder.name, "error": traceback.format_exc()}
        rows.append(row)
        shown = {k: v for k, v in row.items() if k not in ("losses", "expected")}
        sys.stdout.write(f"{json.dumps(shown)}\n")
        sys.stdout.flush()
        if options.out:
            options.out.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    main()
