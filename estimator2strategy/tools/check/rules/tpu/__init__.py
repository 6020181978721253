"""Code that a TPU, or a TPUEstimator, refuses or understands otherwise."""
