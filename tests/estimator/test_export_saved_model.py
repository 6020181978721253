"""What `export_saved_model` writes: graphs, signatures, variables, files as the real one does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.saved_models import model_files, tensorflow_115
from estimator2strategy.errors import SavedModelError
from estimator2strategy.estimator import export
from tests import fresh
from tests.engine.runtime.programs import falling, host_estimator, numbers
from tests.programs import served

tf1 = tf.compat.v1
ModeKeys = estimator.ModeKeys

# Made by tests/programs/served.py on TensorFlow 2.15.1.
GOLDENS = json.loads((Path(__file__).parents[1] / "goldens" / "served.json").read_text())
PARTS = ["signatures", "answers", "nodes", "in functions", "collections", "saver", "stripped"]


def one_number():
    x = tf1.placeholder(tf.float32, [None], "x")
    return export.ServingInputReceiver(x, x)


def serve(features, labels, mode, params):
    """`falling`, served: features come as {'feature': ...} and are summed up with the weight."""
    if isinstance(features, dict):
        features = features["feature"]
    return falling(features, labels, mode, params)


@pytest.fixture
def trained(model_dir):
    """An Estimator whose weight is -3 after two steps."""
    model = host_estimator(model_dir, serve)
    model.train(numbers(2))
    return model


def loaded(folder, feed):
    """What the default signature answers."""
    with tf1.Session(graph=tf.Graph()) as session:
        graph = tf1.saved_model.load(session, [tf.saved_model.SERVING], os.fsdecode(folder))
        signature = graph.signature_def["serving_default"]
        (fed,), (fetched,) = signature.inputs.values(), signature.outputs.values()
        return session.run(fetched.name, {fed.name: feed}).tolist()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Case -> folder of what our Estimator exports."""
    return served.exported(str(tmp_path_factory.mktemp("served")))


@pytest.fixture(scope="module")
def ours(folders):
    return {case: served.described(folder) for case, folder in folders.items()}


class TestAsTheRealOne:
    """Node by node, what TensorFlow 2.15's Estimator exports for the same program."""

    @pytest.mark.oldest
    @pytest.mark.parametrize("case", served.CASES)
    @pytest.mark.parametrize("part", PARTS)
    def test_graphs(self, ours, case, part):
        expected = GOLDENS["v2"][case]["graphs"]
        found = ours[case]["graphs"]
        assert found.keys() == expected.keys()
        for tags in expected:
            assert found[tags][part] == expected[tags][part], tags

    @pytest.mark.oldest
    @pytest.mark.parametrize("case", served.CASES)
    def test_tf2_loads_them(self, folders, case):
        folder = os.fsdecode(folders[case])
        for tags, expected in GOLDENS["v2"][case]["graphs"].items():
            functions = tf.saved_model.load(folder, tags.split(",")).signatures
            assert {
                key: served.answers_of_function(functions[key]) for key in functions
            } == expected["answers"]

    @pytest.mark.parametrize("case", served.CASES)
    @pytest.mark.parametrize("part", ["files", "variables"])
    def test_files_and_variables(self, ours, case, part):
        assert ours[case][part] == GOLDENS["v2"][case][part]

    def test_a_program_without_tf2_behaviour_keeps_its_reference_variables(self, tmp_path):
        root = Path(__file__).parents[2]
        run = subprocess.run(
            [fresh.python(), served.__file__, str(tmp_path), "v1"],
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr[-3000:]
        expected = GOLDENS["v1"]
        assert json.loads(run.stdout.splitlines()[-1]) == expected
        assert "bias VariableV2 4" in expected["parsed"]["graphs"]["serve"]["nodes"]


def test_values_are_those_of_predict(trained, tmp_path):
    folder = trained.export_saved_model(tmp_path, one_number)
    predictions = [prediction["sum"] for prediction in trained.predict(numbers(3))]
    assert loaded(folder, [1.0, 2.0, 3.0]) == predictions == [-2.0, -1.0, 0.0]


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ((), "bare:serving_default raw:serving_default serving_default"),
        (("n",), "bare:n bare:serving_default n raw:n raw:serving_default serving_default"),
        (("n*",), "bare:n bare:serving_default n serving_default"),
        (("serving_default*", "n"), "bare:n bare:serving_default n raw:n serving_default"),
    ],
)
def test_alternatives_are_named_as_tf_1_15_named_them(model_dir, tmp_path, outputs, names):
    """TF 2.15 did likewise; a regression (*) takes strings alone."""

    def model_fn(features, labels, mode, params):
        if mode != ModeKeys.PREDICT:
            return falling(features, labels, mode, params)
        made = {
            name.strip("*"): export.RegressionOutput(features["feature"] * 2.0)
            if name.endswith("*")
            else export.PredictOutput(features["feature"] * 2.0)
            for name in outputs
        }
        doubled = {"x": features["feature"] * 2.0}
        return estimator.EstimatorSpec(mode, doubled, export_outputs=made or None)

    def receiver():
        text = tf1.placeholder(tf.string, [None])
        number = tf1.string_to_number(text)
        alternatives = {"raw": {"number": number}, "bare": text}
        return export.ServingInputReceiver(number, text, alternatives)

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(1))
    folder = model.export_saved_model(tmp_path, receiver)
    with tf1.Session(graph=tf.Graph()) as session:
        graph = tf1.saved_model.load(session, [tf.saved_model.SERVING], os.fsdecode(folder))
    assert sorted(graph.signature_def) == names.split()


def made_in_tf_1_15(*args):
    import estimator2strategy.tf1 as facade  # makes this function TF 1.15's

    return facade.estimator.Estimator(*args)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (made_in_tf_1_15, ["raw:serving_default", "serving_default"]),
        (estimator.Estimator, ["serving_default"]),
    ],
)
def test_signatures_that_need_more_than_they_are_fed_are_those_of_tf_1_15_alone(
    model_dir, tmp_path, make, names
):
    """TF 2.15 left out `raw:serving_default`: the output is its input, and made of the text."""

    def model_fn(features, labels, mode):
        if mode != ModeKeys.PREDICT:
            train_op = tf1.train.get_global_step().assign_add(1)
            return estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=train_op)
        return estimator.EstimatorSpec(mode, features)

    def receiver():
        text = tf1.placeholder(tf.string, [None])
        number = tf1.string_to_number(text)
        return export.ServingInputReceiver(number, text, {"raw": number})

    model = make(model_fn, model_dir)
    model.train(numbers(1))
    folder = model.export_saved_model(tmp_path, receiver)
    with tf1.Session(graph=tf.Graph()) as session:
        graph = tf1.saved_model.load(session, [tf.saved_model.SERVING], os.fsdecode(folder))
    assert sorted(graph.signature_def) == names


def test_what_a_branch_summarizes_does_not_keep_it_from_being_loaded(trained, tmp_path):
    def model_fn(features, labels, mode, params):
        spec = serve(features, labels, mode, params)
        tf1.summary.scalar("outside", 1.0)

        def summarized():
            tf1.summary.scalar("inside", 1.0)
            return 1.0

        tf.cond(tf1.placeholder_with_default(True, []), summarized, lambda: 2.0)
        return spec

    model = host_estimator(trained.model_dir, model_fn)
    folder = model.export_saved_model(tmp_path, one_number)
    assert loaded(folder, [1.0]) == [-2.0]


def test_the_folder_is_named_by_the_time_and_nothing_else_is_left(trained, tmp_path):
    folder = trained.export_saved_model(str(tmp_path / "models"), one_number)
    assert isinstance(folder, bytes)
    path = Path(os.fsdecode(folder))
    assert path.name.isdigit()
    assert list((tmp_path / "models").iterdir()) == [path]


@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT])
def test_one_mode_alone(trained, tmp_path, mode):
    folder = trained.export_saved_model(tmp_path, one_number, experimental_mode=mode)
    tags = export.EXPORT_TAG_MAP[mode]
    with tf1.Session(graph=tf.Graph()) as session:
        graph = tf1.saved_model.load(session, tags, os.fsdecode(folder))
        assert list(graph.signature_def) == [export.SIGNATURE_KEY_MAP[mode]]
        (weight,) = tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)
        assert session.run(weight) == -3.0


def test_all_modes_take_the_same_options(trained, tmp_path):
    note = tmp_path / "note"
    note.write_text("for the record")
    (first, _) = tf.train.get_checkpoint_state(trained.model_dir).all_model_checkpoint_paths
    folder = trained.experimental_export_all_saved_models(
        tmp_path / "models",
        {ModeKeys.PREDICT: one_number, ModeKeys.EVAL: one_number},
        assets_extra={"notes/1": str(note)},
        as_text=True,
        checkpoint_path=first,
    )
    assert loaded(folder, [1.0]) == [1.0]
    path = Path(os.fsdecode(folder))
    assert (path / "assets.extra" / "notes" / "1").read_text() == "for the record"
    assert (path / "saved_model.pbtxt").exists()


def test_checkpoint_path_chooses_the_values(trained, tmp_path):
    (first, _) = tf.train.get_checkpoint_state(trained.model_dir).all_model_checkpoint_paths
    folder = trained.export_saved_model(tmp_path, one_number, checkpoint_path=first)
    assert loaded(folder, [1.0]) == [1.0]


def test_a_listener_exports_in_the_midst_of_training(model_dir, tmp_path):
    folders = []

    class Listener(tf1.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            folders.append(model.export_saved_model(tmp_path, one_number))

    model = host_estimator(model_dir, serve, save_checkpoints_steps=2)
    model.train(numbers(3), saving_listeners=[Listener()])
    assert [loaded(folder, [0.0]) for folder in folders] == [[0.0], [-3.0], [-6.0]]


class TestWarmStart:
    """Before there is a checkpoint of its own, a model is what it starts from."""

    @pytest.fixture
    def warm(self, trained, tmp_path):
        folder = trained.export_saved_model(tmp_path / "models", one_number)
        own = str(tmp_path / "own")
        return estimator.Estimator(serve, own, params={}, warm_start_from=folder)

    def test_a_folder_of_checkpoints_is_exported(self, trained, tmp_path):
        warm = estimator.Estimator(serve, params={}, warm_start_from=trained.model_dir)
        assert loaded(warm.export_saved_model(tmp_path, one_number), [0.0]) == [-3.0]

    def test_a_saved_model_is_exported(self, warm, tmp_path):
        assert loaded(warm.export_saved_model(tmp_path / "again", one_number), [0.0]) == [-3.0]

    def test_training_starts_from_a_saved_model(self, warm):
        warm.train(numbers(1))
        assert warm.get_variable_value("weight") == -3.0 - 1.0
        assert warm.get_variable_value("global_step") == 1

    def test_evaluation_and_prediction_too(self, warm):
        assert warm.evaluate(numbers(1))["global_step"] == 0
        (prediction,) = warm.predict(numbers(1))
        assert prediction["sum"] == 1.0 - 3.0

    def test_a_folder_without_a_checkpoint_is_an_error(self, tmp_path):
        warm = estimator.Estimator(serve, params={}, warm_start_from=str(tmp_path))
        with pytest.raises(ValueError, match=f"Couldn't find trained model at .*{tmp_path}"):
            warm.export_saved_model(tmp_path / "models", one_number)


class TestScaffold:
    def served_with(self, model_dir, tmp_path, make_scaffold):
        def model_fn(features, labels, mode, params):
            return serve(features, labels, mode, params)._replace(scaffold=make_scaffold())

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(2))
        return model.export_saved_model(tmp_path, one_number)

    def test_local_init_op_runs_where_the_model_is_loaded(self, model_dir, tmp_path):
        def make_scaffold():
            local = tf1.get_local_variable("local", [], initializer=tf1.zeros_initializer())
            with tf.control_dependencies([local.initializer]):
                return tf1.train.Scaffold(local_init_op=tf.group(local.assign(7.0)))

        folder = self.served_with(model_dir, tmp_path, make_scaffold)
        with tf1.Session(graph=tf.Graph()) as session:
            tf1.saved_model.load(session, ["serve"], os.fsdecode(folder))
            (local,) = tf1.local_variables()
            assert session.run(local) == 7.0

    def test_its_saver_names_the_variables(self, model_dir, tmp_path):
        def make_scaffold():
            weight, step = tf1.trainable_variables()[0], tf1.train.get_global_step()
            saver = tf1.train.Saver({"old/weight": weight, "global_step": step}, sharded=True)
            return tf1.train.Scaffold(saver=saver)

        folder = self.served_with(model_dir, tmp_path, make_scaffold)
        assert loaded(folder, [0.0]) == [-3.0]
        variables = os.path.join(os.fsdecode(folder), "variables", "variables")
        assert tf.train.load_variable(variables, "old/weight") == -3.0

    def test_a_checkpoint_keeps_its_object_names(self, model_dir, tmp_path):
        def make_scaffold():
            weight, step = tf1.trainable_variables()[0], tf1.train.get_global_step()
            checkpoint = tf.train.Checkpoint(heavy=weight, global_step=step)
            return tf1.train.Scaffold(saver=checkpoint)

        folder = self.served_with(model_dir, tmp_path, make_scaffold)
        assert loaded(folder, [0.0]) == [-3.0]
        variables = os.path.join(os.fsdecode(folder), "variables", "variables")
        assert "heavy/.ATTRIBUTES/VARIABLE_VALUE" in dict(tf.train.list_variables(variables))


def test_what_names_a_device_that_is_not_here_is_placed_elsewhere(model_dir, tmp_path):
    def model_fn(features, labels, mode, params):
        with tf1.device("/gpu:0"):
            return serve(features, labels, mode, params)

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(2))
    folder = model.export_saved_model(tmp_path, one_number)
    (graph,) = served._parsed(os.fsdecode(folder)).meta_graphs
    assert "/device:GPU:0" in {node.device for node in graph.graph_def.node}


@pytest.mark.parametrize("method", ["export_saved_model", "export_savedmodel"])
class TestBadInput:
    def test_an_untrained_model_is_refused(self, model_dir, tmp_path, method):
        model = host_estimator(model_dir)
        with pytest.raises(ValueError, match=f"Couldn't find trained model at {model_dir}"):
            getattr(model, method)(tmp_path, one_number)

    def test_a_receiver_is_needed(self, trained, tmp_path, method):
        message = "lambda.*test_export_saved_model.py.* returned a dict, which has no 'features'"
        with pytest.raises(AttributeError, match=message):
            getattr(trained, method)(tmp_path, lambda: {"x": 1})

    def test_a_receiver_function_is_needed(self, trained, tmp_path, method):
        with pytest.raises(ValueError, match="An input_receiver_fn must be defined"):
            getattr(trained, method)(tmp_path, None)


def test_modes_that_do_not_exist_are_refused(trained, tmp_path):
    with pytest.raises(ValueError, match=r"No valid modes for exporting found. Got \['serve'\]"):
        trained.experimental_export_all_saved_models(tmp_path, {"serve": one_number})


def test_a_variable_that_the_checkpoint_lacks_is_an_error_with_its_mode(trained, tmp_path):
    def with_another(features, labels, mode, params):
        tf1.get_variable("another", [])
        return serve(features, labels, mode, params)

    model = host_estimator(trained.model_dir, with_another)
    expected = r"Could not load all requested variables from checkpoint[\s\S]*`infer`[\s\S]*another"
    with pytest.raises(ValueError, match=expected):
        model.export_saved_model(tmp_path, one_number)


def test_so_is_one_that_only_the_last_of_several_modes_has(trained, tmp_path):
    def with_another(features, labels, mode, params):
        if mode == ModeKeys.PREDICT:
            tf1.get_variable("another", [])
        return serve(features, labels, mode, params)

    model = host_estimator(trained.model_dir, with_another)
    receivers = {ModeKeys.EVAL: one_number, ModeKeys.PREDICT: one_number}
    with pytest.raises(ValueError, match=r"Could not load[\s\S]*`infer`[\s\S]*another"):
        model.experimental_export_all_saved_models(tmp_path, receivers)


class TestForTensorFlow115:
    """`for_tensorflow="1.15"`; `python -m tests.exports` loads such exports in TF 1.15 itself."""

    def test_the_graph_has_nothing_that_it_lacks(self, trained, tmp_path):
        folder = os.fsdecode(
            trained.export_saved_model(tmp_path, one_number, for_tensorflow="1.15")
        )
        model = model_files.read(folder)
        before = model.SerializeToString(deterministic=True)
        tensorflow_115.rewrite(model)
        assert model.SerializeToString(deterministic=True) == before
        assert loaded(folder, [1.0, 2.0, 3.0]) == [-2.0, -1.0, 0.0]

    def test_all_methods_take_it(self, trained, tmp_path):
        receivers = {ModeKeys.PREDICT: one_number}
        for export_all, argument in (
            (trained.export_savedmodel, one_number),
            (trained.experimental_export_all_saved_models, receivers),
        ):
            folder = os.fsdecode(export_all(tmp_path, argument, for_tensorflow="1.15"))
            (graph,) = model_files.read(folder).meta_graphs
            assert not [node.name for node in graph.graph_def.node if "debug_name" in node.attr]

    def test_an_op_that_it_lacks_is_refused_at_its_line_and_nothing_is_left(
        self, trained, tmp_path
    ):
        def receiver():
            text = tf1.placeholder(tf.string, [])
            image = tf.io.decode_image(text)
            return export.ServingInputReceiver(tf.cast(tf.size(image), tf.float32), text)

        with pytest.raises(SavedModelError, match=r"has no DecodeImage.*test_export_saved_model"):
            trained.export_saved_model(tmp_path, receiver, for_tensorflow="1.15")
        assert os.listdir(tmp_path) == ["model"]  # where it was trained

    def test_other_releases_are_refused(self, trained, tmp_path):
        with pytest.raises(ValueError, match="for_tensorflow must be a release") as error:
            trained.export_saved_model(tmp_path, one_number, for_tensorflow="1.4")
        assert "Pass '1.15'" in str(error.value)
