"""Keras in Estimator programs."""
