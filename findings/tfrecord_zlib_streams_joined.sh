#!/bin/sh
# tensorflow-cpu 2.21.0, Python 3.11.
# Compressed files may be joined, as cat does with the parts of a job. TFRecordDataset reads all members of a
# joined GZIP file. Of joined ZLIB streams it reads the first, and ends without an error: the other records are
# lost. Seen, of two files of one record each:
#
#   GZIP: [b'one', b'two']
#   ZLIB: [b'one']
#
# Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/program.py" <<'PY'
import pathlib
import sys

import tensorflow as tf

folder = pathlib.Path(sys.argv[1])
for compression in ("GZIP", "ZLIB"):
    joined = b""
    for record in (b"one", b"two"):
        path = str(folder / "part")
        with tf.io.TFRecordWriter(path, compression) as writer:
            writer.write(record)
        joined += pathlib.Path(path).read_bytes()
    (folder / "joined").write_bytes(joined)
    records = tf.data.TFRecordDataset(str(folder / "joined"), compression)
    print(f"{compression}: {[record.numpy() for record in records]}")
PY
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/program.py" "$folder" 2> "$folder/log" > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
