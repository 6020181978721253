"""`e2s export-for` writes a new SavedModel beside the old one, or says in one sentence why not."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import __main__
from estimator2strategy.engine.saved_models import model_files
from tests.engine.saved_models.small_exports import (
    answers,
    exported,
    towns_and_numbers,
    two_examples,
)

tf1 = tf.compat.v1


@pytest.fixture
def folder(tmp_path):
    return exported(tmp_path / "1700000000", towns_and_numbers)


def run(*arguments):
    return __main__.main(["export-for", *arguments])


def test_for_tf_1_15_beside_the_old_one(folder, tmp_path, capsys):
    assert run("--tf=1.15", folder) == 0
    target = f"{folder}-tf1.15"
    assert capsys.readouterr().out == f"{target}: for TensorFlow 1.15 and newer\n"
    assert answers(target, examples=two_examples())["names"].tolist() == [b"high", b"low"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1700000000", "1700000000-tf1.15"]


def test_parts_in_a_folder_of_choice(folder, tmp_path, capsys):
    assert run("--parts", folder, "--out", str(tmp_path / "parts")) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/parts/parsing: examples -> concat, town",
        f"{tmp_path}/parts/numbers: concat -> ArgMax, scores",
        f"{tmp_path}/parts/texts: ArgMax -> names",
    ]


def test_one_of_several_graphs_for_keras(tmp_path):
    """TFSMLayer cannot choose between graphs."""
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [None], "x")
        y = x * tf1.get_variable("w", initializer=3.0)
        session.run(tf1.global_variables_initializer())
        signatures = {"serving_default": tf1.saved_model.predict_signature_def({"x": x}, {"y": y})}
        builder = tf1.saved_model.Builder(str(tmp_path / "two"))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.add_meta_graph(["serve", "tpu"], signatures)
        builder.save()
    import keras

    with pytest.raises(ValueError, match="more than one MetaGraph"):
        keras.layers.TFSMLayer(str(tmp_path / "two"), call_endpoint="serving_default")
    assert run("--tags=serve", str(tmp_path / "two")) == 0
    layer = keras.layers.TFSMLayer(f"{tmp_path}/two-serve", call_endpoint="serving_default")
    assert layer(tf.constant([2.0]))["y"].numpy().tolist() == [6.0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "add --tf=1.15, --tf=2, --parts or --tags=serve"),
        (["--tf=2"], "there are no reference variables"),
        (["--tags=tpu", "--tf=1.15"], "no graph has the tags tpu: there are serve"),
        (["--parts", "--signature=x"], "no signature 'x': there are serving_default"),
        (["--parts", "--tf=2"], "--parts and --tf exclude each other"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_nothing_is_written(
    folder, tmp_path, capsys, arguments, said
):
    assert run(*arguments, folder) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["1700000000"]


def test_no_export_and_a_broken_one_are_told(tmp_path, capsys):
    assert run("--tf=1.15", str(tmp_path)) == 2
    assert "is no SavedModel" in capsys.readouterr().err
    (tmp_path / "saved_model.pb").write_bytes(b"no graph at all")
    assert run("--tf=1.15", str(tmp_path)) == 2
    assert "saved_model.pb cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--parts", "--tf=2"])
def test_a_graph_whose_nodes_miss_their_inputs_is_told(folder, capsys, option):
    model = model_files.read(folder)
    for node in model.meta_graphs[0].graph_def.node:
        if option == "--parts":
            del node.input[:]
    model.meta_graphs[0].graph_def.node.add(name="v", op="VariableV2")
    model.meta_graphs[0].graph_def.node.add(name="v/Assign", op="Assign")
    model.meta_graphs[0].graph_def.node.add(name="x", op="Identity", input=["v/Assign"])
    model_files.replace_graphs(model, folder, as_text=False)
    assert run(option, folder) == 2
    error = capsys.readouterr().err
    assert "is damaged" in error
    assert error.count("\n") == 1


def test_a_folder_that_is_there_is_kept(folder, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    assert run("--tf=1.15", folder, "--out", str(tmp_path / "mine")) == 2
    assert "is there already" in capsys.readouterr().err
    assert not [*(tmp_path / "mine").iterdir()]
