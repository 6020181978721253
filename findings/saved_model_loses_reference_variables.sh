#!/bin/sh
# tensorflow-cpu 2.21.0, Python 3.11.
# A SavedModel of TensorFlow 1 holds reference variables unless the program asked for others. tf.saved_model.load
# serves it, and finds no variables in it; tf.saved_model.save of what was loaded raises nothing and writes no
# weights, and the signature of the new folder fails. With resource variables all is well. Seen:
#
#   reference: variables 0, serves [[2.0]], saved again []; serves FailedPreconditionError
#   resource: variables 1, serves [[2.0]], saved again ['variables/0/.ATTRIBUTES/VARIABLE_VALUE']; serves [[2.0]]
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import sys

import tensorflow as tf

v1 = tf.compat.v1


def write(folder, use_resource):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2])
        kernel = v1.get_variable("kernel", [2, 1], initializer=v1.ones_initializer(), use_resource=use_resource)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, folder, {"x": x}, {"y": x @ kernel})


def serve(model):
    try:
        return model.signatures["serving_default"](x=tf.ones([1, 2]))["y"].numpy().tolist()
    except tf.errors.FailedPreconditionError as error:
        return type(error).__name__


for name, use_resource in (("reference", False), ("resource", True)):
    folder = f"{sys.argv[1]}/{name}"
    write(folder, use_resource)
    model = tf.saved_model.load(folder)
    tf.saved_model.save(model, folder + "2", signatures=model.signatures)
    kept = [key for key, shape in tf.train.list_variables(folder + "2/variables/variables") if shape]
    again = serve(tf.saved_model.load(folder + "2"))
    print(f"{name}: variables {len(model.variables)}, serves {serve(model)}, saved again {kept}; serves {again}")
PY
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" "$folder" 2> "$folder/log" > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
