"""The ladder from an unchanged program to one that needs no facade; a running program on each rung.

The same stages, with the checks that prove each, are those of the migration guide.
"""

from __future__ import annotations

# Stage -> what it does. 0 and 1 change no file.
STAGES = {
    0: "look",
    1: "run it unchanged",
    2: "change the import, and the names that are only spelled otherwise",
    3: "metrics to Keras",
    4: "inputs to dataset functions",
    5: "optimizer and learning rate to Keras",
    6: "layers to keras.layers",
    7: "a strategy, callbacks and a Keras training loop",
    8: "do without this package",
}

# Stage -> the command that is all of it.
WITHOUT_CHANGES = {0: "e2s check PATH", 1: "e2s run PROGRAM"}
