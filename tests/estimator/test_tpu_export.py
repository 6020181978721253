"""What TPUEstimator exports: a graph for the host, and one for TPUs, built here and run there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator import export
from estimator2strategy.estimator.tpu_export import tensors_of
from tests.engine.runtime.programs import (
    cores_estimator,
    falling_on_cores,
    host_estimator,
    numbers,
    ones,
)
from tests.programs import served

tf1 = tf.compat.v1
tpu = estimator.tpu

# Made by tests/programs/served.py on TensorFlow 2.15.1.
GOLDENS = json.loads((Path(__file__).parents[1] / "goldens" / "served.json").read_text())["v2"]
PARTS = ["signatures", "answers", "nodes", "in functions", "collections", "saver", "stripped"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Case -> folder of what our TPUEstimator exports."""
    return served.exported_for_tpus(str(tmp_path_factory.mktemp("served")))


@pytest.fixture(scope="module")
def ours(folders):
    return {case: served.described(folder) for case, folder in folders.items()}


@pytest.mark.oldest
@pytest.mark.parametrize("case", served.TPU_CASES)
@pytest.mark.parametrize("part", PARTS)
def test_graphs_are_the_real_ones_node_by_node(ours, case, part):
    expected = GOLDENS[case]["graphs"]
    found = ours[case]["graphs"]
    assert found.keys() == expected.keys()
    for tags in expected:
        assert found[tags][part] == expected[tags][part], tags


# Ops that only a TPU has -> what does the same on one CPU.
ON_CPU = {
    "TPUPartitionedCall": "StatefulPartitionedCall",
    "TPUOrdinalSelector": "NoOp",
    "TPUReplicateMetadata": "NoOp",
    "TPUReplicatedInput": "Identity",
    "TPUReplicatedOutput": "Identity",
    "TPUCompilationResult": "NoOp",
}


def for_cpu(folder: bytes) -> tf1.MetaGraphDef:
    """The graph for TPUs, as one for a CPU."""
    saved = served._parsed(os.fsdecode(folder))
    (graph,) = (graph for graph in saved.meta_graphs if "tpu" in graph.meta_info_def.tags)
    for function in graph.graph_def.library.function:
        renamed = {f"{n.name}:outputs:": f"{n.name}:output:" for n in function.node_def}
        for node in function.node_def:
            _to_cpu(node, selector=":device_ordinals:")
            for i, name in enumerate(node.input):
                for old, new in renamed.items():
                    if name.startswith(old) and node.op != "BatchFunction":
                        node.input[i] = name.replace(old, new)
    for node in graph.graph_def.node:
        _to_cpu(node, selector="TPUOrdinalSelector")
    return graph


def _to_cpu(node, selector: str) -> None:
    if node.op == "TPUPartitionedCall":
        assert selector in node.input[-1]
        del node.input[-1]
    node.device = ""
    for name in [name for name in node.attr if name.startswith(("_tpu", "_xla", "_pivot"))]:
        del node.attr[name]
    if node.op in ON_CPU:
        node.op = ON_CPU[node.op]
        if node.op == "NoOp":
            node.attr.clear()
        elif node.op == "Identity":
            for name in [name for name in node.attr if name != "T"]:
                del node.attr[name]


@pytest.mark.parametrize(
    ("case", "outputs"),
    [
        # 8 x (a + 2b) of two examples; plus 100 where model_fn is told that it is on a TPU.
        ("both", [[40.0], [88.0]]),
        ("TPU alone", [[40.0], [88.0]]),
        ("V2, all", [[140.0], [188.0]]),
        ("V2, part", [[20.0], [44.0]]),
    ],
)
@pytest.mark.evidence("tpu_graphs", "cpu")
def test_the_graph_for_tpus_computes_what_model_fn_says(folders, case, outputs):
    graph = for_cpu(folders[case])
    with tf1.Session(graph=tf.Graph()) as session:
        saver = tf1.train.import_meta_graph(graph)
        saver.restore(session, os.path.join(os.fsdecode(folders[case]), "variables", "variables"))
        signature = graph.signature_def["serving_default"]
        feed = {signature.inputs["examples"].name: served.FED["examples"]}
        answer = session.run(signature.outputs["outputs"].name, feed)
    np.testing.assert_allclose(answer, outputs)


def test_the_batch_config_reaches_the_batching(folders):
    saved = served._parsed(os.fsdecode(folders["V2, all"]))
    (batch,) = (n for g in saved.meta_graphs for n in g.graph_def.node if n.op == "BatchFunction")
    assert batch.attr["num_batch_threads"].i == 1
    assert batch.attr["max_batch_size"].i == 8
    assert batch.attr["batch_timeout_micros"].i == 100
    assert batch.attr["max_enqueued_batches"].i == 7
    assert list(batch.attr["allowed_batch_sizes"].list.i) == [2, 8]


def test_without_a_batch_size_nothing_is_batched():
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [None])
        tpu.inference_on_tpu(lambda x: x + 1, [x], 1, max_batch_size=None, batch_timeout_micros=1)
    types = [op.type for op in graph.get_operations()]
    assert "TPUPartitionedCall" in types
    assert "BatchFunction" not in types


def one_number():
    x = tf1.placeholder(tf.float32, [None], "x")
    return export.TensorServingInputReceiver(x, x)


def tags_of(folder):
    saved = served._parsed(os.fsdecode(folder))
    return [",".join(graph.meta_info_def.tags) for graph in saved.meta_graphs]


def answer_of(folder, feed):
    serving = tf.saved_model.load(os.fsdecode(folder), "serve").signatures["serving_default"]
    return serving(tf.constant(feed))["sum"].numpy().tolist()


@pytest.mark.evidence("export", "cpu")
def test_what_was_trained_on_cores_is_served_by_the_host(emulated_cores, model_dir, tmp_path):
    emulated_cores(2)
    model = cores_estimator(model_dir)
    model.train(ones, steps=4)
    folder = model.export_saved_model(tmp_path, one_number)
    assert tags_of(folder) == ["serve", "serve,tpu"]
    assert answer_of(folder, [1.0]) == [-3.0]


def test_model_fn_is_told_no_batch_size_and_whether_it_is_on_a_tpu(model_dir, tmp_path):
    told = []

    def model_fn(features, labels, mode, params):
        told.append((mode, params))
        return falling_on_cores(features, labels, mode, params)

    model = host_cores_estimator(model_dir, model_fn, export_saved_model_api_version=2)
    model.train(ones, steps=1)
    del told[:]
    model.export_saved_model(tmp_path, one_number)
    assert told == [
        (ModeKeys.PREDICT, {"use_tpu": False}),
        (ModeKeys.PREDICT, {"use_tpu": True}),
    ]
    assert model.params == {}


def host_cores_estimator(model_dir, model_fn=falling_on_cores, **kwargs):
    return cores_estimator(model_dir, model_fn, use_tpu=False, **kwargs)


def test_other_modes_are_for_the_host_alone(model_dir, tmp_path, caplog):
    model = host_cores_estimator(model_dir)
    model.train(ones, steps=1)
    with caplog.at_level("WARNING", "tensorflow"):
        folder = model.export_saved_model(tmp_path, one_number, experimental_mode=ModeKeys.EVAL)
    assert tags_of(folder) == ["eval"]
    assert "only handles mode PREDICT for exporting" in caplog.text


def test_scaffold_fn_runs_in_the_graph_that_is_served(model_dir, tmp_path):
    """Its saver is written into the graph for TPUs too; a metric_fn or host_call is nobody's."""
    graphs = []

    def model_fn(features, labels, mode, params):
        spec = falling_on_cores(features, labels, mode, params)

        def scaffold_fn():
            graphs.append(tf1.get_default_graph())
            return tf1.train.Scaffold(saver=tf1.train.Saver(name="ours", sharded=True))

        def host_call(sums):
            return [tf.reduce_sum(sums)]

        host = (host_call, [features * 2.0]) if mode == ModeKeys.PREDICT else None
        return spec._replace(scaffold_fn=scaffold_fn, host_call=host)

    model = host_cores_estimator(model_dir, model_fn, export_to_cpu=False)
    model.train(ones, steps=1)
    folder = model.export_saved_model(tmp_path, one_number)
    (graph,) = served._parsed(os.fsdecode(folder)).meta_graphs
    assert graph.saver_def.restore_op_name == "ours/restore_all"
    assert "TPUPartitionedCall" in [op.type for op in graphs[-1].get_operations()]


def test_an_estimators_model_is_exported_for_tpus_too(model_dir, tmp_path):
    def model_fn(features, labels, mode, params):
        return falling_on_cores(features, labels, mode, {"use_tpu": False}).as_estimator_spec()

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(2))
    folder = tpu.export_estimator_savedmodel(model, tmp_path, one_number)
    assert tags_of(folder) == ["serve", "serve,tpu"]
    assert answer_of(folder, [1.0]) == [-2.0]


class TestBadInput:
    def test_a_graph_for_nothing(self, model_dir, tmp_path):
        model = host_cores_estimator(model_dir, export_to_cpu=False, export_to_tpu=False)
        model.train(ones, steps=1)
        with pytest.raises(ValueError, match="One of export_to_cpu and export_to_tpu must be true"):
            model.export_saved_model(tmp_path, one_number)

    def test_a_mode_that_tpus_do_not_serve(self, model_dir, tmp_path):
        model = host_cores_estimator(model_dir, export_to_cpu=False)
        model.train(ones, steps=1)
        with pytest.raises(ValueError, match="No valid modes for exporting found"):
            model.export_saved_model(tmp_path, one_number, experimental_mode=ModeKeys.EVAL)

    def test_an_unknown_version(self, model_dir):
        with pytest.raises(ValueError, match="export_saved_model_api_version should be 1 or 2"):
            host_cores_estimator(model_dir, export_saved_model_api_version=3)

    def test_an_output_of_the_programs_own_kind(self):
        with pytest.raises(ValueError, match="must be have type `ClassificationOutput`"):
            tensors_of(object())
