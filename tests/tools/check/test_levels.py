"""`e2s check MODULE:model_fn`: from the command line to a report of each level."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
import tensorflow as tf
from checked_programs import e2s, inside, write
from subjects import subject

from estimator2strategy.tools.check import check_command, request
from estimator2strategy.tools.check.levels import recorded

tf1 = tf.compat.v1

MODEL = """\
import tensorflow as tf


def input_fn(params):
    data = {"x": tf.ones([64, 4])}, tf.ones([64, 1])
    return tf.data.Dataset.from_tensor_slices(data).repeat().batch(
        params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features["x"], params.get("hidden", 4), name="hidden")
    predicted = tf.layers.dense(tf.stop_gradient(hidden), 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"y": predicted})
    loss = tf.losses.mean_squared_error(labels, predicted)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""
PROGRAM = """\
import tensorflow as tf
from model import input_fn, model_fn

tf.flags.DEFINE_bool("use_tpu", False, "")


def main(_):
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=tf.estimator.tpu.RunConfig(), params={"hidden": 7},
        use_tpu=tf.flags.FLAGS.use_tpu, train_batch_size=16, eval_batch_size=16)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=3),
        tf.estimator.EvalSpec(input_fn, steps=2))
    raise ValueError("a check ends before this")


if __name__ == "__main__":
    tf.app.run()
"""


def check(folder, *arguments):
    with inside(folder):
        return check_command.main(arguments)


_TRAINS = "\n".join(
    line for line in MODEL.replace("predicted", "out").splitlines() if "PREDICT" not in line
).replace('        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"y": out})\n', "")


def test_a_model_fn_without_a_branch_for_prediction_is_checked_in_the_modes_that_it_has(tmp_path):
    write(tmp_path, model=_TRAINS)
    done, made = report_of(tmp_path, "model:model_fn", "--input", "model:input_fn")
    assert done.returncode == 1, done.stderr  # for another finding
    assert "e2s check: model:model_fn, recorded ..." in done.stderr.splitlines()
    (level,) = made["levels"]
    asked = [v["question"] for v in level["verdicts"] if v["question"].endswith("records")]
    assert asked == ["train: records", "eval: records"]
    assert "predict: model_fn has no branch for it" in level["not_checked"][0]
    done, made = report_of(
        tmp_path, "model:model_fn", "--input", "model:input_fn", "--modes=predict"
    )
    assert made["levels"][0]["verdicts"][0]["question"] == "predict: records"


def report_of(folder, *arguments):
    done = e2s("check", *arguments, "--format", "json=out.json", folder=folder)
    return done, json.loads((folder / "out.json").read_text())


def test_model_is_recorded_and_findings_name_their_evidence(tmp_path):
    write(tmp_path, model=MODEL)
    done, made = report_of(tmp_path, "model:model_fn", "--input", "model:input_fn")
    assert done.returncode == 1, done.stderr
    assert {(f["rule"], f["evidence"], f["path"], f["line"]) for f in made["findings"]} >= {
        ("E2S610", "RECORDED", "model.py", 11)
    }
    (level,) = made["levels"]
    assert [v["question"] for v in level["verdicts"]] == [
        "train: records",
        "eval: records",
        "predict: records",
    ]
    assert level["not_checked"]


@pytest.mark.parametrize("program", [["program.py"], ["-m", "trainer.program"]])
def test_program_is_stopped_where_it_would_train(tmp_path, program):
    (tmp_path / "trainer").mkdir()
    write(tmp_path, model=MODEL, program=PROGRAM)
    write(tmp_path / "trainer", __init__="", program=PROGRAM)
    arguments = ["check", "--format", "json", "--program", *program, "--use_tpu=True"]
    done = e2s(*arguments, folder=tmp_path)
    made = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert made["levels"][0]["subject"] == program[-1]
    assert [v["outcome"] for v in made["levels"][0]["verdicts"]] == ["passed", "passed"]
    (table,) = [f for f in made["levels"][0]["facts"] if f.get("title") == "train: variables"]
    assert ["hidden/kernel", "4x7", "float32", 112, "yes"] in table["rows"]


def test_comment_silences_a_finding_of_a_level(tmp_path):
    line = '    hidden = tf.layers.dense(features["x"], params.get("hidden", 4), name="hidden")'
    reason = "  # e2s: ignore[E2S610] frozen on purpose"
    write(tmp_path, model=MODEL.replace(line, line + reason))
    done, made = report_of(
        tmp_path, "model:model_fn", "--input", "model:input_fn", "--modes", "train"
    )
    assert done.returncode == 0, done.stdout
    assert made["suppressed"] == 2


class TestOptions:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["model:model_fn"], "give its --input"),
            (["--input", "model:input_fn"], "there is none"),
            (["model:model_fn", "--input", "input_fn"], "MODULE:function"),
            (["model:model_fn", "--input", "test=model:input_fn"], "'test' is none of train"),
            (["model:model_fn", "--input", "m:i", "--modes", "fit"], "'fit' is none of train"),
            (["model:model_fn", "--input", "m:i", "--levels", "top"], "none of static, recorded"),
            (["model:model_fn", "--input", "m:i", "--params", "a"], "'a' is no key=value"),
            (["model:model_fn", "--input", "m:i", "--params", "no.json"], "no.json"),
            ([], "give files or folders"),
            (["--program", "no.py"], "--program no.py: it is not there"),
            (["--program", "-m", "no.module"], "--program -m no.module: it is not there"),
            (["--program", "-m"], "--program -m: it is not there"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, tmp_path, capsys, arguments, words):
        assert check(tmp_path, *arguments) == 2
        assert words in capsys.readouterr().err

    def test_params_have_types(self):
        given = "a=1,b=0.5,c=relu,d=true,e=None,f='x',g=[1]"
        assert request.params_of(given) == {
            "a": 1,
            "b": 0.5,
            "c": "relu",
            "d": True,
            "e": None,
            "f": "x",
            "g": [1],
        }


class TestCheckpoint:
    """`--checkpoint`, in this process."""

    def checked(self, folder, saved):
        with tf.Graph().as_default(), tf1.Session() as session:
            for name, shape in saved.items():
                tf1.get_variable(name, shape, tf.int64 if name == "global_step" else None)
            session.run(tf1.global_variables_initializer())
            tf1.train.Saver().save(session, str(folder / "model.ckpt"), 3)
        made = subject(MODEL, folder, modes=("predict",), checkpoint=str(folder))
        return recorded.check(made)

    FITS = MappingProxyType(
        {
            "global_step": [],
            "hidden/kernel": [4, 4],
            "hidden/bias": [4],
            "dense/kernel": [4, 1],
            "dense/bias": [1],
        }
    )

    def test_one_that_fits_is_no_finding(self, tmp_path):
        assert self.checked(tmp_path, self.FITS).findings == ()

    def test_missing_variable_and_other_shape_are_named_with_their_lines(self, tmp_path):
        saved = {**self.FITS, "hidden/kernel": [3, 4], "old/bias": [1]}
        del saved["dense/bias"]
        found = self.checked(tmp_path, saved).findings
        assert {(f.rule, f.line) for f in found} == {("E2S613", 11), ("E2S613", 12)}
        said = " ".join(f.message for f in found)
        assert "'hidden/kernel' has the shape (4, 4), and 3x4 in" in said
        assert "'dense/bias' is not in" in said

    def test_folder_without_a_checkpoint_is_a_problem(self, tmp_path):
        made = subject(MODEL, tmp_path, modes=("predict",), checkpoint=str(tmp_path / "none"))
        assert "--checkpoint" in recorded.check(made).problems[0]
