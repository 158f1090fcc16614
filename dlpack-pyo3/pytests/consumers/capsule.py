"""The contents of a DLPack capsule, read with ctypes, so that no code is shared with our crates."""

import ctypes
from collections import namedtuple

Seen = namedtuple("Seen", "pointer shape dtype data readonly")
Seen.__doc__ = "A tensor as a library sees it; None where it cannot say."

# (code, bits, lanes) of dlpack.h, by the names that NumPy and ml_dtypes use.
DTYPES = {
    "bool": (6, 8, 1),
    **{f"int{bits}": (0, bits, 1) for bits in (8, 16, 32, 64, 128)},
    **{f"uint{bits}": (1, bits, 1) for bits in (8, 16, 32, 64, 128)},
    **{f"float{bits}": (2, bits, 1) for bits in (16, 32, 64)},
    "bfloat16": (4, 16, 1),
    **{f"complex{bits}": (5, bits, 1) for bits in (32, 64, 128)},
    "float8_e3m4": (7, 8, 1),
    "float8_e4m3": (8, 8, 1),
    "float8_e4m3b11fnuz": (9, 8, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float6_e2m3fn": (15, 6, 1),
    "float6_e3m2fn": (16, 6, 1),
    "float4_e2m1fn": (17, 4, 1),
    "float4_e2m1fnx2": (17, 4, 2),
    "float32x4": (2, 32, 4),
}
NAMES = {fields: name for name, fields in DTYPES.items()}


def bits_of(dtype):
    """The bits of one item, of all its lanes together."""
    _, bits, lanes = DTYPES[dtype]
    return bits * lanes


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


KINDS = {b"dltensor": Legacy, b"dltensor_versioned": Versioned}
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def managed(capsule):
    """The struct in an unconsumed capsule."""
    name = _name(capsule)
    return KINDS[name].from_address(_pointer(capsule, name))


def seen(pointer, shape, strides, dtype, readonly=None):
    """A tensor in memory; strides in elements, None for row-major."""
    bits = bits_of(dtype)
    if bits < 8:
        # Packed items: only contiguous tensors of such types occur here.
        count = 1
        for extent in shape:
            count *= extent
        return Seen(pointer, tuple(shape), dtype, ctypes.string_at(pointer, (count * bits + 7) // 8), readonly)
    size = bits // 8
    offsets = [0]
    if strides is None:
        strides, step = [], 1
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
    for extent, stride in zip(shape, strides):
        offsets = [start + index * stride for start in offsets for index in range(extent)]
    data = b"".join(ctypes.string_at(pointer + offset * size, size) for offset in offsets)
    return Seen(pointer, tuple(shape), dtype, data, readonly)


def look(capsule):
    """The tensor in an unconsumed capsule."""
    held = managed(capsule)
    tensor = held.tensor
    shape = tensor.shape[: tensor.ndim]
    strides = tensor.strides[: tensor.ndim] if tensor.strides else None
    readonly = bool(held.flags & 1) if isinstance(held, Versioned) else None
    dtype = NAMES[tensor.code, tensor.bits, tensor.lanes]
    return seen((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, readonly)


class Deleters:
    """Puts a counter in front of the deleter of each capsule that passes through `watch`."""

    def __init__(self):
        self.calls = []
        # A callback must outlive every call, and the last call may come at any time.
        Deleters.kept = getattr(Deleters, "kept", [])

    def watch(self, capsule):
        held = managed(capsule)
        real = DELETER(held.deleter)
        index = len(self.calls)
        self.calls.append(0)

        def count(struct):
            self.calls[index] += 1
            real(struct)

        callback = DELETER(count)
        Deleters.kept.append(callback)
        held.deleter = ctypes.cast(callback, ctypes.c_void_p).value
        return capsule
