"""Records goldens. Runs under Python 3.6 and TensorFlow 1.13 too; `e2s record --print` joins it."""
