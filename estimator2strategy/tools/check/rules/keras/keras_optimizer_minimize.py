"""Keras optimizers used like those of tf.train."""

from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for call in source.calls:
        if call.last not in ("minimize", "apply_gradients") or call.argument("global_step") is None:
            continue
        made = source.call(getattr(call.node.func, "value", None), call.scope)
        if made is not None and (made.name or "").startswith(
            ("tf.keras.optimizers.", "tf.optimizers.", "keras.optimizers.", "tf_keras.optimizers.")
        ):
            yield Hit(call.node, f"{made.name} takes no global_step")
