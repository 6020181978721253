"""Steps as programs of XLA: lowered by TensorFlow, and run under JAX."""
