"""while_loop without a bound."""

from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for call in context.project.tpu_code.get(source, ()):
        if call.name != "tf.while_loop" or call.is_open:
            continue
        if call.argument("maximum_iterations", 8) is None:
            yield Hit(call.node, "a loop without maximum_iterations has no gradient on a TPU")
