"""Ops without a kernel for TPUs, in model code."""

from estimator2strategy.tools.check.rule import Hit

# Name, or the beginning of names that ends in "." -> what it is.
_HOST_ONLY = {
    "tf.Print": "prints on the host",
    "tf.print": "prints on the host",
    "tf.string_split": "works on strings",
    "tf.string_join": "works on strings",
    "tf.string_to_number": "works on strings",
    "tf.string_to_hash_bucket_fast": "works on strings",
    "tf.string_to_hash_bucket_strong": "works on strings",
    "tf.as_string": "makes strings",
    "tf.regex_replace": "works on strings",
    "tf.substr": "works on strings",
    "tf.strings.": "works on strings",
    "tf.decode_raw": "reads bytes",
    "tf.io.decode_raw": "reads bytes",
    "tf.decode_csv": "reads bytes",
    "tf.parse_single_example": "reads bytes",
    "tf.parse_example": "reads bytes",
    "tf.io.parse_single_example": "reads bytes",
    "tf.io.parse_example": "reads bytes",
    "tf.read_file": "reads files",
    "tf.io.read_file": "reads files",
    "tf.write_file": "writes files",
    "tf.image.decode_jpeg": "decodes images",
    "tf.image.decode_png": "decodes images",
    "tf.image.decode_image": "decodes images",
    "tf.image.decode_gif": "decodes images",
    "tf.image.encode_jpeg": "encodes images",
    "tf.image.encode_png": "encodes images",
    "tf.io.decode_jpeg": "decodes images",
    "tf.io.decode_png": "decodes images",
    "tf.io.decode_image": "decodes images",
    "tf.contrib.lookup.": "looks up in a table of the host",
    "tf.lookup.": "looks up in a table of the host",
    "tf.edit_distance": "works on sparse tensors",
    "tf.nn.ctc_beam_search_decoder": "works on sparse tensors",
    "tf.nn.ctc_greedy_decoder": "works on sparse tensors",
}


def find(source, context):
    for call in context.project.tpu_code.get(source, ()):
        what = _host_only(call.name)
        if what:
            yield Hit(call.node, f"{call.name} {what}, and is called where the TPU computes")


def _host_only(name):
    if name is None:
        return None
    if name in _HOST_ONLY:
        return _HOST_ONLY[name]
    return next((w for p, w in _HOST_ONLY.items() if p.endswith(".") and name.startswith(p)), None)
