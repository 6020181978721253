"""What records legacy functions, and replays what they built on TensorFlow 2."""
