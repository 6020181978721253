#!/bin/sh
# keras 3.15.1, tensorflow-cpu 2.21.0, Python 3.11.
# With steps_per_execution=10, fit(steps_per_epoch=25) of a source that has more batches trains 30 steps in each
# epoch, not 25; a source of 25 batches trains 25, and the callbacks are told that batch 29 has ended in both.
# Predictions come from 30 batches too where steps=25 is asked. JAX does the same. Seen, two epochs:
#
#   endless source: 60 steps, callbacks [9, 19, 29, 9, 19, 29]
#   source of 25: 50 steps, callbacks [9, 19, 29, 9, 19, 29]
#   predict(steps=25) of batches of 4: 120 rows
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check keras==3.15.1 tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import keras
import numpy as np

BATCH = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")


class Source(keras.utils.PyDataset):
    def __len__(self):
        return 25

    def __getitem__(self, i):
        return BATCH


def endless():
    while True:
        yield BATCH


class Ends(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(batch)


def fit(source, **arguments):
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=10)
    ends = Ends()
    model.fit(source, epochs=2, verbose=0, callbacks=[ends], **arguments)
    return model, ends.batches


for name, (model, batches) in {
    "endless source": fit(endless(), steps_per_epoch=25),
    "source of 25": fit(Source()),
}.items():
    print(f"{name}: {int(model.optimizer.iterations)} steps, callbacks {batches}")
rows = len(model.predict(endless(), steps=25, verbose=0))
print(f"predict(steps=25) of batches of 4: {rows} rows")
PY
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" 2> "$folder/log" > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
