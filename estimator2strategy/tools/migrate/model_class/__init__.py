"""A model_fn, and the loop that trains it, as a `keras.Model` with `compile` and `fit`."""
