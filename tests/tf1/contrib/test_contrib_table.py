"""`symbols.csv` says what `tf.contrib` is: every row that works leads to something."""

import ast
import importlib
import importlib.util
import subprocess
import sys
import types
from pathlib import Path

import pytest
import tensorflow

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.legacy import importing
from estimator2strategy.tf1 import contrib
from tests import fresh

ROWS = contrib.table().symbols.values()


def lookup(name):
    value = tf
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


@pytest.mark.oldest
def test_every_row_that_works_resolves():
    broken = []
    for row in ROWS:
        if row.status != "refused":
            try:
                value = lookup(row.name)
            except Exception as error:
                if "pip install tensorboard" in str(error):
                    continue  # an optional package, as it is for TensorFlow
                broken.append(f"{row.name} at {row.home}: {error!r}")
            else:
                assert not isinstance(value, contrib.Refused), row.name
    assert not broken


def test_every_row_has_a_status_and_what_belongs_to_it():
    for row in ROWS:
        assert row.status in ("works", "home", "refused"), row
        assert bool(row.home) == (row.status != "refused"), row
        assert row.status != "refused" or row.advice, row
        assert (row.status == "works") == row.home.startswith("estimator2strategy.tf1.contrib"), row


def test_a_hint_is_a_name_that_looks_alike():
    with pytest.raises(AttributeError, match=r"Did you mean tf\.contrib\.learn\.InputFnOps\?"):
        tf.contrib.learn.InputFnOp  # noqa: B018
    with pytest.raises(AttributeError) as error:
        tf.contrib.layers.nosuch  # noqa: B018
    assert "Did you mean" not in str(error.value)


def test_a_refused_name_imports_and_its_use_says_what_to_do():
    client = tf.contrib.cloud.BigtableClient
    assert "not supported" in repr(client)
    with pytest.raises(UnsupportedError, match=r"contrib\.cloud\.BigtableClient .*tensorflow-io"):
        client("project", "instance")
    with pytest.raises(UnsupportedError, match="Bigtable"):
        client.table  # noqa: B018
    with pytest.raises(UnsupportedError, match="Bigtable"):

        class Client(client):
            pass


def test_a_name_that_tf_1_15_did_not_have_is_an_attribute_error_with_the_nearest():
    with pytest.raises(AttributeError, match=r"Did you mean tf\.contrib\.layers\.layer_norm\?"):
        tf.contrib.layers.layer_nrom  # noqa: B018
    with pytest.raises(AttributeError, match=r"no tf\.contrib\.nosuch"):
        tf.contrib.nosuch  # noqa: B018
    assert not hasattr(tf.contrib.data, "nosuch")


def test_deep_paths_lead_to_the_public_names():
    deep = tf.contrib.tpu.python.tpu
    assert deep.tpu_config.RunConfig is tf.contrib.tpu.RunConfig
    assert deep.tpu_estimator.TPUEstimatorSpec is tf.contrib.tpu.TPUEstimatorSpec
    assert tf.contrib.layers.python.layers.layers.layer_norm is tf.contrib.layers.layer_norm


@pytest.mark.parametrize(
    "name",
    [
        "layers.feature_column.real_valued_column",  # its package brought the file along
        "lookup.lookup_ops.HashTable",
        "predictor.predictor_factories.from_saved_model",
        "slim.nn.relu",  # `slim` collected what its files had imported
        "slim.init_ops.zeros_initializer",
        "summary.summary.scalar",
    ],
)
def test_modules_that_collect_names_have_them(name):
    module, _, attribute = name.rpartition(".")
    imported = importlib.import_module(f"estimator2strategy.tf1.contrib.{module}")
    assert getattr(imported, attribute) is lookup(f"tf.contrib.{name}")
    assert callable(lookup(f"tf.contrib.{name}"))


def test_an_alias_has_what_the_module_has():
    files = tf.contrib.layers.feature_column
    assert files.real_valued_column is tf.contrib.layers.real_valued_column
    assert tf.contrib.summary.summary is tf.contrib.summary
    find = contrib.table().find
    assert find("tf.contrib.lookup.lookup_ops.HashTable") == find("tf.contrib.lookup.HashTable")
    assert find("tf.contrib.lookup.lookup_ops.nosuch") is None
    with pytest.raises(AttributeError, match=r"no tf\.contrib\.lookup\.nosuch"):
        tf.contrib.lookup.lookup_ops.nosuch  # noqa: B018


def test_a_module_of_another_library_lacks_what_its_rows_refuse():
    assert tf.contrib.keras.utils.to_categorical([1]).tolist() == [[0, 1]]
    with pytest.raises(UnsupportedError, match="h5py"):
        tf.contrib.keras.utils.HDF5Matrix("x.h5", "x")
    assert {"HDF5Matrix", "to_categorical"} <= set(dir(tf.contrib.keras.utils))


def test_tf_gan_lacks_names_and_files_that_contrib_had():
    pytest.importorskip("tensorflow_gan")
    gan = tf.contrib.gan
    deep = importlib.import_module("estimator2strategy.tf1.contrib.gan.python.eval.python")
    assert gan.python.losses.python.losses_impl.modified_generator_loss
    assert gan.python.features.python.virtual_batchnorm_impl.VBN is gan.features.VBN
    assert deep.classifier_metrics_impl.inception_score is gan.eval.inception_score
    for module in (gan.eval, gan.eval.classifier_metrics, deep.classifier_metrics):
        with pytest.raises(UnsupportedError, match="resize_bilinear"):
            module.preprocess_image([])


def test_a_private_name_of_a_deep_module_imports_and_is_refused_when_used():
    with pytest.raises(UnsupportedError, match="_InternalTPUContext"):
        tf.contrib.tpu.python.tpu.tpu_context._InternalTPUContext()


def test_modules_are_imported_by_name_too():
    import estimator2strategy.tf1.contrib.metrics as metrics

    import estimator2strategy.tf1.contrib.data as data
    from estimator2strategy.tf1.contrib import slim

    assert data is tf.contrib.data
    assert metrics is tf.contrib.metrics
    assert slim is tf.contrib.slim


@pytest.mark.parametrize(
    "page", Path(contrib.__file__).parent.glob("*/__init__.py"), ids=lambda page: page.parent.name
)
def test_each_folder_says_in_a_few_lines_what_it_serves_and_refuses(page):
    text = ast.get_docstring(ast.parse(page.read_text()))
    assert text.startswith(f"`tf.contrib.{page.parent.name}` of TF 1")
    assert len(text.splitlines()) <= 15
    assert "efused" in text


def test_the_table_is_read_without_tensorflow():
    code = (
        "import sys; from estimator2strategy.engine.names import name_table\n"
        "table = name_table.read('tf1/contrib/symbols.csv', 'tf1/contrib/modules.txt')\n"
        "home = lambda name: table.find('tf.contrib.' + name).home\n"
        "assert home('layers.python.layers.layers.conv2d') == 'tf_slim.layers:conv2d'\n"
        "assert home('tpu.InputPipelineConfig.PER_HOST_V2').endswith(':InputPipelineConfig')\n"
        "assert table.find('tf.contrib.cloud.python.ops.Reader').status == 'refused'\n"
        "assert table.find('tf.contrib.layers.nosuch') is None\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tf_slim_and_tensorflow_stay_as_they_are():
    code = (
        "import sys\n"
        "from tensorflow.python.framework import ops\n"
        "from tensorflow.python.ops import array_ops\n"
        "import estimator2strategy.tf1 as tf\n"
        "before = set(vars(ops)), set(vars(array_ops))\n"
        "with tf.Graph().as_default():\n"
        "    tf.contrib.slim.batch_norm(tf.placeholder(tf.float32, [2, 4, 4, 3]))\n"
        "assert 'tf_slim' not in sys.modules\n"
        # Only losses of metric learning need it.
        "assert 'sklearn.metrics' not in sys.modules\n"
        "metrics = tf.contrib.losses.metric_learning.metrics\n"
        "assert metrics.normalized_mutual_info_score([0, 1], [1, 0]) == 1\n"
        "assert before == (set(vars(ops)), set(vars(array_ops)))\n"
    )
    subprocess.run([fresh.python(), "-c", code], check=True)


def test_without_tf_slim_its_names_say_how_to_install_it(monkeypatch):
    from estimator2strategy.tf1.facade import slim_copy

    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ModuleNotFoundError, match="pip install tf-slim"):
        slim_copy.module("tf_slim", prefix="no_copy_yet.")


def test_contrib_is_no_part_of_tensorflow():
    assert not hasattr(tensorflow, "contrib")


def test_keras_of_contrib_is_keras_2():
    import tf_keras

    assert tf.contrib.keras.layers.Dense is tf_keras.layers.Dense
    assert tf.contrib.keras.api.keras.models.Sequential is tf_keras.models.Sequential
    with pytest.raises(UnsupportedError, match="scikeras"):
        tf.contrib.keras.wrappers.scikit_learn.KerasClassifier()


def test_deep_names_that_are_ours_are_ours():
    from estimator2strategy.estimator import tpu

    deep = tf.contrib.tpu.python.tpu
    assert deep.tpu_estimator.BatchConfig is tpu.BatchConfig
    assert deep.tpu_estimator.ExportSavedModelApiVersion is tpu.ExportSavedModelApiVersion
    with pytest.raises(ValueError, match="batch_size must be positive"):
        deep.util.check_positive_integer(0, "batch_size")
    hook = tf.contrib.estimator.InMemoryEvaluatorHook
    assert hook is tf.estimator.experimental.InMemoryEvaluatorHook


@pytest.mark.oldest
def test_the_projector_is_tensorboards_where_that_is_installed(tmp_path):
    # TensorFlow brought TensorBoard along up to 2.20.
    projector = tf.contrib.tensorboard.plugins.projector
    if importlib.util.find_spec("tensorboard") is None:
        with pytest.raises(ModuleNotFoundError, match="pip install tensorboard"):
            projector.ProjectorConfig()
        return
    config = projector.ProjectorConfig()
    config.embeddings.add().tensor_name = "words"
    with tensorflow.Graph().as_default():
        projector.visualize_embeddings(tf.summary.FileWriter(str(tmp_path)), config)
    assert 'tensor_name: "words"' in (tmp_path / "projector_config.pbtxt").read_text()


def test_gan_is_the_library_that_became_of_it():
    # As a member, as a module, and as what is imported from it.
    if importlib.util.find_spec("tensorflow_gan") is None:
        with pytest.raises(ModuleNotFoundError, match="pip install tensorflow-gan"):
            _ = tf.contrib.gan.gan_model
        return
    library = tf.contrib.gan
    assert library.losses.__name__ == "tensorflow_gan.python.losses"
    module = importlib.import_module("estimator2strategy.tf1.contrib.gan")
    assert module.gan_model is library.gan_model
    assert module.estimator.GANEstimator is library.estimator.GANEstimator
    assert issubclass(library.estimator.GANEstimator, tf.estimator.Estimator)


@pytest.mark.parametrize(
    ("module", "some"),
    [
        ("rnn", {"BasicLSTMCell", "LSTMBlockCell", "stack_bidirectional_dynamic_rnn"}),
        ("framework", {"arg_scope", "get_or_create_global_step", "nest"}),
        ("training", {"HParams", "checkpoints_iterator"}),
        ("layers", {"conv2d", "fully_connected", "xavier_initializer"}),
        ("layers.python.layers.layers", {"conv2d", "batch_norm"}),
    ],
)
def test_a_star_import_brings_the_names_that_work_and_nothing_of_ours(module, some):
    program = types.ModuleType("program")
    source = f"import tensorflow as tf\nbefore = tf\nfrom tensorflow.contrib.{module} import *\n"
    importing.execute(compile(source, "program.py", "exec"), program)
    names = vars(program)
    assert some <= names.keys()
    assert names["tf"] is names["before"]
    assert names.keys().isdisjoint({"names_of", "Any", "annotations", "Refused"})
    assert not any(isinstance(value, contrib.Refused) for value in names.values())


def test_a_name_of_a_module_that_is_refused_may_work():
    assert "/job:localhost/replica:0/task:0/device:CPU:0" in tf.contrib.eager.list_devices()
    with pytest.raises(UnsupportedError, match="Legacy programs run as graphs"):
        tf.contrib.eager.metrics.Mean()


@pytest.mark.oldest
@pytest.mark.parametrize(
    ("statement", "is_same"),
    [
        # Before TF 1.4.
        ("from tensorflow.contrib.rnn.python.ops.core_rnn_cell_impl import LSTMCell", "rnn"),
        ("from tensorflow.contrib.rnn.python.ops.core_rnn import static_rnn", "rnn"),
        ("from tensorflow.contrib.keras.python.keras.layers import Dense", "keras.layers"),
        ("from tensorflow.contrib.framework.python.framework.deprecation import deprecated", ""),
        ("from tensorflow.contrib.summary.summary_ops import scalar", "summary"),
        ("from tensorflow.contrib.signal.python.ops.window_ops import hann_window", ""),
        # Private names.
        ("from tensorflow.contrib.rnn.python.ops.rnn_cell import _linear", ""),
        ("from tensorflow.contrib.rnn.python.ops.core_rnn_cell_impl import _linear", ""),
        ("from tensorflow.contrib.layers.python.layers.layers import _build_variable_getter", ""),
        # A package has the names of its files.
        ("from tensorflow.contrib.learn.python import SKCompat", "learn"),
        ("from tensorflow.contrib.learn.python.learn import run_config; run_config.RunConfig", ""),
        ("from tensorflow.contrib.learn.python.learn.session_run_hook import SessionRunHook", ""),
        ("from tensorflow.contrib.lookup.lookup_ops import HashTable", "lookup"),
    ],
)
def test_imports_of_public_programs_work(statement, is_same):
    program = types.ModuleType("program")
    importing.execute(compile(statement, "program.py", "exec"), program)
    name = statement.partition(";")[0].split()[-1]
    value = getattr(program, name)
    assert not isinstance(value, contrib.Refused)
    if is_same:
        assert value is lookup(f"tf.contrib.{is_same}.{name}")


def test_a_signature_is_found_by_its_key():
    graph = tf.MetaGraphDef()
    graph.signature_def["best"].method_name = "predict"
    from_file = lookup(
        "tf.contrib.saved_model.python.saved_model.signature_def_utils.get_signature_def_by_key"
    )
    assert from_file(graph, "best").method_name == "predict"
    with pytest.raises(ValueError, match="No SignatureDef with key 'worst' found"):
        tf.contrib.saved_model.get_signature_def_by_key(graph, "worst")


def test_columns_have_the_classes_that_programs_ask_for():
    columns = importlib.import_module(
        "estimator2strategy.tf1.contrib.layers.python.layers.feature_column"
    )
    price = tf.contrib.layers.real_valued_column("price")
    words = tf.contrib.layers.sparse_column_with_hash_bucket("words", 10)
    assert isinstance(price, columns._RealValuedColumn)
    assert isinstance(words, columns._SparseColumn)
    embedded = tf.contrib.layers.embedding_column(words, 4)
    assert isinstance(embedded, tf.contrib.layers.feature_column._EmbeddingColumn)
    assert not isinstance(price, columns._EmbeddingColumn)


def test_names_of_eager_that_graphs_have_too_work_in_them():
    from estimator2strategy.tf1.contrib.eager.python import tfe

    with tf.Graph().as_default():
        weight = tfe.Variable(3.0)
        with tfe.GradientTape() as tape:
            loss = weight * weight
        gradient = tape.gradient(loss, weight)
        with tf.Session() as session:
            session.run(weight.initializer)
            assert session.run(gradient) == 6.0
        assert not tfe.executing_eagerly()
