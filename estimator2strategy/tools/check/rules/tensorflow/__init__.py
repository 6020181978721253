"""Names, arguments and flags of TensorFlow."""
