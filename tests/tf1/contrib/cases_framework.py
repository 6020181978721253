"""Cases for `tf.contrib.framework`."""

from parity import deep, values


def arg_scope(tf):
    framework, layers = tf.contrib.framework, tf.contrib.layers
    inputs = tf.constant(values([2, 4], "inputs"), tf.float32)
    with framework.arg_scope([layers.fully_connected], activation_fn=None, biases_initializer=None):
        first = layers.fully_connected(inputs, 3)
        with framework.arg_scope([layers.fully_connected], num_outputs=2) as scope:
            second = layers.fully_connected(inputs)
    with framework.arg_scope(scope):
        third = layers.fully_connected(first, scope="third")

    @framework.add_arg_scope
    def scaled(tensor, by=1.0):
        return tensor * by

    assert framework.has_arg_scope(scaled)
    with framework.arg_scope([scaled], by=3.0):
        assert framework.arg_scoped_arguments(scaled) == ("by",)
        fourth = scaled(inputs)
    return {"first": first, "second": second, "third": third, "fourth": fourth}


def variables(tf):
    framework = tf.contrib.framework
    with tf.variable_scope("net"):
        framework.model_variable(
            "weights",
            [2, 3],
            initializer=tf.ones_initializer(),
            regularizer=tf.contrib.layers.l2_regularizer(0.5),
            collections=["mine"],
        )
        framework.variable("counter", [], tf.float32, tf.zeros_initializer(), trainable=False)
        framework.local_variable(3.0, name="local")
    step = framework.get_or_create_global_step()
    names = {
        "all": framework.get_variables(),
        "scoped": framework.get_variables("net", "weights"),
        "model": framework.get_model_variables(),
        "local": framework.get_local_variables(),
        "named": framework.get_variables_by_name("counter"),
        "suffix": framework.get_variables_by_suffix("weights"),
        "trainable": framework.get_trainable_variables(),
        "restored": framework.get_variables_to_restore(exclude=["net/counter"]),
        "filtered": framework.filter_variables(
            tf.global_variables(), include_patterns=["net"], exclude_patterns=["counter"]
        ),
        "mine": tf.get_collection("mine"),
        "unique": [framework.get_unique_variable("net/weights")],
    }
    found = {key: tf.constant([v.op.name for v in value]) for key, value in names.items()}
    framework.assert_global_step(step)
    return dict(found, step=framework.get_global_step())


def checks(tf):
    framework = tf.contrib.framework
    three = tf.constant(3)
    return {
        "scalar": framework.assert_scalar(three),
        "shape": framework.with_shape([2], tf.constant([1, 2])),
        "same": framework.with_same_shape(tf.constant([0, 0]), tf.constant([1, 2])),
        "cond": framework.smart_cond(True, lambda: three, lambda: three + 1),
        "sort": framework.sort(tf.constant([3.0, 1.0, 2.0]), direction="DESCENDING"),
        "argsort": framework.argsort(tf.constant([3.0, 1.0, 2.0])),
        "sum": framework.reduce_sum_n([three, three]),
    }


def nest(tf):
    nest = tf.contrib.framework.nest
    structure = {"a": [1, 2], "b": (3, {"c": 4})}
    doubled = nest.map_structure(lambda v: 2 * v, structure)
    nest.assert_same_structure(structure, doubled)
    assert nest.is_sequence([1])
    assert not nest.is_sequence("ab")
    return {"flat": tf.constant(nest.flatten(doubled))}


def assign_from_values(tf):
    weights = tf.contrib.framework.model_variable("weights", [2])
    op, feed = tf.contrib.framework.assign_from_values({"weights": values([2], "x")})
    del op, feed
    return {"weights": weights}


def squeezed(tf):
    squeeze = tf.contrib.framework.remove_squeezable_dimensions
    free = tf.placeholder_with_default([[1.0], [2.0]], None)
    results = {
        "same": squeeze(tf.ones([2, 1]), tf.ones([2, 1])),
        "predictions": squeeze(tf.ones([2, 1]), tf.ones([2])),
        "labels": squeeze(tf.ones([2]), [[1.0], [2.0]]),
        "free_predictions": squeeze(free, tf.ones([2])),
        "free_labels": squeeze(tf.ones([2]), free),
    }
    return {key: list(pair) for key, pair in results.items()}


def audio(tf):
    audio = deep(tf, "framework.python.ops.audio_ops")
    wave = tf.constant(values([320, 1], "wave"), tf.float32)
    decoded = audio.decode_wav(audio.encode_wav(wave, 8000))
    spectrogram = audio.audio_spectrogram(wave, window_size=64, stride=32)
    return {
        "wave": decoded.audio[:8],
        "rate": decoded.sample_rate,
        "spectrogram": spectrogram[0, :2, :6],
        "mfcc": audio.mfcc(spectrogram, 8000, dct_coefficient_count=5),
    }


def initial_values(tf):
    shapes = {"1d": [3, 4, 4], "2d": [3, 3, 4, 4], "3d": [2, 2, 2, 4, 4]}
    made = {}
    for kind, shape in shapes.items():
        initializer = getattr(tf.contrib.framework, "convolutional_orthogonal_" + kind)(seed=3)
        weights = initializer(shape)
        made[kind] = tf.reduce_sum(weights * weights)
    return made
