"""Names with an underscore that subclasses of Estimator in public programs lean on."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling

tf1 = tf.compat.v1
pytestmark = pytest.mark.oldest


class Growing(estimator.Estimator):
    """Makes graphs of its own beside those of train, as adanet's Estimator does."""

    def own_graph(self):
        with tf.Graph().as_default() as graph:
            step = self._create_and_assert_global_step(graph)
            assert step is tf1.train.get_global_step(graph)
        return self._model_dir, self._session_config, step.dtype


def test_a_subclass_finds_its_folder_its_session_config_and_a_global_step(model_dir):
    config = estimator.RunConfig(session_config=tf1.ConfigProto(log_device_placement=True))
    model = Growing(falling, model_dir, config, params={})
    assert model.own_graph() == (model_dir, config.session_config, tf.int64)


class Silent(estimator.Estimator):
    """Overrides what it may not."""

    def train(self, *args, **kwargs):
        return super().train(*args, **kwargs)


@pytest.mark.parametrize(
    "check",
    [lambda self: self, staticmethod(lambda _: None), lambda *unused: None],
    ids=["function", "static", "any arguments"],
)
def test_a_program_may_put_the_check_of_overridden_methods_off(model_dir, monkeypatch, check):
    with pytest.raises(ValueError, match="train"):
        Silent(falling, model_dir, params={})
    # As programs do it: for all Estimators.
    monkeypatch.setattr(estimator.Estimator, "_assert_members_are_not_overridden", check)
    assert Silent(falling, model_dir, params={}).model_dir == model_dir


class TPUEstimator(Silent):
    """Called as the original's own, which was let through by its name."""

    def evaluate(self, *args, **kwargs):
        return super().evaluate(*args, **kwargs)


class BelowSilent(Silent):
    """Overrides nothing itself: classes in between were not looked at."""


@pytest.mark.parametrize("cls", [TPUEstimator, BelowSilent])
def test_a_program_may_override_where_the_original_did_not_look(model_dir, cls):
    assert cls(falling, model_dir, params={}).model_dir == model_dir
