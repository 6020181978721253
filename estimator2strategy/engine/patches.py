"""The ledger of all that this package changes in modules, classes and processes of others.

A change has a row, and is made by `put`, `scope` or, where it is no attribute, beside a call of
`noted`. `tests/engine/test_patches.py` reads the source of the package, and refuses a change
elsewhere. `e2s doctor --patches` prints the rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple


class Patch(NamedTuple):
    """One change.

    Attributes:
        target: What is changed.
        why: The reason, and why nothing smaller does.
        when: Since when a process has it.
        spares: What goes on as before.
        undone: When it ends; "" for never.
        test: The file of tests, in `tests/`, that holds it.
    """

    target: str
    why: str
    when: str
    spares: str
    undone: str
    test: str


_RECORDING = "a graph is recorded, or the facade is imported"
_FACADE = "the facade is imported"
_KERAS = "the facade's tf.keras is used"
_CODE_OF_TF2 = "code of TF 2, and Keras 3"
_SWITCHES = "engine/test_tf_switches.py"
_CALLERS = "tf1/facade/test_by_caller.py"

LEDGER = {
    # TensorFlow.
    "shapes": Patch(
        "tensorflow: tensor_shape._TENSORSHAPE_V2_OVERRIDE",
        "Dimensions of TF 1 are objects. TensorFlow's own switch breaks `fit` of Keras 3.",
        _RECORDING,
        "code of TF 2 gets ints: a context decides, else the code that asks",
        "",
        _SWITCHES,
    ),
    "sizes": Patch(
        "tensorflow: Dimension.__init__",
        "TF 1.15 took whole floats, and digits of a file, as sizes.",
        _FACADE,
        "code of TF 2 gets TensorFlow's error",
        "",
        _CALLERS,
    ),
    "graph switches": Patch(
        "tensorflow: _DEFAULT_USE_RESOURCE, ENABLE_CONTROL_FLOW_V2",
        "Variables and control flow follow their graph. TensorFlow's switches change the process.",
        _RECORDING,
        "other graphs get what the process's own switch says",
        "",
        _SWITCHES,
    ),
    "names in branches": Patch(
        "tensorflow: ControlFlowFuncGraph.__init__",
        "TF 1.15 named ops in branches after the scope around them, which summaries show.",
        _RECORDING,
        "graphs of TF 2",
        "",
        "engine/record/test_branches.py",
    ),
    "op seeds": Patch(
        "tensorflow: random_seed._graph_to_seed_dict",
        "TF 1.15's seed of an op counts all ops before it, TF 2's the random ones.",
        _RECORDING,
        "graphs without the mark",
        "",
        "engine/test_behavior.py",
    ),
    "references": Patch(
        "tensorflow: BaseResourceVariable.__bool__, initialized_value, _ref",
        "Programs of TF 1 ask variables for what reference variables alone have now.",
        _FACADE,
        "outside of v1 graphs bool() reads the value",
        "",
        _SWITCHES,
    ),
    "modes of threads": Patch(
        "tensorflow: context.default_execution_mode",
        "Threads in which code of TF 1.15 runs are in graph mode.",
        _FACADE,
        "threads of other code",
        "",
        _SWITCHES,
    ),
    "tensor equality": Patch(
        "tensorflow: Tensor._USE_EQUALITY",
        "Tensors of TF 1 are equal to themselves alone, and keys of dicts.",
        _FACADE,
        "code of TF 2 compares values",
        "",
        _SWITCHES,
    ),
    "parallel calls": Patch(
        "tensorflow: tf.compat.v1.data.Dataset.map",
        "TF 1.15 took int32 tensors for num_parallel_calls.",
        _FACADE,
        "other arguments",
        "",
        _CALLERS,
    ),
    "soft placement": Patch(
        "tensorflow: tf.config.set_soft_device_placement",
        "If it was never said, TensorFlow places hard what runs outside of Sessions.",
        "the facade starts a thread in graph mode, or a RunConfig asks for it",
        "the value, unless a RunConfig asks for another",
        "",
        "engine/runtime/test_session_config.py",
    ),
    "session config": Patch(
        "tensorflow: tf.config's threads and growth of GPU memory",
        "The ConfigProto of a RunConfig asks for it.",
        "an Estimator has such a RunConfig",
        "what the ConfigProto leaves out",
        "",
        "engine/runtime/test_session_config.py",
    ),
    "logical CPUs": Patch(
        "tensorflow: tf.config.set_logical_device_configuration",
        "Emulated cores are logical CPUs.",
        "emulated cores are asked for",
        "CPUs that the program has configured",
        "",
        "engine/runtime/test_core_counts.py",
    ),
    "own gradient": Patch(
        "tensorflow: the registry of gradients, a name of ours",
        "A custom gradient of a recording is called in its replay.",
        "a graph is recorded",
        "all other names",
        "",
        "engine/replay/engines/test_jit.py",
    ),
    "gradients registered again": Patch(
        "tensorflow: the registry of gradients",
        "Programs register a gradient in each model_fn call; the registry refuses the second.",
        "a program does so",
        "names that the program does not register",
        "",
        "tf1/facade/test_older_ways.py",
    ),
    "sums over one core": Patch(
        "tensorflow: gen_tpu_ops.cross_replica_sum",
        "No CPU has a kernel for the op.",
        "a step of one core is traced",
        "",
        "when that is done",
        "engine/test_tf_private.py",
    ),
    "unused reports": Patch(
        "tensorflow: a filter of its logger",
        "SyncReplicasOptimizer complains of an object that it has left unused itself.",
        "a program has such an optimizer",
        "all other lines",
        "",
        "engine/parameter_servers/test_one_process.py",
    ),
    "notices of deprecation": Patch(
        "warnings.showwarning, and a filter of TensorFlow's logger",
        "Each use of TF 1's names logs a notice; one line says so for all.",
        _FACADE,
        "other lines; with E2S_DEPRECATIONS=1 all",
        "",
        "legacy/test_quiet.py",
    ),
    "warnings of tf.layers": Patch(
        "the filters of warnings",
        "Functions of tf.layers tell of tf.keras.layers at each call.",
        "such a function runs",
        "other warnings",
        "at the end of the call",
        "legacy/test_quiet.py",
    ),
    # Keras.
    "keras names": Patch(
        "keras: the table of names that were given",
        "A model_fn that is called again gives its layers the same names.",
        "a model_fn runs",
        "the names of the thread stand still",
        "at the end of the call",
        _SWITCHES,
    ),
    "keras dtypes": Patch(
        "tf_keras: v2_dtype_behavior_enabled",
        "Layers of TF 1 take the dtype of their first input.",
        _KERAS,
        _CODE_OF_TF2,
        "",
        _SWITCHES,
    ),
    "keras files": Patch(
        "tf_keras: saving_api.get_save_format",
        "TF 1.15 saves models as HDF5.",
        _KERAS,
        _CODE_OF_TF2,
        "",
        _SWITCHES,
    ),
    "keras initializers": Patch(
        "tf_keras: initializers.LOCAL",
        "Layers in v1 graphs draw first weights from the seed of the graph.",
        _KERAS,
        "layers outside of v1 graphs, and Keras 3",
        "",
        _SWITCHES,
    ),
    "keras metric names": Patch(
        "tf_keras: training_utils_v1.get_metric_name",
        'TF 1.15 calls metrics "acc" and "mean_...".',
        _KERAS,
        _CODE_OF_TF2,
        "",
        _SWITCHES,
    ),
    "keras layer names": Patch(
        "tf_keras: generic_utils.to_snake_case, base_layer_v1.to_snake_case",
        "TF 1.15 does not tell digits from letters: gp_t2layer.",
        _KERAS,
        _CODE_OF_TF2,
        "",
        _SWITCHES,
    ),
    "keras loops": Patch(
        "tf_keras: backend.rnn",
        "The TensorArray of v1's loops refuses a second write to one place.",
        _KERAS,
        "loops of TF 2",
        "",
        _SWITCHES,
    ),
    "keras moments": Patch(
        "tf_keras: BatchNormalizationBase.__init_subclass__",
        "Programs have a _moments as TF 1 called it, without a mask.",
        _KERAS,
        "classes whose _moments takes a mask",
        "",
        _SWITCHES,
    ),
    "keras apply": Patch(
        "tf_keras: Layer.apply",
        "TF 1.15 had layer.apply(inputs).",
        _KERAS,
        "a Keras that has it",
        "",
        _CALLERS,
    ),
    "makers of layers": Patch(
        "tf_keras: __init__ and calls of layers and cells",
        "A layer builds as the code that has made it, whoever calls it.",
        _FACADE,
        "layers that code of TF 2 makes",
        "",
        _CALLERS,
    ),
    # The interpreter.
    "observed metrics": Patch(
        "sys.monitoring, or sys.setprofile",
        "Who made a pair of ops is seen while the function of tf.metrics runs.",
        "a model_fn runs",
        "a profiler that is set",
        "at the end of the call",
        "engine/metrics/test_metrics_observe.py",
    ),
    "collections": Patch(
        "gc: thresholds, callbacks, freeze",
        "Collections take a third of the time in which a large graph is built.",
        "a graph is built or traced",
        "a program that has frozen objects itself",
        "when that is done",
        "engine/runtime/test_starting.py",
    ),
    "signals": Patch(
        "signal: SIGINT, SIGTERM, the wakeup descriptor",
        "A training that is told to stop saves first.",
        "train runs in the main thread",
        "handlers and a descriptor of the program",
        "at the end of the call",
        "engine/runtime/test_stopping.py",
    ),
    "queues at exit": Patch(
        "atexit",
        "Threads that fill queues end before TensorFlow is unloaded.",
        "an input_fn reads from queues",
        "",
        "",
        "estimator/test_queues.py",
    ),
    "legacy imports": Patch(
        "sys.meta_path, SourceFileLoader.exec_module, runpy._run_code",
        "Modules of a legacy program import the tensorflow of TF 1.15.",
        "e2s run, legacy.install, or a child of such a process",
        "modules that are not legacy code",
        "",
        "legacy/test_run.py",
    ),
    "facade imports": Patch(
        "sys.meta_path",
        "`import` finds what attributes of the facade find.",
        _FACADE,
        "all names outside of estimator2strategy.tf1",
        "",
        "tf1/facade/test_deep_imports.py",
    ),
    "children": Patch(
        "os.environ: PYTHONPATH and E2S_LEGACY_SCOPE",
        "Python processes that a legacy program starts are legacy, too.",
        "e2s run",
        "",
        "",
        "legacy/test_run.py",
    ),
    "program": Patch(
        "sys.argv, sys.path, sys.excepthook, sys.modules['__main__'], os.environ: E2S_...",
        "The process is the program's.",
        "e2s run",
        "",
        "e2s record puts sys.excepthook back",
        "legacy/test_run.py",
    ),
    "digits": Patch(
        "numpy: the global seed",
        "TF 1.15's reader of MNIST did so, and its order follows.",
        "tf.contrib.learn reads MNIST with a seed",
        "",
        "",
        "tf1/contrib/test_contrib_learn_data.py",
    ),
    "library imports": Patch(
        "sys.meta_path",
        "Installed libraries that were written for Estimators import the tensorflow of their day.",
        "e2s run, or the facade or estimator2strategy.estimator is imported",
        "libraries that run on today's TensorFlow",
        "",
        "engine/libraries/test_served_libraries.py",
    ),
    # JAX.
    "kept compilations": Patch(
        "jax.config: where compilations are kept; the filters of warnings",
        "A second start compiles nothing. JAX warns of a damaged file, and goes on.",
        "JAX compiles a step",
        "a folder that the program has set, and other warnings",
        "when it is compiled",
        "engine/replay/test_kept_compilations.py",
    ),
    "hosts of JAX": Patch(
        "jax.config: jax_cpu_collectives_implementation; atexit",
        "CPUs of several hosts need a way to sum; the others are told of a process that ends well.",
        "a job of several processes begins",
        "",
        "",
        "estimator/test_jax_hosts.py",
    ),
    # Processes of the commands.
    "quiet libraries": Patch(
        "file descriptor 2",
        "TensorFlow's libraries write before TF_CPP_MIN_LOG_LEVEL is read.",
        "this package imports TensorFlow for a command or a program",
        "lines that say something else",
        "when that is done",
        "engine/test_quiet_import.py",
    ),
    "imports put off": Patch(
        "sys.meta_path",
        "TensorFlow imports Keras and JAX, and Keras what it finds: half of a start's seconds.",
        "this package imports TensorFlow for a command or a program",
        "other threads; whoever imports them afterwards",
        "when that is done",
        "engine/test_put_off.py",
    ),
    "end of a verification": Patch(
        "gc.freeze, when the process ends",
        "Python would look through all graphs again at its end, which takes half a second.",
        "e2s verify",
        "what is freed without a search, functions of atexit",
        "",
        "tools/golden/test_verify_cost.py",
    ),
    "no collections": Patch(
        "gc.disable",
        "What TensorFlow's import makes stays; Python would look through it again and again.",
        "this package imports TensorFlow for a command or a program",
        "a process that has switched them off",
        "when that is done",
        "engine/test_put_off.py",
    ),
    "report's output": Patch(
        "file descriptor 1",
        "What a program prints does not belong in a report.",
        "e2s verify",
        "",
        "before the report",
        "tools/golden/test_verify.py",
    ),
    "command's log": Patch(
        "os.environ: TF_CPP_MIN_LOG_LEVEL, and the verbosity of TensorFlow's logger",
        "A report does not drown in TensorFlow's log.",
        "e2s checkpoint, record, verify, and levels of check",
        "a level that is set",
        "",
        "test_cli.py",
    ),
    "command's backend": Patch(
        "os.environ: KERAS_BACKEND",
        "The graphs of a legacy program are TensorFlow's, also those of its Keras layers.",
        "a command that runs one",
        "e2s checkpoint",
        "",
        "test_cli.py",
    ),
    "command's search path": Patch(
        "sys.path",
        "A command finds the module that it is given.",
        "a level of check",
        "the entries that are there, and their order",
        "",
        "tools/check/test_levels.py",
    ),
    "warnings of source": Patch(
        "the filters of warnings",
        "Python warns of doubtful text, which is not what a reader of source is asked.",
        "e2s check or migrate reads a file",
        "",
        "when that is done",
        "tools/check/test_rules.py",
    ),
    "cycles of source": Patch(
        "the collector of cycles",
        "Trees of source are cycles that live as long as their project, and the collector would "
        "walk them again and again.",
        "e2s check reads files",
        "",
        "when they are checked",
        "tools/reader/test_large_trees.py",
    ),
    "libtpu": Patch(
        "os.environ",
        "libtpu looks for a TPU's neighbours unless it is told that there are none.",
        "a TPU's compiler is loaded",
        "",
        "",
        "engine/xla/test_tpu_compiler.py",
    ),
}

_in_force: dict[str, None] = {}


def put(patch: str, owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of a foreign module or class.

    Args:
        patch: The row of the ledger.
        owner: The module or class.
        name: Of the attribute.
        value: Its new value.
    """
    noted(patch)
    setattr(owner, name, value)


@contextlib.contextmanager
def scope(patch: str, owner: Any, name: str, value: Any) -> Iterator[None]:
    """As `put`, while the body runs."""
    before = getattr(owner, name)
    put(patch, owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def noted(patch: str) -> None:
    """Says that this process has the change of this row from now on, or has had it."""
    assert patch in LEDGER, patch
    _in_force[patch] = None


def in_force() -> list[str]:
    """The rows whose change this process has made, in that order."""
    return list(_in_force)
