"""Exports the steps that `measure` runs, with the losses that they have on this CPU.

    python -m benchmarks.device.export                  # writes build/device/, a few minutes
    python -m benchmarks.device.export --quick          # build/device_quick/: a tiny BERT-base

The losses are those of the programs themselves: of the real TPUEstimator of TF 1.15 where a golden
has them, of this package's Estimator elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
from absl import flags

import estimator2strategy.tf1
from benchmarks import resnet
from benchmarks.device.generated import value_of
from estimator2strategy.estimator import tpu
from estimator2strategy.legacy import importing
from estimator2strategy.tools.artifact.step_export import export_step

ROOT = Path(__file__).parents[2]
tf1 = tf.compat.v1
# The precisions that BERT-base is exported in.
PRECISIONS = ("highest", "default", "bfloat16")
VOCABULARY = 30522


@dataclasses.dataclass
class Case:
    """A program to export.

    Attributes:
        name: The name of its folder.
        by_hand: The key of its hand-written step in `by_hand.STEPS`.
        estimator, input_fn: The program.
        batches: The number of batches that are written.
        losses: The losses of its first steps.
        settings: For the hand-written step.
        steps_per_block: As of `export_step`; one folder for each.
        precisions: Likewise.
        keeps_values: False: values are made again from their names.
    """

    name: str
    by_hand: str
    estimator: Any
    input_fn: Callable[..., Any]
    batches: int
    losses: list[float]
    settings: dict[str, Any]
    steps_per_block: tuple[int, ...] = (10, 1)
    precisions: tuple[str, ...] = ("highest",)
    keeps_values: bool = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a BERT-base of 2 small layers")
    parser.add_argument("--out", help="the folder to write")
    parser.add_argument("--only", help="one case: mnist, bert_small, resnet or bert_base")
    options = parser.parse_args()
    out = Path(options.out or ROOT / "build" / ("device_quick" if options.quick else "device"))
    cases = {
        "mnist": mnist,
        "bert_small": bert_small,
        "resnet": resnet_case,
        "bert_base": bert_quick if options.quick else bert_base,
    }
    for name, make in cases.items():
        if options.only in (None, name):
            with (
                flags_of_its_own(),
                tempfile.TemporaryDirectory() as scratch,
                make(Path(scratch)) as case,
            ):
                _write(case, out)


@contextlib.contextmanager
def flags_of_its_own() -> Iterator[None]:
    """Forgets the flags that a program defines in the body: the next may have some of that name."""
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
        flags.FLAGS.unparse_flags()


def _write(case: Case, out: Path) -> None:
    params = {**(case.estimator.params or {}), "batch_size": case.settings["batch_size"]}
    drawn = list(case.input_fn(params).take(case.batches).as_numpy_iterator())
    flat = [tf.nest.flatten(element) for element in drawn]
    for precision in case.precisions:
        for steps in case.steps_per_block:
            folder = out / f"{case.name}-{precision}-{steps}"
            export_step(
                case.estimator, case.input_fn, folder, steps_per_block=steps, precision=precision
            )
            description = json.loads((folder / "description.json").read_text())
            names = [row["name"] for row in description["feeds"]]
            first = np.load(folder / "first_batch.npz")
            for name, value in zip(names, flat[0], strict=True):
                np.testing.assert_array_equal(first[name], value)
            arrays = {n: np.stack(parts) for n, parts in zip(names, zip(*flat))}
            np.savez_compressed(folder / "batches.npz", **arrays)
            if not case.keeps_values:
                (folder / "values.npz").unlink()
            facts = {
                "case": case.name,
                "by_hand": case.by_hand,
                "losses": case.losses,
                "settings": {**case.settings, "feeds": list(case.settings.get("feeds", []))},
            }
            (folder / "case.json").write_text(json.dumps(facts, indent=1) + "\n")
            print(folder, flush=True)


class _Losses(tf1.train.SessionRunHook):
    def __init__(self) -> None:
        self.losses: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        (loss,) = run_context.session.graph.get_collection(tf1.GraphKeys.LOSSES)[-1:]
        return tf1.train.SessionRunArgs(loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))


def _trained(estimator: Any, input_fn: Any, steps: int) -> list[float]:
    hook = _Losses()
    estimator.train(input_fn, steps=steps, hooks=[hook])
    return hook.losses


def _checkpointed(folder: Path, values: dict[str, np.ndarray]) -> None:
    """Writes a checkpoint of step 0 into a model_dir."""
    folder.mkdir(parents=True)
    tf.raw_ops.SaveV2(
        prefix=str(folder / "model.ckpt-0"),
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=list(values.values()),
    )
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-0"\n')


@contextlib.contextmanager
def mnist(scratch: Path) -> Iterator[Case]:
    """examples/mnist_tpu, from its golden."""
    example = ROOT / "examples" / "mnist_tpu"
    golden = json.loads((example / "golden" / "parity" / "case.json").read_text())
    with mock.patch.object(sys, "path", [str(example), *sys.path]):
        program = importlib.import_module("mnist_tpu")
        importlib.import_module("make_data").write_digits(str(scratch))
    shutil.copytree(example / "golden" / "parity" / "init", scratch / "model")
    flags = [f"--data_dir={scratch}", f"--model_dir={scratch / 'model'}"]
    program.FLAGS(["mnist_tpu.py", *golden["argv"], *flags])
    flags = program.FLAGS
    settings = {"batch_size": flags.batch_size, "rate": flags.learning_rate}
    yield Case(
        "mnist",
        "mnist",
        program.build_estimator(),
        program.train_input_fn,
        20,
        golden["losses"],
        settings,
    )


@contextlib.contextmanager
def resnet_case(scratch: Path) -> Iterator[Case]:
    """benchmarks/resnet with momentum, on 32x32 images."""
    rate, batch_size = 0.05, 64

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        logits = resnet.logits(features, training=True)
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
            optimizer = tf1.train.MomentumOptimizer(rate, 0.9)
            train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params: Any) -> tf.data.Dataset:
        slices = tf.data.Dataset.from_tensor_slices(resnet.data(4 * batch_size)).repeat()
        return slices.batch(params["batch_size"], drop_remainder=True)

    def estimator(name: str) -> Any:
        config = tpu.RunConfig(
            model_dir=str(scratch / name), tf_random_seed=1, tpu_config=tpu.TPUConfig(1)
        )
        return tpu.TPUEstimator(
            model_fn, config=config, use_tpu=False, train_batch_size=batch_size, params={}
        )

    estimator("model").train(input_fn, steps=1)
    shutil.copytree(scratch / "model", scratch / "losses")
    losses = _trained(estimator("losses"), input_fn, 10)
    settings = {"batch_size": batch_size, "rate": rate}
    yield Case("resnet", "resnet", estimator("model"), input_fn, 20, losses, settings)


@contextlib.contextmanager
def bert_small(scratch: Path, **options: Any) -> Iterator[Case]:
    """google-research/bert's run_classifier, from the golden.

    Args:
        options: Further arguments of the TPUEstimator.
    """
    golden = ROOT / "tests" / "goldens" / "bert_classifier"
    data, length, steps = golden / "data", 32, 20
    with _bert() as bert:
        tokenizer = bert.tokenization.FullTokenizer(str(data / "vocab.txt"), do_lower_case=True)
        processor, records = bert.MrpcProcessor(), str(scratch / "train.tf_record")
        bert.file_based_convert_examples_to_features(
            processor.get_train_examples(str(data)),
            processor.get_labels(),
            length,
            tokenizer,
            records,
        )
        once = bert.file_based_input_fn_builder(records, length, False, drop_remainder=True)
        shutil.copytree(golden / "init", scratch / "model")
        train, *_ = json.loads((golden / "case.json").read_text())["golden"]["calls"]
        config = json.loads((data / "bert_config.json").read_text())
        settings = {"batch_size": 8, "rate": 0.001, "steps": steps, "warmup": 2}
        yield Case(
            "bert_small",
            "bert",
            _classifier(bert, config, settings, scratch / "model", **options),
            lambda params: once(params).repeat(),
            20,
            train["losses"],
            {**settings, **_sizes(config)},
        )


def bert_base(scratch: Path) -> contextlib.AbstractContextManager[Case]:
    """BERT-base: 12 layers of 768, batches of 32 times 128 tokens."""
    config = {
        "vocab_size": VOCABULARY,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "max_position_embeddings": 512,
    }
    return _bert_of(scratch, config, batch_size=32, length=128)


def bert_quick(scratch: Path) -> contextlib.AbstractContextManager[Case]:
    """The same with 2 layers of 64, batches of 4 times 16 tokens."""
    config = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
    }
    return _bert_of(scratch, config, batch_size=4, length=16)


@contextlib.contextmanager
def _bert_of(scratch: Path, sizes: dict[str, int], batch_size: int, length: int) -> Iterator[Case]:
    config = {
        **sizes,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
    }
    settings = {"batch_size": batch_size, "rate": 2e-5, "steps": 1000, "warmup": 0}

    def input_fn(params: Any) -> tf.data.Dataset:
        rng, count = np.random.default_rng(0), 4 * batch_size
        lengths = rng.integers(length // 2, length + 1, [count, 1])
        mask = (np.arange(length) < lengths).astype(np.int32)
        features = {
            "input_ids": rng.integers(0, VOCABULARY, [count, length]).astype(np.int32) * mask,
            "input_mask": mask,
            "segment_ids": (np.arange(length) >= lengths // 2).astype(np.int32) * mask,
            "label_ids": rng.integers(0, 2, count).astype(np.int32),
            "is_real_example": np.ones(count, np.int32),
        }
        slices = tf.data.Dataset.from_tensor_slices(features).repeat()
        return slices.batch(params["batch_size"], drop_remainder=True)

    with _bert() as bert:
        names = _names_of_variables(bert, config, settings, input_fn, scratch)
        _checkpointed(scratch / "model", {n: value_of(n, *rest) for n, *rest in names})
        shutil.copytree(scratch / "model", scratch / "losses")
        losses = _trained(_classifier(bert, config, settings, scratch / "losses"), input_fn, 3)
        shutil.rmtree(scratch / "losses")
        yield Case(
            "bert_base",
            "bert",
            _classifier(bert, config, settings, scratch / "model"),
            input_fn,
            4,
            losses,
            {**settings, **_sizes(config), "length": length},
            steps_per_block=(10,),
            precisions=PRECISIONS,
            keeps_values=False,
        )


def _names_of_variables(
    bert: Any, config: Any, settings: Any, input_fn: Any, scratch: Path
) -> list[tuple[str, list[int], str]]:
    """(name, shape, dtype) of all variables of a training; its step is built, and does not run."""
    from estimator2strategy.engine.mode_keys import ModeKeys
    from estimator2strategy.estimator.estimator_recording import record_for, recording_graph

    estimator = _classifier(bert, config, settings, scratch / "unused")
    with recording_graph(estimator):
        record_for(estimator, ModeKeys.TRAIN, input_fn)
        return [
            (v.op.name, v.shape.as_list(), v.dtype.base_dtype.name) for v in tf1.global_variables()
        ]


def _sizes(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "heads": config["num_attention_heads"],
        "layers": config["num_hidden_layers"],
        "width": config["hidden_size"],
        "inner": config["intermediate_size"],
    }


@contextlib.contextmanager
def _bert() -> Iterator[Any]:
    """bert-tensorflow 1.0.4, without the one dropout that run_classifier hard-codes."""
    importing.install(importing.Scope(legacy=frozenset({"bert"})))
    module = importlib.import_module("bert.run_classifier")
    flags.FLAGS.mark_as_parsed()
    nn = estimator2strategy.tf1.nn
    with mock.patch.object(nn, "dropout", lambda x, **_: tf.identity(x)):
        yield module


def _classifier(
    bert: Any, config: dict[str, Any], settings: Any, model_dir: Path, **options: Any
) -> Any:
    model_fn = bert.model_fn_builder(
        bert_config=bert.modeling.BertConfig.from_dict(config),
        num_labels=2,
        init_checkpoint=None,
        learning_rate=settings["rate"],
        num_train_steps=settings["steps"],
        num_warmup_steps=settings["warmup"],
        use_tpu=False,
        use_one_hot_embeddings=False,
    )
    run_config = tpu.RunConfig(
        model_dir=str(model_dir), save_checkpoints_steps=1000, tpu_config=tpu.TPUConfig(1)
    )
    batch_size = settings["batch_size"]
    return tpu.TPUEstimator(
        model_fn, config=run_config, use_tpu=False, train_batch_size=batch_size, **options
    )


if __name__ == "__main__":
    main()
