"""`bert-tensorflow` from the registry, its code untouched, gives BERT's recorded numbers.

The golden is google-research/bert's run_classifier.py on the real TPUEstimator of TF 1.15 (see
`case.json`): from the same checkpoint, without dropout, in the order of the files.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1
from estimator2strategy.estimator import tpu
from estimator2strategy.legacy import importing
from tests.hooks import LossRecorder
from tests.rehearsal import rehearsal
from tests.step_on_xla import compared, compiled_for

CASE = Path(__file__).parents[1] / "goldens" / "bert_classifier"
DATA = CASE / "data"
TRAIN, EVALUATE, PREDICT = json.loads((CASE / "case.json").read_text())["golden"]["calls"]
STEPS, BATCH, LENGTH = 20, 8, 32

tf1 = tf.compat.v1


@pytest.fixture(scope="module")
def bert(imported):
    return imported(lambda: importing.import_module("bert.run_classifier"))


@pytest.fixture(scope="module")
def records(bert, tmp_path_factory):
    """`records("train")`: the TFRecord file that run_classifier makes of a split."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = bert.tokenization.FullTokenizer(str(DATA / "vocab.txt"), do_lower_case=True)
    processor = bert.MrpcProcessor()

    def write(split: str) -> str:
        path = str(folder / f"{split}.tf_record")
        examples = getattr(processor, f"get_{split}_examples")(str(DATA))
        bert.file_based_convert_examples_to_features(
            examples, processor.get_labels(), LENGTH, tokenizer, path
        )
        return path

    return write


def estimator(
    bert, model_dir: str, use_tpu: bool = False, iterations: int = 1, cluster: object = None
):
    model_fn = bert.model_fn_builder(
        bert_config=bert.modeling.BertConfig.from_json_file(str(DATA / "bert_config.json")),
        num_labels=2,
        init_checkpoint=str(DATA / "pretrained" / "model.ckpt-20"),
        learning_rate=0.001,
        num_train_steps=STEPS,
        num_warmup_steps=2,
        use_tpu=use_tpu,
        use_one_hot_embeddings=use_tpu,
    )
    pipeline = tpu.InputPipelineConfig.PER_HOST_V2
    config = tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=1,
        cluster=cluster,
        tpu_config=tpu.TPUConfig(iterations, per_host_input_for_training=pipeline),
    )
    return tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=use_tpu,
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
        predict_batch_size=BATCH,
    )


def in_order(bert, path: str):
    """run_classifier's training input without its shuffle."""
    once = bert.file_based_input_fn_builder(path, LENGTH, is_training=False, drop_remainder=True)
    return lambda params: once(params).repeat()


@pytest.fixture
def no_dropout():
    """run_classifier hard-codes one dropout; the golden was recorded without it."""
    nn = estimator2strategy.tf1.nn
    with mock.patch.object(nn, "dropout", lambda x, **_: tf.identity(x)):
        yield


@pytest.mark.slow
def test_bert_trains_evaluates_and_predicts_as_recorded(bert, records, no_dropout, model_dir):
    shutil.copytree(CASE / "init", model_dir)
    classifier = estimator(bert, model_dir)

    recorder = LossRecorder()
    classifier.train(in_order(bert, records("train")), max_steps=STEPS, hooks=[recorder])
    np.testing.assert_allclose(recorder.losses, TRAIN["losses"], rtol=1e-5)

    # 27 examples in batches of 8: the last one is partial.
    once = bert.file_based_input_fn_builder(records("dev"), LENGTH, False, drop_remainder=False)
    metrics = classifier.evaluate(once)
    for name, value in EVALUATE["metrics"].items():
        assert metrics[name] == pytest.approx(value, rel=1e-6), name

    once = bert.file_based_input_fn_builder(records("test"), LENGTH, False, drop_remainder=False)
    predictions = list(classifier.predict(once))
    assert len(predictions) == PREDICT["count"]
    for prediction, recorded in zip(predictions, PREDICT["first"], strict=False):
        np.testing.assert_allclose(
            prediction["probabilities"], recorded["probabilities"], rtol=1e-6
        )


@pytest.mark.evidence("bert", "jax")
@pytest.mark.evidence("training", "jax")
@pytest.mark.slow
def test_bert_trains_on_a_device_of_jax_as_recorded(
    bert, records, no_dropout, model_dir, jax_devices
):
    jax_devices(1)
    losses = trained_losses(bert, records, model_dir, use_tpu=False)
    np.testing.assert_allclose(losses, TRAIN["losses"], rtol=1e-5)


@pytest.mark.evidence("bert", "jax")
@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 8])
def test_bert_with_its_dropout_trains_on_devices_of_jax_as_under_tensorflow(
    bert, records, tmp_path, emulated_cores, jax_devices, devices
):
    """The golden is of one device: BERT's optimizer clips by the norm of each core's gradients."""
    on_cores = devices > 1
    emulated_cores(devices if on_cores else 0)
    expected = trained_losses(bert, records, tmp_path / "tensorflow", on_cores)
    jax_devices(devices)
    losses = trained_losses(bert, records, tmp_path / "jax", on_cores)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def trained_losses(bert, records, folder, use_tpu: bool) -> list[float]:
    """The losses of STEPS steps from the golden's first values."""
    shutil.copytree(CASE / "init", folder)
    recorder = LossRecorder()
    classifier = estimator(bert, str(folder), use_tpu=use_tpu)
    classifier.train(in_order(bert, records("train")), max_steps=STEPS, hooks=[recorder])
    assert len(recorder.losses) == STEPS
    return recorder.losses


@pytest.mark.slow
@pytest.mark.parametrize("cores", [0, 8])
@pytest.mark.evidence("bert", "cpu")
def test_bert_is_fine_tuned_evaluated_and_served(
    bert, records, model_dir, emulated_cores, tmp_path, cores
):
    emulated_cores(cores)
    shutil.copytree(CASE / "init", model_dir)
    classifier = estimator(bert, model_dir, use_tpu=bool(cores), iterations=2)
    classifier.train(in_order(bert, records("train")), max_steps=4)
    once = bert.file_based_input_fn_builder(records("dev"), LENGTH, False, drop_remainder=True)
    metrics = classifier.evaluate(once, steps=3)
    assert metrics["global_step"] == 4
    assert 0 < metrics["eval_loss"] < 1

    once = bert.file_based_input_fn_builder(records("test"), LENGTH, False, drop_remainder=True)
    predicted = [prediction["probabilities"] for prediction in classifier.predict(once)]
    # On cores TPUEstimator predicts the remainder all the same.
    assert len(predicted) == (PREDICT["count"] if cores else PREDICT["count"] // BATCH * BATCH)

    served = tf.saved_model.load(
        classifier.export_saved_model(str(tmp_path), receiver_fn).decode(), tags=["serve"]
    )
    answer = served.signatures["serving_default"](**first_examples(records("test"), BATCH))
    np.testing.assert_allclose(answer["probabilities"], predicted[:BATCH], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("num_hosts", [1, 2], ids=["1x8", "2x4"])
@pytest.mark.evidence("bert", "rehearsed")
def test_a_rehearsed_tpu_fine_tunes_like_emulated_cores(
    bert, records, no_dropout, emulated_cores, tmp_path, num_hosts
):
    once = bert.file_based_input_fn_builder(records("test"), LENGTH, False, drop_remainder=True)

    def run(name, cluster):
        shutil.copytree(CASE / "init", tmp_path / name)
        classifier = estimator(bert, str(tmp_path / name), use_tpu=True, cluster=cluster)
        recorder = LossRecorder()
        classifier.train(in_order(bert, records("train")), max_steps=2, hooks=[recorder])
        metrics = classifier.evaluate(in_order(bert, records("dev")), steps=1)
        predictions = list(classifier.predict(once)) if num_hosts == 1 else []
        return recorder.losses, metrics, predictions

    with rehearsal(num_hosts, 8 // num_hosts) as runtime:
        rehearsed = run("rehearsed", runtime.resolver())
    emulated_cores(8, num_hosts)
    tf.nest.map_structure(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6),
        rehearsed,
        run("emulated", None),
    )


@pytest.mark.slow
@pytest.mark.evidence("bert", "xla")
@pytest.mark.evidence("bert", "compiled", "v2 v3")
def test_the_program_of_a_tpu_computes_the_step_of_emulated_cores(
    bert, records, no_dropout, emulated_cores, model_dir
):
    emulated_cores(8)
    shutil.copytree(CASE / "init", model_dir)
    classifier = estimator(bert, model_dir, use_tpu=True)
    input_fn = in_order(bert, records("train"))
    classifier.train(input_fn, max_steps=2)  # Adam's slots hold something, and its rate is warm
    step = compared(classifier, input_fn, BATCH)
    assert [name for name in ("v2-8", "v3-8") if not compiled_for(step, name).fits] == []


FEATURES = {
    "input_ids": tf.io.FixedLenFeature([LENGTH], tf.int64),
    "input_mask": tf.io.FixedLenFeature([LENGTH], tf.int64),
    "segment_ids": tf.io.FixedLenFeature([LENGTH], tf.int64),
    "label_ids": tf.io.FixedLenFeature([], tf.int64),
}


def receiver_fn():
    inputs = {
        name: tf1.placeholder(tf.int32, [None, *feature.shape], name)
        for name, feature in FEATURES.items()
    }
    return estimator2strategy.tf1.estimator.export.ServingInputReceiver(inputs, inputs)


def first_examples(path: str, count: int) -> dict[str, tf.Tensor]:
    records = [record.numpy() for record in tf.data.TFRecordDataset(path).take(count)]
    parsed = tf.io.parse_example(records, FEATURES)
    return {name: tf.cast(value, tf.int32) for name, value in parsed.items()}
