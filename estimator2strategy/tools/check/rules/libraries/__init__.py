"""Libraries around TensorFlow."""
