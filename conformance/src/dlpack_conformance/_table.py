"""The C exchange table: found, read, and each of its functions called."""

from __future__ import annotations

import ctypes
import sys

from . import _abi
from .answer import Tensor, call_dlpack
from .report import Report

NAME, OLD_NAME, CAPSULE = "__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__", b"dlpack_exchange_api"


def check(report: Report, obj: object, base: Tensor, hostile: bool) -> None:
    """Checks the table of `obj`'s type against what `__dlpack__` gave."""
    capsule = getattr(type(obj), NAME, None)
    named = isinstance(capsule, _abi.CapsuleType) and _abi.capsule_name(capsule) == CAPSULE
    if not report.expect("XAP-02", named, f"{type(obj).__qualname__}.{NAME} is {type(capsule).__name__}"):
        return
    report.expect("XAP-05", not _abi.capsule_destructor(capsule), "destructor of the capsule")
    address = _abi.capsule_pointer(capsule, CAPSULE)
    table = _abi.DLPackExchangeAPI.from_address(address)
    version = (table.version.major, table.version.minor)
    if not report.expect("XAP-06", version[0] == 1, f"version {version}"):
        return
    old = getattr(type(obj), OLD_NAME, None)
    if old is not None:
        leads = old == address if isinstance(old, int) else old is capsule
        report.expect("XAP-04", leads, f"{OLD_NAME} is {old!r}, the table is at {address:#x}")
    needed = (
        "managed_tensor_allocator",
        "managed_tensor_from_py_object_no_sync",
        "managed_tensor_to_py_object_no_sync",
        "current_work_stream",
    )
    missing = ", ".join(name for name in needed if not getattr(table, name))
    if not report.expect("XAP-07", not missing, f"NULL: {missing}" if missing else f"all four, version {version}"):
        return
    _export(report, obj, base, table)
    _give_back(report, obj, table)
    _look(report, obj, base, table)
    _allocate(report, table)
    stream = ctypes.c_void_p(1)
    status = _abi.CurrentWorkStream(table.current_work_stream)(_abi.CPU, 0, ctypes.byref(stream))
    report.expect("XAP-24", status == 0 and stream.value is None, f"current_work_stream gave {status}, {stream.value}")
    if hostile:
        _foreign(report, table)


def _from_object(table: _abi.DLPackExchangeAPI, obj: object) -> int:
    """Returns the address of the tensor; raises the exception of the function."""
    out = ctypes.c_void_p()
    status = _abi.FromPyObject(table.managed_tensor_from_py_object_no_sync)(id(obj), ctypes.byref(out))
    if status != 0 or not out.value:
        raise SystemError(f"{status} without an exception, {out.value}")
    return out.value


def _export(report: Report, obj: object, base: Tensor, table: _abi.DLPackExchangeAPI) -> None:
    before = sys.getrefcount(obj)
    try:
        tensor = Tensor.of_versioned(_from_object(table, obj))
    except Exception as error:
        report.expect("XAP-14", False, f"from_py_object raised {type(error).__name__}: {error}")
        return
    answer = call_dlpack(obj, max_version=(1, 3))
    # Where every export is a copy, its address is its own.
    ours = None if answer.tensor is None else _facts(answer.tensor, base.copied)
    theirs = _facts(tensor, base.copied)
    report.expect("XAP-14", ours is None or ours == theirs, f"from_py_object: {theirs}, __dlpack__: {ours}")
    answer.capsule = None
    if report.expect("XAP-15", tensor.deleter != 0, "from_py_object: deleter"):
        tensor.release()
        left = sys.getrefcount(obj) - before
        report.expect("XAP-15", left == 0, f"from_py_object and the deleter: {left} references left")


def _facts(t: Tensor, copied: bool) -> dict[str, object]:
    facts: dict[str, object] = {
        "data": t.first,
        "shape": t.shape,
        "strides": t.strides or t.row_major,
        "dtype": t.dtype,
    }
    facts |= {"device": t.device, "flags": t.flags, "version": t.version}
    if copied:
        del facts["data"]
    return facts


def _give_back(report: Report, obj: object, table: _abi.DLPackExchangeAPI) -> None:
    before = sys.getrefcount(obj)
    try:
        managed = _from_object(table, obj)
    except Exception:
        return
    tensor = Tensor.of_versioned(managed)
    out = ctypes.c_void_p()
    try:
        status = _abi.ToPyObject(table.managed_tensor_to_py_object_no_sync)(managed, ctypes.byref(out))
    except Exception as error:
        said = f"to_py_object raised {type(error).__name__}"
        tensor.release()
    else:
        said = f"to_py_object returned {status}, {out.value and 'an object'}"
        if not report.expect("XAP-17", status == 0 and bool(out.value), said):
            return
        back = ctypes.cast(out, ctypes.py_object).value
        said = f"to_py_object returned a {type(back).__name__}"
        _abi.drop_reference(out)
        del back
    left = sys.getrefcount(obj) - before
    report.expect("XAP-17", left == 0, f"{said}; after it was dropped, {left} references were left")


def _look(report: Report, obj: object, base: Tensor, table: _abi.DLPackExchangeAPI) -> None:
    if not table.dltensor_from_py_object_no_sync:
        return
    seen = _abi.DLTensor()
    try:
        status = _abi.DLTensorFromPyObject(table.dltensor_from_py_object_no_sync)(id(obj), ctypes.byref(seen))
    except BufferError:
        return
    except Exception as error:
        report.expect("XAP-19", False, f"dltensor_from_py_object raised {type(error).__name__}: {error}")
        return
    axes = max(seen.ndim, 0)
    found = ((seen.data or 0) + seen.byte_offset, tuple(seen.shape[:axes]) if seen.shape or not axes else None)
    said = f"dltensor_from_py_object returned {status}, data and shape {found}"
    report.expect("XAP-19", status == 0 and found == (base.first, base.shape), said)
    report.expect("XAP-20", not base.read_only, said)


def _allocate(report: Report, table: _abi.DLPackExchangeAPI) -> None:
    shape = (ctypes.c_int64 * 2)(2, 3)
    wanted = _abi.DLTensor(ndim=2, shape=ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)))
    wanted.device.device_type = _abi.CPU
    wanted.dtype.code, wanted.dtype.bits, wanted.dtype.lanes = _abi.FLOAT, 32, 1
    told: list[str] = []
    set_error = _abi.SetError(lambda _, kind, text: told.append(f"{kind.decode()}: {text.decode()}"))
    out = ctypes.c_void_p()
    status = _abi.Allocator(table.managed_tensor_allocator)(ctypes.byref(wanted), ctypes.byref(out), None, set_error)
    if status != 0:
        report.expect("XAP-22", bool(told), f"the allocator returned {status} and reported {told}")
        return
    if not report.expect("XAP-22", bool(out.value) and not told, f"allocator: 0, {out.value}, error {told}"):
        return
    tensor = Tensor.of_versioned(out.value or 0)
    fits = tensor.shape == (2, 3) and tensor.dtype == (_abi.FLOAT, 32, 1) and tensor.data != 0 and not tensor.read_only
    report.expect("XAP-22", fits, f"the allocator returned shape {tensor.shape}, data type {tensor.dtype}")
    tensor.release()


def _foreign(report: Report, table: _abi.DLPackExchangeAPI) -> None:
    try:
        _from_object(table, object())
    except TypeError:
        report.expect("XAP-12", True, "from_py_object of an object() raised TypeError")
    except Exception as error:
        report.expect("XAP-12", False, f"from_py_object of an object() raised {type(error).__name__}")
    else:
        report.expect("XAP-12", False, "from_py_object of an object() returned a tensor")
