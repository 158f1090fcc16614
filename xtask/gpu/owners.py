"""Checks of deferred owners: streams joined to the named one, retention, and events that are recorded again. `run.py` runs them."""

import gc
import time
from ctypes import byref, c_uint, c_void_p

# The main script, with its tools.
run = None


def register(script):
    global run
    run = script
    for function, title in (
        (joined, "A consumer that reads on a second stream and joins it to the named one"),
        (retention, "Deferred owners are dropped by themselves when their consumers are done"),
        (recorded_again, "An event that is recorded again does not release a stream that waits for it"),
    ):
        run.check(title)(function)


def expect(rows, what, found, expected):
    rows.add(f"{what} (expected: {expected})", found, found == expected)


def wait_until(holds, seconds=5.0):
    """Whether this becomes true within some seconds, so that no row fails because a driver acts shortly after its call returns."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)
    return holds()


def wait_on_device(first, then):
    """Makes one stream wait for another, as `Stream.wait_stream` of PyTorch does."""
    cuda, event = run.Libcuda(), c_void_p()
    codes = [
        cuda("cuEventCreate", byref(event), c_uint(2)),
        cuda("cuEventRecord", event, c_void_p(first.raw)),
        cuda("cuStreamWaitEvent", c_void_p(then.raw), event, c_uint(0)),
        cuda("cuEventDestroy_v2", event),
    ]
    if any(codes):
        raise RuntimeError(f"a stream cannot be joined to another: {codes}")


def name_again(stream):
    """A consumer names this stream for another tensor without a deferred owner, so that core records what the deferred owners wait for."""
    _, other = run.producer(cls=run.gpu.Immediate)
    run.exported(other, stream=stream.raw)


def synchronize():
    run.Libcuda()("cuCtxSynchronize")


def joined():
    rows = run.Rows()
    gpu = run.gpu
    for joins in (True, False):
        on, tensor = run.producer()
        tensor.spin_write(0, 1.0)
        on.wait()
        named, second = gpu.Stream("nonblocking"), gpu.Stream("nonblocking")
        capsule = run.exported(tensor, stream=named.raw)
        del tensor
        wait_on_device(named, second)
        second.spin(run.SPIN)
        reading = second.read(capsule, keep=True)
        if joins:
            wait_on_device(second, named)
        reading.let_go()
        del capsule
        gc.collect()
        name_again(named)
        # Without the join the named stream is complete at once, and its owner is dropped.
        if not joins:
            named.wait()
        gpu.collect()
        for _ in range(3):
            on.churn(run.COUNT, 0x7F)
        result = reading.values()
        wrong = run.disturbed(result != (1.0, 1.0))
        if joins:
            rows.add("joined before the last use ends (expected: 1.0, 1.0)", result, not wrong)
        else:
            text = f"{result}, must hold what was written later"
            rows.add("control: not joined", text, wrong)
        del reading
        synchronize()
        wait_until(lambda: gpu.retained()[0] == 0)
    return rows


def retention():
    rows = run.Rows()
    gpu = run.gpu
    bytes_each = run.COUNT * 4
    for name, kind, count in (("a handle", "nonblocking", 50), ("the default stream", "default", 50)):
        stream = gpu.Stream(kind)
        tensors = [run.producer()[1] for _ in range(count)]
        stream.spin(run.SPIN)
        for tensor in tensors:
            run.exported(tensor, stream=stream.raw)
        del tensor
        tensors.clear()
        gc.collect()
        waiting, *_ = gpu.retained()
        right = run.timed(waiting == count)
        rows.add(f"{count} owners, their consumer on {name} at work (expected: {count})", waiting, right)
        if kind == "nonblocking":
            name_again(stream)
        stream.wait()
        gone = wait_until(lambda: gpu.retained()[:2] == (0, 0))
        found = gpu.retained()[:2]
        rows.add(f"owners and bytes, their consumer on {name} is done, by themselves (expected: 0, 0)", found, gone)
    tensors = [run.producer()[1] for _ in range(10)]
    for tensor in tensors:
        run.exported(tensor, stream=-1)
    del tensor
    tensors.clear()
    gc.collect()
    owners, size, unknown, *_ = gpu.retained()
    expect(rows, "10 owners with stream=-1: owners, bytes, of unknown end", (owners, size, unknown), (10, 10 * bytes_each, 10))
    gpu.collect()
    synchronize()
    gone = wait_until(lambda: gpu.retained()[:2] == (0, 0))
    found = gpu.retained()[:2]
    rows.add("they are recorded by collect(), and dropped by themselves (expected: 0, 0)", found, gone)
    unrelated(rows)
    without_thread(rows)
    return rows


def unrelated(rows):
    gpu = run.gpu
    busy, stream = gpu.Stream("nonblocking"), gpu.Stream("nonblocking")
    busy.spin(run.SPIN * 5)
    _, tensor = run.producer()
    run.exported(tensor, stream=stream.raw)
    del tensor
    gc.collect()
    name_again(stream)
    gone = wait_until(lambda: gpu.retained()[0] == 0, run.SECONDS * 3)
    text = f"{gpu.retained()[0]} left, the other stream is {'done' if busy.idle() else 'at work'}"
    # A fake stream is never busy.
    right = gone and run.timed(not busy.idle()) is not False
    rows.add("an unrelated stream at work delays nothing (expected: 0 left, at work)", text, right)
    busy.wait()


def without_thread(rows):
    gpu = run.gpu
    gpu.collect_in_background(False)
    stream = gpu.Stream("default")
    stream.spin(run.SPIN)
    _, tensor = run.producer()
    run.exported(tensor, stream=stream.raw)
    del tensor
    gc.collect()
    stream.wait()
    # On a fake driver the work is complete when the owner is dropped.
    left = not wait_until(lambda: gpu.retained()[0] == 0, 0.5)
    text = f"{gpu.retained()[0]} left after half a second"
    rows.add("control: without the thread (expected: 1 left)", text, run.timed(left))
    gpu.collect_in_background(True)
    gone = wait_until(lambda: gpu.retained()[0] == 0)
    rows.add("with the thread again (expected: 0 left)", f"{gpu.retained()[0]} left", gone)


def recorded_again():
    rows = run.Rows()
    gpu = run.gpu
    readers = [gpu.Stream("nonblocking") for _ in range(4)]
    _, warm = run.producer()
    for reader in readers:
        run.exported(warm, stream=reader.raw)
    producers = [run.producer() for _ in readers]
    _, idle = run.producer()
    results = []
    for (_, tensor), reader in zip(producers, readers):
        tensor.spin_write(run.SPIN, 1.0)
        results.append(run.Own().read(tensor, reader))
        # Core records the same event on a stream without work.
        run.exported(idle, stream=reader.raw)
    values = {result() for result in results}
    right = not run.disturbed(values != {(1.0, 1.0)})
    rows.add("4 exports, the event of each recorded again at once (expected: 1.0, 1.0)", values, right)
    return rows
