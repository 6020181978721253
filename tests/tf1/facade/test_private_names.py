"""Private names that programs import all the same do what they did."""

from __future__ import annotations

import operator

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1

estimator_lib = tf1.python.estimator.estimator
util = tf1.python.estimator.util


def test_global_step_of_a_folder_of_checkpoints(tmp_path):
    load = estimator_lib._load_global_step_from_checkpoint_dir
    assert load(str(tmp_path)) == 0
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.create_global_step()
        session.run(step.assign(7))
        tf1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=7)
    assert load(str(tmp_path)) == 7


def test_deep_modules_are_one(tmp_path):
    import estimator2strategy.estimator as ours

    assert issubclass(estimator_lib.Estimator, ours.Estimator)
    assert tf1.python.estimator.model_fn.EstimatorSpec is ours.EstimatorSpec
    assert tf1.python.estimator.run_config.RunConfig is ours.RunConfig
    assert tf1.python.tpu.tpu_config.TPUConfig is ours.tpu.TPUConfig
    # Two files had a RunConfig.
    assert tf1.python.tpu.tpu_config.RunConfig is ours.tpu.RunConfig
    assert tf1.python.estimator.tpu.tpu_config.RunConfig is ours.tpu.RunConfig
    assert tf1.python.estimator.tpu.tpu_estimator.ModeKeys is ours.ModeKeys
    assert tf1.python.estimator.model_fn.LOSS_METRIC_KEY == "loss"


def test_settings_of_embeddings_are_where_programs_find_them():
    from estimator2strategy.estimator import embedding_spec, tpu

    files = tf1.python.estimator.tpu.tpu_estimator, tf1.python.tpu.tpu_embedding
    for file in files:
        assert file.AdagradParameters is tpu.experimental.AdagradParameters
        assert file.StochasticGradientDescentParameters is (
            tpu.experimental.StochasticGradientDescentParameters
        )
    assert files[0].EmbeddingConfigSpec is tpu.experimental.EmbeddingConfigSpec
    assert files[1].TableConfig is embedding_spec.TableConfig
    assert files[1].FeatureConfig is embedding_spec.FeatureConfig


def test_old_exports_are_chosen_by_filters(tmp_path):
    gc = tf1.python.estimator.gc

    def version(path):
        name = path.path.rpartition("/")[2]
        return path._replace(export_version=int(name)) if name.isdigit() else None

    def numbers(paths):
        return [path.export_version for path in paths]

    for name in ("1", "5", "10", "11", "20", "variables"):
        (tmp_path / name).mkdir()
    paths = gc._get_paths(str(tmp_path), parser=version)
    assert sorted(numbers(paths)) == [1, 5, 10, 11, 20]
    largest, tens = gc._largest_export_versions(2), gc._mod_export_version(10)
    assert numbers(largest(paths)) == [11, 20]
    assert sorted(numbers(gc._negation(largest)(paths))) == [1, 5, 10]
    assert numbers(gc._one_of_every_n_export_versions(10)(paths)) == [10, 20]
    assert sorted(numbers(gc._union(largest, tens)(paths))) == [10, 11, 20]


def test_a_copied_exporter_finds_what_it_derives_from(tmp_path):
    exporter = tf1.python.estimator.exporter
    assert issubclass(tf1.estimator.FinalExporter, exporter._SavedModelExporter)
    assert not tf1.python.distribute.estimator_training.should_run_distribute_coordinator(
        tf1.estimator.RunConfig(str(tmp_path))
    )


@pytest.mark.parametrize("name", ["train.AdamAsyncOptimizer", "python.ops.kv_variable_ops"])
def test_what_only_a_fork_of_tensorflow_has_is_not_there(name):
    """Programs ask for it, and do without."""
    module, _, attribute = name.rpartition(".")
    assert not hasattr(operator.attrgetter(module)(tf1), attribute)


def test_fn_args():
    def function(features, labels=None, *rest, mode, **more):
        del features, labels, rest, mode, more

    assert util.fn_args(function) == ("features", "labels", "mode")


def test_result_of_an_input_fn_is_taken_apart():
    with tf.Graph().as_default():
        features, labels, hooks = util.parse_input_fn_result(
            tf1.data.Dataset.from_tensors(({"x": [1]}, [2]))
        )
        assert (features["x"].shape, labels.shape) == ([1], [1])
        for hook in hooks:
            hook.begin()
        with tf1.Session() as session:
            for hook in hooks:
                hook.after_create_session(session, None)
            assert session.run(labels).tolist() == [2]
    assert util.parse_input_fn_result("x") == ("x", None, [])
    with pytest.raises(ValueError, match="len 2 tuple"):
        util.parse_input_fn_result((1, 2, 3))


def test_training_ops_take_arguments_by_position():
    training_ops = tf1.python.training.training_ops
    variable = tf.Variable([1.0, 2.0])
    training_ops.resource_apply_gradient_descent(variable.handle, 0.5, [2.0, 2.0])
    assert variable.numpy().tolist() == [0.0, 1.0]


def test_devices_are_listed():
    assert any("CPU:0" in device for device in tf1.config.experimental_list_devices())


def test_a_type_like_a_tensor_needs_a_name_and_a_dtype():
    register = tf1.python.framework.ops.register_dense_tensor_like_type
    with pytest.raises(TypeError, match="does not define a `name` property"):
        register(int)


def test_private_heads_of_canned_estimators_add_losses_up():
    head_lib = tf1.python.estimator.canned.head
    logits, labels = [[1.0], [3.0]], [[0.0], [0.0]]
    with tf.Graph().as_default(), tf1.Session() as session:
        summed = head_lib._regression_head().create_loss({}, "train", logits, labels)
        mean = tf1.contrib.estimator.regression_head().create_loss({}, "train", logits, labels)
        given = head_lib._regression_head(loss_reduction="weighted_mean")
        given = given.create_loss({}, "train", logits, labels)
        losses = [summed.training_loss, mean.training_loss, given.training_loss]
        assert session.run(losses) == [10.0, 5.0, 5.0]


def test_a_program_may_write_a_head_of_tf_1():
    from estimator2strategy.estimator.heads import v1

    head_lib = tf1.python.estimator.canned.head

    class Mine(head_lib._Head):
        name, logits_dimension = None, 1

        def create_loss(self, features, mode, logits, labels):
            return logits

        def create_estimator_spec(self, features, mode, logits):
            return logits

    assert Mine().create_loss(None, None, 3, None) == 3
    assert isinstance(v1.regression_head(), head_lib._Head)


def test_an_optimizer_by_its_name():
    optimizers = tf1.python.estimator.canned.optimizers
    made = optimizers.get_optimizer_instance("Ftrl", 0.1)
    assert isinstance(made, tf1.train.FtrlOptimizer)


def test_private_names_of_keras_are_there():
    remove = tf1.python.keras.preprocessing.sequence._remove_long_seq
    assert remove(3, [[1, 2], [1, 2, 3, 4]], [0, 1]) == ([[1, 2]], [0])


def test_modules_of_keras_that_tf_keras_has_split_have_the_names_of_tf115():
    keras = tf1.python.keras
    assert keras.engine.base_layer.InputSpec is keras.engine.InputSpec is keras.layers.InputSpec
    assert keras.engine.Layer is tf1.keras.layers.Layer
    for module, name in [
        ("convolutional", "InputSpec"), ("convolutional_recurrent", "ConvLSTM2D"),
        ("core", "Layer"), ("cudnn_recurrent", "CuDNNLSTM"), ("embeddings", "Embedding"),
        ("merge", "Add"), ("normalization", "BatchNormalization"), ("pooling", "MaxPooling2D"),
        ("recurrent", "RNN"), ("wrappers", "Bidirectional"),
    ]:  # fmt: skip
        assert getattr(getattr(keras.layers, module), name) is getattr(keras.layers, name)


def test_datasets_of_private_modules_are_those_of_tf_data():
    from tensorflow.python.data.experimental.ops import (
        counter,
        interleave_ops,
        random_ops,
    )
    from tensorflow.python.data.experimental.ops import (
        readers as experimental_readers,
    )
    from tensorflow.python.data.ops import dataset_ops, readers

    from estimator2strategy.tf1.facade import namespace

    modules = dataset_ops, readers, counter, interleave_ops, random_ops, experimental_readers
    found = [
        f"{module.__name__.removeprefix('tensorflow.')}.{name}"
        for module in modules
        for name in vars(module)
        if hasattr(module, f"{name}V1") or hasattr(module, f"{name}_v1")
        if not name.startswith("_")
    ]
    assert len(found) == 12
    for name in found:
        package = name.partition(".ops.")[0]
        last = name.rpartition(".")[2]
        public = namespace.resolve(package.replace("python.", "tf.") + f".{last}")
        for path in (name, f"{package}.{last}"):
            assert namespace.resolve(f"tf.{path}") is public, path
            of_tf2 = namespace.resolve(f"tf.compat.v2.{path}", tf2=True)
            assert of_tf2 is not public, path


def test_names_that_tensorflow_has_moved_to_other_private_modules_are_there():
    columns = tf1.python.feature_column.feature_column_v2
    assert isinstance(tf1.feature_column.numeric_column("x"), columns.FeatureColumn)
    assert tf1.python.data.ops.dataset_ops.Options is tf1.data.Options
    assert tf1.python.framework.common_shapes.unknown_shape().ndims is None
    assert tf1.python.ops.gradients_util.IsTrainable(tf.constant(1.0))
    paths = tf1.python.saved_model.utils_impl
    assert paths.get_variables_path("folder") == "folder/variables/variables"


def test_a_copy_of_a_canned_estimator_finds_the_names_of_the_estimators_file(tmp_path):
    """The values are those of tensorflow_estimator 2.15.1."""
    config = estimator_lib.maybe_overwrite_model_dir_and_session_config(
        tf1.estimator.RunConfig(tf_random_seed=3), str(tmp_path)
    )
    assert (config.model_dir, config.tf_random_seed) == (str(tmp_path), 3)
    assert config.session_config.allow_soft_placement
    with pytest.raises(ValueError, match="with different values"):
        estimator_lib.maybe_overwrite_model_dir_and_session_config(config, "other")
    cell = estimator_lib._canned_estimator_api_gauge.get_cell("Classifier")
    assert cell.value() == ""
    cell.set("DNN")
    assert estimator_lib._canned_estimator_api_gauge.get_cell("Classifier").value() == "DNN"
    assert estimator_lib._estimator_api_gauge.get_cell("my_method").value() is False
    assert {"features", "labels", "self"} < estimator_lib._VALID_MODEL_FN_ARGS
    assert estimator_lib._dict_to_str({"b": 2, "a": 0.5, "c": b"x"}) == "a = 0.5, b = 2"
    assert estimator_lib._check_hooks_type(None) == []
    with pytest.raises(TypeError, match="Hooks must be a SessionRunHook"):
        estimator_lib._check_hooks_type([1])
    with pytest.raises(TypeError, match="must be a list of CheckpointSaverListener"):
        estimator_lib._check_listeners_type([1])
    with pytest.raises(ValueError, match="Could not find trained model in model_dir"):
        estimator_lib._check_checkpoint_available(str(tmp_path))
    assert estimator_lib._get_default_warm_start_settings(None) is None


def test_metrics_are_parted_into_values_and_one_update():
    with tf1.Graph().as_default():
        mean = tf1.metrics.mean([1.0, 3.0])
        update, values = estimator_lib._extract_metric_update_ops({"b": mean, "a": mean})
        assert list(values) == ["a", "b"]
        assert values["a"] is mean[0]
        assert isinstance(update, tf.Operation)
        assert estimator_lib._extract_metric_update_ops({}) == (None, {})
