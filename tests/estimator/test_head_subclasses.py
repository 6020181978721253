"""Programs derive their heads from those of `tf.estimator`, and ask which kind a head is."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.estimator.heads import v1

LOGITS, LABELS = tf.constant([[1.0], [3.0]]), tf.constant([[2.0], [5.0]])


class Doubled(estimator.RegressionHead):
    """Overrides what a subclass of TF Privacy calls, and other programs override."""

    def _unweighted_loss_and_weights(self, logits, labels, features):
        loss, weights = super()._unweighted_loss_and_weights(logits, labels, features)
        return 2.0 * loss, weights


def test_a_subclass_may_override_the_losses_of_examples():
    head = Doubled(loss_reduction="sum")
    assert head.loss(LABELS, LOGITS, {}).numpy() == 2.0 * (1.0 + 4.0)
    metrics = head.update_metrics(head.metrics(), {}, LOGITS, LABELS)
    assert metrics["average_loss"].result().numpy() == 2.0 * (1.0 + 4.0) / 2


def test_a_subclass_hands_regularization_losses_on_by_position():
    class Handing(estimator.RegressionHead):
        def update_metrics(self, eval_metrics, features, logits, labels, losses=None):
            return super().update_metrics(eval_metrics, features, logits, labels, losses)

    head, losses = Handing(), [tf.constant(0.5)]
    metrics = head.update_metrics(head.metrics(losses), {}, LOGITS, LABELS, losses)
    assert metrics["regularization_loss"].result().numpy() == 0.5


def test_a_subclass_finds_the_tables_of_its_vocabulary():
    head = estimator.MultiClassHead(3, label_vocabulary=["a", "b", "c"])
    assert head._class_id_table.lookup(tf.constant(["c", "z"])).numpy().tolist() == [2, -1]
    names = head._class_string_table.lookup(tf.constant([1, 9], tf.int64))
    assert names.numpy().tolist() == [b"b", b"UNK"]
    with pytest.raises(TypeError, match="string"):
        _ = estimator.BinaryClassHead(label_vocabulary=[1, 2])._class_id_table


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (v1.binary_classification_head(), estimator.BinaryClassHead),
        (v1.regression_head(), estimator.RegressionHead),
        (v1.multi_head([v1.regression_head(name="a")]), estimator.MultiHead),
    ],
)
def test_a_head_of_tf_1_is_no_instance_of_one_of_tf_2(old, new):
    assert not isinstance(old, (estimator.Head, new))
    assert isinstance(old, type(old))
    assert issubclass(new, estimator.Head)
    assert isinstance(Doubled(), estimator.RegressionHead)


def test_accuracy_of_the_more_frequent_class_is_0_before_an_example_counts():
    head = estimator.BinaryClassHead("weight")
    features = {"weight": tf.zeros([2])}
    metrics = head.update_metrics(head.metrics(), features, LOGITS, tf.constant([0, 1]))
    assert metrics["accuracy_baseline"].result().numpy() == 0.0


def test_classes_to_measure_may_be_a_set():
    head = estimator.MultiLabelHead(3, classes_for_class_based_metrics={0, 2})
    assert {"auc/class0", "auc/class2"} < set(head.metrics())


def test_heads_of_a_multi_head_may_have_an_empty_name():
    heads = [estimator.RegressionHead(name=""), estimator.RegressionHead(name="b")]
    assert estimator.MultiHead(heads).name == "_b"


def test_a_vocabulary_of_tf_1_may_lack_the_last_classes():
    head = v1.multi_class_head(3, label_vocabulary=["a", "b"])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        spec = head.create_estimator_spec({}, "infer", tf.constant([[0.0, 1.0, 0.0], [0.0, 0, 1]]))
        session.run(tf.compat.v1.tables_initializer())
        classes = session.run(spec.predictions["classes"])
    assert classes.tolist() == [[b"b"], [b"UNK"]]
    with pytest.raises(ValueError, match="Length of label_vocabulary"):
        estimator.MultiClassHead(3, label_vocabulary=["a", "b"])


def test_the_train_op_of_tf_1_is_what_train_op_fn_returned():
    with tf.Graph().as_default():
        arguments = {}, "train", tf.zeros([2, 1]), tf.zeros([2, 1])
        spec = v1.regression_head().create_estimator_spec(*arguments, train_op_fn=tf.identity)
        assert spec.train_op.op.type == "Identity"
