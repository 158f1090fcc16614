"""Checks of captures, green contexts, and work on other streams. `run.py` runs them.

Each row contains the expected result. If no manual specifies it, there is no verdict, and the row shows what this driver does.
"""

import ctypes
import gc
from array import array
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

NOT_READY = 600

# The main script, with its tools.
run = None


def register(script):
    global run
    run = script
    for function, title in (
        (queries, "Queries on capturing streams, in all three modes"),
        (recipe, "PyTorch's recipe for graphs: a warm-up on a side stream, and the same lines in the capture"),
        (parked, "Owners that wait break no later capture"),
        (synchronized, "An export that waits on the host breaks no capture"),
        (green, "Green contexts"),
        (whole, "A record of the whole context, and collect(), beside busy streams"),
        (frees, "What a free waits for"),
    ):
        run.check(title)(function)


def expect(rows, what, found, expected):
    rows.add(f"{what} (expected: {expected})", found, found == expected)


def written(cls=None):
    on, tensor = run.producer(cls=cls)
    tensor.spin_write(0, 1.0)
    on.wait()
    return on, tensor


# ---- captures ----

MODES = ("global", "thread", "relaxed")


def queries():
    """Core makes only the first two queries on a capturing stream, and an export breaks no capture. Core avoids the others: no
    manual specifies what they do there, so these rows have no verdict."""
    rows = run.Rows()
    gpu, cuda = run.gpu, run.Libcuda()
    gpu.describe()

    def capture_of(stream):
        status, number = c_int(-1), c_uint64()
        return cuda("cuStreamGetCaptureInfo", c_void_p(stream.raw), byref(status), byref(number)), status.value

    def status_of(stream):
        status = c_int(-1)
        return cuda("cuStreamIsCapturing", c_void_p(stream.raw), byref(status)), status.value

    avoided = {
        "cuStreamGetId": (c_uint64(),),
        "cuStreamGetFlags": (c_uint(),),
        "cuStreamGetCtx": (c_void_p(),),
        "cuStreamGetCtx_v2": (c_void_p(), c_void_p()),
    }
    for number, mode in enumerate(MODES):
        for kind in ("nonblocking", "blocking"):
            name = f"{mode} mode, a {kind} stream"
            (_, tensor), (_, other) = written(), written()
            stream = gpu.Stream(kind)
            cuda("cuStreamBeginCapture_v2", c_void_p(stream.raw), c_int(number))
            expect(rows, f"{name}: cuStreamIsCapturing", status_of(stream), (0, 1))
            expect(rows, f"{name}: cuStreamGetCaptureInfo", capture_of(stream), (0, 1))
            try:
                run.exported(tensor, stream=stream.raw)
                found = status_of(stream)
            except Exception as error:  # one row
                found = f"{type(error).__name__}: {error}"
            expect(rows, f"{name}: an export leaves the capture as it is", found, (0, 1))
            del tensor
            gc.collect()
            # Its consumer's stream is unknown.
            run.exported(other, stream=-1)
            del other
            gc.collect()
            expect(rows, f"{name}: so does the drop of another tensor", status_of(stream), (0, 1))
            graph = c_void_p()
            code = cuda("cuStreamEndCapture", c_void_p(stream.raw), byref(graph))
            expect(rows, f"{name}: the end of the capture", code, 0)
            if graph.value:
                cuda("cuGraphDestroy", graph)
            if number == 0 and kind == "nonblocking" or not run.FAKE:
                for query, places in avoided.items():
                    rows.add(f"{name}: {query}", avoid(cuda, number, gpu.Stream(kind), query, places, status_of))
    run.given_back(rows)
    return rows


def avoid(cuda, mode, stream, query, places, status_of):
    """The answer to a query of a capturing stream, and whether the capture continues."""
    if not hasattr(cuda.library, query):
        return "this driver has none"
    handle, graph = c_void_p(stream.raw), c_void_p()
    cuda("cuStreamBeginCapture_v2", handle, c_int(mode))
    code = cuda(query, handle, *map(byref, places))
    _, status = status_of(stream)
    cuda("cuStreamEndCapture", handle, byref(graph))
    if graph.value:
        cuda("cuGraphDestroy", graph)
    return f"code {code}, the capture {'goes on' if status == 1 else 'is broken'}"


def recipe():
    rows = run.Rows()
    gpu = run.gpu
    on, tensor = written()
    side, pool = gpu.Stream("nonblocking"), gpu.Stream("nonblocking")
    for mode in MODES:
        # The warm-up. Its alias is dropped when the name is bound again, inside of the capture.
        alias = run.exported(tensor, stream=side.raw)
        side.spin(run.SPIN)
        pool.begin_capture(mode)
        try:
            alias = run.exported(tensor, stream=pool.raw)
            reading = pool.read(alias)
            graph = pool.end_capture()
        except Exception as error:  # one row
            rows.add(f"{mode} mode", f"{type(error).__name__}: {error}", False)
            continue
        results = run.launched(on, graph.launch, reading.values)
        right = not run.disturbed(results != {(1.0, 1.0)})
        rows.add(f"{mode} mode, launched 10 times (expected: 1.0, 1.0)", results, right)
        del alias, reading, graph
        run.given_back(rows)
    try:
        torch = run.Torch().torch
    except Exception as error:  # whatever an import may raise
        rows.add("torch", f"not here: {error}")
        return rows
    for turn in range(2):
        torch_recipe(rows, torch, turn)
    return rows


def torch_recipe(rows, torch, turn):
    """The code of the documentation of `torch.cuda.CUDAGraph`, with an array of ours as the input."""
    on, x = written()
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(3):
            a = torch.from_dlpack(x)
            y = a * 2
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(g):
            a = torch.from_dlpack(x)
            y = a * 2
    except Exception as error:  # one row
        rows.add(f"torch, turn {turn + 1}", f"{type(error).__name__}: {error}", False)
        return
    del a, x
    gc.collect()

    def values():
        torch.cuda.synchronize()
        return y.min().item(), y.max().item()

    results = run.launched(on, g.replay, values)
    rows.add(f"torch, turn {turn + 1}, replayed 10 times (expected: 2.0, 2.0)", results, results == {(2.0, 2.0)})
    run.kept_for(rows)
    del g, y
    run.given_back(rows)


def parked():
    rows = run.Rows()
    gpu = run.gpu
    on, tensor = written()
    side, pool = gpu.Stream("nonblocking"), gpu.Stream("nonblocking")
    # More owners than core keeps without further calls if it knows of no capture.
    for stream, count in ((-1, 1), (side.raw, 1), (-1, 70)):
        for _ in range(count):
            _, other = written()
            run.exported(other, stream=stream)
            del other
        for mode in ("global", "relaxed"):
            pool.begin_capture(mode)
            try:
                # One export outside of the capture, and one inside.
                run.exported(tensor, stream=side.raw)
                reading = pool.read(run.exported(tensor, stream=pool.raw))
                graph = pool.end_capture()
                graph.launch()
                found = reading.values()
                # Its drop waits for its stream, which must not happen in a capture.
                del graph, reading
            except Exception as error:  # one row
                found = f"{type(error).__name__}: {error}"
            name = "-1" if stream == -1 else "a handle"
            expect(rows, f"{count} of a consumer on {name} wait, a {mode} capture", found, (1.0, 1.0))
    on.wait()
    side.wait()
    run.given_back(rows)
    return rows


def synchronized():
    rows = run.Rows()
    gpu = run.gpu
    cases = (
        ("device memory, to the host", gpu.Prod, {"dl_device": run.CPU}),
        ("pinned memory, None", gpu.Pinned, {"stream": None}),
        ("managed memory, None", gpu.Managed, {"stream": None}),
    )
    for name, cls, options in cases:
        for mode in MODES:
            stream = gpu.Stream("nonblocking")
            on, tensor = run.producer(cls=cls)
            _, captured = written()
            tensor.spin_write(run.SPIN, 1.0)
            stream.begin_capture(mode)
            try:
                capsule = run.exported(tensor, **options)
                idle = on.idle() if run.FAKE is None else True
                address, _ = run.seen(capsule)
                values = host_values(address)
                reading = stream.read(run.exported(captured, stream=stream.raw))
                graph = stream.end_capture()
                del reading, graph
                found = idle, values
            except Exception as error:  # one row
                found = f"{type(error).__name__}: {error}"
            right = not run.disturbed(found != (True, (1.0, 1.0)))
            rows.add(f"{name}, a {mode} capture (expected: the wait is over, 1.0, 1.0)", found, right)
            gpu.release_captured()
    return rows


def host_values(address):
    if run.FAKE:
        ctypes.CDLL(run.FAKE).sim_host(c_size_t(address), c_size_t(run.COUNT * 4), c_int(0))
    values = array("f", ctypes.string_at(address, run.COUNT * 4))
    return min(values), max(values)


# ---- green contexts ----


class Green:
    """A green context with some of the device's resources, and a stream of it."""

    def __init__(self, cuda):
        if not hasattr(cuda.library, "cuGreenCtxCreate"):
            raise RuntimeError("this driver has none")
        self.cuda = cuda
        device, resources, green = c_int(), c_void_p(), c_void_p()
        self.context, self.stream = c_void_p(), c_void_p()
        self.must("cuDeviceGet", byref(device), 0)
        if not run.FAKE:
            # Larger than the struct in any version.
            all_of_it, some = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(4096)
            count = c_uint(1)
            self.must("cuDeviceGetDevResource", device, all_of_it, c_int(1))
            self.must("cuDevSmResourceSplitByCount", some, byref(count), all_of_it, None, c_uint(0), c_uint(8))
            self.must("cuDevResourceGenerateDesc", byref(resources), some, c_uint(1))
        self.must("cuGreenCtxCreate", byref(green), resources, device, c_uint(1))
        self.must("cuCtxFromGreenCtx", byref(self.context), green)
        self.must("cuGreenCtxStreamCreate", byref(self.stream), green, c_uint(1), c_int(0))

    def must(self, name, *arguments):
        code = self.cuda(name, *arguments)
        if code:
            raise RuntimeError(f"{name} gives {code}")

    def enter(self):
        self.must("cuCtxSetCurrent", self.context)

    def values(self, address, stream):
        """The values in a copy that is made on a stream of the current context."""
        values = array("f", bytes(run.COUNT * 4))
        start, count = values.buffer_info()
        self.must("cuMemcpyDtoHAsync_v2", c_void_p(start), c_uint64(address), c_size_t(count * 4), stream)
        self.must("cuStreamSynchronize", stream)
        return min(values), max(values)


def green():
    rows = run.Rows()
    gpu, cuda = run.gpu, run.Libcuda()
    gpu.describe()
    try:
        green = Green(cuda)
    except (RuntimeError, AttributeError) as error:
        rows.add("a green context", f"not here: {error}")
        return rows
    default = c_void_p(1)
    for name, number, stream in (
        ("its stream's handle", green.stream.value, green.stream),
        ("1", 1, default),
        ("None", None, default),
        ("control: -1, on its default stream", -1, default),
    ):
        _, tensor = run.producer()
        tensor.spin_write(run.SPIN, 1.0)
        green.enter()
        capsule = run.exported(tensor, stream=number)
        address, _ = run.seen(capsule)
        found = green.values(address, stream)
        stays = cuda.current() == green.context.value
        wrong = run.disturbed(found != (1.0, 1.0))
        expected = "0.0 somewhere" if number == -1 else "1.0, 1.0"
        right = (wrong if number == -1 else not wrong) and stays
        text = f"{found}, it {'stays' if stays else 'DOES NOT STAY'} current"
        rows.add(f"current, stream={name} (expected: {expected}, stays)", text, right)
        del capsule, tensor
    # Released on a thread without a current context, while the data is being read.
    for kind in run.KINDS:
        on, tensor = run.producer(kind)
        tensor.spin_write(0, 1.0)
        on.wait()
        values = run.Own().read(tensor, gpu.Stream("borrowed", green.stream.value), late=run.SPIN)
        del tensor
        for _ in range(3):
            on.churn(run.COUNT, 0x7F)
        found = values()
        right = not run.disturbed(found != (1.0, 1.0))
        rows.add(f"let go while its stream reads, from a {kind} stream (expected: 1.0, 1.0)", found, right)
    return rows


# ---- what waits for what ----


def whole():
    rows = run.Rows()
    gpu, cuda = run.gpu, run.Libcuda()
    gpu.describe()
    if not hasattr(cuda.library, "cuCtxRecordEvent"):
        rows.add("cuCtxRecordEvent", "this driver has none: collect() makes the host wait for the device")
        return rows
    soon = run.SECONDS * 0.1
    for count in (1, 32, 1000):
        on, tensor = written()
        idle = gpu.Stream("nonblocking")
        idle.wait()
        context, event = cuda.current(), c_void_p()
        cuda("cuEventCreate", byref(event), c_uint(2))
        # A consumer with an unknown stream: the owner waits for the whole context.
        run.exported(tensor, stream=-1)
        del tensor
        streams = [gpu.Stream("nonblocking") for _ in range(count)]
        for stream in streams:
            stream.spin(run.SPIN)
        spent, code = run.elapsed(lambda: cuda("cuCtxRecordEvent", c_void_p(context), event))
        text = f"{spent * 1e6:.1f} us, code {code}"
        rows.add(f"{count} busy: the record (expected: 0, at once)", text, code == 0 and run.timed(spent < soon) is not False)
        code = cuda("cuEventQuery", event)
        rows.add(f"{count} busy: the event after it (expected: {NOT_READY})", code, run.timed(code == NOT_READY))
        spent, left = run.elapsed(gpu.collect)
        text = f"{left} left in {spent * 1e6:.1f} us"
        rows.add(f"{count} busy: collect() (expected: 1 left, at once)", text, run.timed(left == 1 and spent < soon))
        # The record must not delay an unrelated stream: its new work still runs at once.
        spent, _ = run.elapsed(lambda: (idle.churn(1, 0), idle.wait()))
        right = run.timed(spent < run.SECONDS * 0.5) if count < 100 else None
        rows.add(f"{count} busy: work on an idle stream (expected: at once)", f"{spent * 1e3:.2f} ms", right)
        for stream in streams:
            stream.wait()
        # The event may happen a moment after the last stream is done.
        cuda("cuEventSynchronize", event)
        expect(rows, f"{count} busy: the event when all is done", cuda("cuEventQuery", event), 0)
        gone = run.wait_until(lambda: gpu.collect() == 0)
        rows.add(f"{count} busy: collect() when all is done (expected: 0)", gpu.retained()[0], gone)
        cuda("cuEventDestroy_v2", event)
    return rows


def frees():
    """Core depends on none of these: work on memory that it frees itself is complete before. The fake driver assumes the first."""
    rows = run.Rows()
    gpu, cuda = run.gpu, run.Libcuda()
    gpu.describe()
    calls = {
        "cuMemFree": ("cuMemAlloc_v2", (), "cuMemFree_v2", (), "it waits; the manual says that it may"),
        "cuMemFreeHost": ("cuMemHostAlloc", (c_uint(0),), "cuMemFreeHost", (), "unknown"),
        "cuMemFree, managed": ("cuMemAllocManaged", (c_uint(1),), "cuMemFree_v2", (), "it waits; as above"),
        "cuMemFreeAsync": ("cuMemAllocAsync", (c_void_p(1),), "cuMemFreeAsync", (c_void_p(1),), "it does not wait"),
    }
    for kind in run.KINDS:
        for name, (allocate, more, free, on, expected) in calls.items():
            busy = gpu.Stream(kind)
            address = c_uint64()
            busy.wait()
            code = cuda(allocate, byref(address), c_size_t(1 << 20), *more)
            busy.spin(run.SPIN)
            spent, freed = run.elapsed(lambda: cuda(free, address, *on))
            busy.wait()
            waits = spent > run.SECONDS * 0.5
            text = f"codes {code} and {freed}, {'waits' if waits else 'does not wait'}: {spent * 1e3:.2f} ms"
            promised = run.timed(not waits) if name == "cuMemFreeAsync" else None
            right = promised if (code, freed) == (0, 0) else False
            rows.add(f"{name}, a {kind} stream at work (expected: {expected})", text, right)
    return rows
