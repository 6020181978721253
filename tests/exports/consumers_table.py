"""The table of `migration_guide/serving.md`: each reader of SavedModels, and each kind of export.

python -m tests.exports --page
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "migration_guide" / "serving.md"
BEGIN, END = "<!-- consumers: begin -->\n", "<!-- consumers: end -->\n"
TOLERANCE = 1e-5
KINDS = ("numbers", "strings", "tpu", "images", "series")
_LONGEST = 60
# Words of an error -> how the table says them, after the error's class.
_SHORT = (
    (r"'tf\.(\w+)' op", r"`\1`"),
    (r"NodeDef mentions attr '(\w+)' not in Op", r"`\1`"),
    (r"requires a `(tags=)` argument", r"`\1`"),
    (r"Select TensorFlow op", "needs the Flex delegate"),
    (r"^OpConversionFailure", "it lacks an op"),
    (r"outer_context", "no gradient in a loop of TF 1"),
    (r"^FailedPreconditionError", "the weights are lost"),
    (r"INVALID_GRAPH", "onnxruntime refuses the file"),
)


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        says: The reader, with its release.
        consumer: The function of `consumers.py`, or `session` for `session_reader.py`.
        exports: The set of exports.
        environment: The environment in which it runs.
    """

    says: str
    consumer: str
    exports: str = "plain"
    environment: str = "consumers"


ROWS = {
    "loaded": Row('`tf.saved_model.load(folder, tags=["serve"])`, 2.21.0', "loaded"),
    "trained": Row("the same, one step of training, saved again", "trained"),
    "serving_api": Row("TensorFlow Serving's API types, 2.21.0", "serving_api"),
    "saved_model_cli": Row("`saved_model_cli run --inputs`, 2.21.0", "saved_model_cli"),
    "tfsm_layer": Row("`keras.layers.TFSMLayer`, Keras 3.15.1", "tfsm_layer"),
    "tfsm_layer_one_graph": Row("- after `e2s export-for --tags=serve`", "tfsm_layer", "one_graph"),
    "tflite": Row("TFLite, built-in ops; LiteRT 2.3.0", "tflite"),
    "tflite_numbers": Row("- numbers of `e2s export-for --parts`", "tflite", "numbers"),
    "tflite_select": Row("TFLite, `SELECT_TF_OPS`; LiteRT 2.3.0", "tflite_select"),
    "onnx": Row("tf2onnx 1.17.0, onnxruntime 1.32.0", "onnx"),
    "onnx_numbers": Row("- numbers of `e2s export-for --parts`", "onnx", "numbers"),
    "openvino": Row("OpenVINO 2026.4.1", "openvino"),
    "openvino_numbers": Row("- numbers of `e2s export-for --parts`", "openvino", "numbers"),
    "tensorflowjs": Row("TensorFlow.js's converter, 4.22.0", "tensorflowjs", "plain", "tfjs"),
    "tensorflowjs_numbers": Row(
        "- numbers of `e2s export-for --parts`", "tensorflowjs", "numbers", "tfjs"
    ),
    "tf215": Row("`tf.compat.v1.saved_model.load` of 2.15.1", "session", "plain", "tf215"),
    "tf115": Row("`tf.saved_model.load` of 1.15.5", "session", "plain", "tf115"),
    "tf115_for": Row('- after `for_tensorflow="1.15"`', "session", "for_tf115", "tf115"),
    "of_tf115_trained": Row("an export of TF 1.15.5, trained and saved", "trained", "of_tf115"),
    "for_tf2_trained": Row("- trained, after `e2s export-for --tf=2`", "trained", "for_tf2"),
    "of_tf115_saved": Row("an export of TF 1.15.5, saved again", "saved_again", "of_tf115"),
    "for_tf2_saved": Row("- saved, after `e2s export-for --tf=2`", "saved_again", "for_tf2"),
}


def cell(found: Mapping[str, float | str | None], kind: str) -> str:
    """`0`, `2e-7`, `converts`, the error, or nothing if the export needs no remedy."""
    if kind not in found:
        return ""
    value = found[kind]
    if value is None:
        return "converts"
    if isinstance(value, str):
        return _short(value)
    if value > TOLERANCE:
        return f"differs by {value:.0e}"
    return f"{value:.0e}".replace("e-0", "e-").replace("0e+00", "0")


def _short(error: str) -> str:
    for pattern, text in _SHORT:
        if found := re.search(pattern, error):
            return f"{error.partition(':')[0]}: {found.expand(text)}"
    plain = re.sub(r"[|`<>\[\]]", "", error)
    return plain if len(plain) <= _LONGEST else plain[:_LONGEST].rstrip() + " ..."


def table(results: Mapping[str, Mapping[str, float | str | None]]) -> str:
    """The table, with a line at its top that names the command."""
    lines = [
        f"| reader | {' | '.join(KINDS)} |",
        "| --- " * (len(KINDS) + 1) + "|",
    ]
    for name, row in ROWS.items():
        if name in results:
            cells = " | ".join(cell(results[name], kind) for kind in KINDS)
            lines.append(f"| {row.says} | {cells} |")
    return "\n".join(lines) + "\n"


def write(results: Mapping[str, Mapping[str, float | str | None]]) -> None:
    """Writes the table into the page."""
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}{table(results)}{END}{rest.partition(END)[2]}")
