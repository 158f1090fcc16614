"""Measures exports in a child process: nanoseconds, allocations, instructions."""

import ctypes
import gc
import importlib
import sys

from turns import loop, medians

SHAPE = (4, 5, 3)

MEASURES = {
    "call": "obj.__dlpack__(max_version=(1, 1))",
    "numpy": "np.from_dlpack(obj)",
    "tvm": "tvm_ffi.from_dlpack(obj)",
    "device": "obj.__dlpack_device__()",
    "table": "exchange table: owning tensor + its deleter",
    "borrow": "exchange table: borrowed tensor",
}
# Our own class first, then those with which it is compared.
PRODUCERS = {
    "ours, frozen": ("bench_ours", "Frozen3"),
    "ours, with a borrow": ("bench_ours", "Mutable3"),
    "ours, writable": ("bench_ours", "Writable3"),
    "ours, SharedBuffer": ("bench_ours", "Shared3"),
    "ours, owner": ("bench_ours", "Owned3"),
    "ours, Layout": ("bench_ours", "Laid3"),
    "ours, shape = [h, w, 3]": ("bench_ours", "ShapeOfFields"),
    "ours, shape = [_, 5, 3]": ("bench_ours", "ShapeInferred"),
    "ours, Vec<[[f32; 3]; 5]>": ("bench_ours", "ShapeOfElements"),
    "ours, strides": ("bench_ours", "WithStrides"),
    "ours, strides of padded rows": ("bench_ours", "PaddedRows"),
    "ours, byte_strides": ("bench_ours", "WithByteStrides"),
    "ours, order = F": ("bench_ours", "ColumnMajor"),
    "ours, offset": ("bench_ours", "WithOffset"),
    "ours, elem": ("bench_ours", "OtherElement"),
    "ours, dtype": ("bench_ours", "RuntimeType"),
    "ours, an enum": ("bench_ours", "Enum"),
    "ours, a generic field": ("bench_ours", "Delegating"),
    "ours, via": ("bench_ours", "Computed"),
    "ours, ndarray": ("bench_ours", "OverNdarray"),
    "ours, Arc": ("bench_ours", "OverArc"),
    "ours, an attribute": ("bench_ours", "Attributes", "image"),
    "ours, a column": ("bench_ours", "Columns", "pixels"),
    "numpy": None,
    "dlpark": ("peer_dlpark", "Image3"),
    "dlpack-rs": ("peer_dlpack_rs", "Image"),
    "pyo3-dlpack": ("peer_pyo3_dlpack", "Image"),
    "nanobind": ("peer_nanobind", "Image3"),
    "C, floor": ("bench_c", "Floor"),
    "C, minimal": ("bench_c", "Minimal"),
}


def producers(folders):
    """An object of each kind, and why some are missing."""
    import numpy as np

    sys.path[:0] = folders
    expected = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    objects, missing = {}, {}
    for name, where in PRODUCERS.items():
        if where is None:
            objects[name] = expected.copy()
            continue
        module, kind, *attribute = where
        try:
            made = getattr(importlib.import_module(module), kind)(SHAPE)
            objects[name] = getattr(made, *attribute) if attribute else made
        except ImportError as error:
            if module != "bench_c" and module != "bench_ours":
                missing[name] = str(error)
                continue
            raise
    for name, made in objects.items():
        check(name, made, expected)
    return objects, missing


def check(name, made, expected):
    """All return the same numbers, without a copy, and release the object."""
    import bench_c
    import numpy as np

    before = sys.getrefcount(made)
    array = np.from_dlpack(made)
    assert array.dtype == np.float32 and array.shape == SHAPE, name
    assert np.array_equal(array, expected), name
    address = array.ctypes.data
    del array
    assert np.from_dlpack(made).ctypes.data == address, f"{name} copies"
    capsule = made.__dlpack__(max_version=(1, 1))
    assert '"dltensor_versioned"' in repr(capsule), f"{name}: {capsule}"
    del capsule
    assert tuple(made.__dlpack_device__()) == (1, 0), name
    if hasattr(type(made), "__dlpack_c_exchange_api__"):
        data, _, shape, strides, dtype = bench_c.look(made)
        packed = strides == (15, 3, 1) or any(word in name for word in ("order", "column", "padded"))
        assert (data, shape, dtype) == (address, SHAPE, (2, 32, 1)) and packed, name
    gc.collect()
    assert sys.getrefcount(made) == before, f"{name} is held still"


def measures(objects, only):
    """For each measure a function for each producer that takes part, and `None` for the empty loop."""
    import bench_c
    import numpy as np

    result = {}
    for measure in only:
        runs = {}
        if measure in ("call", "numpy", "tvm", "device"):
            extra = {}
            body = MEASURES[measure]
            if measure == "numpy":
                body, extra = "from_dlpack(obj)", {"from_dlpack": np.from_dlpack}
            if measure == "tvm":
                try:
                    import tvm_ffi
                except ImportError:
                    continue
                body, extra = "from_dlpack(obj)", {"from_dlpack": tvm_ffi.from_dlpack}
            runs[None] = loop("pass", None)
            for name, made in objects.items():
                if measure == "tvm":
                    try:
                        extra["from_dlpack"](made)
                    except (BufferError, TypeError, RuntimeError):
                        continue
                runs[name] = loop(body, made, **extra)
        else:
            function = {"table": bench_c.run_table, "borrow": bench_c.run_borrow}[measure]
            runs[None] = lambda n, f=function, o=bench_c.Nothing(SHAPE): f(o, n)
            for name, made in objects.items():
                if hasattr(type(made), "__dlpack_c_exchange_api__"):
                    try:
                        if function(made, 1) is not None:
                            runs[name] = lambda n, f=function, o=made: f(o, n)
                    except BufferError:
                        # Read-only data cannot be lent, because the borrowed tensor has no flag for it.
                        continue
        result[measure] = runs
    return result


def child_times(folders, only, rounds, calls):
    objects, missing = producers(folders)
    gc.disable()
    result = {}
    for measure, runs in measures(objects, only).items():
        # A turn of a loop in C would otherwise be as short as a tick of the clock.
        some = calls if measure in ("call", "numpy", "tvm", "device") else calls * 5
        result[measure] = medians(runs, rounds, some)
    return {"times": result, "missing": missing}


def child_allocations(folders, only, calls):
    """Allocations of one turn, if the counter is loaded."""
    counted = ctypes.CDLL(None).counted_calls
    counted.restype = ctypes.c_longlong
    objects, _ = producers(folders)
    result = {}
    gc.disable()
    for measure, runs in measures(objects, only).items():
        for name, run_once in runs.items():
            run_once(100)
            before = counted()
            run_once(calls)
            result.setdefault(measure, {})[name] = (counted() - before) / calls
        empty = result[measure].pop(None)
        result[measure] = {name: round(count - empty, 1) for name, count in result[measure].items()}
    return result


def child_instructions(folders, only):
    """Runs under callgrind, with a dump after each part."""
    objects, _ = producers(folders)
    import bench_c

    gc.disable()
    for measure, runs in measures(objects, only).items():
        for name, run_once in runs.items():
            run_once(200)
            for turns in (100, 1100):
                bench_c.dump("rest")
                run_once(turns)
                bench_c.dump(f"{measure}|{name}|{turns}")
