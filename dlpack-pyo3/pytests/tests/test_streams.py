"""Memory of GPUs: which work is ordered before and after the reads of a tensor (STC, STR), on a driver that reports races."""

import ctypes as c
import gc
import os
import sys
import threading
import time

import capi
import dlpack_probe as p
import pytest

if not os.environ.get("DLPACK_SIMULATOR"):
    pytest.skip("cargo xtask pytest builds the driver that these tests need", allow_module_level=True)

import simulator as sim

NEW = {"max_version": (1, 3)}
VALUES = (1.0, 2.0, 3.0, 4.0)
BYTES = 16


@pytest.fixture(autouse=True)
def world():
    """A simulator with two devices. A fault fails the test, unless it reads it by `sim.faults()`."""
    p.collect_in_background(False)
    sim.reset(2)
    yield
    gc.collect()
    p.release_captured()
    found = sim.faults()
    events, allocations = sim.live(sim.EVENTS), sim.live(sim.ALLOCATIONS)
    sim.reset(8)
    sim.lib.cuCtxSetCurrent(None)
    assert found == []
    assert (events, allocations) == (0, 0)


@pytest.fixture(params=["cuda", "rocm"])
def gpu(request):
    return sim.Gpu(request.param)


@pytest.fixture
def cuda():
    return sim.Gpu("cuda")


def race(expected):
    """Asserts that exactly this fault occurred, and resets the simulator."""
    # Waiting owners belong to this world.
    p.collect()
    found = sim.faults()
    assert len(found) == 1 and expected in found[0], found
    sim.reset(2)


def consumers(gpu):
    """Every way to name a stream: the number, and the stream that it means."""
    own = gpu.stream()
    blocking = gpu.stream(sim.BLOCKING)
    named = [(None, 0), (own, own), (blocking, blocking)]
    return named + ([(1, 0), (2, 2)] if gpu.cuda else [(0, 0)])


HOST_READS = [("cuda", sim.CUDA_HOST), ("cuda", sim.CUDA_MANAGED), ("rocm", sim.ROCM_HOST)]
EVERYWHERE = [("cuda", sim.CUDA), ("rocm", sim.ROCM), *HOST_READS]


@pytest.fixture(params=EVERYWHERE, ids=str)
def place(request):
    """An API and one of its kinds of memory."""
    name, kind = request.param
    return sim.Gpu(name), kind


@pytest.fixture(params=HOST_READS, ids=str)
def readable(request):
    """An API and one of its kinds of memory that the CPU can read."""
    name, kind = request.param
    return sim.Gpu(name), kind


# -- the meaning of stream numbers --------------------------------------------------------------------


def test_refused_streams(place):
    """STC-06, STC-07, STC-16, STR-03, STR-06, ERR-04, ERR-11, fault 83: numbers that name no stream are refused without a driver call."""
    gpu, kind = place
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    held = capi.references(owner)
    sim.forget_calls()
    bad = [0, -2, -(2**63), -(2**200)] if gpu.cuda else [1, 2, -2, -(2**63), -(2**200)]
    for stream in [*bad, 2**63 - 1, 2**63, 2**64, 2**200]:
        for request in [{}, NEW, {"copy": True}]:
            with pytest.raises(ValueError, match="stream"):
                owner.__dlpack__(stream=stream, **request)
    assert sim.calls() == []
    assert capi.references(owner) == held
    gpu.synchronize()


def test_streams_of_a_wrong_type(place):
    """STC-13, ERR-03: a stream that is no integer, also a bool, is a TypeError without a driver call."""
    gpu, kind = place
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    sim.forget_calls()
    for stream in ["1", 1.0, True, False, object(), (1,), b"1"]:
        with pytest.raises(TypeError, match="stream"):
            owner.__dlpack__(stream=stream, **NEW)
    assert sim.calls() == []
    gpu.synchronize()


def test_streams_for_the_processor(place):
    """DEV-09, ERR-04: with dl_device=(1, 0) a stream is refused without a driver call."""
    gpu, kind = place
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    named = [-1, 0, 1, 2, gpu.stream()]
    sim.forget_calls()
    for stream in named:
        with pytest.raises(ValueError, match="stream"):
            owner.__dlpack__(stream=stream, dl_device=(1, 0), **NEW)
    assert sim.calls() == []
    gpu.synchronize()


def test_integers_of_other_types(gpu):
    """STC-04, STR-04: any object with `__index__` is accepted as a stream."""

    class Index:
        def __init__(self, number):
            self.number = number

        def __index__(self):
            return self.number

    stream = gpu.stream()
    owner = gpu.written(p.Queued, gpu.stream())
    seen = capi.export(owner, stream=Index(stream))
    gpu.kernel(stream, seen.data, BYTES)
    seen.release()


# -- before the consumer reads ----------------------------------------------------------------------


@pytest.mark.parametrize("cls", [p.Queued, p.Hasty, p.Handed, p.Wrapped, p.Unsaid], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("request_", [NEW, {}, {"copy": False, **NEW}], ids=["versioned", "legacy", "no copy"])
def test_the_consumer_reads_behind_the_producer(gpu, cls, request_):
    """STC-01, STC-02, STC-03, STC-04, STC-08, STR-01, STR-02, STR-04, STR-08, fault 84: the consumer's stream waits for the
    producer, whatever stream it names."""
    for number, stream in consumers(gpu):
        for producer in [gpu.stream(), gpu.stream(sim.BLOCKING), 0]:
            if cls is p.Unsaid:
                # The class names no stream, so it means the default stream.
                producer = 0
            owner = gpu.written(cls, producer)
            seen = capi.consume(owner.__dlpack__(stream=number, **request_))
            assert (seen.device, seen.shape) == (gpu.device, (4,))
            gpu.kernel(stream, seen.data, BYTES)
            assert sim.faults() == [], (number, producer)
            gpu.synchronize()
            del owner
            seen.release()


def test_a_consumer_that_names_no_order(gpu):
    """STC-05, STR-05: -1 makes no driver call; the test above would fail without the order that other numbers cause."""
    producer, consumer = gpu.stream(), gpu.stream()
    owner = gpu.written(p.Queued, producer)
    sim.forget_calls()
    seen = capi.export(owner, stream=-1)
    assert sim.calls() == []
    gpu.kernel(consumer, seen.data, BYTES)
    assert "race" in sim.faults()[0]
    gpu.synchronize()
    del owner
    seen.release()
    race("race")


def test_equal_streams(gpu):
    """STC-08, STR-08: the producer's own stream needs no order; core only queries whether it captures."""
    stream = gpu.stream()
    same = [(stream, stream), (0, None), (0, gpu.default)]
    if gpu.cuda:
        same += [(1, None), (1, 1), (2, 2)]
    for producer, consumer in same:
        owner = gpu.written(p.Queued, producer)
        sim.forget_calls()
        seen = capi.export(owner, stream=consumer)
        asked = [call for call in sim.calls() if not call.endswith(("IsCapturing", "CtxGetCurrent", "GetDevice", "GetId"))]
        assert asked == [], (producer, consumer)
        # CUDA's default stream is that of the current context.
        assert producer > 1 or sim.calls() == ["cuCtxGetCurrent"] * gpu.cuda
        gpu.kernel(producer, seen.data, BYTES)
        del owner
        seen.release()


def test_the_host_is_not_stopped(gpu):
    """STC-08: the consumer's stream waits on the device; the host waits only if it reads."""
    owner = gpu.written(p.Queued, gpu.stream())
    sim.forget_calls()
    seen = capi.export(owner, stream=gpu.stream())
    assert not [call for call in sim.calls() if "Synchronize" in call]
    assert any("StreamWaitEvent" in call for call in sim.calls())
    seen.release()


def test_host_readable_memory_is_complete(readable):
    """STC-15, STC-01: memory that the CPU can read is complete if the consumer names no stream."""
    gpu, kind = readable
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    seen = capi.export(owner)
    sim.host(seen.data, BYTES)
    assert seen.floats() == list(VALUES)
    assert sim.faults() == []
    seen.release()
    del owner
    # Without order.
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    seen = capi.export(owner, stream=-1)
    sim.host(seen.data, BYTES)
    assert "race" in sim.faults()[0]
    gpu.synchronize()
    del owner
    seen.release()
    race("race")


def test_numpy_reads_at_once(readable, numpy):
    """STC-15, DEV-15, DEV-10: NumPy imports host memory without a stream, and reads it at once."""
    gpu, kind = readable
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    array = numpy.from_dlpack(owner)
    sim.host(array.ctypes.data, BYTES)
    assert array.tolist() == list(VALUES)
    del owner, array
    assert sim.live(sim.ALLOCATIONS) == 0


def test_memory_of_the_host_on_a_stream(place):
    """STC-04, STC-15: pinned and managed memory is read on streams, too."""
    gpu, kind = place
    for number, stream in consumers(gpu):
        owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
        seen = capi.export(owner, stream=number)
        gpu.kernel(stream, seen.data, BYTES)
        assert sim.faults() == [], number
        gpu.synchronize()
        del owner
        seen.release()


def test_asking_for_the_device(place):
    """DEV-20: `__dlpack_device__` makes no driver call."""
    gpu, kind = place
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    sim.forget_calls()
    assert owner.__dlpack_device__() == (kind, 0)
    assert sim.calls() == []
    gpu.synchronize()


def test_an_empty_tensor(gpu):
    """LAY-05, STC-08: a tensor without elements needs no order."""
    sim.forget_calls()
    for stream in [None, gpu.default, -1]:
        seen = capi.export(p.Queued(0, 0, gpu.device, gpu.stream()), stream=stream)
        assert (seen.shape, seen.data) == ((0,), None)
        seen.release()
    assert not [call for call in sim.calls() if "Event" in call or "Synchronize" in call]


@pytest.mark.parametrize("entry", ["EventRecord", "StreamWaitEvent", "StreamIsCapturing"])
def test_a_driver_that_fails(gpu, entry):
    """ERR-01, ERR-11: a failed driver call is a BufferError that names it, and nothing leaks."""
    owner = gpu.written(p.Queued, gpu.stream())
    held = capi.references(owner)
    name = ("cu" if gpu.cuda else "hip") + entry
    sim.fail(name, 719)
    with pytest.raises(BufferError, match=rf"{name}.*719|719.*{name}"):
        owner.__dlpack__(stream=gpu.stream(), **NEW)
    assert capi.references(owner) == held
    seen = capi.export(owner, stream=gpu.stream())
    seen.release()


# -- after the consumer has read --------------------------------------------------------------------


@pytest.mark.parametrize("cls", [p.Queued, p.Handed, p.Wrapped, p.Unsaid], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("gil", [True, False])
def test_the_memory_is_freed_behind_the_consumer(gpu, cls, gil):
    """STC-09, CAP-13, fault 18: the deleter may be called while the consumer's kernels run; the free is ordered after them."""
    for number, stream in [*consumers(gpu), (-1, gpu.stream())]:
        producer = 0 if cls is p.Unsaid else gpu.stream()
        owner = gpu.written(cls, producer)
        if number == -1:
            # The class does not order the free, so the consumer must.
            gpu.synchronize()
        seen = capi.export(owner, stream=number)
        gpu.kernel(stream, seen.data, BYTES)
        del owner
        gc.collect()
        seen.release(gil=gil)
        assert sim.live(sim.ALLOCATIONS) == 0
        assert sim.faults() == [], number


def test_the_memory_of_the_host_is_freed_behind_the_consumer(place):
    """STC-09: memory that is not freed on a stream is freed after the host has waited for the consumer."""
    gpu, kind = place
    for number, stream in consumers(gpu):
        owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
        seen = capi.export(owner, stream=number)
        if number is not None:
            gpu.kernel(stream, seen.data, BYTES)
        del owner
        seen.release()
        assert sim.live(sim.ALLOCATIONS) == 0
        assert sim.faults() == [], number


def test_the_memory_is_freed_at_once(gpu):
    """STC-09: with `release = "immediate"` the consumer must order the free; with it, the tests above would fail."""
    owner = gpu.written(p.Hasty, gpu.stream())
    consumer = gpu.stream()
    seen = capi.export(owner, stream=consumer)
    gpu.kernel(consumer, seen.data, BYTES)
    sim.forget_calls()
    del owner
    seen.release()
    assert not [call for call in sim.calls() if "Event" in call or "Synchronize" in call]
    race("race")


def test_a_driver_without_events_for_everything(cuda):
    """STC-09: with an older driver `collect` waits on the host, unless the default stream waits for the consumer's."""
    sim.switch("no-ctx-record-event", True)
    sim.switch("no-stream-ids", True)
    for stream, waits in [(cuda.stream(), True), (cuda.stream(sim.BLOCKING), False)]:
        owner = cuda.written(p.Queued, cuda.stream())
        seen = capi.export(owner, stream=stream)
        cuda.kernel(stream, seen.data, BYTES)
        del owner
        sim.forget_calls()
        seen.release()
        assert not [call for call in sim.calls() if "Synchronize" in call]
        p.collect()
        assert ("cuCtxSynchronize" in sim.calls()) == waits
        assert sim.faults() == []


def test_the_consumers_stream_is_gone(gpu):
    """STC-09, STC-16: the consumer's stream handle is not kept, so the stream may be destroyed before the tensor is released."""
    owner = gpu.written(p.Queued, gpu.stream())
    consumer = gpu.stream()
    seen = capi.export(owner, stream=consumer)
    gpu.kernel(consumer, seen.data, BYTES)
    gpu.call("StreamDestroy_v2" if gpu.cuda else "StreamDestroy", consumer)
    del owner
    seen.release()
    assert sim.live(sim.ALLOCATIONS) == 0


def test_unconsumed_capsules_release_their_tensors(place):
    """CAP-04, CAP-05: unconsumed capsules release their tensors, in either struct."""
    gpu, kind = place
    for request in [{}, NEW]:
        owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
        capsule = owner.__dlpack__(stream=gpu.stream(), **request)
        del owner
        del capsule
        gc.collect()
        assert sim.live(sim.ALLOCATIONS) == 0


def test_the_current_context_is_restored(cuda):
    """STC-17, STR-08, fault 43: the work is done in the context of the device, and the thread's context is restored."""
    other = cuda.made("CtxCreate_v2", c.c_uint32(0), c.c_int32(1))
    for current in [0, other, cuda.context]:
        cuda.call("CtxSetCurrent", cuda.context)
        owner = cuda.written(p.Queued, cuda.stream())
        consumers_ = [1, 2, None, cuda.stream()]
        cuda.call("CtxSetCurrent", current)
        seen = [capi.export(owner, stream=stream) for stream in consumers_]
        assert sim.current_context() == current
        copies = [capi.export(owner, dl_device=(1, 0)), capi.export(owner, copy=True)]
        assert sim.current_context() == current
        del owner
        for tensor in seen + copies:
            tensor.release()
            assert sim.current_context() == current
        assert sim.live(sim.ALLOCATIONS) == 0


def test_the_current_device_of_hip():
    """STC-17, STR-08: HIP has a current device instead of a context."""
    gpu = sim.Gpu("rocm")
    owner = gpu.written(p.Queued, gpu.stream())
    gpu.call("SetDevice", 1)
    seen = capi.export(owner, stream=0)
    del owner
    seen.release()
    assert gpu.made("GetDevice") == 1
    assert sim.live(sim.ALLOCATIONS) == 0


@pytest.mark.parametrize("cls", [p.Queued, p.Unsaid, p.Handed], ids=lambda cls: cls.__name__)
def test_threads_without_a_context(gpu, cls):
    """CAP-13, STC-17, fault 43: a tensor may be released on a thread that has used neither Python nor the driver."""
    owner = gpu.written(cls, 0 if cls is p.Unsaid else gpu.stream())
    gpu.synchronize()
    seen = capi.export(owner, stream=gpu.stream())
    del owner
    gc.collect()
    sim.hand_over()
    seen.release_on_foreign_thread()
    assert sim.live(sim.ALLOCATIONS) == 0
    sim.hand_over()


def test_several_tensors_of_an_object(gpu):
    """STC-08, STC-09: the tensor of an attribute has its own stream, after which the consumer reads and the memory is freed."""
    for number, stream in consumers(gpu):
        owner = gpu.written(p.Pair, gpu.stream())
        sim.forget_calls()
        tensors = [owner.all, owner.half]
        assert sim.calls() == []
        assert [tensor.shape for tensor in tensors] == [(4,), (2,)]
        del owner
        for tensor in tensors:
            seen = capi.export(tensor, stream=number)
            gpu.kernel(stream, seen.data, 8)
            seen.release()
        del tensor
        tensors.clear()
        gc.collect()
        assert sim.live(sim.ALLOCATIONS) == 0
        assert sim.faults() == [], number


def test_many_threads(gpu):
    """CAP-13, STC-17, fault 33: exports and releases of one object on eight threads, each with its own streams."""
    # The lock of core's list synchronizes the threads, which the simulator cannot know.
    sim.switch("hand-over", True)
    owner = gpu.written(p.Queued, gpu.stream())
    held = capi.references(owner)
    failed, barrier = [], threading.Barrier(8)

    def work():
        try:
            mine = sim.Gpu(gpu.name)
            streams = consumers(mine)
            barrier.wait()
            for turn in range(40):
                number, stream = streams[turn % len(streams)]
                seen = capi.export(owner, stream=number)
                mine.kernel(stream, seen.data, BYTES)
                seen.release(gil=turn % 2 == 0)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    p.collect()
    assert capi.references(owner) == held
    del owner
    assert sim.faults() == []


def test_memory_that_cannot_be_freed_is_freed_later(gpu):
    """ERR-11, CAP-13: if the driver fails the memory is kept, and the free is retried by the next operation."""
    owner = gpu.written(p.Queued, gpu.stream())
    seen = capi.export(owner, stream=gpu.stream())
    del owner
    for nth in [1, 2]:
        sim.fail("cuCtxRecordEvent" if gpu.cuda else "hipDeviceSynchronize", 719, nth)
    seen.release()
    assert sim.live(sim.ALLOCATIONS) == 1
    capi.export(gpu.written(p.Queued, gpu.stream()), stream=gpu.stream()).release()
    assert sim.live(sim.ALLOCATIONS) == 0


# -- captures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [sim.GLOBAL, sim.THREAD_LOCAL, sim.RELAXED])
def test_a_consumer_that_captures(gpu, mode):
    """STC-08, fault 85: outside work does not enter a graph; the memory is kept as long as the graph can be launched."""
    owner = gpu.written(p.Queued, gpu.stream())
    consumer = gpu.stream()
    gpu.begin_capture(consumer, mode)
    seen = capi.export(owner, stream=consumer)
    gpu.kernel(consumer, seen.data, BYTES)
    graph = gpu.end_capture(consumer)
    del owner
    before = p.captured()
    seen.release()
    assert p.captured() == before + 1
    for _ in range(3):
        gpu.launch(graph, consumer)
    assert sim.live(sim.ALLOCATIONS) == 1
    gpu.call("GraphExecDestroy", graph)
    assert p.captured() == before
    assert sim.live(sim.ALLOCATIONS) == 0


def test_a_graph_without_user_objects(gpu):
    """CAP-13: the memory is kept until `release_captured` is called."""
    owner, consumer = gpu.written(p.Queued, gpu.stream()), gpu.stream()
    gpu.begin_capture(consumer)
    sim.switch("no-user-objects", True)
    capi.export(owner, stream=consumer).release()
    del owner
    gpu.call("GraphExecDestroy", gpu.end_capture(consumer))
    assert (p.captured(), sim.live(sim.ALLOCATIONS)) == (1, 1)
    p.release_captured()
    assert (p.captured(), sim.live(sim.ALLOCATIONS)) == (0, 0)


def test_collecting(cuda):
    """Waiting memory is freed on request; if the host must wait, other threads run."""
    for old in [False, True]:
        for switch in ["no-ctx-record-event", "no-stream-ids"]:
            sim.switch(switch, old)
        owner = cuda.written(p.Queued, cuda.stream())
        capi.export(owner, stream=cuda.stream()).release()
        del owner
        assert sim.lib.sim_live(sim.ALLOCATIONS) == 1
        with sim.Held() as held:
            assert p.collect() == 0
        assert held.went_on == old
        assert sim.lib.sim_live(sim.ALLOCATIONS) == 0


def test_the_collector_frees_memory(cuda):
    """No thread exports or collects any more: memory that waits for an event is freed by the collector."""
    sim.switch("hand-over", True)
    stream = cuda.stream()
    for _ in range(2):
        # The second export records the stream for which the first memory waits.
        capi.export(cuda.written(p.Queued, cuda.stream()), stream=stream).release()
    assert sim.lib.sim_live(sim.ALLOCATIONS) == 2
    p.collect_in_background(True)
    end = time.monotonic() + 60
    while sim.lib.sim_live(sim.ALLOCATIONS) > 1 and time.monotonic() < end:
        time.sleep(0.01)
    p.collect_in_background(False)
    assert sim.lib.sim_live(sim.ALLOCATIONS) == 1
    assert p.collect() == 0


def test_collecting_while_it_is_in_use(cuda):
    """`collect` does not wait: it returns how many owners are left."""
    sim.switch("slow", True)
    stream = cuda.stream()
    for _ in range(3):
        capi.export(cuda.written(p.Queued, cuda.stream()), stream=stream).release()
    assert p.collect() == 3
    cuda.synchronize()
    assert p.collect() == 0


def test_a_producer_that_captures(gpu):
    """STC-08, DEV-09, ERR-11, fault 85: captured work is done only when the graph is launched, so an export is refused; the capture
    continues."""
    producer = gpu.stream()
    owner = gpu.written(p.Queued, producer)
    gpu.begin_capture(producer)
    gpu.kernel(producer, gpu_address(owner), BYTES, write=True)
    for request in [{"stream": gpu.stream()}, {"dl_device": (1, 0)}, {"copy": True}]:
        with pytest.raises(BufferError, match="captur"):
            owner.__dlpack__(**request, **NEW)
    graph = gpu.end_capture(producer)
    gpu.launch(graph, producer)


def gpu_address(owner):
    """The address of the object's memory."""
    seen = capi.Exchange(type(owner)).from_object(owner)
    address = seen.data
    seen.release()
    return address


def test_two_captures(gpu):
    """STC-08, ERR-11: neither capture may wait for the other, and both continue."""
    producer, consumer = gpu.stream(), gpu.stream()
    owner = gpu.written(p.Queued, producer)
    gpu.begin_capture(producer)
    gpu.begin_capture(consumer)
    with pytest.raises(BufferError, match="capture"):
        owner.__dlpack__(stream=consumer, **NEW)
    gpu.end_capture(producer)
    gpu.end_capture(consumer)


# -- while the host waits ---------------------------------------------------------------------------


WAITS = {
    "order": lambda owner: owner.__dlpack__(**NEW),
    "order, legacy": lambda owner: owner.__dlpack__(),
    "for the processor": lambda owner: owner.__dlpack__(dl_device=(1, 0), **NEW),
    "copy": lambda owner: owner.__dlpack__(copy=True, **NEW),
    "import": p.take,
    "a copy of an import": lambda owner: p.Tensor.from_dlpack(owner, copy=True),
}


def other_threads_work():
    """Code that needs the interpreter, and that without a GIL stops every other thread for a moment."""
    gc.collect()
    assert sum(range(1000)) == 499500


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("cls", [p.Queued, p.Handed, p.Wrapped], ids=lambda cls: cls.__name__)
def test_other_threads_go_on_while_a_consumer_is_served(cuda, wait, cls):
    """DEV-09, STC-08: a thread that waits for the device has released the GIL."""
    owner = cuda.written(cls, cuda.stream(), kind=sim.CUDA_MANAGED)
    with sim.Held(other_threads_work) as held:
        got = WAITS[wait](owner)
    assert held.went_on
    del owner
    del got


@pytest.mark.parametrize("request_", [{"dl_device": (1, 0)}, {"dl_device": (1, 0), "copy": True}], ids=["moved", "copied"])
def test_other_threads_go_on_while_data_comes_to_the_processor(gpu, request_):
    """DEV-09: a thread that waits for a copy has released the GIL."""
    owner = gpu.written(p.Queued, gpu.stream())
    with sim.Held(other_threads_work) as held:
        seen = capi.export(owner, **request_)
    assert held.went_on
    assert seen.floats() == list(VALUES)
    seen.release()


def release_from(way, owner):
    """A function that releases device memory in one of several ways."""
    if way == "capsule":
        box = [owner.__dlpack__(stream=-1, **NEW)]
        return box.clear
    if way == "legacy capsule":
        box = [owner.__dlpack__(stream=-1)]
        return box.clear
    seen = capi.export(owner, stream=-1)
    if way == "deleter":
        return seen.release
    if way == "deleter, not attached":
        return lambda: seen.release(gil=False)
    return seen.release_on_foreign_thread


@pytest.mark.parametrize("way", ["capsule", "legacy capsule", "deleter", "deleter, not attached", "foreign thread"])
@pytest.mark.parametrize("cls", [p.Queued, p.Handed], ids=lambda cls: cls.__name__)
def test_no_thread_waits_while_memory_is_released(cuda, way, cls):
    """CAP-13: the deleter neither waits nor calls the driver."""
    owner = cuda.written(cls, cuda.stream(), kind=sim.CUDA_MANAGED)
    release = release_from(way, owner)
    del owner
    sim.forget_calls()
    release()
    # The first release in a process initialises the driver.
    assert [call for call in sim.calls() if call != "cuInit"] == []
    assert sim.live(sim.ALLOCATIONS) == 0


@pytest.mark.parametrize("way", ["capsule", "legacy capsule", "deleter", "deleter, not attached", "foreign thread"])
def test_waits_of_user_code_that_released_the_gil(cuda, way):
    """CAP-13, own faults 8: user code that we call releases the GIL, and then waits."""
    owner = cuda.written(p.Patient, cuda.stream(), kind=sim.CUDA_MANAGED)
    with sim.Held(other_threads_work) as held:
        release = release_from(way, owner)
    assert held.went_on
    del owner
    release()
    gc.collect()
    assert sim.live(sim.ALLOCATIONS) == 0


@pytest.mark.parametrize("version", [{}, NEW], ids=["legacy", "versioned"])
def test_a_wait_while_an_exception_is_pending(cuda, version):
    """CAP-16: the exception that was pending is raised, and no other."""
    owner = cuda.written(p.Queued, cuda.stream(), kind=sim.CUDA_MANAGED)
    with pytest.raises(ZeroDivisionError):
        # The tuple is never made, and its finished items are dropped.
        _ = (owner.__dlpack__(stream=-1, **version), 1 // 0)


def test_the_object_stays_borrowed_while_the_host_waits(cuda):
    """CAP-18, STC-08: the memory is not freed during a wait, although every other reference is dropped."""
    owners = [cuda.written(p.Queued, cuda.stream(), kind=sim.CUDA_MANAGED)]
    with sim.Held(owners.clear) as held:
        capsule = owners[0].__dlpack__(**NEW)
    assert held.went_on
    assert sim.live(sim.ALLOCATIONS) == 1
    del capsule
    assert sim.live(sim.ALLOCATIONS) == 0


@pytest.mark.skipif(not capi.CALLS_AT_EXIT, reason="the C library calls nothing with an argument")
def test_after_the_interpreter(script):
    """CAP-14: after Python is gone, the deleter asks the driver, but calls no Python function; the object leaks."""
    ended = script(
        """
import ctypes, dlpack_probe as p, capi, simulator as sim
gpu = sim.Gpu("cuda")
# The C library calls what was registered last first.
capi.at_exit(ctypes.cast(sim.lib.sim_print_calls, ctypes.c_void_p), None)
for cls in [p.Queued, p.Handed, p.Hasty]:
    for kind in [sim.CUDA, sim.CUDA_MANAGED]:
        owner = gpu.written(cls, gpu.stream(), kind=kind)
        seen = capi.export(owner, stream=gpu.stream())
        capi.at_exit(seen.struct.deleter, seen.address)
        kept = [owner.__dlpack__(max_version=(1, 0), stream=-1), gpu.written(cls, gpu.stream(), kind=kind)]
        sim.kept = getattr(sim, "kept", []) + kept
capi.at_exit(ctypes.cast(sim.lib.sim_forget_calls, ctypes.c_void_p), None)
"""
    )
    assert ended.out.count("cuStreamIsCapturing") == 2, ended


def test_a_thread_that_waits_when_the_interpreter_ends(script):
    """CAP-14: the waiting thread is halted when it returns, and the process exits."""
    script(
        """
import threading, time
import dlpack_probe as p, capi, simulator as sim
gpu = sim.Gpu("cuda")
owner = gpu.written(p.Queued, gpu.stream(), kind=sim.CUDA_MANAGED)
sim.lib.sim_hold()
threading.Thread(target=lambda: owner.__dlpack__(max_version=(1, 0)), daemon=True).start()
while not sim.lib.sim_holding():
    pass

class Late:
    def __del__(self, release=sim.lib.sim_release, sleep=time.sleep):
        release()
        # Lets the thread continue first.
        sleep(0.1)

import sys
sys.late = Late()
"""
    )


@pytest.mark.skipif(not capi.CALLS_AT_EXIT, reason="the C library calls nothing with an argument")
def test_memory_that_waits_when_the_interpreter_exits(script):
    """CAP-14: waiting objects are not collected at exit. A call of the collector after Python is gone drops no Python object."""
    script(
        """
import dlpack_probe as p, capi, simulator as sim
gpu = sim.Gpu("cuda")
for cls in [p.Queued, p.Handed]:
    capi.export(gpu.written(cls, gpu.stream()), stream=gpu.stream()).release()
assert sim.lib.sim_live(sim.ALLOCATIONS) == 2
capi.at_exit(p.collector(), 0)
"""
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_memory_that_waits_in_a_forked_child(script):
    """A child cannot use the driver: it frees nothing, and exits normally."""
    script(
        """
import os
import dlpack_probe as p, capi, simulator as sim
gpu = sim.Gpu("cuda")
stream = gpu.stream()
capi.export(gpu.written(p.Queued, gpu.stream()), stream=stream).release()
later = capi.export(gpu.written(p.Queued, gpu.stream()), stream=gpu.stream())
sim.forget_calls()
child = os.fork()
if child == 0:
    later.release()
    assert (p.collect(), p.captured(), sim.calls()) == (0, 0, [])
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
later.release()
assert p.collect() == 0 and sim.live(sim.ALLOCATIONS) == 0
""",
        # The collector is a second thread, about which CPython warns from 3.12 on.
        PYTHONWARNINGS="ignore::DeprecationWarning",
    )


@pytest.mark.parametrize("name", ["cuda", "rocm"])
def test_other_threads_go_on_while_the_driver_is_first_used(script, name):
    """STC-08: the first use of the driver takes long, because it may make a context; other threads run."""
    script(
        f"""
import dlpack_probe as p, capi, simulator as sim
gpu = sim.Gpu("{name}")
owner = gpu.written(p.Queued, gpu.stream())
with sim.Held() as held:
    capi.export(owner, stream=gpu.stream()).release()
assert held.went_on
"""
    )


# -- copies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [{}, {"copy": True}, {"copy": None}])
@pytest.mark.parametrize("version", [{}, NEW], ids=["legacy", "versioned"])
def test_copies_to_the_processor(gpu, request_, version):
    """DEV-07, DEV-09, CPY-08: the values are complete when the call returns, in host memory."""
    owner = gpu.written(p.Queued, gpu.stream())
    sim.forget_calls()
    seen = capi.consume(owner.__dlpack__(dl_device=(1, 0), **request_, **version))
    assert any("StreamSynchronize" in call for call in sim.calls())
    assert seen.device == (1, 0)
    assert seen.floats() == list(VALUES)
    assert seen.data % 256 == 0
    if version:
        assert seen.flags == capi.IS_COPIED
    # Nothing on the device is kept.
    del owner
    assert sim.live(sim.ALLOCATIONS) == 0
    seen.release()


LAYOUTS = [
    (dict(shape=[2, 2]), [1, 2, 3, 4]),
    (dict(shape=[2, 2], strides=[1, 2]), [1, 3, 2, 4]),
    (dict(shape=[2], strides=[2], offset=1), [2, 4]),
    (dict(shape=[4], strides=[-1], offset=3), [4, 3, 2, 1]),
    (dict(shape=[3], strides=[0], offset=2), [3, 3, 3]),
    (dict(shape=[], strides=[], offset=3), [4]),
    (dict(shape=[2, 0]), []),
]


@pytest.mark.parametrize("layout, values", LAYOUTS)
def test_copies_of_any_layout(gpu, layout, values):
    """CPY-14, DEV-09, LAY-16: row-major on the CPU; on the device with the same strides, and read-only if these repeat items."""
    owner = gpu.written(p.Queued, gpu.stream(), **layout)
    seen = capi.export(owner, dl_device=(1, 0))
    assert seen.floats() == values
    packed = [1] * len(seen.shape)
    for axis in range(len(packed) - 1, 0, -1):
        packed[axis - 1] = packed[axis] * max(1, seen.shape[axis])
    assert list(seen.strides) == packed
    seen.release()
    seen = capi.export(owner, copy=True, stream=gpu.default)
    gpu.synchronize()
    read_only = capi.READ_ONLY if 0 in seen.strides else 0
    assert (seen.device, seen.flags) == (gpu.device, capi.IS_COPIED | read_only)
    assert seen.floats() == values
    seen.release()


def test_copies_on_the_device(gpu):
    """CPY-08, CPY-06, DEV-04: copied on the consumer's stream, after the producer's work."""
    for number, stream in consumers(gpu):
        owner = gpu.written(p.Queued, gpu.stream())
        address = gpu_address(owner)
        seen = capi.export(owner, copy=True, stream=number)
        assert (seen.device, seen.flags) == (gpu.device, capi.IS_COPIED)
        assert seen.data != address and seen.data % 256 == 0
        gpu.kernel(stream, seen.data, BYTES, write=True)
        assert seen.floats() == list(VALUES)
        gpu.synchronize()
        seen.release()
        del owner
        assert sim.live(sim.ALLOCATIONS) == 0, number


def test_read_only_memory_of_a_device_for_old_consumers(gpu):
    """NEG-03, CPY-09, CPY-08: the legacy struct has no read-only flag, so its consumers get a copy on the device, on their stream."""
    for number, stream in consumers(gpu):
        owner = gpu.written(p.Sealed, gpu.stream())
        seen = capi.consume(owner.__dlpack__(stream=number))
        assert seen.device == gpu.device and seen.data != gpu_address(owner)
        gpu.kernel(stream, seen.data, BYTES, write=True)
        assert seen.floats() == list(VALUES)
        gpu.synchronize()
        seen.release()
        seen = capi.export(owner, stream=number)
        assert seen.flags == capi.READ_ONLY and seen.data == gpu_address(owner)
        seen.release()
        with pytest.raises(BufferError):
            owner.__dlpack__(stream=number, copy=False)


def test_forbidden_copies(gpu):
    """DEV-08, CPY-02: copy=False is refused if a copy is needed, without a driver call."""
    owner = gpu.written(p.Queued, gpu.stream())
    sim.forget_calls()
    for device in [(1, 0), (gpu.device[0], 1)]:
        with pytest.raises(BufferError):
            owner.__dlpack__(dl_device=device, copy=False, **NEW)
    assert sim.calls() == []


def test_memory_does_not_change_its_device(gpu):
    """DEV-06: memory is not moved from one device to another."""
    owner = gpu.written(p.Queued, gpu.stream())
    for device in [(gpu.device[0], 1), (7, 0), gpu.pinned]:
        with pytest.raises(BufferError):
            owner.__dlpack__(dl_device=device, **NEW)
    seen = capi.export(owner, dl_device=gpu.device, stream=gpu.default)
    seen.release()


def test_memory_of_the_host_for_the_processor(readable):
    """DEV-10, DEV-09: pinned memory is readable by the CPU and not copied; the host waits for the producer."""
    gpu, kind = readable
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    seen = capi.export(owner, dl_device=(1, 0))
    pinned = kind == gpu.pinned[0]
    assert (seen.device, seen.flags) == ((1, 0), 0 if pinned else capi.IS_COPIED)
    assert (seen.data == gpu_address(owner)) == pinned
    assert seen.floats() == list(VALUES)
    if pinned:
        sim.host(seen.data, BYTES)
    seen.release()
    copied = capi.export(owner, dl_device=(1, 0), copy=True)
    assert copied.flags == capi.IS_COPIED and copied.floats() == list(VALUES)
    copied.release()


@pytest.mark.parametrize("pools", [True, False])
def test_a_copy_that_cannot_be_allocated(gpu, pools):
    """ERR-05, ERR-01: a copy that cannot be allocated on the device is a BufferError or MemoryError, and nothing is kept."""
    owner = gpu.written(p.Queued, gpu.stream())
    held = capi.references(owner)
    sim.switch("no-memory-pools", not pools)
    names = {True: ("cuMemAllocAsync", "hipMallocAsync"), False: ("cuMemAlloc_v2", "hipMalloc")}
    sim.fail(names[pools][not gpu.cuda], 2)
    with pytest.raises((BufferError, MemoryError)):
        owner.__dlpack__(copy=True, stream=gpu.default, **NEW)
    assert capi.references(owner) == held


# -- the exchange table -----------------------------------------------------------------------------


def work_stream(device):
    out = c.c_void_p(0x5EED)
    assert capi.Exchange(p.Probe).work_stream(*device, out) == 0
    return out.value


def test_the_table_orders_nothing(place):
    """XAP-10: no function of the table calls the driver."""
    gpu, kind = place
    table = capi.Exchange(p.Queued)
    for cls in [p.Queued, p.Unsaid, p.Hasty, p.Handed, p.Wrapped]:
        owner = gpu.written(cls, gpu.stream(), kind=kind)
        gpu.synchronize()
        sim.forget_calls()
        seen = capi.Exchange(cls).from_object(owner)
        assert seen.device == (kind, 0)
        made = table.to_object(seen)
        work_stream((kind, 0))
        assert sim.calls() == []
        del made


def test_the_stream_of_the_last_export(gpu):
    """XAP-25, XAP-10, XAP-26: the current stream is that of the last tensor which the table exported on this thread, while that
    tensor lives."""
    table = capi.Exchange(p.Queued)
    assert work_stream(gpu.device) is None
    streams = [gpu.stream(), gpu.stream()]
    seen = []
    for stream in streams:
        owner = gpu.written(p.Queued, stream)
        gpu.synchronize()
        seen.append(table.from_object(owner))
        assert work_stream(gpu.device) == stream
    assert work_stream((gpu.device[0], 1)) is None
    found = []
    thread = threading.Thread(target=lambda: found.append(work_stream(gpu.device)))
    thread.start()
    thread.join()
    assert found == [None]
    seen[1].release()
    assert work_stream(gpu.device) is None
    seen[0].release()


def test_the_current_stream_of_anything_else(gpu):
    """XAP-24, XAP-26: NULL and success for any other device, also without an output pointer."""
    table = capi.Exchange(p.Queued)
    owner = gpu.written(p.Queued, gpu.stream())
    gpu.synchronize()
    seen = table.from_object(owner)
    for device in [(1, 0), (gpu.device[0], 7), (gpu.device[0], -1), (99, 0), (-1, -1), (2**31 - 1, -(2**31)), (7, 0)]:
        assert work_stream(device) is None
    function = c.PYFUNCTYPE(c.c_int, c.c_int32, c.c_int32, c.c_void_p)(table.table.current_work_stream)
    assert function(*gpu.device, None) == 0
    seen.release()


def test_work_on_the_current_stream(gpu):
    """XAP-29, XAP-25: work that a consumer queues there is ordered after the producer's work."""
    owner = gpu.written(p.Queued, gpu.stream())
    seen = capi.Exchange(p.Queued).from_object(owner)
    gpu.kernel(work_stream(gpu.device) or 0, seen.data, BYTES)
    del owner
    seen.release()


def test_the_allocator(gpu):
    """XAP-21: the memory is on the CPU; a device is refused."""
    prototype = capi.DLTensor(device=capi.DLDevice(*gpu.device), dtype=capi.DLDataType(2, 32, 1))
    status, said = capi.Exchange(p.Queued).allocate(prototype, c.c_void_p(), True)
    assert status == -1 and said


# -- the importer -----------------------------------------------------------------------------------


class Recorder(capi.Foreign):
    """A producer that supports only some keywords."""

    def __init__(self, device, knows=("stream", "max_version", "dl_device", "copy"), **more):
        super().__init__(device=device, **more)
        self.knows = knows

    def __dlpack__(self, **request):
        self.asked.append(request)
        if set(request) - set(self.knows):
            raise TypeError("an unexpected keyword")
        return self.capsule()


@pytest.mark.parametrize(
    "device, stream",
    [((2, 0), 1), ((2, 1), 1), ((10, 0), 0), ((1, 0), None), ((3, 0), None), ((11, 0), None), ((13, 0), None), ((8, 0), None)],
)
def test_the_importer_names_the_default_stream(device, stream):
    """STC-10, STC-11, STC-12, STC-15, STR-07: 1 on CUDA, 0 on ROCm, and no stream for devices without streams or if the host reads."""
    named = {} if stream is None else {"stream": stream}
    producer = Recorder(device)
    tensor = p.take(producer)
    assert tensor.device == device
    assert producer.asked == [{"max_version": (1, 3), **named}]
    producer = Recorder(device)
    p.Tensor.from_dlpack(producer, copy=False)
    assert producer.asked == [{"max_version": (1, 3), "copy": False, **named}]
    producer = Recorder(device)
    p.Tensor.from_dlpack(producer, device=device)
    if device != (1, 0):
        assert producer.asked == [{"max_version": (1, 3), "dl_device": device, **named}]


@pytest.mark.parametrize("device, stream", [((2, 0), 1), ((10, 0), 0)])
def test_the_importer_asks_for_less(device, stream):
    """NEG-14, STC-10, STC-11: the stream is the last keyword to be omitted, because it is the oldest."""
    new, named = {"max_version": (1, 3)}, {"stream": stream}
    old = Recorder(device, ["stream"], legacy=True)
    p.take(old)
    assert old.asked == [new | named, named]
    older = Recorder(device, [], legacy=True)
    p.take(older)
    assert older.asked == [new | named, named, {}]
    middle = Recorder(device, ["stream", "max_version"])
    p.Tensor.from_dlpack(middle, copy=False)
    assert middle.asked == [new | named | {"copy": False}, new | named]


@pytest.mark.parametrize("device", [(2, 0), (10, 0)])
def test_no_stream_where_the_data_goes_to_the_processor(device):
    """DEV-09, STC-10: with dl_device=(1, 0) no stream is passed, and the producer's device is not queried."""

    class Silent(Recorder):
        def __dlpack_device__(self):
            raise AssertionError("the device is not queried")

    producer = Silent((1, 0))
    p.Tensor.from_dlpack(producer, device=(1, 0))
    assert producer.asked == [{"max_version": (1, 3), "dl_device": (1, 0)}]


def test_a_producer_without_a_device():
    """DEV-11, ERR-07: after a BufferError the other method decides; any other exception is passed on."""

    class Strange(Recorder):
        def __dlpack_device__(self):
            if isinstance(self.said_device, Exception):
                raise self.said_device
            return self.said_device

    for said in [BufferError("sharded"), None, "cuda", (2,), ("cuda", 0), [2, 0]]:
        producer = Strange((1, 0), said_device=said)
        p.take(producer)
        assert producer.asked == [{"max_version": (1, 3)}]
    for said in [ValueError("broken"), TypeError("broken")]:
        with pytest.raises(type(said), match="broken"):
            p.take(Strange((1, 0), said_device=said))


@pytest.mark.parametrize("cls", [p.Queued, p.Handed, p.Wrapped, p.Unsaid], ids=lambda cls: cls.__name__)
def test_an_import_is_on_the_default_stream(gpu, cls):
    """STC-10, STC-08, XAP-32: work on the default stream is ordered after the producer's, and so is a re-export."""
    producer = 0 if cls is p.Unsaid else gpu.stream()
    owner = gpu.written(cls, producer)
    tensor = p.take(owner)
    gpu.kernel(0, tensor.data_ptr, BYTES)
    consumer = gpu.stream()
    seen = capi.export(tensor, stream=consumer)
    gpu.kernel(consumer, seen.data, BYTES)
    del owner, tensor
    seen.release()
    gc.collect()
    assert sim.faults() == []
    assert sim.live(sim.ALLOCATIONS) == 0


@pytest.mark.parametrize("cls", [p.Queued, p.Handed, p.Wrapped, p.Unsaid], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("rounds", [1, 3])
def test_parts_of_an_import_are_in_order(gpu, cls, rounds):
    """STC-08, STC-09: reads of a slice are ordered after the producer, and the memory is freed after all reads, in whatever order
    they finish."""
    producer = 0 if cls is p.Unsaid else gpu.stream()
    owner = gpu.written(cls, producer)
    tensors, seen = [p.take(owner)], []
    del owner
    for _ in range(rounds):
        tensors.append(p.take(tensors[-1])[1:])
        gpu.kernel(0, tensors[-1].data_ptr, 4)
        consumer = gpu.stream()
        seen.append(capi.export(tensors[-1][::-1][:1], stream=consumer))
        gpu.kernel(consumer, seen[-1].data, 4)
    del tensors
    gc.collect()
    for export in seen[::-1]:
        assert sim.live(sim.ALLOCATIONS) == 1
        export.release()
    assert sim.faults() == []
    assert sim.live(sim.ALLOCATIONS) == 0


def test_an_import_leaves_nothing_behind(gpu):
    """STC-08, XAP-32: the table is not called when the method must order the work, because its tensor would have to be returned."""
    owner = gpu.written(p.Queued, 0)
    sim.forget_calls()
    tensor = p.take(owner)
    assert sim.calls() == ["cuCtxGetCurrent"] * gpu.cuda
    del owner, tensor


def test_an_import_that_the_processor_reads(cuda):
    """STC-10, STC-15: the host waits for managed memory that was written on the default stream."""
    foreign = capi.Foreign(device=(sim.CUDA_MANAGED, 0))
    address = cuda.allocate(24, 0, sim.CUDA_MANAGED)
    c.memmove(address, c.addressof(foreign.memory), 24)
    foreign.managed.dl_tensor.data = address
    for take in [lambda: p.look(foreign), lambda: p.look(foreign.capsule())]:
        # CuPy, for one, treats no stream as the default one, and does not wait.
        cuda.kernel(0, address, 24, write=True)
        assert take()["floats"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        sim.host(address, 24)
        assert sim.faults() == []
    sim.fail("cuStreamSynchronize", 719)
    with pytest.raises(BufferError, match="719"):
        p.take(foreign)
    assert foreign.deleted == 3
    cuda.call("MemFree_v2", address)


def test_reading_an_import(place):
    """ERR-09, STC-10: our own tensors are imported with their values, if the CPU can read them."""
    gpu, kind = place
    owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
    seen = p.look(owner)
    expected = None if kind == gpu.device[0] else list(VALUES)
    assert seen["floats"] == expected
    del owner
    if expected:
        owner = gpu.written(p.Queued, gpu.stream(), kind=kind)
        tensor = p.take(owner)
        sim.host(tensor.data_ptr, BYTES)
        assert sim.faults() == []
        del owner, tensor
    gpu.synchronize()


def test_copying_an_import_to_the_cpu(gpu):
    """DEV-07, DEV-09, CPY-08: `Tensor.from_dlpack(.., device=(1, 0))`, and copies by the importer if the producer cannot copy."""
    owner = gpu.written(p.Queued, gpu.stream())
    tensor = p.Tensor.from_dlpack(owner, device=(1, 0))
    assert p.look(tensor)["floats"] == list(VALUES)
    copied = p.Tensor.from_dlpack(owner, copy=True)
    assert copied.device == gpu.device and copied.data_ptr != gpu_address(owner)
    old = Recorder(gpu.device, ["stream"], legacy=True)
    with pytest.raises(BufferError):
        p.Tensor.from_dlpack(old, device=(1, 0))


def test_inspecting_a_device(gpu):
    """ERR-07: `inspect` describes the export."""
    text = p.inspect(gpu.written(p.Queued, gpu.stream()))
    assert ("cuda:0" if gpu.cuda else "rocm:0") in text and "raises" not in text


# -- missing drivers ----------------------------------------------------------------------------------


WITHOUT = """
import dlpack_probe as p, capi
device, name = {device}, {name!r}
owner = p.Unsaid(0x1000, 4, device)
queued = p.Queued(0x1000, 4, device, 0x5000)
for make in [
    lambda: queued.__dlpack__(stream={default}, max_version=(1, 0)),
    lambda: owner.__dlpack__(stream=0x7000, max_version=(1, 0)),
    lambda: owner.__dlpack__(dl_device=(1, 0), max_version=(1, 0)),
    lambda: owner.__dlpack__(copy=True, stream={default}, max_version=(1, 0)),
] * 2:
    try:
        make()
    except BufferError as error:
        assert type(error) is BufferError and {said!r} in str(error), error
        assert {path!r} in str(error), error
    else:
        raise AssertionError("a driver was not needed")
# No order is needed, so the driver is not looked up.
capi.export(queued, stream=-1).release()
capi.export(queued, stream=0x5000).release()
capi.export(owner, stream=None).release()
assert owner.__dlpack_device__() == device
# Host memory needs no driver.
assert capi.export(p.Probe([3])).floats() == [0.0, 1.0, 2.0]
assert p.take(p.WProbe([3])).shape == (3,)
assert capi.Exchange(p.Queued).from_object(queued).device == device
"""


@pytest.mark.parametrize("name, device, default", [("libcuda", (2, 0), 1), ("libamdhip64", (10, 0), 0)])
def test_no_driver(script, name, device, default):
    """ERR-01, STC-14: a BufferError with the name of the needed library; nothing else needs it."""
    path = "/nonexistent/driver.so"
    code = WITHOUT.format(device=device, name=name, said=name, path=path, default=default)
    script(code, DLPACK_LIBCUDA=path, DLPACK_LIBAMDHIP64=path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names a library of Linux")
@pytest.mark.parametrize("name, device, default", [("libcuda", (2, 0), 1), ("libamdhip64", (10, 0), 0)])
def test_a_library_that_is_no_driver(script, name, device, default):
    """ERR-01, STC-14: the error names the function that an old or wrong library lacks."""
    path = "libc.so.6"
    code = WITHOUT.format(device=device, name=name, said="Init", path=path, default=default)
    script(code, DLPACK_LIBCUDA=path, DLPACK_LIBAMDHIP64=path)
