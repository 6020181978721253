"""The TPU compiler in `libtpu`, through the PJRT C API: no TPU, TensorFlow or JAX is needed.

    compiler = Compiler(libtpu_path())
    topology = compiler.topology("v3:2x2")
    executable = compiler.compile(topology, hlo_module, replicas=8)
    executable.memory.peak_memory_in_bytes, executable.costs["flops"]

The API is a C ABI that only grows: every struct holds its size, and each function has its place in
one table. Structs and places are those of `xla/pjrt/c/pjrt_c_api.h` (version 0.90), which is in
TensorFlow's wheel.

A failed check inside of libtpu ends the process, so use this in a process of its own; see `worker`.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator2strategy.engine import patches

INSTALL = "pip install 'estimator2strategy[tpu-compile]'"

# Places in the table of functions.
_ERROR_DESTROY, _ERROR_MESSAGE, _ERROR_CODE, _INITIALIZE = range(4)
_COSTS, _TOPOLOGY, _DEVICES, _COMPILE, _MEMORY = 46, 82, 86, 89, 96
# Bytes before the functions: two words, then the version: two words and two ints.
_MAJOR_VERSION, _FIRST_FUNCTION = 32, 40

# PJRT_Error_Code, which are those of absl::CompileStatus.
_CODES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
    *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
    *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
    "UNAUTHENTICATED",
)

# Without these libtpu looks for the TPU of this machine: at Google's metadata server for minutes,
# and with a lock that lets one process of the machine use it.
_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
}


class PjrtError(Exception):
    """An error that a call of the API returned.

    Attributes:
        code: "INVALID_ARGUMENT" and the like.
        text: Its message.
    """

    def __init__(self, code: int, text: str):
        self.code = _CODES[code] if code < len(_CODES) else str(code)
        self.text = text
        super().__init__(f"{self.code}: {text}")


class _Struct(ctypes.Structure):
    """A struct of arguments or results; says its own size, as the API wants."""

    def __init__(self, **values: Any):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **values)


def _struct(name: str, /, **fields: Any) -> Any:
    head = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]
    return type(name, (_Struct,), {"_fields_": [*head, *fields.items()]})


_pointer, _size, _number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
_Initialize = _struct("PJRT_Plugin_Initialize_Args")
_ErrorMessage = _struct(
    "PJRT_Error_Message_Args", error=_pointer, message=_pointer, message_size=_size
)
_ErrorCode = _struct("PJRT_Error_GetCode_Args", error=_pointer, code=ctypes.c_int)
_ErrorDestroy = _struct("PJRT_Error_Destroy_Args", error=_pointer)
_TopologyCreate = _struct(
    "PJRT_TopologyDescription_Create_Args",
    topology_name=ctypes.c_char_p,
    topology_name_size=_size,
    create_options=_pointer,
    num_options=_size,
    topology=_pointer,
)
_GetDevices = _struct(
    "PJRT_TopologyDescription_GetDeviceDescriptions_Args",
    topology=_pointer,
    descriptions=_pointer,
    num_descriptions=_size,
)
_Program = _struct(
    "PJRT_Program",
    code=ctypes.c_char_p,
    code_size=_size,
    format=ctypes.c_char_p,
    format_size=_size,
)
_Compile = _struct(
    "PJRT_Compile_Args",
    topology=_pointer,
    program=_pointer,
    compile_options=ctypes.c_char_p,
    compile_options_size=_size,
    client=_pointer,
    executable=_pointer,
)


class _Value(ctypes.Union):
    # Two of its five fields; none is larger.
    _fields_ = (("string", ctypes.c_char_p), ("float", ctypes.c_float))


_NamedValue = _struct(
    "PJRT_NamedValue",
    name=ctypes.c_char_p,
    name_size=_size,
    type=ctypes.c_int,
    value=_Value,
    value_size=_size,
)
_STRING, _FLOAT = 0, 3  # PJRT_NamedValue_Type
_GetCosts = _struct(
    "PJRT_Executable_GetCostAnalysis_Args",
    executable=_pointer,
    num_properties=_size,
    properties=ctypes.POINTER(_NamedValue),
)
_SIZES = (
    *("generated_code_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes"),
    *("alias_size_in_bytes", "temp_size_in_bytes", "host_generated_code_size_in_bytes"),
    *("host_argument_size_in_bytes", "host_output_size_in_bytes", "host_alias_size_in_bytes"),
    *("host_temp_size_in_bytes", "peak_memory_in_bytes"),
)
_GetMemory = _struct(
    "PJRT_Executable_GetCompiledMemoryStats_Args",
    executable=_pointer,
    **dict.fromkeys(_SIZES, _number),
)


@dataclasses.dataclass(frozen=True)
class Executable:
    """The compiler's figures for a program; all of one device.

    Attributes:
        memory: Bytes, by the names of PJRT_Executable_GetCompiledMemoryStats_Args.
        costs: XLA's cost analysis: "flops" and others.
    """

    memory: Mapping[str, int]
    costs: Mapping[str, float]


class Compiler:
    """libtpu in this process.

    Args:
        path: Its shared library.

    Raises:
        OSError: It cannot be loaded, or has another API.
        PjrtError: It cannot be initialised.
    """

    def __init__(self, path: Path):
        patches.noted("libtpu")
        os.environ.update(_ENVIRONMENT)
        library = ctypes.CDLL(str(path))
        library.GetPjrtApi.restype = ctypes.c_void_p
        self._api = library.GetPjrtApi()
        major = ctypes.c_int.from_address(self._api + _MAJOR_VERSION).value
        if major != 0:
            raise OSError(f"{path} has version {major} of the PJRT API; 0 is needed")
        self._call(_INITIALIZE, _Initialize())

    def topology(self, name: str, options: Mapping[str, str] | None = None) -> int:
        """A TPU by the compiler's name: `v3:2x2` is four chips of version 3.

        Args:
            options: Keyword arguments of JAX's `get_topology_desc`: `chip_config_name`.
        """
        named = [_named(key, value) for key, value in (options or {}).items()]
        array = (_NamedValue * len(named))(*named)
        arguments = _TopologyCreate(
            topology_name=name.encode(),
            topology_name_size=len(name),
            create_options=ctypes.cast(array, ctypes.c_void_p),
            num_options=len(named),
        )
        self._call(_TOPOLOGY, arguments)
        topology: int = arguments.topology
        return topology

    def num_devices(self, topology: int) -> int:
        """The number of its devices: cores, or chips whose cores work as one."""
        arguments = _GetDevices(topology=topology)
        self._call(_DEVICES, arguments)
        number: int = arguments.num_descriptions
        return number

    def compile(self, topology: int, module: bytes, replicas: int) -> Executable:
        """Compiles for `replicas` devices, which all run the same program.

        Args:
            module: A serialised HloModuleProto.

        Raises:
            PjrtError: What is wrong with the program; RESOURCE_EXHAUSTED, if it is too large.
        """
        options = compile_options(replicas)
        program = _Program(code=module, code_size=len(module), format=b"hlo", format_size=3)
        arguments = _Compile(
            topology=topology,
            program=ctypes.addressof(program),
            compile_options=options,
            compile_options_size=len(options),
        )
        self._call(_COMPILE, arguments)
        memory = _GetMemory(executable=arguments.executable)
        self._call(_MEMORY, memory)
        costs = _GetCosts(executable=arguments.executable)
        self._call(_COSTS, costs)
        properties = [costs.properties[i] for i in range(costs.num_properties)]
        return Executable(
            {size: getattr(memory, size) for size in _SIZES},
            {
                value.name[: value.name_size].decode(): value.value.float
                for value in properties
                if value.type == _FLOAT
            },
        )

    def _call(self, place: int, arguments: _Struct) -> None:
        error = self._function(place)(ctypes.byref(arguments))
        if not error:
            return
        message, code = _ErrorMessage(error=error), _ErrorCode(error=error)
        self._function(_ERROR_MESSAGE)(ctypes.byref(message))
        self._function(_ERROR_CODE)(ctypes.byref(code))
        text = ctypes.string_at(message.message, message.message_size).decode(errors="replace")
        self._function(_ERROR_DESTROY)(ctypes.byref(_ErrorDestroy(error=error)))
        raise PjrtError(code.code, text)

    def _function(self, place: int) -> Any:
        address = ctypes.c_size_t.from_address(self._api + _FIRST_FUNCTION + 8 * place).value
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)


def _named(name: str, value: str) -> Any:
    content = value.encode()
    return _NamedValue(
        name=name.encode(),
        name_size=len(name),
        type=_STRING,
        value=_Value(string=content),
        value_size=len(content),
    )


def compile_options(replicas: int) -> bytes:
    """A CompileOptionsProto: one program for `replicas` devices, numbered from 0.

    The message is XLA's, and no package has it for Python: fields are written by their numbers.
    """
    computation = _message(1, b"".join(map(_varint, range(replicas))))  # replica_device_ids
    assignment = _field(1, replicas) + _field(2, 1) + _message(3, computation)
    # device_ordinal -1 (any), num_replicas, num_partitions, device_assignment
    build = _field(1, 2**64 - 1) + _field(4, replicas) + _field(5, 1) + _message(9, assignment)
    return _message(3, build)  # executable_build_options


def _varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def libtpu_path() -> Path | None:
    """The library of the package `libtpu`; None if that is not installed."""
    spec = importlib.util.find_spec("libtpu")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "libtpu.so"
    return path if path.is_file() else None
