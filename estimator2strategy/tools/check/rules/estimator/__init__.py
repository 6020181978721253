"""Code of Estimator programs."""
