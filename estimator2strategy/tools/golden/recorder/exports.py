"""Results of an exported model: its signatures, fed with recorded features."""

import numpy as np
import tensorflow as tf


def described(infos):
    return {
        name: {
            "dtype": tf.as_dtype(info.dtype).name,
            "shape": None
            if info.tensor_shape.unknown_rank
            else [d.size for d in info.tensor_shape.dim],
        }
        for name, info in infos.items()
    }


def received(inputs, features):
    """The feeds of a signature: features of the same names, or tf.Examples made of them.

    Raises:
        ValueError: The recorded features do not fit.
    """
    named = features if isinstance(features, dict) else dict.fromkeys(inputs, features)
    if len(inputs) > 1 or not all(i.dtype == tf.string.as_datatype_enum for i in inputs.values()):
        if features is None or not set(inputs) <= set(named):
            raise ValueError(f"no recorded features {sorted(set(inputs) - set(named))}")
        return {name: named[name] for name in inputs}
    ((name, _),) = inputs.items()
    if not isinstance(features, dict):
        raise ValueError("features have no names to make tf.Examples of")
    rows = len(next(iter(features.values())))
    examples = np.empty([rows], object)
    examples[:] = [
        _example({key: value[i] for key, value in features.items()}) for i in range(rows)
    ]
    return {name: examples}


def _example(features):
    example = tf.train.Example()
    for key, value in features.items():
        value, feature = np.asarray(value).ravel(), example.features.feature[key]
        if value.dtype.kind in "OSU":
            feature.bytes_list.value.extend(value.tolist())
        elif value.dtype.kind == "f":
            feature.float_list.value.extend(value.astype(float).tolist())
        else:
            feature.int64_list.value.extend(value.astype(int).tolist())
    return example.SerializeToString()
