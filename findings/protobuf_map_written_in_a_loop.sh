#!/bin/sh
# protobuf 7.36.2 (its C extension, upb), Python 3.11.
# A loop over a map of a message that assigns to each key it is given, and adds none, visits some
# keys twice and others never, and raises nothing. A dict visits each once. A loop over a list of the
# keys is right. Seen, for 1000 keys, each set to 1:
#
#   loop over the map: 1000 visits, all are set: False
#   loop over list(map): 1000 visits, all are set: True
#   loop over a dict: 1000 visits, all are set: True
#
# About 810 are set. Ends with 0 while that is so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check protobuf==7.36.2
cat > "$folder/program.py" <<'PY'
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

STRING, INT32 = 9, 5  # FieldDescriptorProto.Type
OPTIONAL, REPEATED, MESSAGE = 1, 3, 11

file = descriptor_pb2.FileDescriptorProto(name="map.proto", package="finding", syntax="proto3")
message = file.message_type.add(name="Counts")
entry = message.nested_type.add(name="OfEntry")
entry.options.map_entry = True
entry.field.add(name="key", number=1, type=STRING, label=OPTIONAL)
entry.field.add(name="value", number=2, type=INT32, label=OPTIONAL)
message.field.add(
    name="of", number=1, type=MESSAGE, label=REPEATED, type_name=".finding.Counts.OfEntry"
)
pool = descriptor_pool.DescriptorPool()
pool.AddSerializedFile(file.SerializeToString())
Counts = message_factory.GetMessageClass(pool.FindMessageTypeByName("finding.Counts"))


def show(name, values, keys):
    for i in range(1000):
        values[f"key {i}"] = 0
    visits = 0
    for key in keys(values):
        values[key] = 1
        visits += 1
    print(f"{name}: {visits} visits, all are set: {sum(values.values()) == 1000}")


show("loop over the map", Counts().of, iter)
show("loop over list(map)", Counts().of, list)
show("loop over a dict", {}, iter)
PY
"$folder/venv/bin/python" "$folder/program.py" > "$folder/seen"
cat "$folder/seen"
sed -n 's/^#   //p' "$0" | diff - "$folder/seen"
