"""`tf.contrib.saved_model` of TF 1.10: a signature by its key."""

from __future__ import annotations

from typing import Any


def get_signature_def_by_key(meta_graph_def: Any, signature_def_key: str) -> Any:
    """The SignatureDef of a MetaGraphDef.

    Raises:
        ValueError: There is none with this key.
    """
    if signature_def_key not in meta_graph_def.signature_def:
        raise ValueError(f"No SignatureDef with key '{signature_def_key}' found in MetaGraphDef.")
    return meta_graph_def.signature_def[signature_def_key]
