"""dlpack.h and the capsule functions of CPython, for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

READ_ONLY, IS_COPIED, IS_SUBBYTE_TYPE_PADDED = 1, 2, 4
CPU, CUDA, CUDA_HOST, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 11, 13
# What the processor reads by address; there is one of each, so its number is 0.
HOST = (CPU, CUDA_HOST, ROCM_HOST, CUDA_MANAGED)

INT, UINT, FLOAT, OPAQUE_HANDLE, BFLOAT, COMPLEX, BOOL = range(7)
FLOAT8 = range(7, 15)
FLOAT6 = range(15, 17)
FLOAT4 = range(17, 18)


class DLPackVersion(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32)]


class DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLManagedTensorVersioned(Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


class DLPackExchangeAPI(Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("prev_api", c_void_p),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    ]


# CFUNCTYPE lets go of the GIL during the call: a deleter must do with that.
Deleter = ctypes.CFUNCTYPE(None, c_void_p)
SetError = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
Allocator = ctypes.CFUNCTYPE(c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, SetError)
CurrentWorkStream = ctypes.CFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))
# PYFUNCTYPE keeps it, and raises what the callee raised.
FromPyObject = ctypes.PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
ToPyObject = ctypes.PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
DLTensorFromPyObject = ctypes.PYFUNCTYPE(c_int, c_void_p, POINTER(DLTensor))
CapsuleDestructor = ctypes.PYFUNCTYPE(None, c_void_p)


def _api(name: str, result: Any, *arguments: Any) -> Any:
    # A prototype of our own: `ctypes.pythonapi.name` is one object that the whole program shares.
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


capsule_new = _api("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
capsule_name = _api("PyCapsule_GetName", c_char_p, ctypes.py_object)
capsule_pointer = _api("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
capsule_destructor = _api("PyCapsule_GetDestructor", c_void_p, ctypes.py_object)
capsule_rename = _api("PyCapsule_SetName", c_int, ctypes.py_object, c_char_p)
take_reference = _api("Py_IncRef", None, c_void_p)
drop_reference = _api("Py_DecRef", None, c_void_p)

CapsuleType = type(capsule_new(1, None, None))

# A capsule keeps the address of its name, so these live as long as the process.
USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}


def drop_while_raising(capsule_address: int) -> bool:
    """Drops a reference to a capsule while an exception is set, as consumers do. Returns whether it is still set."""
    # Py_BuildValue owns what stands for N. It meets a NULL, raises SystemError, and then drops the tuple it began.
    build = ctypes.pythonapi["Py_BuildValue"]
    build.restype = c_void_p
    build.argtypes = [c_char_p]
    try:
        build(b"(NO)", c_void_p(capsule_address), c_void_p(None))
    except SystemError:
        return True
    return False
