"""Exporters: which checkpoints each of them exports, and which exports are kept."""

from __future__ import annotations

import os
import types

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime.evaluation import write_results

tf1 = tf.compat.v1


class StandIn:
    """In place of an Estimator: each export is an empty folder, named by a count of seconds."""

    def __init__(self, model_dir, first_export=1_600_000_000):
        self.model_dir = str(model_dir)
        self._next = first_export
        self.calls = []

    def export_saved_model(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        path = os.path.join(args[0], str(self._next))
        os.makedirs(path)
        self._next += 1
        return path


def receiver_fn():
    raise AssertionError("No exporter calls it by itself.")


def exporters():
    return [
        estimator.FinalExporter("name", receiver_fn, {"a": "b"}, as_text=True),
        estimator.LatestExporter("name", receiver_fn, {"a": "b"}, as_text=True),
        estimator.BestExporter("name", receiver_fn, assets_extra={"a": "b"}, as_text=True),
    ]


def export(exporter, model, loss=1.0, final=False, path=None):
    """True if the exporter exported."""
    path = path or os.path.join(model.model_dir, "export", exporter.name)
    return exporter.export(model, path, "ckpt-7", {"loss": loss, "global_step": 7}, final)


@pytest.mark.parametrize("exporter", exporters(), ids=lambda e: type(e).__name__)
def test_export_is_what_export_saved_model_returns(exporter, tmp_path):
    model = StandIn(tmp_path)
    assert export(exporter, model, final=True) == f"{tmp_path}/export/name/1600000000"
    (((path, function), options),) = model.calls
    assert (path, function) == (f"{tmp_path}/export/name", receiver_fn)
    assert options == {"assets_extra": {"a": "b"}, "as_text": True, "checkpoint_path": "ckpt-7"}


def test_final_exporter_waits_for_the_end(tmp_path):
    exporter, model = exporters()[0], StandIn(tmp_path)
    assert export(exporter, model) is None
    assert export(exporter, model, final=True)


@pytest.mark.parametrize("kind", [estimator.LatestExporter, estimator.BestExporter])
def test_newest_exports_are_kept(kind, tmp_path):
    exporter = kind("name", receiver_fn, exports_to_keep=2)
    model = StandIn(tmp_path)
    folder = tmp_path / "export" / "name"
    for other in ("temp-1600000000", "16000000001", "notes"):
        (folder / other).mkdir(parents=True)
    for loss in (5.0, 4.0, 3.0, 2.0):
        export(exporter, model, loss)
    others = {"temp-1600000000", "16000000001", "notes"}
    assert set(os.listdir(folder)) == {"1600000002", "1600000003", *others}


@pytest.mark.parametrize("kind", [estimator.LatestExporter, estimator.BestExporter])
def test_all_exports_are_kept_on_request(kind, tmp_path):
    exporter, model = kind("name", receiver_fn, exports_to_keep=None), StandIn(tmp_path)
    for loss in (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0):
        export(exporter, model, loss)
    assert len(os.listdir(tmp_path / "export" / "name")) == 7


def test_best_exporter_exports_what_is_better(tmp_path):
    exporter, model = exporters()[2], StandIn(tmp_path)
    exported = [bool(export(exporter, model, loss)) for loss in (5.0, 6.0, 4.0, 4.0, 3.0)]
    assert exported == [True, False, True, False, True]


def test_compare_fn_says_what_is_better(tmp_path):
    def higher(best_eval_result, current_eval_result):
        return current_eval_result["loss"] > best_eval_result["loss"]

    exporter = estimator.BestExporter("name", receiver_fn, compare_fn=higher)
    model = StandIn(tmp_path)
    exported = [bool(export(exporter, model, loss)) for loss in (5.0, 6.0, 4.0)]
    assert exported == [True, True, False]


@pytest.fixture(autouse=True)
def _writers_are_closed():
    yield
    tf1.summary.FileWriterCache.clear()


def written(folder, results):
    """Writes results, or losses, to an event file: one in a folder, whatever the second."""
    with tf.Graph().as_default():
        for step, result in enumerate(results):
            result = result if isinstance(result, dict) else {"loss": result}
            write_results(str(folder), {**result, "global_step": step}, None)


def test_first_export_happens_also_when_an_earlier_process_was_better(tmp_path):
    written(tmp_path / "eval", [50.0, 60.0])
    exporter, model = exporters()[2], StandIn(tmp_path)
    exported = [bool(export(exporter, model, loss)) for loss in (100.0, 70.0, 80.0)]
    assert exported == [True, True, False]


def test_best_loss_is_recovered_from_the_event_files(tmp_path):
    """It counts from the second folder on: a first export of an exporter always happens."""
    written(tmp_path / "other" / "eval_x", [50.0, 60.0])
    exporter = estimator.BestExporter("name", receiver_fn, event_file_pattern="eval_x/*.tfevents.*")
    assert export(exporter, StandIn(tmp_path / "first"))
    model = StandIn(tmp_path / "other")
    exported = [bool(export(exporter, model, loss)) for loss in (55.0, 49.0)]
    assert exported == [False, True]


def test_without_a_pattern_no_event_file_is_read(tmp_path):
    written(tmp_path / "eval", [50.0])
    exporter = estimator.BestExporter("name", receiver_fn, event_file_pattern=None)
    assert export(exporter, StandIn(tmp_path / "first"), 90.0)
    assert export(exporter, StandIn(tmp_path), 80.0)


@pytest.mark.parametrize("kind", [estimator.LatestExporter, estimator.BestExporter])
def test_number_to_keep_must_be_positive(kind):
    with pytest.raises(ValueError, match="positive number"):
        kind("name", receiver_fn, exports_to_keep=0)


@pytest.mark.parametrize(
    ("compare_fn", "message"),
    [
        (None, "must not be None"),
        (lambda current_eval_result: True, "must include best_eval_result argument"),
        (lambda best_eval_result: True, "must include current_eval_result argument"),
        (
            lambda best_eval_result, current_eval_result, x: True,
            r"not expected args: \['x'\]",
        ),
    ],
)
def test_compare_fn_has_two_arguments(compare_fn, message):
    with pytest.raises(ValueError, match=message):
        estimator.BestExporter("name", receiver_fn, compare_fn=compare_fn)


def test_results_without_a_loss_cannot_be_compared(tmp_path):
    exporter, model = exporters()[2], types.SimpleNamespace(model_dir=str(tmp_path))
    model.export_saved_model = lambda path, *args, **kwargs: os.makedirs(path) or path
    exporter.export(model, str(tmp_path / "a"), "ckpt", {"accuracy": 1.0}, False)
    with pytest.raises(ValueError, match="no loss is found"):
        exporter.export(model, str(tmp_path / "b"), "ckpt", {"loss": 1.0}, False)


def higher(best_eval_result, current_eval_result):
    return current_eval_result["w"] > best_eval_result["w"]


def lower(best_eval_result, current_eval_result):
    return current_eval_result["w"] < best_eval_result["w"]


def always(best_eval_result, current_eval_result):
    return True


def never(best_eval_result, current_eval_result):
    return False


# The options of an exporter, and the models that `train_and_evaluate` exports in TensorFlow 1.15.5
# and 2.15.1: in one process w rises to 1, the next one starts over at it and gets worse, the last
# one gets better than ever. The loss is 2.5 (w - 2)^2.
RUNS = ((0.25, 0.5, 0.75, 1.0), (0.75, 0.5), (1.0, 1.5, 2.0))
OF_BOTH = (RUNS[0], (0.75,), RUNS[2])
AFTER_RESTARTS = {
    "loss": ({}, ((0.5, 0.75, 1.0), (), (1.5, 2.0)), OF_BOTH),
    "higher": ({"compare_fn": higher}, ((0.5, 0.75, 1.0), (), (1.5, 2.0)), OF_BOTH),
    "lower": ({"compare_fn": lower}, ((), (), ()), ((0.25,), (0.75, 0.5), (1.0,))),
    "always": ({"compare_fn": always}, RUNS, RUNS),
    "never": ({"compare_fn": never}, ((), (), ()), ((0.25,), (0.75,), (1.0,))),
    "no events": ({"event_file_pattern": None}, OF_BOTH, OF_BOTH),
    "no files": ({"event_file_pattern": "other/*.tfevents.*"}, OF_BOTH, OF_BOTH),
}


def of_tf115(**options):
    import estimator2strategy.tf1 as legacy

    return legacy.estimator.BestExporter("name", receiver_fn, **options)


def of_tf2(**options):
    return estimator.BestExporter("name", receiver_fn, **options)


def exported_after_restarts(make, tmp_path):
    """The models that a new exporter exports in each process, all in one folder."""
    found = []
    for run, evaluated in enumerate(RUNS):
        exporter, model = make(), StandIn(tmp_path, 1_600_000_000 + 10 * run)
        made = []
        for w in evaluated:
            result = {"loss": 2.5 * (w - 2) ** 2, "w": w}
            written(tmp_path / "eval", [result])
            path = os.path.join(model.model_dir, "export", "name")
            if exporter.export(model, path, "ckpt-7", result, False):
                made.append(w)
        found.append(tuple(made))
    return tuple(found)


@pytest.mark.parametrize(("options", "expected"), [AFTER_RESTARTS[n][:2] for n in AFTER_RESTARTS])
def test_a_program_of_tf_1_15_exports_only_what_is_better_after_a_restart(
    options, expected, tmp_path
):
    options = {"exports_to_keep": None, **options}
    assert exported_after_restarts(lambda: of_tf115(**options), tmp_path) == expected


@pytest.mark.parametrize(("options", "expected"), [AFTER_RESTARTS[n][::2] for n in AFTER_RESTARTS])
def test_a_program_of_tf_2_exports_the_first_model_after_a_restart(options, expected, tmp_path):
    options = {"exports_to_keep": None, **options}
    assert exported_after_restarts(lambda: of_tf2(**options), tmp_path) == expected


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (of_tf115, {"1600000020", "1600000021"}),
        (of_tf2, {"1600000021", "1600000022"}),
    ],
)
def test_newest_exports_are_kept_across_restarts(make, expected, tmp_path):
    exported_after_restarts(lambda: make(exports_to_keep=2), tmp_path)
    assert set(os.listdir(tmp_path / "export" / "name")) == expected


def test_an_event_file_that_a_killed_process_cut_is_read_up_to_the_cut(tmp_path):
    written(tmp_path / "eval", [{"loss": 50.0}, {"loss": 40.0}])
    (path,) = (tmp_path / "eval").iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    best = of_tf115()._get_best_eval_result(f"{tmp_path}/eval/*")
    assert best == {"loss": 50.0}


def model_fn(features, labels, mode, params):
    import estimator2strategy.tf1 as legacy

    w = legacy.get_variable("w", [], initializer=legacy.zeros_initializer())
    moved = legacy.assign_add(w, params["move"])
    step = legacy.assign_add(legacy.train.get_global_step(), 1)
    loss = legacy.losses.mean_squared_error(labels, features * w)
    return legacy.estimator.EstimatorSpec(mode, loss=loss, train_op=legacy.group(moved, step))


def steps_exported(folder, move, max_steps):
    """The steps that a `train_and_evaluate` of TF 1.15 exports, evaluating each fifth one."""
    import estimator2strategy.tf1 as legacy

    exported = []

    def export_saved_model(export_dir_base, *args, checkpoint_path, **kwargs):
        exported.append(legacy.train.load_variable(checkpoint_path, "global_step"))
        os.makedirs(export_dir_base, exist_ok=True)
        return export_dir_base

    def input_fn():
        return legacy.data.Dataset.from_tensors(([[1.0], [2.0]], [[2.0], [4.0]])).repeat()

    config = legacy.estimator.RunConfig(save_checkpoints_steps=5)
    model = legacy.estimator.Estimator(model_fn, str(folder), config, {"move": move})
    model.export_saved_model = export_saved_model
    best = legacy.estimator.BestExporter("best", receiver_fn)
    legacy.estimator.train_and_evaluate(
        model,
        legacy.estimator.TrainSpec(input_fn, max_steps=max_steps),
        legacy.estimator.EvalSpec(input_fn, steps=1, throttle_secs=0, exporters=best),
    )
    return exported


def test_train_and_evaluate_of_tf_1_15_exports_no_worse_model_after_a_restart(tmp_path):
    assert steps_exported(tmp_path, 0.05, 15) == [10, 15]
    assert steps_exported(tmp_path, -0.05, 25) == []


class OwnExporter(estimator.Exporter):
    """A program's, which keeps the newest exports by what it borrows of BestExporter."""

    name = "own"
    _exports_to_keep = 1

    def export(self, estimator_, export_path, checkpoint_path, eval_result, is_the_final_export):
        result = estimator_.export_saved_model(export_path)
        estimator.BestExporter._garbage_collect_exports(self, export_path)
        return result


def test_an_exporter_of_the_program_may_delete_as_best_exporter_does(tmp_path):
    exporter, model = OwnExporter(), StandIn(tmp_path)
    for _ in range(3):
        export(exporter, model)
    assert os.listdir(tmp_path / "export" / "own") == ["1600000002"]


def test_a_subclass_sees_the_best_result_by_its_name_in_tf_1_15(tmp_path):
    exporter, model = exporters()[2], StandIn(tmp_path)
    export(exporter, model, 5.0)
    assert exporter._best_eval_result["loss"] == 5.0
    written(tmp_path / "eval", [4.0, 3.0])
    assert exporter._get_best_eval_result(f"{tmp_path}/eval/*")["loss"] == 3.0
