"""The rules whose findings another module makes: one row each, with what there is to say of them.

A file cannot be parsed, a comment silences nothing, a compiler refuses a step: the module that
meets such a case reports it with the rule's id. `found_by` of a row names that module.
"""

from estimator2strategy.legacy.python2 import CONVERT
from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import VARIED_INPUT
from estimator2strategy.tools.check.rule import Rule

_BATCH_NORM_MODEL = """\
def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features["x"], 4)
    hidden = tf.layers.batch_normalization(hidden, training={training})
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""

_REDUCED_MODEL = """\
def model_fn(features, labels, mode, params):
    error = tf.square(labels - tf.layers.dense(features["x"], 1))
    loss = tf.reduce_{reduction}(error)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1e-4))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""

_CLIPPED_MODEL = """\
def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
    pairs = optimizer.compute_gradients(loss)
    gradients, _ = tf.clip_by_global_norm([g for g, _ in pairs], {norm})
    pairs = zip(gradients, [v for _, v in pairs])
    train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""

_WEIGHTED_MODEL = """\
def model_fn(features, labels, mode, params):
    error = tf.square(labels - tf.layers.dense(features["x"], 1))
    real = tf.cast(labels > {least}, tf.float32)
    loss = tf.reduce_sum(error * real) / (tf.reduce_sum(real) + 1e-5)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1e-4))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""

DESCRIBED = (
    Rule(
        "E2S001",
        "unparsable",
        Severity.ERROR,
        title="A file that cannot be parsed",
        why="Nothing in it was checked, so no verdict covers it.",
        fix="Mend the file, or leave it out with `exclude`.",
        bad="def model_fn(features, labels, mode:\n    pass\n",
        good="def model_fn(features, labels, mode):\n    pass\n",
        found_by="checking.py",
    ),
    Rule(
        "E2S002",
        "python2-syntax",
        Severity.ERROR,
        title="A file that only Python 2 can read",
        why="TensorFlow 2.16 needs Python 3.9 at least. Nothing else in the file was checked.",
        fix=CONVERT,
        bad='print "loss", 1.0\n',
        good='print("loss", 1.0)\n',
        found_by="checking.py",
    ),
    Rule(
        "E2S004",
        "suppression-without-reason",
        Severity.WARNING,
        title="A comment that silences without naming a rule and a reason",
        why="Who reads it later cannot tell whether it still holds; a mistyped id silences "
        "nothing.",
        fix="Write `# e2s: ignore[E2S123] the reason`.",
        bad="size = 8  # e2s: ignore\n",
        good="size = 8\n",
        found_by="suppressions.py",
    ),
    Rule(
        "E2S005",
        "unused-suppression",
        Severity.WARNING,
        title="A comment that silences a finding which is not there",
        why="It would hide the next one of its kind.",
        fix="Remove the comment.",
        bad="size = 8  # e2s: ignore[E2S003] it is used by both\n",
        good="size = 8\n",
        found_by="suppressions.py",
    ),
    Rule(
        "E2S006",
        "stale-baseline",
        Severity.WARNING,
        title="An entry of the baseline that is not found any more",
        why="It would hide the next finding of its kind; a baseline only shrinks.",
        fix="Run `e2s check ... --prune-baseline`, and commit the file.",
        bad=None,
        good=None,
        found_by="checking.py",
    ),
    Rule(
        "E2S620",
        "batch-statistics",
        Severity.WARNING,
        title="Batch norm, or another mean over the batch, that each core takes over its own part",
        why="Each core normalises with the mean and variance of its part of the batch; one "
        "device, with use_tpu=False, with those of the whole. That is how TPUs always trained: "
        "accuracy may depend on the batch size per core, and a run on one device is no reference "
        "for one on a TPU.",
        fix="To compare runs, use as many cores as before. If it is to be the same on any number, "
        "average the moments over the cores with tf.tpu.cross_replica_sum.",
        bad=VARIED_INPUT + _BATCH_NORM_MODEL.format(training='mode == "train"'),
        good=VARIED_INPUT + _BATCH_NORM_MODEL.format(training="False"),
        level=Evidence.REPLICATED,
        found_by="levels/difference_causes.py",
    ),
    Rule(
        "E2S621",
        "sum-for-mean",
        Severity.WARNING,
        title="A loss or gradients that are so many times another as there are cores",
        why="CrossShardOptimizer takes the mean over the cores of what each core makes of its "
        "part of the batch. A loss that is a sum over its examples, or reduction=SUM, then gives "
        "gradients that depend on the number of cores: the learning rate means something else on "
        "each.",
        fix="Take the mean over the examples (tf.reduce_mean, Reduction.SUM_OVER_BATCH_SIZE) and "
        "leave CrossShardOptimizer its mean; or scale the learning rate by the number of cores, "
        "and know it.",
        bad=VARIED_INPUT + _REDUCED_MODEL.format(reduction="sum"),
        good=VARIED_INPUT + _REDUCED_MODEL.format(reduction="mean"),
        level=Evidence.REPLICATED,
        found_by="levels/difference_causes.py",
    ),
    Rule(
        "E2S622",
        "clipped-before-sum",
        Severity.WARNING,
        title="Gradients that each core clips before they are summed over the cores",
        why="The norm of a core's own gradient is larger than that of the mean, so more is "
        "clipped than on one device, and each core's gradient gets another weight. It is what the "
        "program did on a TPU, too; the step is another one for each number of cores.",
        fix="To clip what is applied, sum first: wrap the clipping optimizer, or clip inside of "
        "the optimizer that CrossShardOptimizer wraps (its apply_gradients gets the sums).",
        bad=VARIED_INPUT + _CLIPPED_MODEL.format(norm="1.0"),
        good=VARIED_INPUT + _CLIPPED_MODEL.format(norm="1e9"),
        level=Evidence.REPLICATED,
        found_by="levels/difference_causes.py",
    ),
    Rule(
        "E2S623",
        "uneven-parts",
        Severity.WARNING,
        title="A batch whose parts on the cores do not weigh the same",
        why="Each core takes a mean over what counts in its part (examples that are no padding, "
        "tokens, weights), and the cores' means are averaged as if each had as many. On one "
        "device each example counts alike. A batch that the cores cannot share evenly is refused.",
        fix="Divide by a number that is the same on every core (the batch size), or sum numerator "
        "and denominator over the cores with tf.tpu.cross_replica_sum; make batches that the "
        "number of cores divides.",
        bad=VARIED_INPUT + _WEIGHTED_MODEL.format(least="10.0"),
        good=VARIED_INPUT + _WEIGHTED_MODEL.format(least="-1.0"),
        level=Evidence.REPLICATED,
        found_by="levels/difference_causes.py",
    ),
    Rule(
        "E2S624",
        "differs-on-cores",
        Severity.WARNING,
        title="A step that is another one on several cores, for a reason that is not known",
        why="One step was run on emulated cores and on one device, from the same variables and on "
        "the same batch, and gave other numbers. None of the usual reasons (E2S620 to E2S623) "
        "fits.",
        fix="Look at the tensor that is named: what of it depends on how many examples a core has?",
        bad=None,
        good=None,
        level=Evidence.REPLICATED,
        found_by="levels/difference_causes.py",
    ),
    Rule(
        "E2S625",
        "drifting-variable",
        Severity.INFO,
        title="A variable that has another value on each core after a step",
        why="Each core changes its own copy, and nothing sums over them. Checkpoints have the "
        "first core's. Moving averages of batch norm have always been so on TPUs.",
        fix="Where it is meant to be one value, sum or average over the cores with "
        "tf.tpu.cross_replica_sum before it is assigned.",
        bad=None,
        good=None,
        level=Evidence.REPLICATED,
        found_by="levels/difference_causes.py",
    ),
    Rule(
        "E2S626",
        "not-the-golden",
        Severity.ERROR,
        title="A model that does not do here what a golden (--golden) recorded of it",
        why="The batches of the golden were replayed from its checkpoint, and something that was "
        "recorded there (names, losses, gradients, slots, metrics, predictions, the exported "
        "model) came out as another one, by more than float32 and other kernels explain.",
        fix="Look at the first tier that fails: all before it are the same. The command e2s "
        "verify makes the same comparison, and can be given wider tolerances.",
        bad=None,
        good=None,
        guide="verify.md",
        level=Evidence.VERIFIED,
        found_by="levels/verified.py",
    ),
    Rule(
        "E2S701",
        "does-not-compile",
        Severity.ERROR,
        title="XLA refuses the step",
        why="XLA has all of its ops, but cannot make one program of fixed shapes of them. A TPU "
        "needs that too.",
        fix="Do what the message says.",
        bad=None,
        good=None,
        guide="tpu_compile.md",
        level=Evidence.CPU_COMPILED,
        found_by="levels/cpu_compiled.py",
    ),
    Rule(
        "E2S702",
        "not-as-recorded",
        Severity.ERROR,
        title="A TPU cannot be sent the step as it was recorded",
        why="The train function was traced under a genuine TPUStrategy, which needs no TPU, and "
        "what it would send is not what model_fn built.",
        fix="Do what the message says; on a TPU the program would end before its first step, or "
        "train something else.",
        bad=None,
        good=None,
        guide="tpu_compile.md",
        level=Evidence.TPU_TRACED,
        found_by="levels/tpu_traced.py",
    ),
    Rule(
        "E2S703",
        "tpu-refuses",
        Severity.ERROR,
        title="The TPU's compiler refuses the step",
        why="The step was given to the compiler in libtpu, for a TPU that is not there, and it "
        "made no program of it.",
        fix="Do what the message says.",
        bad=None,
        good=None,
        guide="tpu_compile.md",
        level=Evidence.TPU_COMPILED,
        found_by="levels/tpu_compiled.py",
    ),
    Rule(
        "E2S704",
        "too-large-for-tpu",
        Severity.ERROR,
        title="The step does not fit into the memory of a core",
        why="The compiler in libtpu says how much memory the step needs on a core, at its peak: "
        "variables, the batch, and what lies between. On the TPU it would end with "
        "RESOURCE_EXHAUSTED.",
        fix="Take a smaller batch (--fit-batch finds the largest), bfloat16 activations, or an "
        "optimizer with fewer slots.",
        bad=None,
        good=None,
        guide="tpu_compile.md",
        level=Evidence.TPU_COMPILED,
        found_by="levels/tpu_compiled.py",
    ),
)
