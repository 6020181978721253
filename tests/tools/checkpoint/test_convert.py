"""A checkpoint of TF 1.15 becomes one of Keras or TF2, predicts and trains the same, and back."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.tools.checkpoint import (
    bundle,
    checkpoint_report,
    mapping,
    roles,
)
from estimator2strategy.tools.checkpoint.checkpoint_command import main
from estimator2strategy.tools.checkpoint.conversion import UndecidedError, convert
from estimator2strategy.tools.checkpoint.opening import open_store
from estimator2strategy.tools.checkpoint.store import Format
from estimator2strategy.tools.golden.recorder.options import Golden

tf1 = tf.compat.v1
TESTS = Path(__file__).parents[2]
GOLDEN = Golden(str(TESTS / "goldens" / "parity_tf115"))
LEGACY = GOLDEN.checkpoint("last")  # written by TF 1.15.5
TWIN = f"{TESTS / 'programs' / 'keras_twin.py'}:"
# What only one side keeps.
POWERS = ["beta1_power", "beta2_power"]


def predictions(model):
    batches = GOLDEN.batches("predict")
    return np.concatenate([model(batch[0]).numpy() for batch in batches])


def twin(function="build"):
    from estimator2strategy.tools.checkpoint import keras_file

    return keras_file.built(TWIN + function)


def differing(first, second, model=None, pairs=None):
    stores = [open_store(str(path), model) for path in (first, second)]
    found = checkpoint_report.differences(
        *stores, pairs or checkpoint_report.pairs_of(*stores, None)
    )
    return {f"{d.what} {d.name}" for d in found}


@pytest.fixture(scope="module")
def as_keras(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("keras") / "twin.weights.h5")
    done = convert(open_store(LEGACY), path, Format.KERAS, model=TWIN + "build")
    return path, done


def test_the_keras_model_predicts_what_tf_1_15_predicted(as_keras):
    model = twin()
    model.load_weights(as_keras[0])
    expected = GOLDEN.result("predict/last/probabilities")
    np.testing.assert_allclose(predictions(model), expected, rtol=1e-5, atol=1e-6)


def test_slots_and_the_step_go_along(as_keras):
    path, done = as_keras
    model = twin()
    model.load_weights(path)
    slots = {v.path.partition("/")[2]: v.numpy() for v in model.optimizer.variables}
    assert slots["iteration"] == 20
    slot = tf.train.load_variable(LEGACY, "logits/kernel/Adam_1")
    np.testing.assert_array_equal(slots["logits_kernel_velocity"], slot)
    assert done.mapping.unused == tuple(POWERS)
    assert {row.how for row in done.mapping.rows} == {"name"}


def test_and_back_is_the_checkpoint_that_it_was(as_keras, tmp_path):
    source = open_store(as_keras[0], TWIN + "build")
    back = str(tmp_path / "model.ckpt-20")
    done = convert(source, back, Format.TF1, like=GOLDEN.checkpoint("first"))
    assert sorted(done.computed) == POWERS
    assert differing(LEGACY, back) == set()
    assert tf.train.latest_checkpoint(str(tmp_path)) == back


def test_a_tf2_checkpoint_is_restored_and_predicts_the_same(tmp_path):
    path = str(tmp_path / "ckpt")
    convert(open_store(LEGACY), path, Format.TF2, model=TWIN + "build")
    model = twin()
    restored = tf.train.Checkpoint(model=model, optimizer=model.optimizer).read(path)
    restored.assert_consumed()
    expected = GOLDEN.result("predict/last/probabilities")
    np.testing.assert_allclose(predictions(model), expected, rtol=1e-5, atol=1e-6)
    back = str(tmp_path / "back")
    done = convert(open_store(path), back, Format.TF1)
    assert differing(LEGACY, back) == {f"missing {name}" for name in POWERS}
    assert list(done.absent) == POWERS


def test_an_archive_of_keras_names_its_tensors_itself(tmp_path):
    path = str(tmp_path / "twin.keras")
    twin().save(path)
    new = str(tmp_path / "new.keras")
    convert(open_store(LEGACY), new, Format.KERAS, like=path)
    model = keras.models.load_model(new)
    expected = GOLDEN.result("predict/last/probabilities")
    np.testing.assert_allclose(predictions(model), expected, rtol=1e-5, atol=1e-6)
    assert differing(LEGACY, new) == set()


def test_weights_alone_are_named_by_their_shapes(tmp_path):
    path = str(tmp_path / "new.weights.h5")
    twin("weights_only").save_weights(path)
    labels = {entry.label for entry in open_store(path).entries}
    assert labels >= {"hidden/kernel", "norm/moving_variance", "logits/bias"}
    done = convert(open_store(LEGACY), str(tmp_path / "made.weights.h5"), Format.KERAS, like=path)
    assert len(done.mapping.rows) == 8


# Optimizers whose steps are the same sum in TF1 and Keras, if their settings are.
OPTIMIZERS = {
    "adam": (
        lambda: tf1.train.AdamOptimizer(0.1, epsilon=1e-7),
        lambda: keras.optimizers.Adam(0.1, epsilon=1e-7),
    ),
    "momentum": (
        lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    ),
    "adagrad": (
        lambda: tf1.train.AdagradOptimizer(0.1),
        lambda: keras.optimizers.Adagrad(0.1, epsilon=1e-12),
    ),
    "rmsprop": (
        lambda: tf1.train.RMSPropOptimizer(0.1, momentum=0.9, epsilon=1e-12),
        lambda: keras.optimizers.RMSprop(0.1, rho=0.9, momentum=0.9, epsilon=1e-12),
    ),
    "rmsprop, centered": (
        lambda: tf1.train.RMSPropOptimizer(0.1, momentum=0.9, epsilon=1e-6, centered=True),
        lambda: keras.optimizers.RMSprop(0.1, rho=0.9, momentum=0.9, epsilon=1e-6, centered=True),
    ),
}
GRADIENTS = [np.array([[0.5], [-1.0]]) * factor for factor in (1.0, 0.3, -0.7, 2.0)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_in_keras_with_the_slots_of_tf1(name, tmp_path):
    of_tf1, of_keras = OPTIMIZERS[name]
    with tf.Graph().as_default(), tf1.Session() as session:
        weights = tf1.get_variable("only/kernel", initializer=[[0.5], [-0.25]])
        gradient = tf1.placeholder(tf.float32, [2, 1])
        step = tf1.train.create_global_step()
        update = of_tf1().apply_gradients([(gradient, weights)], step)
        session.run(tf1.global_variables_initializer())
        for value in GRADIENTS[:3]:
            session.run(update, {gradient: value})
        path = tf1.train.Saver().save(session, str(tmp_path / "model.ckpt"), step)
        session.run(update, {gradient: GRADIENTS[3]})
        expected = session.run(weights)

    inputs = keras.Input((2,))
    model = keras.Model(inputs, keras.layers.Dense(1, use_bias=False, name="only")(inputs))
    model.compile(of_keras(), "mse")
    model.optimizer.build(model.trainable_variables)
    template, new = str(tmp_path / "model.keras"), str(tmp_path / "new.keras")
    model.save(template)
    convert(open_store(path), new, Format.KERAS, like=template)
    model.load_weights(new)
    model.optimizer.apply([tf.constant(GRADIENTS[3], tf.float32)])
    np.testing.assert_allclose(model.get_weights()[0], expected, rtol=1e-5, atol=1e-6)
    assert int(model.optimizer.iterations) == 4


# Slot as Keras 2 names it in a graph, below the optimizer's name -> what it is.
KERAS_2 = {
    "SGD/only/kernel/momentum": "accumulation",
    "RMSprop/only/kernel/rms": "mean square",
    "RMSprop/only/kernel/momentum": "step",
    "RMSprop/only/kernel/mg": "mean gradient",
    "Adam/only/kernel/m": "momentum",
    "Adam/only/kernel/v": "velocity",
}


@pytest.mark.parametrize("label", KERAS_2)
def test_slots_of_keras_2_are_told_by_their_optimizer(label):
    found = roles.identified(["only/kernel", label])[label]
    assert found == roles.Identity(("only",), "kernel", KERAS_2[label])


def test_centered_rmsprop_is_named_as_tf1_did(tmp_path):
    labels = ["only/kernel", *(f"only/kernel/{slot}" for slot in ("RMSProp", "RMSProp_1"))]
    what = roles.identified([*labels, "only/kernel/RMSProp_2"])
    names = [roles.tf1_name(identity, "only/kernel", centered=True) for identity in what.values()]
    assert names == [*labels, "only/kernel/RMSProp_2"]
    of_two = roles.identified(labels)
    assert [roles.tf1_name(i, "only/kernel") for i in of_two.values()] == labels


def test_other_names_are_told_apart_by_shape(tmp_path):
    path = str(tmp_path / "new.weights.h5")
    done = convert(open_store(LEGACY), path, Format.KERAS, model=TWIN + "renamed")
    how = {row.target: (row.source, row.how) for row in done.mapping.rows}
    assert how["second/moving_mean"] == ("norm/moving_mean", "shape")
    assert how["adam/third_bias_velocity"] == ("logits/bias/Adam_1", "shape")


def test_what_cannot_be_decided_is_listed_and_nothing_is_written(tmp_path, capsys):
    out, found = tmp_path / "new.weights.h5", tmp_path / "map.json"
    command = ["convert", LEGACY, str(out), "--to=keras", f"--model={TWIN}larger"]
    assert main([*command, f"--write-map={found}"]) == 1
    assert "logits/kernel: nothing has its shape" in capsys.readouterr().err
    assert not out.exists()
    assert json.loads(found.read_text())["undecided"]["hidden/bias"] == []
    assert main([*command, "--partial"]) == 0
    assert "kept as they were: hidden/kernel, hidden/bias" in capsys.readouterr().out
    np.testing.assert_array_equal(
        open_store(str(out)).read(open_store(str(out)).by_label()["logits/bias"]),
        tf.train.load_variable(LEGACY, "logits/bias"),
    )


def written(prefix, values):
    bundle.write_bundle(
        str(prefix), [(name, value.nbytes, lambda value=value: value) for name, value in values]
    )
    return str(prefix)


def test_equal_layers_are_paired_in_order_and_said_to_be(tmp_path):
    kernels = [np.full([2, 2], float(i)) for i in range(3)]
    names = ("dense_2", "dense", "dense_10")  # alphabetically dense_10 is the second
    old = written(tmp_path / "old", [(f"{n}/kernel", k) for n, k in zip(names, kernels)])
    new = written(tmp_path / "new", [(f"{n}/kernel", kernels[0] * 0) for n in "abc"])
    found = mapping.inferred(open_store(old), open_store(new))
    assert [(row.source, row.how) for row in found.rows] == [
        ("dense/kernel", "order"),
        ("dense_2/kernel", "order"),
        ("dense_10/kernel", "order"),
    ]


def test_a_meta_file_tells_the_order_of_creation(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        for name in ("late", "early"):
            tf1.get_variable(f"{name}/kernel", [2, 2])
        session.run(tf1.global_variables_initializer())
        path = tf1.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    assert [entry.label for entry in open_store(path).entries] == ["late/kernel", "early/kernel"]


def test_a_scope_of_its_own_does_not_hide_a_layer(tmp_path):
    one = np.ones([2, 2])
    old = written(tmp_path / "old", [("net/a/kernel", one), ("net/b/kernel", one * 2)])
    new = written(tmp_path / "new", [("b/kernel", one), ("a/kernel", one)])
    found = mapping.inferred(open_store(old), open_store(new))
    pairs = {row.target: (row.source, row.how) for row in found.rows}
    assert pairs == {
        "a/kernel": ("net/a/kernel", "suffix"),
        "b/kernel": ("net/b/kernel", "suffix"),
    }


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_a_mapping_is_edited_and_serves_both_ways(ending, tmp_path):
    one = np.ones([2, 2])
    old = open_store(written(tmp_path / "old", [("a/w", one), ("b/w", one * 2)]))
    like = open_store(written(tmp_path / "like", [("x/w", one * 0), ("y/w", one * 0)]))
    path = tmp_path / f"map.{ending}"
    mapping.write(str(path), mapping.inferred(old, like))
    text = path.read_text()
    swapped = {"json": ('"x/w"', '"y/w"'), "csv": (",x/w,", ",y/w,")}[ending]
    text = text.replace(swapped[0], "?").replace(swapped[1], swapped[0]).replace("?", swapped[1])
    path.write_text(text)
    rows = mapping.read(str(path))
    convert(old, str(tmp_path / "new"), Format.TF1, like=like.path, rows=rows)
    assert tf.train.load_variable(str(tmp_path / "new"), "y/w")[0, 0] == 1
    convert(
        open_store(str(tmp_path / "new")),
        str(tmp_path / "back"),
        Format.TF1,
        like=old.path,
        rows=rows,
    )
    assert differing(old.path, tmp_path / "back") == set()


def test_a_mapping_that_does_not_fit_is_refused(tmp_path):
    store = open_store(written(tmp_path / "old", [("a", np.ones(2)), ("b", np.ones(3))]))
    with pytest.raises(ValueError, match=r"'c' is not in .*\n.*'a' and 'b' have the shapes"):
        mapping.applied(
            [mapping.MappingRow("c", "a", "given"), mapping.MappingRow("a", "b", "given")],
            store,
            store,
        )


def test_a_file_that_is_no_mapping_is_refused(tmp_path):
    (tmp_path / "map.json").write_text('{"rows": [{"from": "a"}]}')
    with pytest.raises(ValueError, match="needs rows with source and target"):
        mapping.read(str(tmp_path / "map.json"))


def test_a_diff_lists_every_kind_of_difference(tmp_path, capsys):
    old = {"a": np.ones(2), "b": np.ones(2), "c": np.ones(2), "d": np.ones(2), "same": np.ones(1)}
    new = {"a": np.ones(3), "b": np.array([1, 3.5]), "c": np.ones(2, np.float32), "e": np.ones(1)}
    one = written(tmp_path / "old", old.items())
    other = written(tmp_path / "new", {**new, "same": old["same"]}.items())
    assert main(["diff", one, other, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(d["what"], d["name"], d["detail"]) for d in found] == [
        ("shape", "a", "2 and 3"),
        ("value", "b", "differ by up to 2.5"),
        ("dtype", "c", "float64 and float32"),
        ("missing", "d", "2"),
        ("extra", "e", "1"),
    ]
    assert main(["diff", one, one]) == 0
    assert "no difference" in capsys.readouterr().out


def stage_5(path):
    """A checkpoint of Keras 2's Adam in a model_fn: its settings are variables."""
    ones = np.ones([6, 8], np.float32)
    values = {"hidden/kernel": ones, "Adam/hidden/kernel/m": ones * 2, "global_step": np.int64(3)}
    settings = ("beta_1", "beta_2", "decay", "learning_rate")
    return written(path, [*values.items(), *((f"Adam/{s}", np.float32(0.5)) for s in settings)])


def test_inspect_counts_the_settings_and_slots_of_an_optimizer_as_such(tmp_path, capsys):
    assert main(["inspect", stage_5(tmp_path / "model.ckpt")]) == 0
    said = capsys.readouterr().out
    assert "7 tensors, 1 of them variables of the model with 48 numbers, 1 slots of the" in said
    assert said.count("setting of the optimizer") == 3


def test_a_slot_of_an_optimizer_with_a_name_of_its_own_is_none_of_the_model():
    labels = ["only/kernel", "only/kernel/Mine", "only/kernel/Mine_1", "beta1_power_1", "adam/rho2"]
    found = roles.identified(labels)
    assert [bool(i.slot or i.is_special) for i in found.values()] == [
        False,
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("function", ["build", "weights_only", "momentum"])
@pytest.mark.parametrize("given", [True, False], ids=["with the model", "without"])
def test_a_diff_right_after_convert_has_no_difference(function, given, tmp_path, capsys):
    new, model = str(tmp_path / "new.weights.h5"), ["--model", TWIN + function]
    legacy = momentum_checkpoint(tmp_path) if function == "momentum" else LEGACY
    assert main(["convert", legacy, new, "--to=keras", *model]) == 0
    capsys.readouterr()
    assert main(["diff", legacy, new, *(model if given else [])]) == 0
    assert main(["diff", new, legacy, *(model if given else [])]) == 0
    assert "no difference" in capsys.readouterr().out


def momentum_checkpoint(folder):
    """The golden's variables, with slots of MomentumOptimizer that -rate times cannot hold."""
    reader = tf.train.load_checkpoint(LEGACY)
    names = [n for n in reader.get_variable_to_shape_map() if not n.endswith(("Adam", "Adam_1"))]
    values = {name: reader.get_tensor(name) for name in names if name not in POWERS}
    slots = {
        f"{name}/Momentum": value / 3
        for name, value in values.items()
        if "moving" not in name and name != "global_step"
    }
    return written(folder / "momentum.ckpt", {**values, **slots}.items())


def test_a_diff_of_two_formats_still_sees_what_differs(as_keras, tmp_path):
    reader = tf.train.load_checkpoint(LEGACY)
    values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    values["hidden/bias/Adam_1"] = values["hidden/bias/Adam_1"] + 1
    other = written(tmp_path / "other", (values | {"late/kernel": np.ones(1)}).items())
    assert differing(other, as_keras[0], TWIN + "build") == {
        "value hidden/bias/Adam_1 | adam/hidden_bias_velocity",
        "missing late/kernel",
    }


def test_inspect_says_what_each_tensor_is(capsys):
    assert main(["inspect", LEGACY]) == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()[2:]}
    assert lines["hidden/kernel"] == ["6x8", "float32", "variable"]
    assert lines["hidden/kernel/Adam_1"] == ["6x8", "float32", "velocity"]
    assert lines["global_step"] == ["scalar", "int64", "step"]


def test_writing_holds_a_part_of_the_checkpoint_at_a_time(tmp_path):
    held = []
    values = {f"v{i}": np.full(10, float(i)) for i in range(5)}  # 80 bytes each

    def reading(name):
        held.append(len(list(tmp_path.glob("**/part-*.index"))))
        return values[name]

    bundle.write_bundle(
        str(tmp_path / "ckpt"),
        [(name, 80, lambda name=name: reading(name)) for name in values],
        most_bytes=100,
    )
    assert held == [0, 1, 2, 3, 4]
    assert tf.train.load_variable(str(tmp_path / "ckpt"), "v3")[0] == 3
    assert not list(tmp_path.glob("tmp*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "nothing"], "there is no checkpoint nothing"),
        (["inspect", "nothing.keras"], "there is no file nothing.keras"),
        (["convert", LEGACY, "new", "--to=tf2"], "give --like"),
        (["convert", LEGACY, "new", "--to=tf2", "--like", LEGACY], "of kind tf1, not tf2"),
        (["convert", LEGACY, "n.weights.h5", "--to=keras", "--model=x"], "not of the form"),
        (["diff", LEGACY, LEGACY, "--map=no.json"], "no.json is no mapping"),
    ],
)
def test_bad_input_is_answered_with_what_is_wrong(
    arguments, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_undecided_is_an_error_of_its_own(tmp_path):
    with pytest.raises(UndecidedError) as caught:
        convert(
            open_store(LEGACY), str(tmp_path / "n.weights.h5"), Format.KERAS, model=TWIN + "larger"
        )
    assert set(caught.value.mapping.undecided) == {"hidden/kernel", "hidden/bias", "logits/kernel"}
