"""Cases for `tf.contrib.lookup`."""


def tables(tf):
    lookup = tf.contrib.lookup
    words = tf.constant(["a", "c", "nothing"])
    mapping = tf.constant(["a", "b", "c"])
    index = lookup.index_table_from_tensor(mapping=mapping, num_oov_buckets=1, default_value=-1)
    back = lookup.index_to_string_table_from_tensor(mapping=mapping, default_value="?")
    fixed = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "c"], [4, 7]), -2)
    return {
        "indices": index.lookup(words),
        "size": index.size(),
        "strings": back.lookup(tf.constant([2, 0, 9], tf.int64)),
        "fixed": fixed.lookup(words),
        "by_strings": lookup.string_to_index_table_from_tensor(mapping=mapping).lookup(words),
        "string_to_index": lookup.string_to_index(words, mapping),
        "index_to_string": lookup.index_to_string(tf.constant([1, 5], tf.int64), mapping),
    }
