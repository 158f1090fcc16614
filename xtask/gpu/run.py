"""Checks the claims of the stream tests on a real GPU, and writes a table.

    python run.py [--module FOLDER] [--only CHECK] [--table FILE]

Needs Python, an NVIDIA driver, and the module `dlpack_gpu`, which is in the folder of this file or in FOLDER;
`cargo xtask gpu --carry` builds one for every Python. PyTorch, CuPy and JAX take part if they can be imported.
Each check runs in its own process. If a check must notice a missing order, a control omits the order and must
find wrong data: otherwise the check proves nothing.
"""

import argparse
import ctypes
import datetime
import gc
import importlib
import json
import os
import platform
import subprocess
import sys
import threading
import time
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
# The fake driver of the tests, on which everything works except the clock. It shows, without a GPU, that this script works and
# notices a missing order.
FAKE = os.environ.get("DLPACK_FAKE_LIBCUDA")
LIBCUDA = FAKE or "libcuda.so.1"
# So long that a slow host cannot hide a race.
SPIN = 200_000_000
SECONDS = SPIN / 1e9
COUNT = 1 << 20
VERSION = (1, 0)
CPU = (1, 0)
KINDS = ("nonblocking", "blocking", "default")

gpu = None
CHECKS = {}


def check(title):
    def register(function):
        CHECKS[function.__name__] = (title, function)
        return function

    return register


class Rows(list):
    """An operation, its result, and whether that is right. No verdict if no manual specifies it."""

    def add(self, what, found, right=None):
        verdict = {True: "yes", False: "NO", None: ""}[right]
        self.append((what, str(found), verdict))


def disturbed(wrong):
    """Whether an access was unordered: the data is wrong, or the fake driver reported it."""
    if not FAKE:
        return wrong
    before, disturbed.seen = disturbed.seen, gpu.faults()
    return wrong or disturbed.seen > before


disturbed.seen = 0


def timed(right):
    """A verdict that depends on the clock."""
    return None if FAKE else right


# ---- consumers ----


class Unordered:
    """A consumer's view of a tensor that requests no order from the producer."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        return self.tensor.__dlpack__(stream=-1, **options)


class Own:
    """The module's own consumer: queues a copy, and releases the tensor before it is made."""

    name = "dlpack_gpu"

    def streams(self):
        return [(kind, gpu.Stream(kind)) for kind in ("nonblocking", "blocking", "default", "per-thread")]

    def raw(self, stream):
        return stream

    def read(self, tensor, stream, late=0):
        capsule = tensor.__dlpack__(stream=stream.raw, max_version=VERSION)
        if late:
            stream.spin(late)
        return stream.read(capsule).values


class Torch:
    name = "torch"

    def __init__(self):
        self.torch = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise ImportError("torch sees no GPU")

    def streams(self):
        return [("side stream", self.torch.cuda.Stream()), ("default stream", self.torch.cuda.default_stream())]

    def raw(self, stream):
        handle = stream.cuda_stream
        return gpu.Stream("borrowed", handle) if handle else gpu.Stream("default")

    def read(self, tensor, stream, late=0):
        with self.torch.cuda.stream(stream):
            array = self.torch.from_dlpack(tensor)
            if late:
                self.raw(stream).spin(late)
            copy = array.clone()
        del array

        def values():
            stream.synchronize()
            return copy.min().item(), copy.max().item()

        return values


class CuPy:
    name = "cupy"

    def __init__(self):
        self.cupy = importlib.import_module("cupy")

    def streams(self):
        return [("stream", self.cupy.cuda.Stream(non_blocking=True)), ("null stream", self.cupy.cuda.Stream.null)]

    def raw(self, stream):
        return gpu.Stream("borrowed", stream.ptr) if stream.ptr else gpu.Stream("default")

    def read(self, tensor, stream, late=0):
        with stream:
            array = self.cupy.from_dlpack(tensor)
            if late:
                self.raw(stream).spin(late)
            copy = array.copy()
        del array

        def values():
            stream.synchronize()
            return float(copy.min()), float(copy.max())

        return values


class Jax:
    """Names its own stream for each array, and frees on its own threads without the GIL."""

    name = "jax"

    def __init__(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.jax = importlib.import_module("jax")
        if self.jax.default_backend() != "gpu":
            raise ImportError("jax sees no GPU")

    def streams(self):
        return [("its own", None)]

    def read(self, tensor, stream, late=0):
        array = self.jax.dlpack.from_dlpack(tensor)
        copy = array + 0
        del array
        return lambda: (float(copy.min()), float(copy.max()))


def consumers():
    """The installed consumers, and why the others are missing."""
    found, missing = [], []
    for kind in (Own, Torch, CuPy, Jax):
        try:
            found.append(kind())
        except Exception as error:  # whatever an import may raise
            missing.append((kind.name, f"{type(error).__name__}: {error}"))
    return found, missing


def producer(kind="nonblocking", cls=None):
    stream = gpu.Stream(kind)
    tensor = (cls or gpu.Prod)(stream, COUNT)
    stream.wait()
    return stream, tensor


def elapsed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def exported(tensor, **options):
    return tensor.__dlpack__(max_version=VERSION, **options)


class Libcuda:
    """The driver itself, for calls that no library offers."""

    def __init__(self):
        self.library = ctypes.CDLL(LIBCUDA)

    def __call__(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def current(self):
        context = c_void_p()
        self("cuCtxGetCurrent", byref(context))
        return context.value


def seen(capsule):
    """Address and device of the tensor in the capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    struct = pointer(capsule, b"dltensor_versioned")
    # After version, context, deleter and flags.
    address = c_void_p.from_address(struct + 32).value
    device = c_int.from_address(struct + 40).value, c_int.from_address(struct + 44).value
    return address, device


# ---- the checks ----


@check("A consumer that reads at once sees what the producer wrote")
def race():
    rows = Rows()
    found, missing = consumers()
    for name, reason in missing:
        rows.add(name, f"not here: {reason}")
    for consumer in found:
        for label, stream in consumer.streams():
            for kind in KINDS:
                _, warm = producer(kind)
                consumer.read(warm, stream)()
                on, tensor = producer(kind)
                tensor.spin_write(SPIN, 1.0)
                values = consumer.read(tensor, stream)
                ahead = not on.idle()
                result = values()
                text = f"{result}, read while the producer was {'at work' if ahead else 'done'}"
                right = not disturbed(result != (1.0, 1.0))
                rows.add(f"{consumer.name}, {label}, from a {kind} stream", text, right)
    for consumer in found:
        label, stream = consumer.streams()[0]
        _, warm = producer()
        consumer.read(warm, stream)()
        _, tensor = producer()
        tensor.spin_write(SPIN, 1.0)
        result = consumer.read(Unordered(tensor), stream)()
        right = disturbed(result[0] == 0.0)
        rows.add(f"control: {consumer.name}, {label}, with stream=-1", f"{result}, must hold zeros", right)
    return rows


@check("An export does not stop the host, where it need not")
def blocking():
    rows = Rows()
    side = gpu.Stream("nonblocking")
    cases = [
        ("device memory, a handle", gpu.Prod, {"stream": side.raw}, False),
        ("device memory, None", gpu.Prod, {"stream": None}, False),
        ("device memory, -1", gpu.Prod, {"stream": -1}, False),
        ("device memory, copied to the host", gpu.Prod, {"dl_device": CPU}, True),
        ("pinned memory, a handle", gpu.Pinned, {"stream": side.raw}, False),
        ("pinned memory, None", gpu.Pinned, {"stream": None}, True),
        ("managed memory, None", gpu.Managed, {"stream": None}, True),
    ]
    for name, cls, options, waits in cases:
        _, warm = producer(cls=cls)
        exported(warm, **options)
        on, tensor = producer(cls=cls)
        tensor.spin_write(SPIN, 1.0)
        others = Ticks()
        spent, capsule = elapsed(lambda: exported(tensor, **options))
        ticks = others.stop()
        right = spent > SECONDS * 0.7 if waits else spent < SECONDS * 0.1
        text = f"{spent * 1e3:.2f} ms"
        if waits:
            # A thread that ticks every millisecond cannot run while another thread holds the GIL.
            text += f", another thread ran {ticks} times meanwhile"
            right = right and ticks > 20
        rows.add(name, text, timed(right))
        on.wait()
        side.wait()
        del capsule
    return rows


class Ticks:
    def __init__(self):
        self.count = 0
        self.going = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.going:
            time.sleep(0.001)
            self.count += 1

    def stop(self):
        count = self.count
        self.going = False
        self.thread.join()
        return count


@check("On the producer's own stream the driver is not needed")
def same_stream():
    rows = Rows()
    # The variable is read at the first use of the driver; see `ENVIRONMENT`.
    for kind in ("nonblocking", "default", "per-thread"):
        on, tensor = producer(kind)
        try:
            exported(tensor, stream=on.raw)
            rows.add(f"{kind}, core's driver cannot be loaded", "exported", kind == "nonblocking")
        except BufferError as error:
            # The current context determines which default stream a consumer means.
            named = kind != "nonblocking" and "no-driver-here" in str(error)
            rows.add(f"{kind}, core's driver cannot be loaded", error, named)
    other = gpu.Stream("nonblocking")
    _, tensor = producer()
    try:
        exported(tensor, stream=other.raw)
        rows.add("control: another stream", "exported, though nothing could be ordered", False)
    except BufferError as error:
        rows.add("control: another stream", f"BufferError: {error}", True)
    return rows


@check("Every number that `stream` may be")
def stream_values():
    rows = Rows()
    side = gpu.Stream("nonblocking")
    handle = side.raw
    cases = [
        (None, None), (-1, None), (1, None), (2, None), (handle, None),
        (0, ValueError), (-2, ValueError), (1 << 70, None), ("x", None),
    ]  # fmt: skip
    for value, wanted in cases:
        _, tensor = producer()
        try:
            exported(tensor, stream=value)
            found = None
        except Exception as error:  # its class decides
            found = error
        name = "a handle" if value == handle else repr(value)
        text = "exported" if found is None else f"{type(found).__name__}: {found}"
        if value in (1 << 70, "x"):
            # After a TypeError a consumer would repeat the call with fewer keywords.
            rows.add(name, text, found is not None and not (value != "x" and isinstance(found, TypeError)))
        else:
            rows.add(name, text, type(found) is wanted if wanted else found is None)
    for number in range(2):
        result = []

        def body(result=result):
            on, tensor = producer()
            tensor.spin_write(SPIN, 1.0)
            result.append(Own().read(tensor, gpu.Stream("per-thread"))())

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        rows.add(f"the per-thread stream of thread {number + 1}", result, result == [(1.0, 1.0)])
    return rows


@check("Memory that is let go while it is read is not used again before")
def release():
    rows = Rows()
    found, _ = consumers()
    for consumer in found:
        # The other libraries' streams are like ours.
        for kind in KINDS if consumer.name == Own.name else KINDS[:1]:
            for label, stream in consumer.streams():
                let_go(rows, consumer, label, stream, kind, gpu.Prod)
                # Other pairs of streams are ordered by CUDA, and JAX frees after its own work.
                if kind == "nonblocking" and label in ("nonblocking", "side stream", "stream"):
                    let_go(rows, consumer, label, stream, kind, gpu.Immediate)
    # Above, the object lives until the consumer is done. Here the consumer releases it last.
    for cls in (gpu.Prod, gpu.Immediate):
        on, tensor = producer(cls=cls)
        tensor.spin_write(0, 1.0)
        on.wait()
        stream = gpu.Stream("nonblocking")
        capsule = exported(tensor, stream=stream.raw)
        del tensor
        stream.spin(SPIN)
        reading = stream.read(capsule)
        for _ in range(3):
            on.churn(COUNT, 0x7F)
        result = reading.values()
        wrong = disturbed(result != (1.0, 1.0))
        if cls is gpu.Prod:
            rows.add("freed by the deleter", result, not wrong)
        else:
            text = f"{result}, must hold what was written later"
            rows.add('control: freed by the deleter, release = "immediate"', text, wrong)
    try:
        cupy = CuPy()
    except Exception:  # whatever an import may raise
        return rows
    on, tensor = producer()
    stream = cupy.cupy.cuda.Stream(non_blocking=True)
    with stream:
        array = cupy.cupy.from_dlpack(tensor)
        array += 1
    del stream, tensor
    gc.collect()
    del array
    on.churn(COUNT, 0)
    on.wait()
    rows.add("cupy, its stream is gone before the array", "nothing happened", True)
    return rows


def let_go(rows, consumer, label, stream, kind, cls):
    on, tensor = producer(kind, cls)
    tensor.spin_write(0, 1.0)
    on.wait()
    consumer.read(tensor, stream)()
    on.wait()
    values = consumer.read(tensor, stream, late=SPIN)
    del tensor
    gc.collect()
    for _ in range(3):
        on.churn(COUNT, 0x7F)
    result = values()
    wrong = disturbed(result != (1.0, 1.0))
    if cls is gpu.Prod:
        rows.add(f"{consumer.name}, {label}, from a {kind} stream", result, not wrong)
    else:
        text = f"{result}, must hold what was written later"
        rows.add(f'control: {consumer.name}, {label}, release = "immediate"', text, wrong)


@check("What it takes to let go of memory that is being read")
def release_cost():
    rows = Rows()
    newer = hasattr(Libcuda().library, "cuCtxRecordEvent")
    rows.add("the driver has cuCtxRecordEvent", newer)
    for label, kind in (("a handle", "nonblocking"), ("the default stream", "default")):
        on, tensor = producer()
        tensor.spin_write(0, 1.0)
        on.wait()
        reader = gpu.Stream(kind)
        capsule = exported(tensor, stream=reader.raw)
        del tensor
        reader.spin(SPIN)
        spent, reading = elapsed(lambda: reader.read(capsule))
        right = spent < SECONDS * 0.1 if newer or kind == "default" else None
        rows.add(f"by a consumer on {label}, at work", f"{spent * 1e3:.2f} ms", timed(right))
        rows.add("what it read", reading.values(), reading.values() == (1.0, 1.0))
        del capsule
    return rows


@check("Exports inside of captures")
def capture():
    rows = Rows()
    for mode in ("global", "thread", "relaxed"):
        for busy in (False, True):
            own_capture(rows, mode, busy)
    try:
        torch = Torch().torch
    except Exception as error:  # whatever an import may raise
        rows.add("torch", f"not here: {error}")
        return rows
    for busy in (False, True):
        torch_capture(rows, torch, busy)
    return rows


def written(busy):
    on, tensor = producer()
    tensor.spin_write(SPIN if busy else 0, 1.0)
    if not busy:
        on.wait()
    return on, tensor


def launched(on, launch, values):
    """The values that ten launches read, between which the producer's stream uses memory of the same size."""
    results = set()
    for _ in range(10):
        on.churn(COUNT, 0x7F)
        on.wait()
        launch()
        results.add(values())
    return results


# Separate functions, so that no object of one capture is dropped in the next, which would break it.
def own_capture(rows, mode, busy):
    name = f"{mode} mode, the producer {'at work' if busy else 'done'}"
    on, tensor = written(busy)
    stream = gpu.Stream("nonblocking")
    stream.begin_capture(mode)
    try:
        reading = stream.read(exported(tensor, stream=stream.raw))
        graph = stream.end_capture()
    except Exception as error:  # one row
        rows.add(name, f"{type(error).__name__}: {error}", False)
        return
    del tensor
    gc.collect()
    results = launched(on, graph.launch, reading.values)
    right = not disturbed(results != {(1.0, 1.0)})
    rows.add(f"{name}, exported and let go inside, launched 10 times", results, right)
    kept_for(rows)
    del graph
    given_back(rows)


def kept_for(rows):
    kept = gpu.captured()
    rows.add("owners kept for the graph (expected: 1)", kept, kept == 1)


def given_back(rows):
    """The destroyed graph releases its owners by itself, and the consumers' work is done."""
    cuda = Libcuda()
    if not hasattr(cuda.library, "cuUserObjectCreate"):
        rows.add("owners kept without it", "this driver has no user objects: release_captured() is called")
        gpu.release_captured()
    # A driver may release them on its own thread, after the launches.
    cuda("cuCtxSynchronize")
    gone = wait_until(lambda: gpu.captured() == 0)
    rows.add("owners kept without it, by itself (expected: 0)", gpu.captured(), gone)
    # An event that was just recorded may not be complete yet.
    wait_until(lambda: gpu.collect() == 0)
    left = gpu.collect()
    rows.add("owners that wait after collect() (expected: 0)", left, left == 0)


def torch_capture(rows, torch, busy):
    name = f"torch.cuda.graph, the producer {'at work' if busy else 'done'}"
    on, tensor = written(busy)
    torch.ones(8, device="cuda").mul(2)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            array = torch.from_dlpack(tensor)
            out = array * 2
            del array
    except Exception as error:  # one row
        rows.add(name, f"{type(error).__name__}: {error}", False)
        return
    del tensor
    gc.collect()

    def values():
        torch.cuda.synchronize()
        return out.min().item(), out.max().item()

    results = launched(on, graph.replay, values)
    rows.add(f"{name}, replayed 10 times", results, results == {(2.0, 2.0)})
    # PyTorch passes the capturing stream, so core knows that the owner is in a graph.
    kept_for(rows)
    del graph, out
    given_back(rows)


@check("What the driver says of a stream that was destroyed (undefined; nothing of ours asks)")
def destroyed_stream():
    rows = Rows()
    cuda = Libcuda()
    gpu.describe()
    stream, event, status = c_void_p(), c_void_p(), c_int()
    cuda("cuStreamCreate", byref(stream), c_uint(1))
    cuda("cuEventCreate", byref(event), c_uint(2))
    cuda("cuStreamDestroy_v2", stream)
    # One at a time and flushed, because each may crash the process.
    for name, call in (
        ("cuStreamIsCapturing", lambda: cuda("cuStreamIsCapturing", stream, byref(status))),
        ("cuStreamQuery", lambda: cuda("cuStreamQuery", stream)),
        ("cuEventRecord", lambda: cuda("cuEventRecord", event, stream)),
    ):
        print(f"about to call {name} with a destroyed stream", file=sys.stderr, flush=True)
        rows.add(name, f"code {call()}")
    return rows


@check("The current context stays as it was")
def contexts():
    rows = Rows()
    cuda = Libcuda()
    gpu.describe()
    side = gpu.Stream("nonblocking")
    device, other = c_int(), c_void_p()
    cuda("cuDeviceGet", byref(device), 0)
    cuda("cuCtxCreate_v2", byref(other), c_uint(0), device)
    for name, context in (("another context", other), ("no context", c_void_p())):
        for label in ("a handle", "None", "its own", "-1"):
            on, tensor = producer()
            stream = {"a handle": side.raw, "None": None, "its own": on.raw, "-1": -1}[label]
            cuda("cuCtxSetCurrent", context)
            capsule = exported(tensor, stream=stream)
            after_export = cuda.current()
            del tensor, capsule
            gc.collect()
            after_delete = cuda.current()
            right = after_export == after_delete == context.value
            text = "the same after export and deletion" if right else "changed"
            rows.add(f"{name} current, stream {label}", text, right)
    failures = []

    def body():
        try:
            before = cuda.current()
            for _ in range(1000):
                exported(shared, stream=side.raw)
            if cuda.current() != before:
                failures.append("the context changed")
        except Exception as error:  # counted
            failures.append(repr(error))

    cuda("cuCtxSetCurrent", other)
    _, shared = producer()
    threads = [threading.Thread(target=body) for _ in range(8)]
    spent, _ = elapsed(lambda: [thread.start() for thread in threads] and [thread.join() for thread in threads])
    rows.add("8 threads, 1000 exports and deletions each", failures or f"{spent:.2f} s", not failures)
    return rows


@check("A tensor that outlives the interpreter")
def at_exit():
    script = (
        "import sys; sys.path[:0] = {paths!r}; import dlpack_gpu as gpu, builtins;"
        "s = gpu.Stream('nonblocking'); p = gpu.Prod(s, 1024); p.spin_write(50_000_000, 1.0);"
        "c = gpu.Stream('nonblocking'); builtins.kept = p.__dlpack__(stream=c.raw, max_version=(1, 0)); del p"
    ).format(paths=sys.path)
    rows = Rows()
    for count in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
        text = done.stderr.strip()[-200:] or f"status {done.returncode}"
        rows.add(f"run {count + 1}", text, done.returncode == 0 and not done.stderr)
    return rows


@check("What the driver says of the memory")
def attributes():
    rows = Rows()
    cuda = Libcuda()
    for cls in (gpu.Prod, gpu.Pinned, gpu.Managed):
        _, tensor = producer(cls=cls)
        capsule = exported(tensor, stream=-1)
        address, device = seen(capsule)
        told = tuple(tensor.__dlpack_device__())
        rows.add(f"{cls.__name__}: __dlpack_device__ and the capsule", f"{told} and {device}", told == device)
        for name, attribute in (("context", 1), ("memory type", 2), ("managed", 8), ("device", 9)):
            if FAKE:
                break
            value = c_size_t(0)
            code = cuda("cuPointerGetAttribute", byref(value), c_int(attribute), ctypes.c_uint64(address))
            shown = "none" if not value.value else "some" if attribute == 1 else value.value
            rows.add(f"{cls.__name__}: {name}", f"code {code}, {shown}")
    return rows


@check("Memory that the host reaches, in libraries of the host")
def host_memory():
    rows = Rows()
    readers = []
    try:
        numpy = importlib.import_module("numpy")
        readers.append(("numpy", lambda tensor: numpy.from_dlpack(tensor), True))
    except ImportError as error:
        rows.add("numpy", f"not here: {error}")
    found, _ = consumers()
    for consumer in found:
        if consumer.name == "torch":
            readers.append(("torch", consumer.torch.from_dlpack, None))
        elif consumer.name == "cupy":
            readers.append(("cupy", consumer.cupy.from_dlpack, None))
        elif consumer.name == "jax":
            readers.append(("jax", consumer.jax.dlpack.from_dlpack, None))
    for cls in (gpu.Pinned, gpu.Managed):
        for name, read, promised in readers:
            _, tensor = producer(cls=cls)
            tensor.spin_write(SPIN, 1.0)
            try:
                array = read(tensor)
                values = float(array.min()), float(array.max())
                rows.add(f"{cls.__name__} in {name}", values, values == (1.0, 1.0))
            except Exception as error:  # a library may refuse a device
                rows.add(f"{cls.__name__} in {name}", f"{type(error).__name__}: {error}", False if promised else None)
    return rows


@check("What an export costs (medians of interleaved rounds, microseconds; nothing is at work)")
def cost():
    rows = Rows()
    on, tensor = producer()
    _, immediate = producer(cls=gpu.Immediate)
    side = gpu.Stream("nonblocking")
    cases = {
        "no order (-1)": (tensor, -1),
        "the producer's stream": (tensor, on.raw),
        "another stream": (tensor, side.raw),
        "the default stream (None)": (tensor, None),
        'another stream, release = "immediate"': (immediate, side.raw),
    }
    clock = time.perf_counter_ns
    export = {name: [] for name in cases}
    delete = {name: [] for name in cases}
    for turn in range(3000):
        for name, (source, stream) in cases.items():
            start = clock()
            capsule = source.__dlpack__(stream=stream, max_version=VERSION)
            middle = clock()
            del capsule
            end = clock()
            if turn >= 200:
                export[name].append(middle - start)
                delete[name].append(end - middle)
        if turn % 100 == 0:
            on.wait()
            side.wait()
    for name in cases:
        rows.add(name, f"{median(export[name]) / 1e3:.2f} to export, {median(delete[name]) / 1e3:.2f} to let go")
    return rows


def telling(stream):
    """An object of a library that reports this as its current stream."""

    class Header(ctypes.Structure):
        _fields_ = [("major", c_uint), ("minor", c_uint), ("older", c_void_p)]

    class Table(ctypes.Structure):
        _fields_ = [("header", Header), ("others", c_void_p * 4), ("current", c_void_p)]

    @ctypes.PYFUNCTYPE(c_int, c_int, c_int, ctypes.POINTER(c_void_p))
    def current(_kind, _index, place):
        place[0] = stream.raw if stream.raw > 1 else None
        return 0

    table = Table(Header(1, 3, None), (None,) * 4, ctypes.cast(current, c_void_p))
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]

    class Array(Silent):
        kept = current, table
        __dlpack_c_exchange_api__ = capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)

    return Array


class Silent:
    """An object of a library that reports no current stream."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream, **options):
        self.asked = stream
        return self.tensor.__dlpack__(stream=stream, **options)


def as_interface(stream):
    """An object of a library that reports its stream by the CUDA array interface, as CuPy does."""

    class Array(Silent):
        __cuda_array_interface__ = {"version": 3, "stream": stream.raw}

    return Array


def waits(function):
    """Whether the host waits in a call for the queued work of a stream."""
    if not FAKE:
        return elapsed(function)[0] > SECONDS * 0.5
    fake = ctypes.CDLL(FAKE)
    calls = ctypes.create_string_buffer(1 << 16)
    fake.sim_forget_calls()
    function()
    fake.sim_calls(calls, c_size_t(len(calls)))
    return b"Synchronize" in calls.value


def between(kind, ours, library):
    """A library writes 1, our kernel writes 2, and the library reads, and writes 3. Returns what it read, what our kernel read, and
    the final value; whether the host waited for our first kernel, and whether the library's own stream was named."""
    on, tensor = producer(kind, gpu.Immediate)
    array = library(on)(tensor)
    gpu.fill(array, 0.0, ours)
    on.wait()
    tensor.spin_write(SPIN, 1.0)
    waited = waits(lambda: gpu.fill(array, 2.0, ours, SPIN))
    read = on.read(exported(tensor, stream=on.raw))
    late = gpu.read(array, ours, SPIN)
    tensor.spin_write(0, 3.0)
    left = on.read(exported(tensor, stream=on.raw))
    return (read.values(), late.values(), left.values()), waited, array.asked == on.raw


@check("A kernel of ours between two of a library's, over its array as an argument")
def arguments():
    rows = Rows()
    wanted = ((2.0, 2.0), (2.0, 2.0), (3.0, 3.0))
    tellers = (("in an exchange table", telling), ("in the CUDA array interface", as_interface))
    for kind in KINDS:
        for ours in (None, *KINDS):
            for how, library in tellers:
                result, waited, named = between(kind, ours and gpu.Stream(ours), library)
                right = not disturbed(result != wanted) and not waited and named
                where = f"a {ours} stream" if ours else "its own stream"
                rows.add(f"on {where}, of one that tells of a {kind} one {how}", result, right)
    for kind in KINDS:
        others = Ticks()
        result, waited, _ = between(kind, gpu.Stream("nonblocking"), lambda _: Silent)
        ticks = others.stop()
        right = not disturbed(result != wanted) and waited and timed(ticks > 20) is not False
        text = f"{result}, {'waited' if waited else 'did not wait'}, another thread ran {ticks} times meanwhile"
        rows.add(f"of one that does not tell of its {kind} stream", text, right)
    wrong = gpu.Stream("nonblocking")
    result, *_ = between("nonblocking", gpu.Stream("nonblocking"), lambda _: telling(wrong))
    rows.add("control: of one that tells a wrong stream", f"{result}, must not be {wanted}", disturbed(result != wanted))
    for name, of in (("torch", torch_between), ("cupy", cupy_between)):
        try:
            result = of()
        except ImportError as error:
            rows.add(name, f"not here: {error}")
            continue
        rows.add(f"{name}, on a side stream", result, result == (2.0, 2.0, 3.0, 3.0))
    for array, words in ((Host(), "found one on cpu"), ([1.0], "found <class 'list'>")):
        try:
            gpu.fill(array, 1.0)
            rows.add(words, "no error", False)
        except TypeError as error:
            rows.add(words, error, "of shape (_,) on a CUDA device" in str(error) and words in str(error))
    return rows


class Host:
    def __dlpack_device__(self):
        return CPU

    def __dlpack__(self, **options):
        raise AssertionError("it is not needed")


def torch_between():
    torch = Torch().torch
    stream, ours = torch.cuda.Stream(), gpu.Stream("nonblocking")
    with torch.cuda.stream(stream):
        x = torch.zeros(COUNT, device="cuda")
        gpu.fill(x, 0.0, ours)
        gpu.Stream("borrowed", stream.cuda_stream).spin(SPIN)
        x.fill_(1.0)
        gpu.fill(x, 2.0, ours, SPIN)
        read = x.clone()
        x.fill_(3.0)
    stream.synchronize()
    return read.min().item(), read.max().item(), x.min().item(), x.max().item()


def cupy_between():
    cupy = CuPy().cupy
    stream, ours = cupy.cuda.Stream(non_blocking=True), gpu.Stream("nonblocking")
    with stream:
        x = cupy.zeros(COUNT, dtype="float32")
        gpu.fill(x, 0.0, ours)
        gpu.Stream("borrowed", stream.ptr).spin(SPIN)
        x.fill(1.0)
        gpu.fill(x, 2.0, ours, SPIN)
        read = x.copy()
        x.fill(3.0)
        stream.synchronize()
        return tuple(float(v) for v in (read.min(), read.max(), x.min(), x.max()))


@check("The driver answers as the fake one of the tests does")
def calibration():
    rows = Rows()
    calibrate = importlib.import_module("calibrate")
    answers = calibrate.Driver(LIBCUDA).run()
    wrong = [row for row in answers if not row[4]]
    rows.add("answers as expected", f"{len(answers) - len(wrong)} of {len(answers)}", not wrong)
    for where, what, found, expected, _ in wrong:
        rows.add(f"{where}: {what}", f"{found}, and not {' or '.join(map(str, expected))}", False)
    return rows


# The environment that a check needs.
ENVIRONMENT = {"same_stream": {"DLPACK_LIBCUDA": "no-driver-here"}}


# More checks, which use the functions above.
sys.path.insert(0, str(HERE))
wait_until = importlib.import_module("owners").wait_until
for module in ("beside", "owners", "devices"):
    importlib.import_module(module).register(sys.modules[__name__])


# For each rule: a switch of the simulator that breaks it, and a row that must fail.
BROKEN = [
    ("race", "ignore-record", "dlpack_gpu, nonblocking, from a nonblocking stream"),
    ("race", "ignore-wait", "dlpack_gpu, nonblocking, from a nonblocking stream"),
    ("release", "ignore-query", "dlpack_gpu, default, from a nonblocking stream"),
    ("release", "ignore-record", "dlpack_gpu, default, from a nonblocking stream"),
    ("capture", "keep-objects", "owners kept without it, by itself"),
    ("queries", "refuse-status", "global mode, a nonblocking stream: cuStreamIsCapturing"),
    ("queries", "refuse-status", "relaxed mode, a blocking stream: an export"),
    ("joined", "ignore-wait", "joined before the last use ends"),
    ("retention", "slow", "their consumer on a handle is done, by themselves"),
    ("retention", "slow", "they are recorded by collect()"),
    ("recorded_again", "ignore-wait", "recorded again at once"),
    ("second_gpu", "ignore-wait", "its stream=a handle"),
    ("hip", "ignore-wait", "stream=a handle"),
    ("hip", "keep-objects", "owners kept by graphs that are gone"),
    ("synchronized", "ignore-stream-synchronize", "pinned memory, None, a global capture"),
    ("calibration", "refuse-status", "cuStreamIsCapturing"),
]


def load(folder):
    """The module, which opens the GPU. `LookupError` if there is none, `RuntimeError` if its driver fails."""
    global gpu
    sys.path.insert(0, str(folder))
    if FAKE:
        fake = ctypes.CDLL(FAKE)
        fake.sim_reset(int(os.environ.get("DLPACK_FAKE_DEVICES", "2")))
        switch = os.environ.get("DLPACK_FAKE_SWITCH")
        if switch:
            fake.sim_switch(switch.encode(), 1)
        code = os.environ.get("DLPACK_FAKE_INIT")
        if code:
            fake.sim_fail(b"cuInit", ctypes.c_uint64(1), c_int(int(code)))
    gpu = importlib.import_module("dlpack_gpu")
    return gpu.describe()


def broken(folder):
    """Breaks each rule once, and returns the rows that do not notice it."""
    failures = []
    for name, switch, words in BROKEN:
        os.environ["DLPACK_FAKE_SWITCH"] = switch
        rows = [row for row in alone(name, folder) if words in row[0] and not row[0].startswith("control")]
        red = [row for row in rows if row[2] == "NO"]
        print(f"  {name} with {switch}: {len(red)} of {len(rows)} rows red", flush=True)
        if not red:
            failures.append(f"{name} with {switch}: {rows}")
    del os.environ["DLPACK_FAKE_SWITCH"]
    # A driver that fails, one without a device, and one with a device.
    for variables, status, words in (
        ({"DLPACK_FAKE_INIT": "999"}, 1, "FAILED: a driver is here, and fails: "),
        ({"DLPACK_FAKE_DEVICES": "0"}, 0, "SKIPPED: "),
        ({"DLPACK_FAKE_DEVICES": "1"}, 0, "SKIPPED: this machine has 1"),
    ):
        command = [sys.executable, str(HERE / "run.py"), "--module", str(folder), "--only", "second_gpu"]
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
        print(f"  {variables}: status {done.returncode}", flush=True)
        if done.returncode != status or words not in done.stdout:
            failures.append(f"{variables}: status {done.returncode}, {done.stdout} {done.stderr}")
    print("\n".join(["", *failures, f"{len(failures)} rules of {len(BROKEN) + 3} are broken without notice"]))
    return 1 if failures else 0


def alone(name, folder):
    """One check in its own process: its rows, or how it crashed."""
    words = [sys.executable, str(HERE / "run.py"), "--module", str(folder), "--one", name]
    environment = {**os.environ, **ENVIRONMENT.get(name, {})}
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=900, check=False)
    except subprocess.TimeoutExpired:
        return [("the whole check", "did not end in 900 s", "NO")]
    if done.returncode == 0:
        return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]
    last = " / ".join(done.stderr.strip().splitlines()[-3:])
    # One of them may crash, which is a valid result.
    verdict = "" if name == "destroyed_stream" else "NO"
    return [("the whole check", f"ended with {done.returncode}: {last}", verdict)]


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(device, results):
    name, (major, minor), version = device
    found, missing = consumers()
    lines = [
        "# Streams on a real GPU",
        "",
        f"{name}, compute capability {major}.{minor}, driver for CUDA {version // 1000}.{version % 1000 // 10}, "
        f"Python {platform.python_version()}, {datetime.date.today().isoformat()}.",
        "",
        "Consumers: " + ", ".join(versions(found)) + ".",
    ]
    if missing:
        lines.append("Not there: " + ", ".join(name for name, _ in missing) + ".")
    lines.append("`cargo xtask gpu` writes this file. No verdict: the result is not specified.")
    for name, rows in results.items():
        lines += ["", f"## {CHECKS[name][0]}", "", "| what | found | right |", "|---|---|---|"]
        lines += [f"| {cell(what)} | {cell(text)} | {verdict} |" for what, text, verdict in rows]
    return "\n".join(lines) + "\n"


def versions(found):
    for consumer in found:
        module = sys.modules.get(consumer.name)
        yield f"{consumer.name} {getattr(module, '__version__', '')}".strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", type=Path, default=HERE, help="the folder in which dlpack_gpu lies")
    parser.add_argument("--only", choices=CHECKS, help="one check")
    parser.add_argument("--table", type=Path, help="where the table is written")
    parser.add_argument("--one", choices=CHECKS, help=argparse.SUPPRESS)
    parser.add_argument("--broken", action="store_true", help="on the fake driver: break each rule once")
    told = parser.parse_args()
    if FAKE and told.table:
        parser.error("the table is of a real GPU")
    try:
        device = load(told.module)
    except LookupError as error:
        print(f"SKIPPED: none of the {len(CHECKS)} checks on a GPU ran: {error}")
        return 0
    except RuntimeError as error:
        print(f"FAILED: a driver is here, and fails: {error}")
        return 1
    if told.broken:
        return broken(told.module)
    if told.one:
        rows = CHECKS[told.one][1]()
        print(json.dumps(rows), flush=True)
        return 0

    results = {}
    for name, (title, _) in CHECKS.items():
        if told.only in (None, name):
            print(f"\n{title}", flush=True)
            results[name] = alone(name, told.module)
            for what, text, verdict in results[name]:
                print(f"  {verdict:3} {what}: {text}", flush=True)
    text = table(device, results)
    if told.table:
        told.table.write_text(text)
    wrong = [row for rows in results.values() for row in rows if row[2] == "NO"]
    rows = [row for rows in results.values() for row in rows]
    skipped = [what for what, text, _ in rows if text.startswith("SKIPPED")]
    print(f"\n{len(wrong)} wrong of {len(rows)} rows; skipped: {', '.join(skipped) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
