#!/bin/sh
# tensorflow-cpu 2.21.0, Python 3.11.
# A TFRecord file that ends inside the header of a record (its first 12 bytes) reads as one that ends
# before that record, without an error; one that ends inside of its data is a DataLossError. So an
# interrupted copy may lose its last examples and nobody is told. Seen, for two records of 10 bytes,
# of which so many bytes of the second are there:
#
#   0 bytes: 1 record
#   1 byte: 1 record
#   11 bytes: 1 record
#   12 bytes: DataLossError
#   25 bytes: DataLossError
#   26 bytes: 2 records
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

whole = f"{sys.argv[1]}/whole"
with tf.io.TFRecordWriter(whole) as writer:
    for _ in range(2):
        writer.write(b"0123456789")
data = open(whole, "rb").read()


def plural(count, noun):
    return f"{count} {noun}{'s' * (count != 1)}"


for size in (0, 1, 11, 12, 25, 26):
    part = f"{sys.argv[1]}/part"
    with open(part, "wb") as file:
        file.write(data[: 26 + size])
    try:
        seen = plural(len(list(tf.data.TFRecordDataset(part))), "record")
    except tf.errors.DataLossError as error:
        seen = type(error).__name__
    print(f"{plural(size, 'byte')}: {seen}")
PY
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" "$folder" > "$folder/seen" 2> "$folder/log" || { cat "$folder/log" >&2; exit 1; }
sed -n 's/^#   //p' "$0" > "$folder/expected"
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
