"""Marks optimizers of Keras 3 that compute something else for the rows of an embedding."""

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod

_SQUARED = "it squares the gradients of an id that is twice in a batch before it adds them up"
# Class of Keras 3 -> what it does, and the class of examples/tf1_optimizers.py.
_OPTIMIZERS = {
    "Adadelta": (_SQUARED, "Adadelta"),
    "Adagrad": (_SQUARED, "Adagrad"),
    "Adam": (_SQUARED, "Adam"),
    "AdamW": (_SQUARED, "AdamW"),
    "Adamax": (_SQUARED, "AdaMax"),
    "Ftrl": ("it sets rows that nobody looked up to 0", "Ftrl"),
    "Nadam": (_SQUARED, "Nadam"),
    "RMSprop": (_SQUARED, "RMSProp"),
    "SGD": ("its momentum moves rows that nobody looks up", "Momentum"),
}
_MODULES = ("keras.optimizers.", "tf.keras.optimizers.", "tf.optimizers.")


@codemod(
    "keras-3-lookups",
    stage=8,
    tier=SafetyTier.SAFE,
    title="Marks optimizers of Keras 3 in a program that looks up embeddings",
    why="The gradient of an embedding is that of the rows that a batch looked up. TensorFlow 1 and "
    "tf-keras first add up the gradients of a row, and leave the others alone (Adam moves all). "
    "Keras 3 does not: [the table](#optimizers) has the numbers. The mark names a class that is "
    "equal. While the program has a model_fn, its optimizers are of tf-keras, and nothing is "
    "marked.",
    proof="It changes no code. tests/tools/migrate/test_replacements.py holds the table.",
)
def find(module):
    if not module.facts.looks_up_rows or module.facts.of_specs:
        return
    for call in module.source.calls:
        name = call.name or ""
        if not name.startswith(_MODULES) or call.last not in _OPTIMIZERS:
            continue
        momentum = call.argument("momentum", 1)
        if call.last == "SGD" and (momentum is None or call.value("momentum", 1) == 0):
            continue
        what, written = _OPTIMIZERS[call.last]
        yield Todo(
            call.node,
            f"{call.last} is Keras 3's: {what}. {written} of examples/tf1_optimizers.py does not",
        )
