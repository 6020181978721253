"""What subclasses of Estimator in public programs lean on, though it begins with an underscore."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.runtime.programs import falling

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
