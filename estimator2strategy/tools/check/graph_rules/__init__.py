"""The rules about what model_fn and input_fn build, one to a file; see `check.rule`."""
