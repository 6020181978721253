"""The same models trained by e2s, a hand-written loop, Keras fit and the real TPUEstimator."""
