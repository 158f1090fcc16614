"""Containers of other crates over the memory of an array: `View::into_slice` and `Bytes`."""

import gc
import os
import sys
import threading
import weakref

import dlpack_probe as p
import numpy as np
import pytest

s = p.slices


@pytest.fixture(autouse=True)
def nothing_is_kept():
    yield
    s.release()


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("shape", [(6,), (2, 3), ()])
def test_bytes_are_the_memory_of_the_array(thread, detached, shape):
    array = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape).copy()
    count, owner, data = sys.getrefcount(array), weakref.ref(array), array.tobytes()
    assert s.keep(array) == array.ctypes.data
    assert sys.getrefcount(array) > count
    del array
    gc.collect()
    assert bytes(s.read()) == 2 * data
    if thread and not detached:
        # The other thread needs the GIL, which this one holds, so the reference is released later.
        threading.Thread(target=s.release).start()
        while owner() is not None:
            gc.collect()
    else:
        s.release(thread=thread, detached=detached)
    assert owner() is None


def test_bytes_are_the_memory_of_a_tensor():
    array = np.arange(6.0)
    tensor = p.take(array)
    assert s.keep(tensor) == array.ctypes.data
    assert s.keep(tensor[2:]) == array.ctypes.data + 16


def test_bytes_are_the_memory_of_torch():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.float64)
    assert s.keep(tensor) == tensor.data_ptr()
    del tensor
    gc.collect()
    assert bytes(s.read())[:48] == np.arange(6.0).tobytes()


def test_a_container_keeps_writers_out():
    """The lease lives as long as the last of several handles on the container."""
    array = np.array([3.0, 1.0, 2.0])
    s.keep(array)
    s.keep(array)
    refused = []

    def sort():
        """Another thread is blocked only by the lease."""
        with pytest.raises(TypeError, match="shares no memory"):
            p.views.sort(array)
        refused.append(True)

    sort()
    thread = threading.Thread(target=sort)
    thread.start()
    thread.join()
    assert refused == [True, True]
    s.release(thread=True)
    p.views.sort(array)
    assert array.tolist() == [1.0, 2.0, 3.0]


def test_what_is_no_slice_is_refused():
    array = np.arange(8.0)
    odd = np.frombuffer(bytearray(25), np.float64, 3, offset=1)
    for refused, text in [(array[::2], "contiguous"), (array[::-1], "contiguous"), (odd, "multiple of 8")]:
        counts = sys.getrefcount(refused), sys.getrefcount(array)
        with pytest.raises(BufferError, match=text):
            s.keep(refused)
        assert (sys.getrefcount(refused), sys.getrefcount(array)) == counts
    # A refused slice leaves no lease: the array can be written.
    p.views.sort(array)


def test_a_slice_of_bool_has_valid_bytes():
    assert bytes(s.flags(np.array([True, False]))) == b"\1\0"
    with pytest.raises(BufferError, match="bool"):
        s.flags(np.array([1, 2], np.uint8).view(np.bool_))


def test_a_copy_needs_no_promise():
    array = np.arange(3.0)
    assert s.copied(array) == [0.0, 1.0, 2.0]
    assert s.copied(array[::-1]) == [2.0, 1.0, 0.0]

    class Telling(np.ndarray):
        """The copy of a subclass is a Python object that its hooks may have passed on."""

    with pytest.raises(BufferError, match="others may write"):
        s.copied(array.view(Telling))


KEEP = """
import os, sys, threading, time
import numpy as np
import dlpack_probe as p
arrays = [np.arange(float(n)) for n in range(1, 100)]
"""


@pytest.mark.parametrize("keep", ["keep", "keep_by_thread"])
@pytest.mark.parametrize("code", ["", "del arrays", "os._exit(0)", "arrays.append(arrays)"])
def test_containers_at_the_end(script, keep, code):
    """CAP-14: a Rust static is never dropped, and a thread-local one after the interpreter is gone."""
    script(KEEP + f"for array in arrays: p.slices.{keep}(array)\n{code}")


def test_containers_of_threads_that_end(script):
    """A thread that is not attached drops its containers when it ends."""
    ended = script(
        KEEP
        + """
import weakref
owners = [weakref.ref(array) for array in arrays]
def keep(array): p.slices.keep_by_thread(array)
threads = [threading.Thread(target=keep, args=[array]) for array in arrays]
[t.start() for t in threads]
[t.join() for t in threads]
del arrays, threads
until = time.monotonic() + 20
while any(owner() is not None for owner in owners) and time.monotonic() < until:
    time.sleep(0.01)
print(sum(owner() is not None for owner in owners))
"""
    )
    assert ended.out.split() == ["0"]


@pytest.mark.parametrize("first", [0, 300, 3000])
def test_a_thread_drops_slices_while_the_interpreter_ends(script, first):
    """CAP-13, CAP-14, faults 34, 37: slices are dropped before, during and after the exit of the interpreter."""
    script(
        f"""
import dlpack_probe as p
for _ in range(150): p.keep_view(p.WProbe([4]), "View, promised, as a slice")
p.release_views_later({first}, 20)
"""
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_has_the_containers_of_its_parent(script):
    """CAP-13: a child reads and drops its copies; then its leases are free, and those of the parent are not."""
    ended = script(
        KEEP
        + """
import warnings
warnings.simplefilter("ignore")
expected = b"".join(2 * array.tobytes() for array in arrays)
for array in arrays: p.slices.keep(array)
bad = 0
for _ in range(5):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = bytes(p.slices.read()) == expected
            p.slices.release(thread=True)
            p.views.sort(arrays[-1])
            status = 0 if same else 2
        finally:
            os._exit(status)
    bad += os.waitpid(child, 0)[1] != 0
try:
    p.views.sort(arrays[-1])
except TypeError:
    print(bad)
"""
    )
    assert ended.out.split() == ["0"]
