"""Arguments that TF2 knows by another name."""

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemod

_REDUCTIONS = tuple(
    f"tf.{module}reduce_{what}"
    for what in ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")
    for module in ("", "math.")
)
# Old name -> new name, and the functions of TF 1.15 that take both.
ARGUMENTS = {
    "keep_dims": (
        "keepdims",
        (
            *_REDUCTIONS, "tf.count_nonzero", "tf.math.count_nonzero", "tf.norm", "tf.linalg.norm",
            "tf.nn.moments", "tf.nn.weighted_moments",
        ),
    ),
    "reduction_indices": ("axis", (*_REDUCTIONS, "tf.count_nonzero", "tf.math.count_nonzero")),
    "dimension": ("axis", ("tf.argmax", "tf.argmin", "tf.math.argmax", "tf.math.argmin")),
    "dim": (
        "axis",
        (
            "tf.expand_dims", "tf.nn.softmax", "tf.nn.log_softmax", "tf.nn.l2_normalize",
            "tf.math.l2_normalize", "tf.math.softmax", "tf.math.log_softmax",
            "tf.nn.softmax_cross_entropy_with_logits_v2",
        ),
    ),
    "squeeze_dims": ("axis", ("tf.squeeze",)),
    "seq_dim": ("seq_axis", ("tf.reverse_sequence",)),
    "batch_dim": ("batch_axis", ("tf.reverse_sequence",)),
    "preferred_dtype": ("dtype_hint", ("tf.convert_to_tensor",)),
    "concat_dim": ("axis", ("tf.sparse_concat", "tf.sparse.concat")),
}  # fmt: skip


@codemod(
    "arguments",
    stage=2,
    tier=SafetyTier.SAFE,
    title="Arguments by their names in TF2 (`keep_dims` to `keepdims`, `dim` to `axis`)",
    why="TF 1.15 takes both names for these, and warns of the old one.",
    proof="One function, one argument (tests/tools/migrate/test_proofs.py asks for both names).",
)
def find(module):
    for call in module.calls():
        name = module.name(call.node.func, call.scope)
        for keyword in call.node.keywords:
            new, functions = ARGUMENTS.get(keyword.arg or "", ("", ()))
            if name in functions:
                yield module.rename_keyword(call, keyword.arg, new)
