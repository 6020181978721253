"""Public programs, replayed on TensorFlow 1.15 and on this package, and compared by numbers."""
