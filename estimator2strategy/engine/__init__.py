"""Records legacy functions, and replays the graphs that they built on TensorFlow 2."""
