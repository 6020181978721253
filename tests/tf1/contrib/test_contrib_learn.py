"""`tf.contrib.learn`: Experiment and learn_runner drive an Estimator."""

import json
import os

import pytest
import tensorflow

import estimator2strategy.tf1 as tf
from tests.engine.runtime.programs import falling, numbers

learn = tf.contrib.learn


def ops_model_fn(features, labels, mode, params):
    """Of learn.Estimator; the weight falls by `rate` times the batch's mean."""
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    mean = tf.reduce_mean(features)
    step = tf.train.get_global_step()
    train_op = tf.group(weight.assign_sub(params["rate"] * mean), step.assign_add(1))
    return learn.ModelFnOps(mode, {"sum": features + weight}, mean, train_op)


def labelled():
    return tf.data.Dataset.from_tensor_slices(([1.0, 3.0], [1.0, 2.0])).batch(1)


@pytest.fixture
def program(model_dir):
    config = tf.estimator.RunConfig(model_dir, save_checkpoints_steps=2)
    return tf.estimator.Estimator(falling, config=config, params={})


def experiment(program, **kwargs):
    kwargs = {"train_steps": 4, "eval_steps": None, "check_interval_secs": 0, **kwargs}
    return learn.Experiment(program, numbers(6), numbers(2), **kwargs)


def evaluated_steps(program):
    from estimator2strategy.estimator.early_stopping import read_eval_metrics

    return list(read_eval_metrics(program.eval_dir()))


def test_train_and_evaluate_evaluates_each_checkpoint_and_the_end(program):
    result, exports = experiment(program).train_and_evaluate()
    assert (result["global_step"], result["loss"], exports) == (4, 1.5, [])
    assert {2, 4} <= set(evaluated_steps(program))


class Evaluations(tf.train.SessionRunHook):
    """Notes the step of each checkpoint that is evaluated."""

    def __init__(self):
        self.steps = []

    def after_create_session(self, session, coord):
        self.steps.append(int(session.run(tf.train.get_global_step())))


@pytest.mark.parametrize(
    ("save_steps", "frequency", "interval", "first", "second"),
    [
        (2, None, 0, [0, 2, 4, 6, 6], [6, 8, 9]),
        (2, 3, 0, [2, 6, 6], [6, 9]),
        (2, 4, 5000, [4, 6], [6, 9]),
        (100, 3, 0, [0, 6], [6, 9]),
        (100, 1000, 0, [6], [9]),
    ],
)
def test_the_checkpoints_that_tf115_evaluated_are_evaluated(
    model_dir, save_steps, frequency, interval, first, second
):
    """Recorded with TensorFlow 1.15.5: to step 6, and by another Experiment to step 9."""
    config = tf.estimator.RunConfig(model_dir, save_checkpoints_steps=save_steps)
    program = tf.estimator.Estimator(falling, config=config, params={})
    for steps, expected in ((6, first), (9, second)):
        hook = Evaluations()
        options = {"min_eval_frequency": frequency, "check_interval_secs": interval}
        made = learn.Experiment(
            program,
            numbers(9),
            numbers(2),
            train_steps=steps,
            eval_steps=None,
            eval_hooks=[hook],
            **options,
        )
        made.train_and_evaluate()
        assert hook.steps == expected


def test_min_eval_frequency_0_evaluates_the_end_only(program):
    experiment(program, min_eval_frequency=0).train_and_evaluate()
    assert evaluated_steps(program) == [4]


def serving_input_fn():
    features = tf.placeholder(tf.float32, [None])
    return tf.estimator.export.TensorServingInputReceiver(features, features)


def predicting(features, labels, mode, params):
    spec = falling(features, labels, mode, params)
    if mode != tf.estimator.ModeKeys.PREDICT:
        return spec
    outputs = {"serving_default": tf.estimator.export.PredictOutput(spec.predictions)}
    return spec._replace(export_outputs=outputs)


def test_export_strategies_run_after_the_evaluation(model_dir):
    program = tf.estimator.Estimator(predicting, model_dir, params={})
    strategy = learn.utils.saved_model_export_utils.make_export_strategy(serving_input_fn)
    _, [path] = experiment(program, export_strategies=strategy).train_and_evaluate()
    path = os.fsdecode(path)
    assert os.path.dirname(path) == os.path.join(model_dir, "export", "Servo")
    served = tensorflow.saved_model.load(path).signatures["serving_default"]
    # The weight fell by 1 + 2 + 3 + 4.
    assert served(tensorflow.constant([1.0]))["sum"].numpy() == [-9.0]


def test_make_export_strategy_keeps_the_newest(tmp_path):
    made = (f"100000000{number}" for number in (1, 2, 3))  # seconds since 1970

    class Exporting:
        def export_saved_model(self, base, *args, **kwargs):
            path = tmp_path / next(made)
            path.mkdir()
            return str(path)

    strategy = learn.make_export_strategy(serving_input_fn, exports_to_keep=2)
    for _ in range(3):
        strategy.export(Exporting(), str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["1000000002", "1000000003"]


def test_continuous_train_and_eval_takes_turns(program):
    result, _ = experiment(program, train_steps_per_iteration=2).continuous_train_and_eval()
    assert result["global_step"] == 4


def test_continuous_eval_ends_with_the_last_checkpoint(program):
    run = experiment(program, eval_delay_secs=0, continuous_eval_throttle_secs=0)
    run.train()
    seen = []
    run.continuous_eval(continuous_eval_predicate_fn=lambda result: seen.append(result) or True)
    assert seen == [None]


def test_learn_runner_runs_the_schedule(model_dir):
    def experiment_fn(output_dir):
        return experiment(tf.estimator.Estimator(falling, output_dir, params={}))

    from_deep_path = tf.contrib.learn.python.learn.learn_runner
    assert from_deep_path.run(experiment_fn, model_dir, "test")["global_step"] == 1
    result, _ = learn.learn_runner.run(experiment_fn, output_dir=model_dir)
    assert result["global_step"] == 4


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (ValueError, "both `output_dir` and `run_config`", (len, "a", None, "b")),
        (ValueError, "Must set value for", (len,)),
        (TypeError, "is not callable", ("x", "a")),
        (TypeError, "did not return an Experiment", (lambda output_dir: 3, "a")),
    ],
)
def test_learn_runner_checks_its_arguments(error, match, arguments):
    with pytest.raises(error, match=match):
        learn.learn_runner.run(*arguments)


def test_learn_runner_gives_the_configuration_by_position(model_dir):
    hparams = tf.contrib.training.HParams(steps=2)

    def experiment_fn(config, params):
        program = tf.estimator.Estimator(falling, config=config, params={})
        return experiment(program, train_steps=params.steps)

    config = learn.RunConfig(model_dir=model_dir)
    result, _ = learn.learn_runner.run(experiment_fn, run_config=config, hparams=hparams)
    assert result["global_step"] == 2


@pytest.mark.parametrize(
    ("match", "config", "hparams"),
    [
        ("Must specify a model directory", learn.RunConfig(), None),
        ("must be `HParams`", learn.RunConfig(model_dir="a"), {"steps": 2}),
    ],
)
def test_learn_runner_checks_the_configuration(match, config, hparams):
    with pytest.raises(ValueError, match=match):
        learn.learn_runner.run(lambda *_: None, run_config=config, hparams=hparams)


@pytest.mark.parametrize(
    ("task", "schedule"),
    [("master", "train_and_evaluate"), ("ps", "run_std_server"), ("worker", "train")],
)
def test_learn_runner_chooses_the_schedule_of_the_task(monkeypatch, model_dir, task, schedule):
    cluster = {"master": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]}
    tf_config = {"cluster": cluster, "task": {"type": task, "index": 0}, "environment": "cloud"}
    monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config))
    monkeypatch.setattr(learn.Experiment, schedule, lambda self: schedule)
    program = tf.estimator.Estimator(falling, model_dir, params={})
    config = learn.RunConfig(model_dir=model_dir)
    run = learn.learn_runner.run
    assert run(lambda *_: experiment(program), run_config=config) == schedule


def test_learn_runner_tunes_as_often_as_the_tuner_has_a_trial(model_dir):
    rates, seen = [1, 2], []

    class Tuner:
        def next_trial(self):
            return bool(rates)

        def run_experiment(self, experiment_fn):
            hparams = tf.contrib.training.HParams(rate=rates.pop(0))
            seen.append(experiment_fn(learn.RunConfig(model_dir=model_dir), hparams))

    learn.learn_runner.tune(lambda config, params: (config.model_dir, params.rate), Tuner())
    assert seen == [(model_dir, 1), (model_dir, 2)]


def test_an_estimator_of_learn_fits_evaluates_and_predicts(model_dir):
    program = learn.Estimator(ops_model_fn, model_dir, params={"rate": 2.0})
    assert program.fit(input_fn=numbers(3), steps=2) is program
    assert program.get_variable_value("weight") == -6.0
    metric = learn.MetricSpec(tf.metrics.mean_absolute_error, prediction_key="sum")
    result = program.evaluate(input_fn=labelled, metrics={"error": metric})
    # Predictions -5 and -3, labels 1 and 2.
    assert (result["loss"], result["error"]) == (2.0, 5.5)
    predictions = program.predict(input_fn=numbers(2), as_iterable=False)  # the first batch
    assert predictions["sum"].tolist() == [-5.0]


def test_fit_of_less_than_one_step_trains_as_in_tf115(model_dir):
    """The steps are those of TensorFlow 1.15.5."""
    estimator = learn.Estimator(ops_model_fn, model_dir, params={"rate": 1.0})
    trained = [
        estimator.fit(input_fn=labelled, **until).get_variable_value("global_step")
        for until in ({"steps": 0}, {"steps": 0}, {"max_steps": 0}, {"steps": -1})
    ]
    assert trained == [1, 2, 2, 3]


def test_continuous_train_and_eval_of_few_steps_trains_one_at_a_time(model_dir):
    estimator = learn.Estimator(ops_model_fn, model_dir, params={"rate": 1.0})
    result, _ = experiment(estimator, train_steps=3).continuous_train_and_eval()
    assert result["global_step"] == 3


def test_model_fn_ops_names_what_is_missing():
    with pytest.raises(ValueError, match="Missing train_op"):
        learn.ModelFnOps(learn.ModeKeys.TRAIN, loss=1.0)
    with pytest.raises(ValueError, match="Missing loss"):
        learn.ModelFnOps(learn.ModeKeys.EVAL)
    with pytest.raises(ValueError, match="Missing predictions"):
        learn.ModelFnOps(learn.ModeKeys.INFER)
    assert learn.ModeKeys.INFER == tf.estimator.ModeKeys.PREDICT


def test_run_config_takes_the_arguments_of_its_time(model_dir, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    config = learn.RunConfig(
        "grpc://here:1", num_cores=3, gpu_memory_fraction=0.5, model_dir=model_dir
    )
    assert (config.master, config.environment, config.save_checkpoints_secs) == (
        "grpc://here:1",
        "local",
        600,
    )
    assert config.tf_config.intra_op_parallelism_threads == 3
    assert config.tf_config.gpu_options.per_process_gpu_memory_fraction == 0.5
    steps = learn.RunConfig(save_checkpoints_steps=5)
    assert (steps.save_checkpoints_steps, steps.save_checkpoints_secs) == (5, None)
    assert tf.estimator.Estimator(falling, config=config, params={}).model_dir == model_dir


def test_an_estimator_warns_of_the_programs_model_fn_alone(model_dir, caplog):
    learn.Estimator(lambda features, labels: None, model_dir)
    assert "includes params" not in caplog.text
    learn.Estimator(ops_model_fn, model_dir)
    assert "ops_model_fn" in caplog.text
    assert "core_model_fn" not in caplog.text
