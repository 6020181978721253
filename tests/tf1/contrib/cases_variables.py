"""Cases for variables and their scopes."""


def initialized_value(tf):
    first = tf.get_variable("first", [3], initializer=tf.truncated_normal_initializer(seed=1))
    copy = tf.Variable(first.initialized_value(), name="copy")
    twice = tf.get_variable("twice", initializer=lambda: 2.0 * copy.initialized_value())
    with tf.control_dependencies([first.assign_add([1.0, 2.0, 3.0])]):
        return [first.initialized_value(), copy - twice / 2.0]


def getter_of_a_scope(tf):
    def in_float32(getter, name, shape=None, dtype=tf.float32, **kwargs):
        return tf.cast(getter(name, shape, tf.float32, **kwargs), dtype)

    with tf.variable_scope("scope", custom_getter=in_float32):
        half = tf.get_variable("half", [2], dtype=tf.float16)
        layer = tf.layers.dense(tf.ones([1, 2]), 3)
    with tf.variable_scope("typed", dtype=tf.float64):
        double = tf.get_variable("double", [2])
    return [half, layer, double]


def partitioned(tf):
    with tf.variable_scope("scope", partitioner=tf.fixed_size_partitioner(2)):
        table = tf.get_variable("table", [4, 3])
        layer = tf.layers.dense(tf.ones([2, 4]), 3)
    return [tf.nn.embedding_lookup(table, [0, 3]), layer, tf.convert_to_tensor(table)]


def regularizer_of_a_scope(tf):
    l2 = tf.contrib.layers.l2_regularizer(0.1)
    with tf.variable_scope("scope", regularizer=l2):
        tf.get_variable("weight", [2])
        tf.layers.dense(tf.ones([2, 3]), 2)
        tf.layers.dense(tf.ones([2, 3]), 2, kernel_regularizer=tf.nn.l2_loss, name="own")
    return [tf.losses.get_regularization_loss(), tf.add_n(tf.losses.get_regularization_losses())]


def shadow_variables(tf):
    weight = tf.get_variable("weight", [2], initializer=tf.ones_initializer())
    average = tf.train.ExponentialMovingAverage(0.9, num_updates=3)
    with tf.control_dependencies([weight.assign_add([1.0, 2.0])]):
        apply = average.apply([weight])
    with tf.control_dependencies([apply]):
        return [average.average(weight) + 0.0, average.average_name(weight)]
