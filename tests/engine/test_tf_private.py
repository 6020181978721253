"""Each private TensorFlow symbol that the package leans on still does what it is needed for.

When a TensorFlow release breaks one of these, fix `engine/_tf_private.py` (or the table named in
the test) before anything else: what fails further down fails because of it.
"""

from __future__ import annotations

import inspect

import pytest
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.record.input_fn import DatasetInitializerHook
from estimator2strategy.engine.runtime import lookahead
from tests.rehearsal import rehearsal

tf1 = tf.compat.v1
pytestmark = pytest.mark.oldest


def test_fetch_handler_flattens_fetches_and_rebuilds_results():
    with tf.Graph().as_default() as graph:
        a, op = tf.constant(1, name="a"), tf.no_op()
    handler = _tf_private.FetchHandler(graph, {"x": [a, op], "y": "a:0"}, {})
    assert handler.fetches() == [a]
    assert handler.targets() == [op]
    assert handler.build_results(None, [5]) == {"x": [5, None], "y": 5}


def test_feeds_are_taken_apart():
    with tf.Graph().as_default():
        a, b = tf1.placeholder(tf.float32), tf1.placeholder(tf.float32)
        sparse = tf1.sparse_placeholder(tf.float32)
    assert _tf_private.flatten_dict_items({(a, b): (1, 2)}) == {a: 1, b: 2}
    assert list(_tf_private.parts_of_feed(a, 1)) == [(a, 1)]
    parts = _tf_private.parts_of_feed(sparse, (1, 2, 3))
    assert list(parts) == [(sparse.indices, 1), (sparse.values, 2), (sparse.dense_shape, 3)]


def test_an_uninitialized_variable_has_no_value_and_then_one():
    variable = _tf_private.UninitializedVariable(shape=tf.TensorShape([2]), dtype=tf.float32)
    assert not tf.raw_ops.VarIsInitializedOp(resource=variable.handle)
    variable.assign([1.0, 2.0])
    assert variable.numpy().tolist() == [1.0, 2.0]


def test_a_saver_writes_and_restores_what_a_saveable_object_says(tmp_path):
    class Doubled(_tf_private.SaveableObject):
        def restore(self, restored_tensors, restored_shapes):
            return variable.assign(restored_tensors[0] / 2)

    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", initializer=3.0)
        specs = [_tf_private.SaveSpec(variable * 2, "", "twice")]
        saver = tf1.train.Saver([Doubled(tf.identity(variable), specs, "doubled")])
        session.run(variable.initializer)
        path = saver.save(session, str(tmp_path / "model"))
        assert tf.train.load_variable(path, "twice") == 6
        session.run(variable.assign(0.0))
        saver.restore(session, path)
        assert session.run(variable) == 3


def test_a_graph_is_added_to_events_as_the_public_method_adds_it(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="a")
    with tf.Graph().as_default(), tf1.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_graph(graph)
        _tf_private.add_graph(writer, graph, graph.as_graph_def(add_shapes=True))
    (path,) = tmp_path.iterdir()
    public, ours = (e.graph_def for e in tf1.train.summary_iterator(str(path)) if e.graph_def)
    assert public == ours


def test_the_tpu_of_a_resolver_and_of_each_strategy_is_known_by_its_name():
    with rehearsal() as vm:
        resolver = vm.resolver()
        assert _tf_private.tpu_name(resolver) == "local"
        for cls in (tf.distribute.TPUStrategy, tf1.distribute.experimental.TPUStrategy):
            assert _tf_private.resolver_of_tpu(cls(resolver)) is resolver


def test_tensorflow_keeps_a_list_of_the_tpu_systems_that_it_has_started():
    with rehearsal() as vm:
        assert _tf_private.started_tpu_system(vm.resolver()) is None
        topology = tf.tpu.experimental.initialize_tpu_system(vm.resolver())
        assert _tf_private.started_tpu_system(vm.resolver()) is topology
        tf.tpu.experimental.shutdown_tpu_system(vm.resolver())
        assert _tf_private.started_tpu_system(vm.resolver()) is None


def test_collectives_can_be_aborted_with_a_message():
    """Done only in `estimator/test_processes_in_step.py`: a process has no collectives after it."""
    abort = type(_tf_private._context.context()).abort_collective_ops
    assert list(inspect.signature(abort).parameters) == ["self", "code", "message"]


def test_stateful_ops_are_told_by_their_type():
    stateful = {"AssignVariableOp", "RandomUniform", "PyFunc", "IteratorGetNext", "OfNoLibrary"}
    assert all(map(_tf_private.is_stateful, stateful))
    assert not any(map(_tf_private.is_stateful, ["MatMul", "StatelessIf", "PyFuncStateless"]))


def test_an_assignment_may_change_the_shape_of_a_variable_that_may_grow():
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("seen", initializer=tf.zeros([0]), use_resource=True)
        _tf_private.let_grow(variable)
        ones = tf1.placeholder_with_default(tf.ones([2]), [None])
        assign = tf1.assign(variable, ones, validate_shape=False)
        assert session.run(assign).shape == (2,)


def test_the_attributes_of_an_op_that_are_no_functions_are_known():
    assert _tf_private.plain_attrs("MatMul") >= {"transpose_a", "transpose_b", "T"}
    assert _tf_private.plain_attrs("MapDataset").isdisjoint({"f"})
    assert _tf_private.plain_attrs("Case").isdisjoint({"branches"})
    assert not _tf_private.plain_attrs("OfNoLibrary")


def test_a_graph_becomes_a_function_and_a_graph_again():
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [], name="x")
        y = tf.negative(x, name="y")
    function = _tf_private.function_of_graph(graph, graph.get_operations(), [x], [y])
    assert [node.op for node in function.node_def] == ["Neg"]
    graph_def, names = _tf_private.graph_of_function(function)
    assert [(node.name, node.op) for node in graph_def.node] == [("x", "Placeholder"), ("y", "Neg")]
    assert names[function.ret["y"]] == "y:0"


def test_the_graph_of_a_function_has_the_ops_of_its_nodes_with_their_lines():
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0)
        choice = tf1.cond(x > 0, lambda: tf.sqrt(x, name="root"), lambda: x)
    name = choice.op.inputs[0].op.get_attr("then_branch").name
    op = _tf_private.func_graph(graph, name).get_operation_by_name("root")
    assert any(frame.filename == __file__ for frame in op.traceback)
    assert _tf_private.func_graph(graph, "no_such_function") is None


def test_an_op_of_a_gradient_knows_the_forward_op():
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        y = tf.square(x)
        (slope,) = tf1.gradients(y, x)
    assert _tf_private.forward_op(slope.op) is y.op
    assert _tf_private.forward_op(y.op) is None


def test_a_registered_gradient_can_be_replaced():
    tf.RegisterGradient("GradientOfTestTfPrivate")(lambda op, grad: None)
    assert "GradientOfTestTfPrivate" in _tf_private.gradient_names()
    _tf_private.forget_gradient("GradientOfTestTfPrivate")
    tf.RegisterGradient("GradientOfTestTfPrivate")(lambda op, grad: None)


def test_it_is_known_whether_ops_are_deterministic():
    """That it is true once asked for: `runtime/test_precision.py`, in a process of its own."""
    assert _tf_private.ops_are_deterministic() is False


def test_keras_classes_are_as_before():
    import tf_keras

    class Model(tf_keras.Model):
        def call(self, inputs):
            return inputs

    class Whole(tf_keras.Model):
        def __init__(self):
            super().__init__()
            self.part = Model()

    whole = Whole()
    bases = tf_keras.Sequential.__mro__, Whole.__bases__, Model.__bases__
    with _tf_private.keras_classes_kept(whole), tf.Graph().as_default():
        Whole()
        assert Whole.__bases__ != bases[1]
    assert (tf_keras.Sequential.__mro__, Whole.__bases__, Model.__bases__) == bases


def test_optimizers_believe_in_the_shard_context():
    with tf.Graph().as_default() as graph, _tf_private.tpu_shard_context(4):
        total = tf1.tpu.cross_replica_sum(tf.constant(1.0))
    assert total.op.type == "CrossReplicaSum"
    assert tf.get_static_value(total.op.inputs[1]).tolist() == [[0, 1, 2, 3]]
    assert graph is total.graph


def test_control_flow_in_the_xla_context_is_functional():
    with tf.Graph().as_default() as graph, _tf_private.xla_control_flow_context("cores"):
        tf.cond(tf1.placeholder(tf.bool, []), lambda: 1.0, lambda: 2.0)
    types = {op.type for op in graph.get_operations()}
    assert types & {"If", "StatelessIf"}
    assert not types & {"Switch", "Merge"}


def test_capture_brings_a_tensor_into_the_function_being_traced():
    outside = tf.constant(2.0)

    @tf.function
    def inside():
        captured = _tf_private.capture(outside)
        assert captured.graph is tf1.get_default_graph()
        return captured + 1

    assert inside().numpy() == 3


def test_a_replica_context_of_our_own_reduces_through_the_strategy():
    from estimator2strategy.engine.record.recording_strategy import one_replica_of

    with tf.Graph().as_default() as graph, one_replica_of(2):
        context = tf.distribute.get_replica_context()
        assert context.num_replicas_in_sync == 2
        variable = tf1.get_variable("v", [], use_resource=True)
        loss = tf1.losses.compute_weighted_loss(variable * 2.0)
        tf1.train.GradientDescentOptimizer(1.0).minimize(loss)
    assert sum(op.type == "CrossReplicaSum" for op in graph.get_operations()) == 1


def test_stock_hooks_keep_the_state_that_lookahead_reads(tmp_path):
    """The table is `runtime.lookahead._PATIENCE`."""
    with tf.Graph().as_default():
        step = tf1.train.create_global_step()
        scaffold = tf1.train.Scaffold()
        dataset = tf1.data.make_initializable_iterator(tf.data.Dataset.range(1))
        evals = _tf_private.StopAfterNEvalsHook(num_evals=10)
        hooks = [
            tf1.train.CheckpointSaverHook("/tmp/unused", save_steps=5, scaffold=scaffold),
            tf1.train.StepCounterHook(every_n_steps=5),
            tf1.train.SummarySaverHook(save_steps=5, output_dir=str(tmp_path), scaffold=scaffold),
            tf1.train.LoggingTensorHook({"step": step}, every_n_iter=5),
            tf1.train.StopAtStepHook(last_step=20),
            DatasetInitializerHook(dataset),
            evals,
        ]
        hooks[2].begin()
        hooks[3].begin()
    until = {type(hook): lookahead._PATIENCE[type(hook)](hook, 0) for hook in hooks}
    # Those with a timer trigger at their first step; the others say how far it is.
    assert until[tf1.train.StopAtStepHook] == 20
    assert until[_tf_private.StopAfterNEvalsHook] == 1
    assert until[tf1.train.CheckpointSaverHook] == 0
    for timed in (hooks[0], hooks[1]):
        timed._timer.update_last_triggered_step(3)
        assert lookahead._PATIENCE[type(timed)](timed, 4) == 4
    hooks[3]._iter_count = 0
    hooks[3]._timer.reset()
    assert lookahead._PATIENCE[type(hooks[3])](hooks[3], 0) == 1


def test_a_session_manager_takes_the_session_that_it_is_given():
    """`runtime.monitored` overrides the private method in which it makes one."""
    assert callable(tf1.train.SessionManager._restore_checkpoint)


def test_stock_hooks_take_the_global_step_read_that_is_there():
    with tf.Graph().as_default() as graph:
        tf1.train.create_global_step()
        _tf_private.add_global_step_read(graph)
        hook = tf1.train.StepCounterHook()
        hook.begin()
    (read,) = graph.get_collection(_tf_private.GLOBAL_STEP_READ)
    assert hook._global_step_tensor is read


def test_a_function_for_a_tpu_has_variables_of_the_graph_around_it():
    with tf.Graph().as_default() as graph:
        x = tf.constant(2.0)

        @_tf_private.Defun(capture_resource_var_by_value=False)
        def function():
            return tf1.get_variable("v", [], use_resource=True) * x

        outside = {tensor.op.type for tensor in function.captured_inputs}
        (variable,) = tf1.global_variables()
    assert variable.graph is graph
    assert outside == {"VarHandleOp", "Const"}


def test_control_flow_in_the_context_for_tpus_is_functional():
    context = _tf_private.TPUInferenceContext("tpu_inference", check_ops=False)
    with tf.Graph().as_default() as graph:
        context.Enter()
        tf.cond(tf1.placeholder(tf.bool, []), lambda: 1.0, lambda: 2.0)
        context.Exit()
    (branching,) = (op for op in graph.get_operations() if op.type in ("If", "StatelessIf"))
    assert not branching.node_def.attr["_lower_using_switch_merge"].b


def test_what_a_tpu_compiler_refuses_is_taken_from_it():
    with tf.Graph().as_default() as graph:
        lonely = tf1.placeholder(tf.float32, [])
        lonely.op._set_attr("_tpu_replicate", tf1.AttrValue(s=b"cluster"))
        _tf_private.prune_unconnected_ops_from_xla(graph)
    assert "_tpu_replicate" not in lonely.op.node_def.attr


def test_a_checkpoint_tells_what_a_saver_needs(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf.Variable(1.0, name="v")
        session.run(variable.initializer)
        checkpoint = tf.train.Checkpoint(weight=variable)
        saver = tf1.train.Saver(_tf_private.saveable_objects(checkpoint))
        path = saver.save(session, str(tmp_path / "saved"))
    assert "weight/.ATTRIBUTES/VARIABLE_VALUE" in dict(tf.train.list_variables(path))


def test_a_checkpoint_is_told_from_what_is_none(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", [])
        session.run(variable.initializer)
        path = tf1.train.Saver().save(session, f"{tmp_path}/saved")
    assert _tf_private.checkpoint_exists(path)
    assert not _tf_private.checkpoint_exists(f"{tmp_path}/save")


def test_a_saver_builder_says_what_goes_into_one_file(tmp_path):
    class OneEach(_tf_private.BulkSaverBuilder):
        def _GroupByDevices(self, saveables):  # noqa: N802
            ((device, on_device),) = super()._GroupByDevices(saveables)
            assert [saveable.op.shape.as_list() for saveable in on_device] == [[2], [3]]
            return [(device, [saveable]) for saveable in on_device]

    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("a", [2]), tf1.get_variable("b", [3])
        session.run(tf1.global_variables_initializer())
        path = tf1.train.Saver(sharded=True, builder=OneEach()).save(session, f"{tmp_path}/c")
    assert len([*tmp_path.glob("c.data-*-of-00002")]) == 2
    assert sorted(dict(tf.train.list_variables(path))) == ["a", "b"]


def test_the_profiler_writes_the_format_that_we_read(tmp_path):
    @tf.function
    def f(x):
        return tf.reduce_mean(x, name="a_name")

    f(tf.ones([3]))
    with tf.profiler.experimental.Profile(str(tmp_path)):
        f(tf.ones([3]))
    (path,) = tmp_path.rglob("*.xplane.pb")
    space = _tf_private.XSpace.FromString(path.read_bytes())
    events = [
        plane.event_metadata[event.metadata_id].name
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    ]
    assert any(event.endswith("a_name:Mean") for event in events)


def test_the_python_function_behind_a_node_is_found():
    def function(value):
        return value

    with tf.Graph().as_default() as graph:
        tf.numpy_function(function, [1], tf.int32)
        (node,) = [n for n in graph.as_graph_def().node if n.op == "PyFunc"]
        assert _tf_private.python_function(node.attr["token"].s) is function


def test_a_traced_function_goes_on_with_other_captures():
    one, other = tf.Variable(1.0), tf.Variable(10.0)

    @tf.function(autograph=False)
    def add_in_a_loop(times):
        tf.while_loop(
            lambda i: i < times, lambda i: (one.assign_add(1.0), i + 1)[1:], [tf.constant(0)]
        )

    traced = add_in_a_loop.get_concrete_function(tf.TensorSpec([], tf.int32))
    _tf_private.rebind(traced, {id(one.handle): other.handle})
    traced(tf.constant(3))
    assert (one.numpy(), other.numpy()) == (1.0, 13.0)


def test_the_handle_of_a_variable_can_be_told_what_it_is_of():
    variables = [tf.Variable(tf.ones([2, 3])), tf.Variable([1.0])]
    packed = tf.stack([variable.handle for variable in variables])

    @tf.function(autograph=False)
    def read():
        handle, _ = tf.unstack(packed)
        _tf_private.copy_handle_data(variables[0].handle, handle)
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    assert read.get_concrete_function().outputs[0].shape == [2, 3]
    assert read().numpy().sum() == 6.0


def test_embedding_columns_say_where_they_are_used_on_cores():
    column = tf1.tpu.experimental.embedding_column(
        tf.feature_column.categorical_column_with_identity("ids", 3), dimension=2
    )
    assert isinstance(column, _tf_private.TPU_EMBEDDING_COLUMNS)
    assert isinstance(column, _tf_private.EMBEDDING_SPEC_COLUMNS)
    with tf.Graph().as_default() as graph, _tf_private.tpu_shard_context(2):
        features = {"ids": tf.ones([4, 2])}
        assert tf1.feature_column.input_layer(features, [column]).shape == [4, 2]
        (used,) = graph.get_collection(_tf_private.EMBEDDING_SCOPES)
    assert used == {"ids": ("input_layer/ids_embedding", "embedding_weights")}


def test_output_classes_become_the_signatures_of_their_method():
    outputs = _tf_private.model_utils
    with tf.Graph().as_default():
        signatures = outputs.build_all_signature_defs(
            {"x": tf1.placeholder(tf.string, [None])},
            {"more": outputs.RegressionOutput(tf.ones([2]))},
        )
    assert signatures["more"].method_name == "tensorflow/serving/regress"


def test_tables_of_indices_take_what_contrib_gave_them():
    lookup = _tf_private.lookup_ops
    table = lookup.index_table_from_tensor(["a", "b"], 0, -1, lookup.FastHashSpec, tf.string, None)
    assert table.lookup(tf.constant(["b", "c"])).numpy().tolist() == [1, -1]


def test_numeric_columns_are_known_by_their_class():
    column = tf.feature_column.numeric_column("weight", shape=(1,))
    assert isinstance(column, _tf_private.NumericColumn)
    cache = tf.__internal__.feature_column.FeatureTransformationCache({"weight": tf.ones([3])})
    assert column.get_dense_tensor(cache, None).shape == [3, 1]


def test_old_columns_are_of_ids_or_dense_and_have_the_members_that_layers_ask_for():
    """A class of such a column may be derived from them with these members alone."""
    ids = tf.feature_column.categorical_column_with_identity("ids", 3)
    shown = tf.feature_column.indicator_column(ids)
    assert isinstance(ids, _tf_private.CategoricalColumnV1)
    assert isinstance(shown, _tf_private.DenseColumnV1)
    common = {"name", "_parse_example_spec", "_transform_feature"}
    of_ids = {"_num_buckets", "_get_sparse_tensors"}
    assert _tf_private.CategoricalColumnV1.__abstractmethods__ == common | of_ids
    dense = {"_variable_shape", "_get_dense_tensor"}
    assert _tf_private.DenseColumnV1.__abstractmethods__ == common | dense
    assert _tf_private.CategoricalColumnV1.IdWeightPair._fields == ("id_tensor", "weight_tensor")


def test_old_columns_of_sequences_are_known_checked_and_look_features_up():
    ids = tf.feature_column.sequence_categorical_column_with_identity("ids", 3)
    one, numbers = (
        tf.feature_column.indicator_column(ids),
        tf.feature_column.sequence_numeric_column("n"),
    )
    assert isinstance(one, _tf_private.SequenceDenseColumnV1)
    assert isinstance(numbers, _tf_private.SequenceNumericColumn)
    assert not isinstance(numbers, _tf_private.SequenceDenseColumnV1)
    assert _tf_private.normalize_feature_columns_v1(iter([one])) == [one]
    with pytest.raises(ValueError, match="Duplicate feature column name"):
        _tf_private.normalize_feature_columns_v1([one, one])
    inputs = _tf_private.LazyBuilder({"ids": tf.sparse.from_dense([[2, 1]])})
    dense, length = one._get_sequence_dense_tensor(inputs)
    assert dense.numpy().tolist() == [[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]]
    assert length.numpy().tolist() == [2]


def test_columns_are_checked_named_and_summed():
    ids = tf.feature_column.categorical_column_with_identity("b c", 3)
    size = tf.feature_column.numeric_column("a", shape=(2,))
    assert isinstance(ids, _tf_private.CategoricalColumn)
    assert _tf_private.is_feature_column_v2([ids, size])
    with tf.Graph().as_default():
        old = tf1.feature_column.shared_embedding_columns([ids, ids], 2)
    assert not _tf_private.is_feature_column_v2(old)
    assert _tf_private.normalize_feature_columns([ids, size]) == [size, ids]
    with pytest.raises(ValueError, match="Duplicate feature column name"):
        _tf_private.normalize_feature_columns([ids, ids])
    assert _tf_private.variable_scope_of_column(ids.name) == "b_c"
    with pytest.raises(ValueError, match="must be same"):
        _tf_private.check_batch_sizes([tf.ones([2, 1]), tf.ones([3, 1])], [size, ids])
    features = {"a": tf.constant([[1.0, 2.0]]), "b c": tf.constant([[2, 0]])}
    cache = tf.__internal__.feature_column.FeatureTransformationCache(features)
    weights = tf.constant([[10.0], [20.0], [30.0]])
    of_ids = _tf_private.weighted_sum(ids, cache, None, "mean", weights)
    of_size = _tf_private.weighted_sum(size, cache, None, "mean", weights[:2])
    assert (of_ids.numpy().tolist(), of_size.numpy().tolist()) == ([[20.0]], [[50.0]])


def test_lengths_of_sequences_are_looked_for_under_this_name():
    column = tf1.tpu.experimental.embedding_column(
        tf.feature_column.sequence_categorical_column_with_identity("ids", 3),
        dimension=2,
        max_sequence_length=4,
    )
    name = column.get_sequence_length_feature_key_name()
    assert name == "ids" + _tf_private.SEQUENCE_LENGTH_SUFFIX


def test_kernels_of_xla_are_listed_with_their_dtypes():
    kernels = {kernel.op: kernel for kernel in _tf_private.xla_kernels()}
    assert {"MatMul", "Conv2D", "While", "ResourceApplyAdam", "XlaAllReduce"} <= set(kernels)
    assert not {"PyFunc", "AsString", "CrossReplicaSum"} & set(kernels)
    allowed = {c.name: list(c.allowed_values.list.type) for c in kernels["MatMul"].constraint}
    assert tf.float32.as_datatype_enum in allowed["T"]
    assert tf.string.as_datatype_enum not in allowed["T"]


def test_programs_of_xla_can_be_read():
    doubled = tf.function(lambda x: x * 2.0, jit_compile=True)
    ir = doubled.experimental_get_compiler_ir(tf.TensorSpec([3]))(stage="hlo_serialized")
    module = _tf_private.HloModule.FromString(ir)
    instructions = [i for c in module.computations for i in c.instructions]
    assert "multiply" in {instruction.opcode for instruction in instructions}
    assert "mul" in {i.metadata.op_name.rpartition("/")[2] for i in instructions}


def test_functions_are_rewritten_as_the_thread_wants_and_then_as_before():
    def wanted():
        options = _tf_private._context.context().function_call_options
        config = tf1.ConfigProto.FromString(options.config_proto_serialized)
        return config.graph_options.rewrite_options

    before, options = wanted(), tf1.GraphOptions().rewrite_options
    options.meta_optimizer_iterations = options.ONE
    with _tf_private.rewrite_options(options):
        assert wanted().meta_optimizer_iterations == options.ONE
        assert tf.function(lambda: tf.constant(1) + 1)() == 2
    assert wanted() == before


def test_rewrites_are_as_usual_until_somebody_chooses_how():
    assert _tf_private.rewrites_as_usual()
    options = tf1.GraphOptions().rewrite_options
    options.meta_optimizer_iterations = options.ONE
    with _tf_private.rewrite_options(options):
        assert _tf_private.rewrites_as_usual()
    options.constant_folding = options.OFF
    with _tf_private.rewrite_options(options):
        assert not _tf_private.rewrites_as_usual()


def test_a_registered_function_is_found_by_its_name():
    function = tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([]))
    definition = _tf_private.function_def(function.name.decode())
    assert definition.signature.name == function.name.decode()


def test_kmeans_makes_what_chooses_centers_and_what_moves_them():
    with tf.Graph().as_default():
        made = _tf_private.KMeans(tf.zeros([4, 2]), 2, "random").training_graph()
    distances, indices, losses, initialized, init_op, train_op = made
    assert [t.dtype for t in (*distances, *indices, *losses)] == [tf.float32, tf.int64, tf.float32]
    assert initialized.dtype.base_dtype == tf.bool
    assert (init_op.graph, train_op.graph) == (initialized.graph, initialized.graph)


def test_a_sum_over_one_core_is_what_is_summed():
    with tf.Graph().as_default() as graph, _tf_private.tpu_shard_context(1):
        with _tf_private.sums_over_one_core():
            tf1.tpu.cross_replica_sum(tf.constant(1.0))
        assert [op.type for op in graph.get_operations()] == ["Const", "Identity"]
        tf1.tpu.cross_replica_sum(tf.constant(1.0))
        assert graph.get_operations()[-1].type == "CrossReplicaSum"


def test_ids_for_tensor_cores_are_looked_for_under_these_names():
    column = tf1.tpu.experimental.embedding_column(
        tf.feature_column.categorical_column_with_identity("ids", 3),
        dimension=1,
        combiner="sum",
        initializer=tf1.constant_initializer([[1.0], [10.0], [100.0]]),
        embedding_lookup_device="tpu_tensor_core",
        tensor_core_shape=[None, 2],
    )
    assert _tf_private.tensor_core_length(column) == 2
    with tf.Graph().as_default(), _tf_private.tpu_shard_context(2):
        mask = {"ids" + _tf_private.TENSOR_CORE_MASK_SUFFIX: tf.constant([[1.0, 0.0]])}
        rows = tf1.feature_column.input_layer({"ids": tf.constant([[2, 0]]), **mask}, [column])
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            assert session.run(rows).tolist() == [[100.0]]


def test_the_number_of_a_core_is_an_op_of_its_program():
    with tf.Graph().as_default():
        assert _tf_private.replica_id().op.type == "XlaReplicaId"


def test_an_op_that_may_run_in_any_order_waits_for_no_other_and_runs():
    @tf.function
    def step():
        for word in ("first", "second"):
            _tf_private.run_in_any_order(tf.print(word))

    definition = step.get_concrete_function().function_def
    printed = [node for node in definition.node_def if node.op == "PrintV2"]
    assert [[i for i in node.input if i.startswith("^")] for node in printed] == [[], []]
    assert {node.name for node in printed} <= set(definition.control_ret)


def test_a_branch_is_made_again_with_another_control_output():
    with tf.Graph().as_default() as graph:
        tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(2.0))
        (conditional,) = (op for op in graph.get_operations() if op.type == "StatelessIf")
        name = conditional.get_attr("then_branch").name
        branch = _tf_private.func_graph(graph, name)
        with branch.as_default():
            branch.control_outputs.append(tf1.no_op(name="awaited"))
        branch.name = "again"
        _tf_private.set_branch(conditional, "then_branch", branch)
        assert conditional.get_attr("then_branch").name == "again"
        functions = {f.signature.name: f for f in graph.as_graph_def().library.function}
        assert "awaited" in functions["again"].control_ret.values()
