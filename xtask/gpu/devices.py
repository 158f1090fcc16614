"""Checks that need more than one NVIDIA GPU: a second GPU, or an AMD GPU with HIP. `run.py` runs them."""

import ctypes
import gc
import os
from array import array
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

# The main script, with its tools.
run = None

NO_DEVICE = 100
ROCM = (10, 0)


def register(script):
    global run
    run = script
    for function, title in (
        (second_gpu, "A consumer on a second GPU"),
        (hip, "HIP"),
    ):
        run.check(title)(function)


class Failed(Exception):
    pass


def must(library, name, *arguments):
    code = getattr(library, name)(*arguments)
    if code:
        raise Failed(f"{name} gives {code}")


def read(library, copy, synchronize, address, stream, then=lambda: None):
    """The values in a copy that is queued on a stream. `then` is called before the copy is complete."""
    values = array("f", bytes(run.COUNT * 4))
    start, count = values.buffer_info()
    must(library, copy, c_void_p(start), c_uint64(address), c_size_t(count * 4), stream)
    then()
    must(library, synchronize, stream)
    return min(values), max(values)


def second_gpu():
    rows = run.Rows()
    gpu, cuda = run.gpu, run.Libcuda()
    gpu.describe()
    count = c_int()
    must(cuda.library, "cuDeviceGetCount", byref(count))
    if count.value < 2:
        rows.add("a second GPU", f"SKIPPED: this machine has {count.value}")
        return rows
    first, second, device, stream = c_void_p(cuda.current()), c_void_p(), c_int(), c_void_p()
    must(cuda.library, "cuDeviceGet", byref(device), 1)
    must(cuda.library, "cuDevicePrimaryCtxRetain", byref(second), device)
    must(cuda.library, "cuCtxSetCurrent", second)
    must(cuda.library, "cuStreamCreate", byref(stream), c_uint(1))
    must(cuda.library, "cuCtxSetCurrent", first)
    for name, number in (("a handle", stream.value), ("control: -1", -1)):
        _, tensor = run.producer()
        tensor.spin_write(run.SPIN, 1.0)
        capsule = run.exported(tensor, stream=number)
        address, _ = run.seen(capsule)
        stays = cuda.current() == first.value
        must(cuda.library, "cuCtxSetCurrent", second)
        found = read(cuda.library, "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", address, stream)
        must(cuda.library, "cuCtxSetCurrent", first)
        wrong = run.disturbed(found != (1.0, 1.0))
        expected = "0.0 somewhere" if number == -1 else "1.0, 1.0"
        right = (wrong if number == -1 else not wrong) and stays
        text = f"{found}, the context {'stays' if stays else 'DOES NOT STAY'} current"
        rows.add(f"its stream={name} (expected: {expected}, stays)", text, right)
        del capsule, tensor
        gc.collect()
        cuda("cuCtxSynchronize")
    _, other = run.producer()
    run.exported(other, stream=stream.value)
    gpu.collect()
    gone = run.wait_until(lambda: gpu.collect() == 0)
    rows.add("owners left when both are done (expected: 0)", gpu.retained()[0], gone)
    return rows


def libamdhip64():
    names = [os.environ["DLPACK_LIBAMDHIP64"]] if "DLPACK_LIBAMDHIP64" in os.environ else []
    for name in names or [f"libamdhip64.so.{version}" for version in (7, 6, 5)]:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            why = error
    raise LookupError(f"no libamdhip64: {why}")


def hip():
    rows = run.Rows()
    try:
        library = libamdhip64()
    except LookupError as error:
        rows.add("a GPU of AMD", f"SKIPPED: {error}")
        return rows
    code = library.hipInit(c_uint(0))
    if code:
        right = None if code == NO_DEVICE else False
        rows.add("a GPU of AMD", f"{'SKIPPED: ' if right is None else ''}hipInit gives {code}", right)
        return rows
    try:
        hip_rows(rows, library)
    except Failed as error:
        rows.add("a GPU of AMD", error, False)
    return rows


def hip_rows(rows, library):
    gpu = run.gpu
    size = c_size_t(run.COUNT * 4)
    ones, target, other, producer, consumer = (c_void_p() for _ in range(5))
    for address in (ones, target, other):
        must(library, "hipMalloc", byref(address), size)
    for stream in (producer, consumer):
        must(library, "hipStreamCreateWithFlags", byref(stream), c_uint(1))
    data = array("f", [1.0]) * run.COUNT
    must(library, "hipMemcpyHtoDAsync", ones, c_void_p(data.buffer_info()[0]), size, producer)
    must(library, "hipStreamSynchronize", producer)

    def write():
        """Queues copies between other memory, which take long, and then one that writes ones to the target."""
        for _ in range(20 if run.FAKE else 20_000):
            must(library, "hipMemcpyDtoDAsync", other, ones, size, producer)
        must(library, "hipMemcpyDtoDAsync", target, ones, size, producer)

    for name, number, stream in (
        ("a handle", consumer.value, consumer),
        ("None", None, c_void_p()),
        ("control: -1", -1, consumer),
    ):
        zeros = array("f", bytes(run.COUNT * 4))
        must(library, "hipMemcpyHtoDAsync", target, c_void_p(zeros.buffer_info()[0]), size, producer)
        must(library, "hipDeviceSynchronize")
        write()
        tensor = gpu.Rocm(target.value, run.COUNT, producer.value)
        capsule = tensor.__dlpack__(stream=number, max_version=run.VERSION)
        address, device = run.seen(capsule)
        found = read(library, "hipMemcpyDtoHAsync", "hipStreamSynchronize", address, stream)
        wrong = run.disturbed(found != (1.0, 1.0))
        expected = "0.0 somewhere" if number == -1 else "1.0, 1.0"
        right = (wrong if number == -1 else not wrong) and device == ROCM
        rows.add(f"stream={name} (expected: {expected}, device {ROCM})", f"{found}, device {device}", right)
        del capsule, tensor
        gc.collect()
        must(library, "hipDeviceSynchronize")
    for mode in (0, 1, 2):
        stream, status, graph = c_void_p(), c_int(-1), c_void_p()
        must(library, "hipStreamCreateWithFlags", byref(stream), c_uint(1))
        must(library, "hipStreamBeginCapture", stream, c_int(mode))
        tensor = gpu.Rocm(target.value, run.COUNT, producer.value)
        capsule = tensor.__dlpack__(stream=stream.value, max_version=run.VERSION)
        must(library, "hipStreamIsCapturing", stream, byref(status))
        rows.add(f"an export in a capture in mode {mode} (expected: it goes on, 1)", status.value, status.value == 1)
        del capsule, tensor
        gc.collect()
        must(library, "hipStreamEndCapture", stream, byref(graph))
        must(library, "hipGraphDestroy", graph)
    must(library, "hipDeviceSynchronize")
    gone = run.wait_until(lambda: gpu.captured() == 0)
    rows.add("owners kept by graphs that are gone (expected: 0)", gpu.captured(), gone)
    gone = run.wait_until(lambda: gpu.collect() == 0)
    rows.add("owners left when all is done (expected: 0)", gpu.retained()[0], gone)
