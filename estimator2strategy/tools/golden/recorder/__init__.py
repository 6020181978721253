"""Records goldens. Runs under Python 3.6 and TensorFlow 1.13 too: `one_file` joins its modules."""
