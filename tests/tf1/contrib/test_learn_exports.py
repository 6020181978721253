"""`tf.contrib.learn.utils`: exports are made, found, kept and deleted as in TF 1.15."""

import os
import re

import pytest
from estimator2strategy.tf1.contrib.learn.python.learn.utils import (
    gc,
    input_fn_utils,
    saved_model_export_utils,
)

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import UnsupportedError
from tests.tf1.contrib import two_outputs

learn = tf.contrib.learn


def input_fn():
    return {"x": tf.constant([[1.0, 2.0], [3.0, 4.0]])}, tf.constant([[1.0], [2.0]])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    made = learn.Estimator(two_outputs.model_fn, str(tmp_path_factory.mktemp("model")))
    return made.fit(input_fn=input_fn, steps=1)


def serving_input_fn():
    x = tf.placeholder(tf.float32, [None, 2])
    return input_fn_utils.InputFnOps({"x": x}, None, {"x": x})


def predicted(path, inputs=((1.0, 2.0),)):
    return tf.contrib.predictor.from_saved_model(tf.compat.as_str(path))({"x": inputs})


def test_a_strategy_exports_an_estimator_of_contrib_learn(model, tmp_path):
    strategy = saved_model_export_utils.make_export_strategy(serving_input_fn, "twice")
    assert predicted(strategy.export(model, str(tmp_path)))["double"].tolist() == [[6.0]]


def test_a_strategy_for_a_core_estimator_has_no_default_output():
    strategy = saved_model_export_utils.make_export_strategy(serving_input_fn, "twice")
    with pytest.raises(ValueError, match=r"not supported in core Estimator\. Given: twice"):
        strategy.export(tf.estimator.Estimator(two_outputs.model_fn), "folder")


def test_features_themselves_are_served(model, tmp_path):
    with tf.Graph().as_default():
        features, _ = input_fn()
        serving = input_fn_utils.build_default_serving_input_fn(features)
        assert serving().default_inputs["x"].shape.as_list() == [None, 2]
    strategy = saved_model_export_utils.make_export_strategy(serving, "sum")
    assert predicted(strategy.export(model, str(tmp_path)))["scores"].tolist() == [[3.0]]


def test_columns_say_what_is_parsed(model, tmp_path):
    columns = [tf.contrib.layers.real_valued_column("x", dimension=2)]
    strategy = saved_model_export_utils.make_parsing_export_strategy(columns, "sum")
    predictor = tf.contrib.predictor.from_saved_model(
        tf.compat.as_str(strategy.export(model, str(tmp_path)))
    )
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.0, 2.0])
    (name,) = predictor.feed_tensors
    (scores,) = predictor({name: [example.SerializeToString()]}).values()
    assert scores.tolist() == [[3.0]]


def test_only_the_best_model_is_exported(model, tmp_path):
    strategy = saved_model_export_utils.make_best_model_export_strategy(
        serving_input_fn, default_output_alternative_key="sum"
    )
    exported = [strategy.export(model, str(tmp_path), None, {"loss": v}) for v in (3.0, 4.0, 2.0)]
    assert exported[1] == ""
    assert strategy.name == "best_model"
    checkpoint = os.path.basename(model.latest_checkpoint())
    assert os.listdir(tmp_path) == [checkpoint]
    assert len(os.listdir(tmp_path / checkpoint)) == 1
    with pytest.raises(ValueError, match="no loss is found"):
        strategy.export(model, str(tmp_path), None, {"accuracy": 1.0})


def test_the_best_evaluation_is_known_from_event_files(tmp_path):
    with tf.Graph().as_default():
        writer = tf.summary.FileWriter(str(tmp_path / "eval"))
    for value in (5.0, 2.0, 7.0):
        summary = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=value)])
        writer.add_summary(summary)
    writer.close()
    pattern = str(tmp_path / "eval" / "*")
    selector = saved_model_export_utils.BestModelSelector(pattern)
    assert selector.update("a", {"loss": 3.0}) == ("", None)
    assert selector.update("b", {"loss": 1.0}) == ("b", {"loss": 1.0})
    with pytest.raises(ValueError, match="Checkpoint path is empty"):
        selector.update("", {"loss": 1.0})


def test_an_export_is_changed_afterwards(model, tmp_path):
    def copy(exported, folder):
        target = os.path.join(folder, "1234567890")
        os.rename(exported, target.encode())
        return target

    base = saved_model_export_utils.make_export_strategy(serving_input_fn, "sum")
    strategy = saved_model_export_utils.extend_export_strategy(base, copy, "changed")
    assert strategy.name == "changed"
    path = strategy.export(model, str(tmp_path))
    assert path == str(tmp_path / "1234567890")
    assert os.listdir(tmp_path) == ["1234567890"]
    assert predicted(path)["scores"].tolist() == [[3.0]]
    wrong = saved_model_export_utils.extend_export_strategy(base, lambda exported, _: exported)
    with pytest.raises(ValueError, match="must return a sub-directory"):
        wrong.export(model, str(tmp_path))


def folders(tmp_path, *names):
    for name in names:
        (tmp_path / name).mkdir()
    return str(tmp_path)


def test_the_newest_exports_are_found_and_kept(tmp_path):
    base = folders(tmp_path, "1000000001", "1000000003", "1000000002", "temp-1000000009", "12")
    newest = saved_model_export_utils.get_most_recent_export(base)
    assert newest == gc.Path(os.path.join(base, "1000000003"), 1000000003)
    saved_model_export_utils.garbage_collect_exports(base, None)
    assert len(os.listdir(base)) == 5
    saved_model_export_utils.garbage_collect_exports(base, 1)
    assert sorted(os.listdir(base)) == ["1000000003", "12", "temp-1000000009"]
    assert saved_model_export_utils.get_most_recent_export(folders(tmp_path / "12")) is None


def test_export_folders_are_named_after_the_time(tmp_path):
    path = saved_model_export_utils.get_timestamped_export_dir(str(tmp_path))
    assert re.fullmatch(rb".*/\d{10}", path)
    assert not os.path.exists(path)
    assert saved_model_export_utils.get_temp_export_dir("/a/12") == b"/a/temp-12"


def test_filters_select_versions():
    # The results are those of TF 1.15.
    paths = [gc.Path(f"p{v}", v) for v in (0, 1, 2, 5, 6, 9, 10)]

    def kept(keep):
        return [path.export_version for path in keep(paths)]

    assert kept(gc.largest_export_versions(2)) == [10, 9]
    assert kept(gc.one_of_every_n_export_versions(3)) == [10, 2, 6, 9]
    assert kept(gc.mod_export_version(5)) == [0, 10, 5]
    both = gc.union(gc.mod_export_version(5), gc.largest_export_versions(2))
    assert kept(both) == [0, 10, 5, 9]
    assert kept(gc.negation(both)) == [1, 2, 6]
    assert gc.largest_export_versions(1)([gc.Path("unknown", None)]) == []


def test_what_wrote_session_bundles_is_refused():
    with pytest.raises(UnsupportedError, match="export_savedmodel of the Estimator"):
        learn.utils.export_estimator(None, "folder")
    with pytest.raises(UnsupportedError, match="export_outputs"):
        saved_model_export_utils.get_input_alternatives(None)


def test_metric_keys_are_those_of_tf_1_15():
    from estimator2strategy.tf1.contrib.learn.python.learn.estimators import metric_key

    assert metric_key.MetricKey.LOSS == "loss"
    assert metric_key.MetricKey.CLASS_AUC % 3 == "auc/class3"
