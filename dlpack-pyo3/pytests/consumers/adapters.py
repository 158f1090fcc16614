"""One adapter for each library: how it imports a tensor, how its contents are read, and its known deviations.

Known deviations are a dict from patterns of case names to (outcome, text):
    "them"  the library refuses by an exception
    "us"    we refuse, by a BufferError
    "copy"  correct, but in other memory
    "bug"   wrong because of the library; the text names the row of the project's facts about it
Every other cell must be correct, and in our memory if the case is about memory.
"""

import ctypes
import importlib
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

import capsule
from capsule import DTYPES, NAMES, Seen


@dataclass
class Adapter:
    version: str
    take: Callable[..., Any]
    look: Callable[[Any], Seen]
    # Writes one element, or raises; None if the library has no in-place writes.
    poke: Optional[Callable[[Any], None]] = None
    # Whether `take` has a keyword `copy`; otherwise the producer gets the request instead.
    copy: bool = False
    # Imports plain bytes, with neither shape nor dtype.
    raw: bool = False
    # Prefers the exchange table to `__dlpack__`.
    exchange: bool = False
    # Uses the tensor in the background, so that it is dropped on a thread that Python does not know.
    busy: Optional[Callable[[Any], Any]] = None
    known: dict = field(default_factory=dict)


def adapter(name):
    """The adapter of this name, or `function` of `module` for `module:function`."""
    module, colon, function = name.partition(":")
    return getattr(importlib.import_module(module), function)() if colon else ADAPTERS[name]()


SMALL_FLOATS = [name for name, (code, _, lanes) in DTYPES.items() if code >= 7 and lanes == 1]
PACKED = [name for name in SMALL_FLOATS if DTYPES[name][1] < 8]
PADDED = ["float6_e2m3fn padded", "float4_e2m1fn padded"]
# Data types that hardly any library accepts.
RARE = ["int128", "uint128", "float4_e2m1fnx2", "float32x4", *PADDED]
BFLOAT = ["bfloat16"]
NOT_NUMPY = [*SMALL_FLOATS, *BFLOAT, "complex32"]


def lacks(names, but=()):
    return {f"dtype {name}": ("them", "the library has no such dtype") for name in [*names, *RARE] if name not in but}


# For a library that requests no version: a legacy capsule has no flags.
LEGACY = {
    **{f"dtype {name}": ("us", "requests the legacy struct, which cannot describe padded items: we refuse") for name in PADDED},
    "broadcast": ("copy", "overlapping elements are read-only, and the legacy struct has no flag for that: we copy"),
    "read-only": ("copy", "requests the legacy struct, which has no read-only flag: we copy"),
    "read-only, copy=False": ("us", "requests the legacy struct, which has no read-only flag: we refuse"),
}
KNOWN_OF_ALL = {"legacy, read-only": LEGACY["read-only"]}
# For a library that accepts only the legacy capsule, if another one is requested.
NO_VERSIONED = {f"asked for {version}": ("them", "takes the legacy capsule only") for version in ("(1, 0)", "(1, 99)", "(2, 0)")}
IGNORES_READ_ONLY = "ignores READ_ONLY, without a warning (consumers 0.6, faults 76)"


def of_numpy(array, readonly=None):
    flag = not array.flags.writeable if readonly is None else readonly
    return Seen(array.__array_interface__["data"][0], array.shape, str(array.dtype), array.tobytes(), flag)


def numpy():
    import numpy as np

    def poke(array):
        array[...] = 1

    known = lacks(NOT_NUMPY)
    if np.__version__ < "2":
        # Its imports are all read-only.
        known["as an argument"] = ("them", "exports no read-only array, and has no other of ours")
        return Adapter(np.__version__, np.from_dlpack, of_numpy, known=known | LEGACY | NO_VERSIONED)
    return Adapter(np.__version__, np.from_dlpack, of_numpy, poke, copy=True, known=known)


def numpy_and_ml_dtypes():
    """NumPy 2.5 or later, with the types of ml_dtypes registered, which it does not know by itself."""
    import ml_dtypes
    import numpy as np

    added = [*BFLOAT, *(name for name in SMALL_FLOATS if name not in PACKED)]
    for name in added:
        code, bits, _ = DTYPES[name]
        np.dtypes.register_dlpack_dtype((code, bits), np.dtype(getattr(ml_dtypes, name)))
    plain = numpy()
    known = {case: told for case, told in plain.known.items() if case.removeprefix("dtype ") not in added}
    return replace(plain, known=known)


def array_api_strict():
    import array_api_strict as xp

    def poke(array):
        array[...] = 1

    known = lacks([*NOT_NUMPY, "float16"])
    return Adapter(xp.__version__, xp.from_dlpack, lambda array: of_numpy(array._array), poke, copy=True, known=known)


def torch():
    import torch

    def look(tensor):
        # The memory of a contiguous tensor is its elements in order.
        flat = tensor.contiguous()
        data = ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size())
        dtype = str(tensor.dtype).removeprefix("torch.").replace("_x2", "x2")
        return Seen(tensor.data_ptr(), tuple(tensor.shape), dtype, data, None)

    def poke(tensor):
        tensor.fill_(1)

    known = lacks(["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", *PACKED], but=["float4_e2m1fnx2"]) | {
        "reversed": ("them", "no negative strides"),
        "read-only": ("bug", f"{IGNORES_READ_ONLY}, pytorch #188554"),
    }
    return Adapter(torch.__version__, torch.from_dlpack, look, poke, copy=True, known=known)


IGNORES_COPY = "jax.dlpack does not pass `copy` on to the producer, and shares on the CPU (consumers 0.10)"


def jax():
    import jax
    import numpy as np

    # Otherwise JAX silently halves 64-bit types.
    jax.config.update("jax_enable_x64", True)

    def look(array):
        pointer = array.unsafe_buffer_pointer()
        return Seen(pointer, array.shape, str(array.dtype), np.asarray(array).tobytes(), True)

    @jax.jit
    def work(array):
        for _ in range(50):
            array = jax.numpy.sin(array) @ array
        return array

    permutations = ("them", "takes permutations of a contiguous tensor only")
    known = lacks([*PACKED, "complex32"]) | {
        "sliced": permutations,
        "reversed": permutations,
        "broadcast": permutations,
        "offset by an element": ("copy", "copies data that is not aligned to 64 bytes"),
        "copy=True": ("bug", IGNORES_COPY),
        "read-only, copy=True": ("bug", IGNORES_COPY),
    }
    if jax.__version_info__ < (0, 11):
        # It gets copies of read-only tensors, and accepts them.
        del known["broadcast"], known["read-only, copy=True"]
        known |= LEGACY | NO_VERSIONED | {"read-only, copy=False": ("bug", IGNORES_COPY)}
    return Adapter(jax.__version__, jax.dlpack.from_dlpack, look, copy=True, busy=work, known=known)


def tvm_ffi():
    import tvm_ffi

    # Refuses padded types of the table, and then requests the legacy capsule.
    return tvm_ffi_with(tvm_ffi.from_dlpack, {f"dtype {name}": LEGACY[f"dtype {name}"] for name in PADDED})


def tvm_ffi_with(take, more):
    import tvm_ffi

    # Through the exchange table; cases with a request use capsules, of which it accepts the legacy one.
    known = NO_VERSIONED | {"read-only, copy=False": LEGACY["read-only, copy=False"]}

    def look(tensor):
        return capsule.look(tensor.__dlpack__())

    return Adapter(tvm_ffi.__version__, take, look, exchange=True, known=known | more)


def tvm_ffi_call():
    """A tensor as the argument of a function, which looks for the exchange table on the type."""
    import tvm_ffi

    padded = ("them", "takes no padded types")
    known = {f"dtype {name}": padded for name in PADDED} | {"broadcast": LEGACY["broadcast"]}
    return tvm_ffi_with(tvm_ffi.get_global_func("testing.echo"), known)


def tensorflow():
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    def take(producer):
        return tf.experimental.dlpack.from_dlpack(producer.__dlpack__())

    def look(tensor):
        pointer = capsule.look(tf.experimental.dlpack.to_dlpack(tensor)).pointer
        return Seen(pointer, tuple(tensor.shape), tensor.dtype.name, tensor.numpy().tobytes(), True)

    contiguous = ("them", "takes row-major tensors only")
    known = lacks([*SMALL_FLOATS, "complex32"]) | LEGACY | NO_VERSIONED
    known |= {case: contiguous for case in ("transposed", "permuted", "sliced", "reversed")}
    known |= {"dtype float32x4": ("bug", "forgets the lanes, and reads a quarter of the data (consumers 0.16)")}
    return Adapter(tf.__version__, take, look, known=known)


KEYED = "keys deleters by the data's address: of several imports of the same memory some are never released (consumers 0.18)"


def paddle():
    import paddle

    def look(tensor):
        dtype = str(tensor.dtype).removeprefix("paddle.")
        return capsule.seen(tensor.data_ptr(), tensor.shape, tensor.strides, dtype)

    def poke(tensor):
        tensor.fill_(1)

    kept = [f"float8_{name}" for name in ("e4m3fn", "e5m2")]
    known = lacks([*(name for name in SMALL_FLOATS if name not in kept), "complex32"]) | {
        "read-only": ("bug", IGNORES_READ_ONLY),
        "dtype uint16": ("bug", "reads uint16 as bfloat16 (consumers 0.17)"),
        "many exports": ("bug", KEYED),
        "deleters counted": ("bug", KEYED),
    }
    return Adapter(paddle.__version__, paddle.from_dlpack, look, poke, copy=True, known=known)


def mlx():
    import mlx.core as mx
    import numpy as np

    names = {"bool_": "bool"}

    def look(array):
        data = np.array(array.reshape(-1).view(mx.uint8)).tobytes()
        name = str(array.dtype).removeprefix("mlx.core.")
        return Seen(capsule.look(array.__dlpack__()).pointer, tuple(array.shape), names.get(name, name), data, None)

    cases = [*(f"ndim {ndim}" for ndim in range(9)), "transposed", "permuted", "sliced", "offset *", "broadcast", "axes of one"]
    cases += ["writable", "read-only", "asked for *", "dtype *"]
    known = dict.fromkeys(cases, ("copy", "always copies on the CPU")) | lacks([*SMALL_FLOATS, "complex32"])
    known |= {
        **{f"dtype {name}": LEGACY[f"dtype {name}"] for name in PADDED},
        "copy=False": ("them", "cannot do without a copy on the CPU"),
        "read-only, copy=False": ("them", "cannot do without a copy on the CPU"),
        "reversed": ("them", "no negative strides"),
        "dtype float64": ("bug", "converts float64 to float32 without a warning (consumers 0.17)"),
        "dtype complex128": ("bug", "converts complex128 to complex64 without a warning (consumers 0.17)"),
    }
    return Adapter(mx.__version__, mx.from_dlpack, look, copy=True, known=known)


def onnxruntime():
    import onnxruntime as ort

    names = {"float": "float32", "double": "float64", "float8e8m0": "float8_e8m0fnu", "float4e2m1": "float4_e2m1fn"}
    # From 1.32 on.
    names |= {f"float8{name}": f"float8_{name}" for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}

    def look(value):
        name = value.data_type()[7:-1]
        data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        return Seen(value.data_ptr(), tuple(value.shape()), names.get(name, name), data, None)

    contiguous = ("them", "takes row-major tensors only")
    known = lacks([*SMALL_FLOATS, "complex32", "complex64", "complex128"]) | LEGACY | NO_VERSIONED
    known |= {case: contiguous for case in ("transposed", "permuted", "sliced", "reversed")}
    known |= {
        "dtype bool": ("them", "refuses kDLBool; wants uint8 and an attribute `dtype`"),
    }
    return Adapter(ort.__version__, ort.OrtValue.from_dlpack, look, known=known)


def pyarrow():
    import pyarrow as pa

    def look(tensor):
        return of_numpy(tensor.to_numpy(), not tensor.is_mutable)

    versioned = ("them", "insists on the version it asked for")
    known = lacks([*NOT_NUMPY, "bool", "complex64", "complex128"]) | {
        "reversed": ("them", "no negative strides"),
        "asked for legacy": versioned,
        "asked for (0, 8)": versioned,
        "legacy, read-only": versioned,
    }
    return Adapter(pa.__version__, pa.Tensor.from_dlpack, look, copy=True, known=known)


def warp():
    import warp as wp

    wp.config.quiet = True
    wp.init()

    def look(array):
        name = array.dtype.__name__
        strides = [stride // wp.types.type_size_in_bytes(array.dtype) for stride in array.strides]
        return capsule.seen(array.ptr, array.shape, strides, name)

    def poke(array):
        array.fill_(1)

    known = lacks([*SMALL_FLOATS, "complex32", "complex64", "complex128"]) | LEGACY | NO_VERSIONED
    known |= {f"ndim {ndim}": ("them", "takes 1 to 4 axes") for ndim in (0, 5, 6, 7, 8)}
    known |= {"dtype float32x4": ("bug", "makes an axis of the lanes, with wrong strides (consumers 0.16)")}
    return Adapter(wp.__version__, wp.from_dlpack, look, poke, known=known)


def dpnp():
    import dpnp as dp

    def poke(array):
        array[...] = 1

    # It makes a NumPy array of memory on the CPU.
    return Adapter(dp.__version__, dp.from_dlpack, of_numpy, poke, copy=True, known=lacks(NOT_NUMPY))


def mpi4py():
    import mpi4py
    from mpi4py import MPI

    def look(buffer):
        return Seen(buffer.address, None, None, buffer.tobytes(), buffer.readonly)

    def poke(buffer):
        buffer[0] = 1

    contiguous = ("them", "takes contiguous memory only")
    versioned = ("them", "insists on the version it asked for")
    known = {case: contiguous for case in ("permuted", "sliced", "reversed", "broadcast")}
    known |= {case: versioned for case in ("asked for legacy", "asked for (0, 8)")}
    known |= {"zero size": ("them", "looks at the strides of an empty tensor; refuses NumPy's (2, 0, 3) as well")}
    known |= {"read-only": ("them", "wants a writable buffer"), "read-only, copy=False": ("them", "wants a writable buffer")}
    known |= {"as an argument": ("them", "its buffer is bytes, whatever it was made of")}
    known |= {"legacy, read-only": ("us", "passes `copy=False`, and the legacy struct has no read-only flag: we refuse")}
    known |= {f"dtype {name}": ("bug", "counts a byte for each packed element, and so reads past the end (found here: six items of 4 bits are six bytes to it)") for name in PACKED}
    return Adapter(mpi4py.__version__, MPI.memory.frombuffer, look, poke, raw=True, known=known)


def nanobind_with(name, known):
    import nanobind_consumer as nb

    def look(held):
        return capsule.seen(held.pointer, held.shape, held.strides, NAMES[held.code, held.bits, held.lanes], held.readonly)

    padded = ("bug", "looks at no flag but READ_ONLY, and takes padded types for packed ones (found here)")
    known = known | {f"dtype {name}": padded for name in PADDED}
    known["as an argument"] = ("them", "the class of the test holds an `nb::ndarray`, and exports nothing")
    return Adapter(nb.version, getattr(nb, name), look, known=known)


def nanobind():
    writable = ("them", "an argument that is not declared read-only takes writable tensors only")
    return nanobind_with("writable", {case: writable for case in ("broadcast", "read-only", "read-only, copy=False")})


def nanobind_ro():
    return nanobind_with("readonly", {case: LEGACY[case] for case in ("broadcast", "read-only")})


def cuda_core():
    import cuda.core
    from cuda.core.utils import StridedMemoryView

    def look(view):
        return capsule.seen(view.ptr, view.shape, view.strides, str(view.dtype), view.readonly)

    # It has bfloat16 if ml_dtypes is installed.
    known = lacks(NOT_NUMPY, but=BFLOAT) | {
        "dropped in a cycle": ("bug", "a view that dies in a reference cycle never calls the deleter (consumers 0.18)"),
    }
    def take(producer):
        return StridedMemoryView.from_dlpack(producer, stream_ptr=-1)

    return Adapter(cuda.core.__version__, take, look, known=known)


ADAPTERS = {
    "numpy": numpy,
    "numpy and ml_dtypes": numpy_and_ml_dtypes,
    "array-api-strict": array_api_strict,
    "torch": torch,
    "jax": jax,
    "tvm-ffi": tvm_ffi,
    "tvm-ffi call": tvm_ffi_call,
    "tensorflow": tensorflow,
    "paddle": paddle,
    "mlx": mlx,
    "onnxruntime": onnxruntime,
    "pyarrow": pyarrow,
    "warp": warp,
    "dpnp": dpnp,
    "mpi4py": mpi4py,
    "nanobind": nanobind,
    "nanobind ro": nanobind_ro,
    "cuda.core": cuda_core,
}
