"""Makes a checkpoint of one format of one of another, tensor by tensor."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint import bundle, keras_file, mapping, opening, roles
from estimator2strategy.tools.checkpoint.mapping import Mapping, MappingRow
from estimator2strategy.tools.checkpoint.opening import open_store
from estimator2strategy.tools.checkpoint.store import Entry, Format, Store

_MULTIPLIED = 1_000_000  # steps; after these any power is 0


@dataclasses.dataclass(frozen=True)
class Converted:
    """The result of a conversion.

    Attributes:
        mapping: The pairs of tensors.
        computed: Labels of the new checkpoint that follow from others: powers of betas.
        kept: Labels that have the value of the checkpoint that the new one is made like.
        absent: The tensors that TF1 would also have, and that need `like`.
    """

    mapping: Mapping
    computed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def convert(
    source: Store,
    out: str,
    kind: Format,
    *,
    like: str | None = None,
    model: str | None = None,
    rows: list[MappingRow] | None = None,
    partial: bool = False,
) -> Converted:
    """Writes `source` as a checkpoint of another kind.

    Args:
        out: The path to write: a prefix, a `.weights.h5` or a `.keras` file.
        kind: The writer that the new checkpoint seems to come from.
        like: A checkpoint of that kind. The new one takes its names, and its values where the
            source has none. Not needed with `model`, nor for tf1, whose names are made from the
            source's.
        model: `module:function` that builds the Keras model (with its optimizer, by `compile`).
        rows: A mapping; None: it is inferred.
        partial: Variables of the model that have no source keep the values of `like`.

    Raises:
        CheckpointError: Some tensors could not be paired; nothing is written.
    """
    if kind is Format.TF1 and not like:
        done = _named_as_source(source, out)
    else:
        done = _formed_as_template(source, out, kind, like, model, rows, partial)
    if kind is Format.TF1 and isinstance(source, opening.NpzStore):
        opening.make_latest(out)  # trained elsewhere, to be gone on with here
    return done


def _formed_as_template(
    source: Store,
    out: str,
    kind: Format,
    like: str | None,
    model: str | None,
    rows: list[MappingRow] | None,
    partial: bool,
) -> Converted:
    """A checkpoint with the names and the form of `like`, or of the model."""
    with _template(kind, like, model) as template:
        mapped = mapping.inferred(source, template)
        if rows is not None:
            mapped = mapping.applied(rows, source, template)
        if mapped.undecided and not partial:
            raise UndecidedError(mapped)
        return _written(source, template, out, mapped)


class UndecidedError(CheckpointError):
    """Variables of the new checkpoint have no source; `mapping` has what was found."""

    def __init__(self, mapped: Mapping):
        self.mapping = mapped
        lines = [
            f"{label}: {', '.join(candidates[:4]) or 'nothing'} has its shape"
            for label, candidates in mapped.undecided.items()
        ]
        super().__init__(
            f"{len(lines)} variables could not be decided:\n  "
            + "\n  ".join(lines[:20])
            + "\nWrite the mapping down (--write-map FILE), edit it, and give it with --map FILE; "
            "or say --partial"
        )


@contextlib.contextmanager
def _template(kind: Format, like: str | None, model: str | None) -> Iterator[Store]:
    """The checkpoint whose form the new one takes."""
    if like:
        store = open_store(like, model)
        if isinstance(store, opening.NpzStore):
            raise CheckpointError(f"--like {like} is no checkpoint, but values of an exported step")
        if store.kind != kind:
            raise CheckpointError(f"--like {like} is a checkpoint of kind {store.kind}, not {kind}")
        yield store
    elif not model:
        raise CheckpointError(
            f"a {kind} checkpoint needs the names of the new model: give --like, a checkpoint that "
            "it wrote (untrained will do), or --model, the function that builds it"
        )
    elif kind is Format.KERAS:
        with keras_file.template_of(model) as path:
            yield open_store(path, model)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            yield open_store(_object_based(model, scratch))


def _object_based(model: str, folder: str) -> str:
    """A TF2 checkpoint of a model that was just built: of `model` and `optimizer`."""
    import tensorflow as tf

    made: Any = keras_file.built(model)
    if (backend := os.environ.get("KERAS_BACKEND", "tensorflow")) != "tensorflow":
        raise CheckpointError(
            f"--to tf2 writes the objects of a model of TensorFlow, and KERAS_BACKEND={backend}; "
            "unset it, or write --to keras"
        )
    objects = {"model": made}
    if getattr(made, "optimizer", None) is not None:
        objects["optimizer"] = made.optimizer
    path: str = tf.train.Checkpoint(**objects).write(str(Path(folder, "template")))
    return path


def _written(source: Store, template: Store, out: str, mapped: Mapping) -> Converted:
    rows = {row.target: row for row in mapped.rows}
    of_source = source.by_label()
    computed = _powers(source, template, mapped)
    reads: dict[str, Callable[[], np.ndarray]] = {}
    kept = []
    for entry in template.entries:
        row = rows.get(entry.label)
        if row is not None:
            reads[entry.key] = _reader(source, of_source[row.source], entry, row.scale)
        elif entry.label in computed:
            reads[entry.key] = _constant(computed[entry.label])
        else:
            kept.append(entry.label)
    if template.kind is Format.KERAS:
        keras_file.write_keras(out, template.path, reads)
    else:
        assert isinstance(template, bundle.BundleStore)
        bundle.write_bundle(out, _tensors(template, reads))
    return Converted(mapped, tuple(computed), tuple(kept))


def _tensors(
    template: bundle.BundleStore, reads: dict[str, Callable[[], np.ndarray]]
) -> Iterator[tuple[str, int, Callable[[], object]]]:
    for entry in template.entries:
        kept = _reader(template, entry, entry, 1.0)
        size = entry.size * np.dtype(_plain(entry.dtype)).itemsize
        yield entry.key, size, reads.get(entry.key, kept)
    for name in template.others:
        yield name, 0, functools.partial(template.raw, name)


def _reader(source: Store, entry: Entry, target: Entry, scale: float) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        value = np.asarray(source.read(entry))
        if scale != 1:
            value = value * np.asarray(scale, value.dtype)
        return value.reshape(target.shape).astype(_numpy(target.dtype))

    return read


def _constant(value: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: value


def _plain(dtype: str) -> str:
    return {"bfloat16": "uint16"}.get(dtype, dtype)


def _numpy(dtype: str) -> Any:
    import tensorflow as tf

    return tf.as_dtype(dtype).as_numpy_dtype


def _powers(source: Store, template: Store, mapped: Mapping) -> dict[str, np.ndarray]:
    """The powers of Adam's betas at the source's step; Keras computes them, and keeps none."""
    what = roles.identified(entry.label for entry in template.entries)
    taken = {row.target: row.source for row in mapped.rows}
    steps = [e for e in template.entries if what[e.label].role == roles.STEP]
    if not steps or steps[0].label not in taken:
        return {}
    before = int(template.read(steps[0]))
    now = int(source.read(source.by_label()[taken[steps[0].label]]))
    powers = {}
    for entry in template.entries:
        if what[entry.label].role == roles.POWER and entry.label not in taken:
            powers[entry.label] = _power(np.asarray(template.read(entry)), before, now)
    return powers


def _power(value: np.ndarray, before: int, now: int) -> np.ndarray:
    """Beta to the power of `now` + 1, as TF1's Adam got there, from that of `before` + 1."""
    if before == 0 and 0 < now <= _MULTIPLIED:
        last: np.ndarray = np.multiply.accumulate(np.full(now + 1, value))[-1]
        return last
    power = value.astype(np.float64) ** ((now + 1) / (before + 1))
    return value if now == before else power.astype(value.dtype)


def _named_as_source(source: Store, out: str) -> Converted:
    """A TF1 checkpoint with the names of the source's variables, slots named as TF1 did."""
    what = roles.identified(entry.label for entry in source.entries)
    owners = {i[:2]: label for label, i in what.items() if not i.slot and not i.is_special}
    centered = any(identity.slot == "mean gradient" for identity in what.values())
    rows, tensors = [], []
    for entry in source.entries:
        identity = what[entry.label]
        # A checkpoint of TF1 has all of its program's; others have what is the optimizer's alone.
        is_tf1 = source.kind is Format.TF1
        if identity.is_special and identity.role != roles.STEP and not is_tf1:
            continue
        owner = owners.get(identity[:2], entry.label)
        name = entry.key if is_tf1 else roles.tf1_name(identity, owner, centered)
        size = entry.size * np.dtype(_plain(entry.dtype)).itemsize
        rows.append(MappingRow(entry.label, name, "name"))
        target = entry
        if identity.role == roles.STEP and not is_tf1:
            target = dataclasses.replace(entry, dtype="int64")
        tensors.append((name, size, _reader(source, entry, target, 1.0)))
    bundle.write_bundle(out, tensors)
    used = {row.source for row in rows}
    unused = tuple(e.label for e in source.entries if e.label not in used)
    powers = ("beta1_power", "beta2_power")
    names = {row.target for row in rows}
    adam = any(name.endswith("/Adam") for name in names) and not names & set(powers)
    return Converted(Mapping(tuple(rows), {}, unused), absent=powers if adam else ())
