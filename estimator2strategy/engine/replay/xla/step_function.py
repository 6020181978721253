"""A lowered step as a function of JAX.

    step = StepFunction(lowered)                      # traced by jit, scan, shard_map, export
    outputs, variables = step(feeds, variables)

Needs jax; only public names of it are used. JAX translates XLA's program, which is bytes, to
StableHLO, and puts it as a function into the module of whatever is being compiled.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import jax
import jax.extend.core
import jax.extend.mlir
import jax.numpy as jnp
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.interpreters import mlir

from estimator2strategy.engine.replay.xla.lowering import LoweredStep
from estimator2strategy.engine.replay.xla.target import Precision

Arrays: TypeAlias = Sequence[Any]

# A precision that is set in JAX does not reach ops that JAX did not make.
_PRODUCTS = frozenset({"stablehlo.dot", "stablehlo.dot_general", "stablehlo.convolution"})
_COLLECTIVES = frozenset(
    {"stablehlo.all_reduce", "stablehlo.reduce_scatter", "stablehlo.all_gather"}
)
_DTYPES = {"bf16": "bfloat16", "i1": "bool"} | {
    f"{letter}{bits}": f"{name}{bits}"
    for letter, name, sizes in (
        ("f", "float", (16, 32, 64)),
        ("i", "int", (4, 8, 16, 32, 64)),
        ("ui", "uint", (4, 8, 16, 32, 64)),
    )
    for bits in sizes
}


class StepFunction:
    """A step of one device, which JAX can transform.

    Args:
        lowered: The step.
        precision: The precision of matrix products and convolutions of float32.

    Attributes:
        feeds, variables: Shape and dtype of each argument; random streams come last.
        outputs: Shape and dtype of each result that is no variable.

    Raises:
        ValueError: A shape of the program is known only as it runs, or XLA has dropped a
            parameter, because it must be a constant.
    """

    def __init__(self, lowered: LoweredStep, precision: Precision = Precision.DEFAULT):
        program = lowered.program
        self._module = _translate(lowered.module, precision, across_devices=program.replicas > 1)
        count, wanted = len(program.feeds), len(program.variables) + len(lowered.streams)
        self.feeds, self.variables = self._module.inputs[:count], self._module.inputs[count:]
        if len(self.variables) != wanted:
            raise ValueError(
                f"XLA's program takes {len(self._module.inputs)} arguments, and the step has "
                f"{count + wanted}: a shape in it depends on values of the batch."
            )
        self._changed = {index: at - count for index, at in lowered.changed.items()}
        self.outputs = [
            shape for i, shape in enumerate(self._module.outputs) if i not in self._changed
        ]

    @property
    def op_names(self) -> frozenset[str]:
        """The names of StableHLO's ops in the program."""
        return self._module.ops

    @property
    def changed(self) -> frozenset[int]:
        """The numbers of the variables that a step changes."""
        return frozenset(self._changed.values())

    def __call__(self, feeds: Arrays, variables: Arrays) -> tuple[list[Any], list[Any]]:
        """One step.

        Args:
            feeds: An array for each of `feeds`.
            variables: The values of the variables before it.

        Returns:
            The outputs, and the values of all variables after it.
        """
        results = _PRIMITIVE.bind(*feeds, *variables, module=self._module)
        after = list(variables)
        for index, variable in self._changed.items():
            after[variable] = results[index]
        return [r for i, r in enumerate(results) if i not in self._changed], after


@dataclasses.dataclass(frozen=True, eq=False)
class _Module:
    bytecode: bytes
    inputs: list[jax.ShapeDtypeStruct]
    outputs: list[jax.ShapeDtypeStruct]
    ops: frozenset[str]


def _translate(program: bytes, precision: Precision, across_devices: bool) -> _Module:
    """XLA's program as StableHLO that JAX can take in.

    Args:
        program: A serialised HloModuleProto.
        across_devices: True if its sums are over all devices of a mesh.
    """
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(jax.extend.mlir.hlo_to_stablehlo(program))
        names = set()
        for op in list(_ops_in(module.operation)):
            names.add(op.name)
            if op.name == "mhlo.copy":  # no op of StableHLO, and an identity
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
            elif op.name in _PRODUCTS:
                _set_precision(op, precision)
            elif across_devices and op.name in _COLLECTIVES:
                _over_all_devices(op)
            elif across_devices and op.name == "stablehlo.replica_id":
                _number_of_device(op)
        main: Any = ir.SymbolTable(module.operation)["main"]
        bytecode = io.BytesIO()
        module.operation.write_bytecode(bytecode)
        inputs, outputs = (list(map(_shape_of, t)) for t in (main.type.inputs, main.type.results))
        return _Module(bytecode.getvalue(), inputs, outputs, frozenset(names))


def _ops_in(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            for op in list(block.operations):
                yield from _ops_in(op.operation)
                yield op.operation


def _set_precision(op: Any, precision: Precision) -> None:
    """Sets the precision of a product of float32."""
    if precision is Precision.BFLOAT16:
        for number, operand in enumerate(op.operands):
            ranked = ir.RankedTensorType(operand.type)
            if ranked.element_type == ir.F32Type.get():
                rounded = ir.RankedTensorType.get(ranked.shape, ir.BF16Type.get())
                at = ir.InsertionPoint(op)
                convert = ir.Operation.create(
                    "stablehlo.convert", [rounded], [operand], loc=op.location, ip=at
                )
                op.operands[number] = convert.results[0]
    elif precision is not Precision.DEFAULT:
        wanted = f"#stablehlo<precision {precision.name}>"
        op.attributes["precision_config"] = ir.Attribute.parse(f"[{wanted}, {wanted}]")


def _over_all_devices(op: Any) -> None:
    """Makes a sum over the replicas of one program a sum over the devices of JAX's mesh."""
    handle = "#stablehlo.channel_handle<handle = 1, type = 1>"
    op.attributes["channel_handle"] = ir.Attribute.parse(handle)
    op.attributes["use_global_device_ids"] = ir.UnitAttr.get()


def _number_of_device(op: Any) -> None:
    at = ir.InsertionPoint(op)
    types = [op.results[0].type]
    number = ir.Operation.create("stablehlo.partition_id", types, loc=op.location, ip=at)
    op.results[0].replace_all_uses_with(number.results[0])
    op.erase()


def _shape_of(mlir_type: Any) -> jax.ShapeDtypeStruct:
    ranked = ir.RankedTensorType(mlir_type)
    if not ranked.has_static_shape:
        raise ValueError(f"XLA's program has a value of the shape {ranked}, known only as it runs.")
    return jax.ShapeDtypeStruct(tuple(ranked.shape), jnp.dtype(_DTYPES[str(ranked.element_type)]))


def _abstract(*arguments: Any, module: _Module) -> list[Any]:
    for given, wanted in zip(arguments, module.inputs, strict=True):
        if (given.shape, given.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(f"The step takes {wanted}, and is given {given}.")
    return [jax.core.ShapedArray(out.shape, out.dtype) for out in module.outputs]


# Until jax 0.11 the function took no context.
_WITH_CONTEXT = len(inspect.signature(mlir.aval_to_ir_type).parameters) > 1


def _lower(context: Any, *arguments: Any, module: _Module) -> list[Any]:
    inside = context.module_context
    name = mlir.merge_mlir_modules(
        inside.module, "step", ir.Module.parse(module.bytecode), dst_symtab=inside.symbol_table
    )
    to_type: Any = mlir.aval_to_ir_type
    first = (inside,) if _WITH_CONTEXT else ()
    types = [to_type(*first, aval) for aval in context.avals_out]
    return list(func.CallOp(types, ir.FlatSymbolRefAttr.get(name), list(arguments)).results)


_PRIMITIVE = jax.extend.core.Primitive("recorded_step")
_PRIMITIVE.multiple_results = True
_PRIMITIVE.def_abstract_eval(_abstract)
mlir.register_lowering(_PRIMITIVE, _lower)
