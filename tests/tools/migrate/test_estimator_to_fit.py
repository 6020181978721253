"""estimator-to-fit: `fit` trains what the Estimator trained; where it could not, it stays."""

from __future__ import annotations

import importlib.util
import inspect

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.tools.migrate import era
from estimator2strategy.tools.migrate.apply import apply
from estimator2strategy.tools.migrate.codemod import codemods
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import parse

PROGRAM = """\
import numpy as np
import estimator2strategy.tf1 as tf

X = np.linspace(-1, 1, 96).reshape(24, 4).astype("float32")
CALLED = []


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices((X, X.sum(1, keepdims=True)))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices((X, X.sum(1, keepdims=True)))
    return data.batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(X[:6]).batch(params["batch_size"])


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(
        features, 5, tf.nn.tanh, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
    y = tf.layers.dense(net, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions={"y": y, "twice": 2 * y})
    loss = tf.losses.mean_squared_error(labels, y)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(
            lambda labels, y: {"error": tf.metrics.mean_absolute_error(labels, y)}, [labels, y]))
    tf.summary.scalar("size", tf.norm(net))
    with tf.name_scope("watched"):
        tf.summary.histogram("y", y)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(params["rate"]))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


class Counter(tf.train.SessionRunHook):
    def __init__(self, every):
        self.every = every

    def after_run(self, run_context, run_values):
        CALLED.append(self.every)


def build(model_dir):
    config = tf.contrib.tpu.RunConfig(
        model_dir=model_dir, save_checkpoints_steps=4, save_summary_steps=2)
    return tf.contrib.tpu.TPUEstimator(
        model_fn, config=config, params={"rate": 0.05},
        train_batch_size=8, eval_batch_size=6, predict_batch_size=3)


def main(model_dir):
    estimator = build(model_dir)
    estimator.train(input_fn, max_steps=6, hooks=[Counter(1)])
    estimator.train(input_fn, steps=3)
    results = estimator.evaluate(eval_input_fn, steps=4)
    predictions = list(estimator.predict(predict_input_fn, predict_keys=["y"]))
    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=11)
    eval_spec = tf.estimator.EvalSpec(eval_input_fn, steps=4, start_delay_secs=0)
    last, _ = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    return results, predictions, last
"""
# What is done with an Estimator -> a word of why it stays.
STAYS = {
    "estimator = tf.estimator.Estimator(model_fn, 'm', warm_start_from='w')": "warm_start_from",
    "estimator = tf.estimator.Estimator(**arguments)": "its arguments cannot be seen",
    "estimator = tf.estimator.Estimator(model_fn, 'm')\nestimator.eval_dir()": (
        "eval_dir is called on it"
    ),
    "estimator = tf.estimator.Estimator(model_fn, 'm')\nestimator.train(fn, hooks=hooks)": (
        "its hooks are not all made in the call"
    ),
    "estimator = tf.estimator.Estimator(model_fn, 'm')\n"
    "estimator.train(fn, hooks=[tf.train.NanTensorHook(loss)])": (
        "its hooks are not all made in the call"
    ),
    "estimator = tf.estimator.Estimator(model_fn, 'm')\n"
    "estimator.train(fn, saving_listeners=[listener])": "saving_listeners",
    "estimator = tf.estimator.Estimator(model_fn, 'm')\n"
    "spec = tf.estimator.EvalSpec(fn, hooks=[hook])\n"
    "tf.estimator.train_and_evaluate(estimator, train_spec, spec)": "it is given hooks",
    "estimator = tf.estimator.Estimator(model_fn, 'm')\n"
    "tf.estimator.train_and_evaluate(other, train_spec, spec)": "is not understood",
    "estimator = tf.estimator.tpu.TPUEstimator(model_fn, 'm')\n"
    "spec = tf.estimator.tpu.TPUEstimatorSpec('train', host_call=call)": "host_call",
    "estimator = tf.estimator.Estimator(model_fn, 'm')\nwith tf.Session() as s:\n    s.run(x)": (
        "there are Sessions beside it"
    ),
}


def migrated(text, *names):
    source = parse("program.py", "program.py", text)
    Project([source])
    chosen = [codemods()[name] for name in names or ("estimator-to-fit",)]
    return apply(text, chosen, facts=era.facts([source]))


@pytest.fixture(scope="module")
def texts():
    """The program before and after."""
    return PROGRAM, migrated(PROGRAM, "hooks-to-callbacks", "estimator-to-fit").text


def imported(text, folder, name):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ran(texts, tmp_path_factory):
    """(module, what it returned, model_dir) of the program before and after."""
    folder = tmp_path_factory.mktemp("programs")
    before, _ = texts
    on_host = before.replace("model_fn, config", "model_fn, use_tpu=False, config")
    on_host = on_host.replace("tf.tpu.CrossShardOptimizer", "")
    after = migrated(on_host, "hooks-to-callbacks", "estimator-to-fit").text
    found = []
    for name, text in (("with_estimator", on_host), ("with_fit", after)):
        module, model_dir = imported(text, folder, name), str(folder / f"of_{name}")
        found.append((module, module.main(model_dir), model_dir))
    return found


def test_fit_leaves_the_checkpoint_that_the_estimator_leaves(ran):
    readers = [tf.train.load_checkpoint(model_dir) for _, _, model_dir in ran]
    names = [set(reader.get_variable_to_shape_map()) for reader in readers]
    assert names[0] == names[1]
    assert readers[1].get_tensor("global_step") == 11
    for name in names[0]:
        before, after = (reader.get_tensor(name) for reader in readers)
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6, err_msg=name)


def test_evaluation_and_predictions_are_the_estimators(ran):
    (_, before, _), (_, after, _) = ran
    for i in (0, 2):
        assert after[i] == pytest.approx(before[i], abs=1e-5)
    assert [row.keys() for row in after[1]] == [{"y"}] * 6
    np.testing.assert_allclose([r["y"] for r in after[1]], [r["y"] for r in before[1]], atol=1e-5)


def test_fit_writes_the_summaries_of_the_model_fn_as_the_estimator_does(ran):
    before, after = (written(model_dir) for _, _, model_dir in ran)
    assert {tag for tag, _ in before} == {"loss", "size", "watched/y"}
    assert after == pytest.approx(before, abs=1e-5)


def written(model_dir):
    """(tag, step) -> a number of the summary, of training."""
    found = {}
    for path in tf.io.gfile.glob(f"{model_dir}/events*"):
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value:
                of_kind = value.histo.sum if value.HasField("histo") else value.simple_value
                found[value.tag, event.step] = of_kind
    return found


@pytest.mark.parametrize("own_loss", [True, False])
def test_a_loss_that_the_model_fn_summarizes_itself_is_written_once(own_loss, ran, tmp_path):
    tf1 = ran[1][0].tf

    def model_fn(features, labels, mode):
        loss = tf1.losses.mean_squared_error(labels, tf1.layers.dense(features, 1))
        if own_loss:
            tf1.summary.scalar("loss", 2 * loss)
        train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
            loss, tf1.train.get_global_step()
        )
        return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    loop = ran[1][0].KerasLoop(model_fn, str(tmp_path))
    loop.train(lambda: ran[1][0].input_fn({"batch_size": 8}), steps=1)
    (path,) = tmp_path.glob("events*")
    events = list(tf.compat.v1.train.summary_iterator(str(path)))
    (loss,) = (v.simple_value for e in events for v in e.summary.value if v.tag == "loss")
    # The program's is twice what it trains on.
    trained = loop.model.history.history["loss"][0]
    assert loss == pytest.approx(2 * trained if own_loss else trained, rel=1e-5)


def test_checkpoints_and_the_end_come_in_time_whatever_an_execution_runs(ran, tmp_path):
    module = ran[1][0]
    config = module.tf.estimator.RunConfig(str(tmp_path), save_checkpoints_steps=4)
    params = {"rate": 0.05, "batch_size": 8}
    loop = module.KerasLoop(module.model_fn, config=config, params=params, steps_per_execution=3)
    loop.train(module.input_fn, max_steps=10)
    found = {int(path.stem.rpartition("-")[2]) for path in tmp_path.glob("model.ckpt-*.index")}
    assert found == {0, 4, 8, 10}


def test_an_export_has_the_signatures_of_the_estimators(ran, tmp_path):
    _, (module, _, model_dir) = ran
    tf1 = module.tf

    def receiver():
        x = tf1.placeholder(tf1.float32, [None, 4], name="x")
        return tf1.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    def model_fn(features, labels, mode, params):
        spec = module.model_fn(features["x"], labels, mode, params)
        return tf1.estimator.EstimatorSpec(mode, spec.predictions)

    arguments = (model_fn, model_dir, None, {"rate": 0.05})
    loop, estimator = module.KerasLoop(*arguments), tf1.estimator.Estimator(*arguments)
    folders = [made.export_saved_model(str(tmp_path), receiver) for made in (loop, estimator)]
    exported, expected = (
        tf.saved_model.load(folder.decode()).signatures["serving_default"] for folder in folders
    )
    assert exported.structured_input_signature == expected.structured_input_signature
    x = tf.constant(module.X[:3])
    for name, value in expected(x=x).items():
        np.testing.assert_allclose(exported(x=x)[name], value, atol=1e-6)


def test_a_hook_that_fetches_the_loss_finds_it_in_the_logs(tmp_path):
    hook = """

class Losses(tf.train.SessionRunHook):
    def __init__(self, found):
        self.found = found

    def begin(self):
        self.fetched = {"step": tf.train.get_global_step(), "loss": tf.losses.get_total_loss()}

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.fetched)

    def after_run(self, run_context, run_values):
        self.found[int(run_values.results["step"])] = float(run_values.results["loss"])


FOUND = {}


def main(model_dir):
    estimator = tf.estimator.Estimator(model_fn, model_dir, params={"rate": 0.05, "batch_size": 8})
    estimator.train(input_fn, max_steps=5, hooks=[Losses(FOUND)])
    return FOUND
"""
    text = PROGRAM[: PROGRAM.index("class Counter")].rstrip() + "\n" + hook
    text = text.replace("tf.tpu.CrossShardOptimizer", "")
    text = text.replace("tf.contrib.tpu.TPUEstimatorSpec", "tf.estimator.EstimatorSpec")
    text = text.replace("eval_metrics=", "eval_metric_ops=")  # which is not evaluated
    after = migrated(text, "hooks-to-callbacks", "estimator-to-fit")
    assert not after.marks
    losses = [
        imported(one, tmp_path, name).main(str(tmp_path / f"of_{name}"))
        for name, one in (("hooked", text), ("called_back", after.text))
    ]
    assert losses[0].keys() == {1, 2, 3, 4, 5}
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


def test_a_program_that_trains_at_the_top_of_its_file_runs(tmp_path):
    text = PROGRAM[: PROGRAM.index("class Counter")].replace("tf.tpu.CrossShardOptimizer", "")
    text += (
        "estimator = tf.estimator.Estimator(\n"
        f"    model_fn, {str(tmp_path / 'm')!r}, params={{'rate': 0.05, 'batch_size': 8}})\n"
        "estimator.train(input_fn, max_steps=2)\n"
    )
    after = migrated(text, "estimator-to-fit")
    assert not after.marks
    assert imported(after.text, tmp_path, "at_the_top").estimator.global_step == 2


@pytest.mark.parametrize("method", ["train", "evaluate", "predict"])
def test_a_step_that_fails_in_the_loop_names_the_users_line(method, ran, tmp_path):
    module = ran[1][0]
    tf1 = module.tf

    def model_fn(features, labels, mode):
        y = tf1.layers.dense(features, 1)
        y = tf1.check_numerics(tf1.log(-tf1.abs(y)), "my check", name="check")  # the line
        if mode == "infer":
            return tf1.estimator.EstimatorSpec(mode, {"y": y})
        loss = tf1.losses.mean_squared_error(labels, y)
        train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
            loss, tf1.train.get_global_step()
        )
        return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    loop = module.KerasLoop(model_fn, str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        list(getattr(loop, method)(lambda: module.eval_input_fn({"batch_size": 8})))
    lines, first = inspect.getsourcelines(model_fn)
    (at,) = (first + i for i, line in enumerate(lines) if "# the line" in line)
    assert f"[[node check (defined at {__file__}:{at}) ]]" in raised.value.message


def test_hooks_of_the_program_are_called_as_callbacks(ran):
    module = ran[1][0]
    assert module.CALLED == [1] * 6
    assert (
        "callbacks=[CounterCallback(1)]"
        in migrated(PROGRAM, "hooks-to-callbacks", "estimator-to-fit").text
    )


# What a loop cannot do on the devices that a config asks for -> a word of its message.
REFUSED = {
    "several workers": ({"train_distribute": tf.distribute.OneDeviceStrategy("cpu:0")}, False),
    "num_cores_per_replica": ({"tpu_config": {"num_cores_per_replica": 2}}, True),
    "num_shards": ({"tpu_config": {"num_shards": 1}}, True),
    "per_host_input_for_training": ({"tpu_config": {"per_host_input_for_training": False}}, True),
}


@pytest.mark.parametrize("word", REFUSED)
def test_a_loop_that_cannot_train_as_the_estimator_says_so_before_it_trains(word, ran, tmp_path):
    module = ran[1][0]
    options, use_tpu = REFUSED[word]
    made = dict(options, model_dir=str(tmp_path))
    if "tpu_config" in made:
        made["tpu_config"] = module.tf.estimator.tpu.TPUConfig(**made["tpu_config"])
    config = module.tf.estimator.tpu.RunConfig(**made)
    with pytest.raises(ValueError, match=word):
        module.KerasLoop(module.model_fn, config=config, use_tpu=use_tpu, train_batch_size=8)


def test_a_loop_for_a_tpu_that_is_not_there_says_so_before_it_trains(ran, tmp_path):
    module = ran[1][0]
    with pytest.raises(tf.errors.NotFoundError, match="use_tpu=False"):
        module.KerasLoop(module.model_fn, str(tmp_path), use_tpu=True, train_batch_size=8)


def test_input_fn_is_asked_for_the_batch_of_a_core_where_each_core_has_its_own(
    ran, tmp_path, emulated_cores
):
    emulated_cores(2)
    module = ran[1][0]
    asked = []

    def input_fn(params):
        asked.append(params["batch_size"])
        return module.input_fn(params)

    kinds = module.tf.estimator.tpu.InputPipelineConfig
    for kind, of_input_fn in ((kinds.PER_HOST_V1, 8), (kinds.PER_HOST_V2, 4)):
        options = module.tf.estimator.tpu.TPUConfig(per_host_input_for_training=kind)
        config = module.tf.estimator.tpu.RunConfig(model_dir=str(tmp_path), tpu_config=options)
        loop = module.KerasLoop(module.model_fn, config=config, use_tpu=True, train_batch_size=8)
        x, _ = loop.dataset(input_fn, "train").element_spec
        assert asked.pop() == of_input_fn
        assert x.shape[0] == 8


def test_a_tpu_estimator_keeps_its_use_tpu_and_the_calls_stay(texts):
    after = texts[1]
    assert "predict_batch_size=3, use_tpu=True)" in after
    assert "estimator.train(input_fn, steps=3)" in after
    assert "last, _ = estimator.train_and_evaluate(train_spec, eval_spec)" in after
    assert "from estimator2strategy import KerasLoop\n" in after
    assert "class KerasLoop" not in after
    again = migrated(after, "hooks-to-callbacks", "estimator-to-fit")
    assert again.text == after


@pytest.mark.parametrize("done", STAYS)
def test_an_estimator_that_does_more_stays_with_a_mark(done):
    text = f"import estimator2strategy.tf1 as tf\n\n{done}\n"
    outcome = migrated(text)
    assert not outcome.counts
    assert outcome.marks
    assert all(STAYS[done] in mark.message for mark in outcome.marks)


def test_a_program_in_graph_mode_is_told_to_change_the_import_first():
    text = "import tensorflow as tf\n\nestimator = tf.estimator.Estimator(model_fn, 'm')\n"
    (mark,) = migrated(text).marks
    assert "change the import first" in mark.message
