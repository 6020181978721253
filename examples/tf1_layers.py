"""TensorFlow 1's batch normalization of images as a layer of Keras 3: the same moving variance.

    x = FusedBatchNormalization(momentum=0.9)(x, training=True)

For images (four axes) TensorFlow 1 takes a fused kernel. It multiplies the variance of n values by
n / (n - 1) before it averages it; Keras 3 does not. The output of a training step is the same.
"""

import keras
from keras import ops


class FusedBatchNormalization(keras.layers.BatchNormalization):
    """Normalizes as its base does; of images it averages the variance of a sample."""

    def call(self, inputs, training=None, mask=None):
        if len(inputs.shape) != 4 or not training or not self.trainable:
            return super().call(inputs, training=training, mask=mask)
        kept = self.moving_variance * self.momentum
        outputs = super().call(inputs, training=True, mask=mask)
        values = ops.cast(ops.size(inputs) / ops.size(kept), kept.dtype)
        of_a_sample = values / ops.maximum(values - 1, 1)
        self.moving_variance.assign(kept + (self.moving_variance - kept) * of_a_sample)
        return outputs
