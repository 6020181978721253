"""Writes recorded models as a SavedModel of TF1: graphs, signatures, one set of variables, assets.

    serving = ServedGraph(ModeKeys.PREDICT, ["serve"], serving_input_receiver_fn, call_model_fn)
    write_saved_model(
        "/models/mine",
        [serving],
        "/tmp/model/model.ckpt-100",
        config,
        look_up=None,
        assets_extra=None,
        as_text=False,
        strip_default_attrs=True,
    )

Only a Session runs these graphs, here and wherever they are served; they are never replayed.

Source: `Estimator._export_all_saved_models`, tensorflow_estimator 2.15 estimator.py.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime import unfinished_exports
from estimator2strategy.engine.runtime.latest_checkpoint import using
from estimator2strategy.engine.runtime.monitored import leave_out_summaries_of_branches
from estimator2strategy.engine.saved_models import model_files, tensorflow_115
from estimator2strategy.engine.user_code import location
from estimator2strategy.engine.worlds import serving
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.estimator import export
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.specs import EstimatorSpec

tf1 = tf.compat.v1

# The collection in which a SavedModel keeps the train op; TensorFlow has no public name for it.
_TRAIN_OP = "saved_model_train_op"
_ASSETS_EXTRA = "assets.extra"


@dataclasses.dataclass(frozen=True)
class ServedGraph:
    """One graph of a SavedModel, before it is made.

    Attributes:
        mode: The mode in which model_fn is called.
        tags: The tags by which a loader asks for this graph.
        receiver_fn: Makes the placeholders that are fed, and of them what model_fn takes.
        call_model_fn: `call_model_fn(features, labels)` returns the EstimatorSpec.
        check_variables: True to see that the checkpoint has all variables. Those of the first
            graph are restored from it, and so are checked.
        resource_step: True if the global step is a resource variable in any case, as in a graph for
            a TPU, or as the program's variables are.
    """

    mode: str
    tags: Sequence[str]
    receiver_fn: Callable[[], Any]
    call_model_fn: Callable[[Any, Any], EstimatorSpec]
    check_variables: bool = True
    resource_step: bool = False


def write_saved_model(
    base: str | bytes | os.PathLike[str],
    graphs: Iterable[ServedGraph],
    checkpoint_path: str,
    config: RunConfig,
    *,
    look_up: Callable[[], str | None] | None,
    assets_extra: Mapping[str, str] | None,
    as_text: bool,
    strip_default_attrs: bool,
    tf115: bool = False,
    for_tf115: bool = False,
) -> bytes:
    """Writes a new numbered folder below `base`, all of it or nothing.

    Args:
        base: The folder of all versions of the model.
        graphs: The graphs to write; the variables of the first one are saved.
        checkpoint_path: Whence the variables come.
        config: The RunConfig with the seed and `session_config` to use.
        look_up: Gives the latest checkpoint if that one was removed meanwhile; None: an error.
        assets_extra: Path below `assets.extra` -> file to copy there.
        as_text: Write `saved_model.pbtxt`, not `saved_model.pb`.
        strip_default_attrs: Leave out attributes of nodes that have their default, so that older
            releases of TensorFlow, which do not know the attribute, can load the graph.
        tf115: True if the program is one of TF 1.15.
        for_tf115: True if TF 1.15 shall load the graphs.

    Returns:
        The folder: `base`/seconds since 1970.

    Raises:
        ValueError: The checkpoint lacks variables, or TF 1.15 an op, of a graph.
    """
    unfinished_exports.clear(os.fsdecode(base))
    folder = export.get_timestamped_export_dir(os.fspath(base))
    # Servers take numbered folders only, so they see the new one when it is complete.
    unfinished = export.get_temp_export_dir(folder)
    restore = functools.partial(_restore, checkpoint_path, look_up)
    with unfinished_exports.claimed(os.fsdecode(unfinished)):
        builder = tf1.saved_model.Builder(unfinished)
        for i, served in enumerate(graphs):
            with serving(config.tf_random_seed, tf115):
                _add_graph(
                    builder,
                    served,
                    restore,
                    config,
                    strip_default_attrs,
                    first=i == 0,
                    signatures_of=_signatures_of_tf115 if tf115 else _signatures,
                    for_tf115=for_tf115,
                )
        with tf.Graph().as_default():
            builder.save(as_text)
        if for_tf115:
            _rewrite_for_tf115(os.fsdecode(unfinished), as_text)
        _add_assets(os.fsdecode(unfinished), assets_extra or {})
        tf.io.gfile.rename(unfinished, folder)
    return cast(bytes, folder)


def _rewrite_for_tf115(folder: str, as_text: bool) -> None:
    model = model_files.read(folder)
    tensorflow_115.rewrite(model)
    model_files.replace_graphs(model, folder, as_text)


def _add_assets(folder: str, assets_extra: Mapping[str, str]) -> None:
    for relative, source in assets_extra.items():
        target = os.path.join(folder, _ASSETS_EXTRA, os.fsdecode(relative))
        tf.io.gfile.makedirs(os.path.dirname(target))
        tf.io.gfile.copy(source, target)


def _add_graph(
    builder: tf1.saved_model.Builder,
    served: ServedGraph,
    restore: Callable[[tf1.train.Saver, tf1.Session, str], None],
    config: RunConfig,
    strip_default_attrs: bool,
    *,
    first: bool,
    signatures_of: Callable[[EstimatorSpec, Any], dict[str, Any]],
    for_tf115: bool,
) -> None:
    scope = tf1.get_variable_scope()
    with tf1.variable_scope(scope, use_resource=served.resource_step or scope.use_resource):
        tf1.train.create_global_step()
    receiver = _receiver(served.receiver_fn)
    spec = served.call_model_fn(receiver.features, getattr(receiver, "labels", None))
    signatures = signatures_of(spec, receiver)
    leave_out_summaries_of_branches(tf1.get_default_graph())
    scaffold = spec.scaffold
    local_init_op = scaffold.local_init_op
    if local_init_op is None:
        local_init_op = tf1.train.Scaffold.default_local_init_op()
    if for_tf115:
        tensorflow_115.check_graph(tf1.get_default_graph())
    with tf1.Session(config=_session_config(config)) as session:
        # It restores here and, written into the graph, wherever the graph is loaded.
        saver = _saver(scaffold)
        if first or served.check_variables:
            restore(saver, session, served.mode)
        if spec.train_op is not None:
            tf1.add_to_collection(_TRAIN_OP, spec.train_op)
        what = {
            "tags": served.tags,
            "signature_def_map": signatures,
            "assets_collection": tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS),
            "main_op": local_init_op,
            "saver": saver,
            "strip_default_attrs": strip_default_attrs,
        }
        if first:
            builder.add_meta_graph_and_variables(session, **what)
        else:
            builder.add_meta_graph(**what)


def _receiver(receiver_fn: Callable[[], Any]) -> Any:
    receiver = receiver_fn()
    for field in ("features", "receiver_tensors"):
        if not hasattr(receiver, field):
            raise wrong_argument(
                f"serving_input_receiver_fn {location(receiver_fn)} returned a "
                f"{type(receiver).__name__}, which has no {field!r}",
                receiver,
                "It should return an `estimator.export.ServingInputReceiver`, or for TRAIN and "
                "EVAL a `SupervisedInputReceiver`.",
                AttributeError,
            )
    return receiver


def _session_config(config: RunConfig) -> tf1.ConfigProto:
    session_config = tf1.ConfigProto(allow_soft_placement=True)
    if config.session_config:
        session_config.CopyFrom(config.session_config)
    # Only the saver runs here. The rest of the graph may be for devices that this machine has not.
    session_config.graph_options.place_pruned_graph = True
    return session_config


def _signatures(spec: EstimatorSpec, receiver: Any) -> dict[str, Any]:
    return cast(
        dict[str, Any],
        export.build_all_signature_defs(
            receiver.receiver_tensors,
            _outputs(spec),
            getattr(receiver, "receiver_tensors_alternatives", None),
            serving_only=spec.mode == ModeKeys.PREDICT,
        ),
    )


def _signatures_of_tf115(spec: EstimatorSpec, receiver: Any) -> dict[str, Any]:
    """Returns TF 1.15's signatures: also of outputs that need more than is fed."""
    signatures = _signatures(spec, receiver)
    inputs = {"": receiver.receiver_tensors}
    alternatives = getattr(receiver, "receiver_tensors_alternatives", None) or {}
    inputs |= {f"{name or 'None'}:": tensors for name, tensors in alternatives.items()}
    made = {
        f"{prefix}{key or 'None'}": _signature(output, tensors)
        for prefix, tensors in inputs.items()
        for key, output in _outputs(spec).items()
    }
    missing = {
        name: signature
        for name, signature in made.items()
        if name not in signatures and tf1.saved_model.is_valid_signature(signature)
    }
    if missing:
        tf1.logging.info("Exported all the same, as TF 1.15 did: %s", ", ".join(missing))
    return signatures | missing


def _signature(output: Any, tensors: Any) -> Any:
    """The signature of an output; None if it has other inputs than such an output may have."""
    try:
        return output.as_signature_def(tensors)
    except ValueError:
        return None


def _outputs(spec: EstimatorSpec) -> dict[str, Any]:
    return cast(
        dict[str, Any],
        export.export_outputs_for_mode(
            spec.mode, spec.export_outputs, spec.predictions, spec.loss, spec.eval_metric_ops
        ),
    )


def _saver(scaffold: tf1.train.Scaffold) -> tf1.train.Saver:
    if isinstance(scaffold.saver, tf.train.Checkpoint):
        saveables = _tf_private.saveable_objects(scaffold.saver)
        return tf1.train.Saver(var_list=saveables, sharded=True)
    return scaffold.saver or tf1.train.Saver(sharded=True)


def _restore(
    path: str,
    look_up: Callable[[], str | None] | None,
    saver: tf1.train.Saver,
    session: tf1.Session,
    mode: str,
) -> None:
    try:
        using(path, look_up, functools.partial(saver.restore, session))
    except tf.errors.NotFoundError as error:
        raise ValueError(
            "Could not load all requested variables from checkpoint. Please make sure your "
            "model_fn does not expect variables that were not saved in the checkpoint.\n\n"
            f"Encountered error with mode `{mode}` while restoring checkpoint from: `{path}`. "
            f"Full Traceback:\n\n{error}"
        ) from error
