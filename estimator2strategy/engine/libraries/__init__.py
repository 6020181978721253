"""Installed libraries that were written for Estimators: which, and for which TensorFlow."""
