"""`bert-tensorflow`, untouched, under a genuine TPUStrategy: what its cores would be sent."""

from __future__ import annotations

import collections
import json
from pathlib import Path

import pytest
import tensorflow as tf
from tpu_program import traced_training

from estimator2strategy.engine.replay.gauges import NAN_GAUGE
from estimator2strategy.engine.xla.tpus import tpu_strategy
from estimator2strategy.estimator import tpu
from estimator2strategy.legacy import importing

DATA = Path(__file__).parents[1] / "goldens" / "bert_classifier" / "data"
LENGTH, LAYERS = 32, 2


@pytest.fixture(scope="module")
def bert(imported):
    return imported(lambda: importing.import_module("bert.run_classifier"))


def input_fn(params):
    feature = tf.zeros([256, LENGTH], tf.int32)
    features = dict.fromkeys(["input_ids", "input_mask", "segment_ids"], feature)
    features["label_ids"] = tf.zeros([256], tf.int32)
    dataset = tf.data.Dataset.from_tensor_slices(features).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


@pytest.mark.parametrize("num_hosts", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.evidence("bert", "traced")
def test_bert_is_one_program_with_a_sum_per_gradient(bert, num_hosts):
    specs = []
    build = bert.model_fn_builder(
        bert_config=bert.modeling.BertConfig.from_json_file(str(DATA / "bert_config.json")),
        num_labels=2,
        init_checkpoint=str(DATA / "pretrained" / "model.ckpt-20"),
        learning_rate=0.001,
        num_train_steps=20,
        num_warmup_steps=2,
        use_tpu=True,
        use_one_hot_embeddings=True,
    )

    def model_fn(features, labels, mode, params):
        specs.append(build(features, labels, mode, params))
        return specs[-1]

    pipeline = tpu.InputPipelineConfig.PER_HOST_V2
    classifier = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(
            model_dir="/never/written",
            tpu_config=tpu.TPUConfig(10, per_host_input_for_training=pipeline),
        ),
        train_batch_size=64 * num_hosts,
        strategy=tpu_strategy(num_hosts),
    )
    program, replay = traced_training(classifier, input_fn)

    everyone = list(range(8 * num_hosts))
    assert json.loads((DATA / "bert_config.json").read_text())["num_hidden_layers"] == LAYERS
    # 5 variables of the embeddings, 16 of each layer, 2 of the pooler, 2 of the classifier.
    assert program.group_assignments() == [[everyone]] * (5 + 16 * LAYERS + 2 + 2)
    # Each has two slots; and there is global_step.
    assert len(program.variables) == 3 * (5 + 16 * LAYERS + 2 + 2) + 1
    recorded = replay.recorded
    behind = recorded.ancestors([specs[0].train_op.name, specs[0].loss.op.name])
    wanted = collections.Counter(recorded[name].op for name in behind)
    del wanted["VarHandleOp"], wanted["Placeholder"]
    own = [node for node in program.step.node_def if not node.name.startswith(NAN_GAUGE)]
    replayed = collections.Counter(node.op for node in own)
    # The function's own: what waits for its effects, and what it returns.
    assert replayed - wanted == {"NoOp": 1, "Identity": 1}
    assert not wanted - replayed
