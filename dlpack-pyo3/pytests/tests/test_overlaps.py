"""Arguments that share memory, one of which is written; and the leases of views with a promise."""

import gc
import os
import random
import threading

import capi
import dlpack_probe as p
import numpy as np
import pytest
from capi import Foreign
from test_views import Refused

v = p.views


def test_an_argument_that_is_written_overlaps_no_other():
    x = np.arange(4.0)
    copy = x.copy()
    text = r"expected an array of float64 of shape \(.*\) that shares no memory .* and one of the two is written; pass a copy .*MayOverlap"
    with Refused("y", text):
        v.axpy(2.0, x[::-1], x)
    with Refused("x", text):
        v.axpy_into(x, 2.0, x[::-1])
    with Refused("y", text):
        v.axpy(2.0, x, x)
    with Refused("y", text):
        v.axpy(2.0, x[:3], x[2:])
    assert (x == copy).all(), "nothing is written before it is refused"
    v.axpy(2.0, x[::-1].copy(), x)
    assert x.tolist() == (2 * copy[::-1] + copy).tolist()
    # Two arrays that are only read, and two of one buffer that share no byte.
    assert v.dot(x, x) == (x * x).sum()
    v.axpy(2.0, x[:2], x[2:])
    v.axpy(2.0, x[::2], x[1::2])
    matrix = np.ones((3, 2))
    v.axpy(2.0, matrix[:, 0], matrix[::-1, 1])
    assert matrix[:, 1].tolist() == [3.0] * 3


def test_arrays_without_elements_overlap_nothing():
    x = np.arange(4.0)
    v.axpy(2.0, x[2:2], x)
    v.axpy(2.0, x, x[2:2])
    assert x.tolist() == [0, 1, 2, 3]


def test_two_data_types_over_one_buffer():
    pixels = np.zeros((4, 6, 4), "u1")
    assert v.reads(pixels[..., :3], pixels[..., 3]) == (24, 24)
    with Refused("b", "shares no memory"):
        v.reads(pixels[..., :3], pixels[..., 2])
    with Refused("b", "shares no memory"):
        v.lengths(pixels.view("f4")[..., 0], pixels)
    assert v.lengths(pixels[:2].view("f4")[..., 0], pixels[2:]) == (12, 48)


def test_views_with_a_promise_and_two_widths():
    pixels = np.zeros((4, 6, 4), "u1")
    v.promised_pixels(pixels[..., :3], pixels[..., 3])
    for channel in range(3):
        with Refused("_b", "shares no memory"):
            v.promised_pixels(pixels[..., :3], pixels[..., channel])


def test_no_view_is_forgotten_and_none_stays():
    """Many arguments, some of which share memory, compared with NumPy's answer; all are released after each call."""
    draw = random.Random(3)
    memory = np.arange(400.0)
    refused = 0
    for _ in range(300):
        def cuts(most):
            begins = [draw.randrange(0, 390) for _ in range(draw.randrange(most))]
            return [memory[b : b + draw.randrange(1, 10)] for b in begins]

        written, read = cuts(4), cuts(30)
        overlaps = any(np.shares_memory(a, b) for a in written for b in written if a is not b)
        overlaps |= any(np.shares_memory(a, b) for a in written for b in read)
        try:
            assert v.many(written, read) == (len(written), len(read))
            assert not overlaps
        except TypeError as error:
            assert "shares no memory" in str(error)
            assert overlaps
            refused += 1
        v.scale(memory, 1.0)
    assert 30 < refused < 270
    # More at once than a thread has slots, repeatedly.
    for _ in range(3):
        assert v.many([], [memory] * 500) == (0, 500)
        v.scale(memory, 1.0)


def test_a_view_is_alive_until_it_is_dropped():
    a = np.arange(4.0)
    with Refused("samples", "shares no memory"):
        v.while_read(a, lambda: v.scale(a, 2.0))
    assert v.while_read(a, lambda: v.dot(a, a)) == 4
    v.scale(a, 1.0)
    keeper = v.Keeper(a)
    with Refused("samples", "or a kept view"):
        v.scale(a, 2.0)
    other = v.Keeper(a)
    del keeper
    with Refused("samples", "or a kept view"):
        v.scale(a, 2.0)
    del other
    v.scale(a, 1.0)
    # A view with the option blocks no other call.
    keeper = v.Keeper.free(a)
    v.scale(a, 2.0)
    assert a.tolist() == [0, 2, 4, 6]
    del keeper


def test_views_are_dropped_on_other_threads():
    a = np.arange(4.0)
    kept = [v.Keeper(a) for _ in range(100)]

    def drop():
        # Calls on other threads are independent of this one.
        v.scale(a, 1.0)
        while True:
            try:
                kept.pop()
            except IndexError:
                return
            v.axpy(1.0, a[:2], a[2:])

    threads = [threading.Thread(target=drop) for _ in range(4)]
    with Refused("samples", "or a kept view"):
        v.scale(a, 2.0)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    v.scale(a, 1.0)


def test_views_outlive_their_thread():
    a = np.arange(4.0)
    for _ in range(50):
        kept = []
        thread = threading.Thread(target=lambda: kept.extend(v.Keeper(a) for _ in range(9)))
        thread.start()
        thread.join()
        v.scale(a, 1.0)
        # Its slots may be those of the next thread, once they are free.
        thread = threading.Thread(target=lambda: v.scale(a, 1.0))
        thread.start()
        thread.join()
        kept.clear()


def test_each_kept_view_is_compared_with_its_own_memory():
    """Also if there are more than a thread has slots at first, and after some of them are dropped."""
    arrays = [np.arange(4.0) for _ in range(40)]
    kept = {}

    def check():
        for index, a in enumerate(arrays):
            if index in kept:
                with Refused("samples", "or a kept view"):
                    v.scale(a, 1.0)
            else:
                v.scale(a, 1.0)

    for chosen in [range(2), range(9), range(20), range(0, 20, 3), range(40), range(1, 40, 2)]:
        kept = {index: kept.get(index) or v.Keeper(arrays[index]) for index in chosen}
        check()


def run_in_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_slots_in_use_stay_with_their_views_after_their_thread():
    a, b = np.arange(4.0), np.arange(4.0)

    def use(first):
        own = v.Keeper(b)
        first.clear()
        with Refused("samples", "or a kept view"):
            v.scale(b, 1.0)
        del own
        v.scale(b, 1.0)
        done.append(True)

    done = []
    for _ in range(30):
        first = []
        run_in_thread(lambda: first.append(v.Keeper(a)))
        run_in_thread(lambda: use(first))
    assert len(done) == 30


def test_threads_that_end_leave_their_slots_to_others():
    a = np.arange(4.0)

    def threads():
        for _ in range(20):
            run_in_thread(lambda: v.Keeper(a))

    assert capi.least_growth(threads, lambda: p.allocated_in_rust()[1]) <= 0


def test_a_promise_is_kept_in_spite_of_the_option():
    a = np.arange(4.0)
    v.promised_overlap(a[:2], a[2:])
    with Refused("_b", "shares no memory"):
        v.promised_overlap(a, a)
    v.sort(a)


class Copied:
    """Exports an array, and would return a copy to `numpy.asarray`."""

    def __init__(self, array):
        self.array = array
        self.asked = 0

    def __dlpack__(self, **request):
        return self.array.__dlpack__(**request)

    def __dlpack_device__(self):
        return (1, 0)

    def __array__(self, *_, **__):
        self.asked += 1
        return self.array.copy()


def test_an_overlap_is_not_answered_by_a_conversion():
    a = np.arange(4.0)
    producer = Copied(a)
    with Refused("_b", "shares no memory"):
        v.promised_twice(a, producer)
    assert producer.asked == 0
    v.promised_twice(a, Copied(a.copy()))
    v.promised_twice(a, [1, 2])


def test_a_refused_view_gives_its_lease_back():
    a = np.arange(4.0)
    read_only = a[:]
    read_only.flags.writeable = False
    for _ in range(3):
        with Refused("samples", "found a read-only one"):
            v.sort(read_only)
        with Refused("samples", "float64"):
            v.sort(a.view("i8"))
        with Refused("samples", "elements that share memory"):
            v.sort(np.lib.stride_tricks.as_strided(a, (4,), (0,)))
        with Refused("from", "float64"):
            v.add(a, a.view("i8"))
        with Refused("from", "shares no memory"):
            v.add(a, a)
        with Refused("_b", "shares no memory"):
            v.promised_overlap(a, a)
        v.sort(a)
        v.scale(a, 1.0)


@pytest.mark.parametrize("kind", ["ViewMut", "ViewMut, promised", "View, promised"])
def test_a_lease_ends_before_its_memory_is_released(kind):
    """A view of another array at the same address is accepted as soon as the memory can be reused."""
    outcomes = []

    class Reused(Foreign):
        def _delete(self, address):
            super()._delete(address)
            try:
                p.make_view(np.frombuffer(self.memory, "f4", count=4), "ViewMut, promised")
                outcomes.append("accepted")
            except TypeError as error:
                outcomes.append(str(error))

    p.make_view(Reused((1.0, 2.0, 3.0, 4.0), (4,)), kind)
    assert outcomes == ["accepted"]


def test_a_fork_does_not_release_the_lock_of_another(script):
    """Two threads fork at the same time, and the first takes longer than the second waits: until the first has forked, no lease is
    taken, because its child inherits the list."""
    ended = script(
        """
import ctypes, os, sys, threading
import numpy as np
import dlpack_probe as p
name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") if sys.platform == "linux" else "").partition(" ")
if name != "glibc" or tuple(map(int, version.split("."))) < (2, 36):
    # Other C libraries run all handlers of one fork after those of another.
    print("['second', 'refused'] ['first'] 1.0")
    sys.exit()
libc, Handler = ctypes.CDLL(None), ctypes.CFUNCTYPE(None)
is_slow, done, log = threading.Event(), threading.Event(), []
@Handler
def prepare():
    if not is_slow.is_set():
        is_slow.set()
        done.wait(100)
# Registered before the handlers of the module, so that it runs after them.
libc.__register_atfork(prepare, None, None, None)
p.views.sort(np.ones(3))
def fork(name):
    child = libc.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    log.append(name)
first = threading.Thread(target=fork, args=["first"])
first.start()
is_slow.wait()
second = threading.Thread(target=fork, args=["second"])
second.start()
second.join()
array = np.array([2.0, 1.0])
try:
    p.views.sort(array)
    log.append("taken")
except RuntimeError:
    log.append("refused")
done.set()
first.join()
p.views.sort(array)
print(log[:2], log[2:], array[0])
""",
        timeout=120,
    )
    assert ended.out.strip() == "['second', 'refused'] ['first'] 1.0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_kept_view_keeps_its_lease_in_a_forked_child():
    """The child has a copy of the view, which lends its copy of the memory as a slice."""
    mine = p.WProbe([4])
    # On its own thread, because views of one thread are compared without leases.
    keeper = threading.Thread(target=p.keep_view, args=(mine, "ViewMut, promised"))
    keeper.start()
    keeper.join()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with pytest.raises(TypeError, match="shares no memory"):
                p.make_view(mine, "View, promised")
            p.release_views()
            p.make_view(mine, "ViewMut, promised")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(TypeError, match="shares no memory"):
        p.make_view(mine, "View, promised")
    p.release_views()


def test_two_mappings_of_one_file_are_not_told_apart(tmp_path):
    """Leases compare addresses, as the documentation of `Promise` says."""
    file = tmp_path / "samples"
    np.arange(4.0).tofile(file)
    one, other = (np.memmap(file, "f8", "r+") for _ in range(2))
    assert one.ctypes.data != other.ctypes.data
    v.promised_twice(one, other)
    v.axpy(1.0, one, other)
    assert one.tolist() == [0, 2, 4, 6]
    # The same mapping is refused.
    with Refused("_b", "shares no memory"):
        v.promised_twice(one, one[2:])


# Loads a second copy of the module from its own file, which has its own statics.
COPY = """
import importlib.machinery, importlib.util, shutil, sys, tempfile
from pathlib import Path
import numpy as np
import dlpack_probe

def load_copy():
    folder = tempfile.mkdtemp()
    file = shutil.copy(dlpack_probe.__file__, folder)
    loader = importlib.machinery.ExtensionFileLoader("copied.dlpack_probe", file)
    spec = importlib.util.spec_from_file_location("copied.dlpack_probe", file, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    shutil.rmtree(folder, ignore_errors=True)
    assert module.views is not dlpack_probe.views
    return module.views

def refused(function, *arguments):
    try:
        function(*arguments)
    except TypeError as error:
        assert "shares no memory" in str(error), error
        return True
    return False

one, other = dlpack_probe.views, load_copy()
a = np.arange(4.0)
"""


def test_modules_share_one_table(script):
    script(
        COPY
        + """
for first, second in [(one, other), (other, one)]:
    first.keep(a)
    assert refused(second.sort, a), "a view of another module is not seen"
    assert second.dot(a, a) == 14.0
    assert first.let_go() == 6.0
    second.sort(a)
import threading
one.keep(a)
found = []
thread = threading.Thread(target=lambda: found.append(refused(other.sort, a)))
thread.start()
thread.join()
assert found == [True]
# This view is released when the interpreter exits.
other.keep(a)
"""
    )


# Puts a table into the interpreter, as another version of this crate might do.
FOREIGN = """
import ctypes
import numpy as np
import dlpack_probe

api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
api.PyInterpreterState_GetDict.restype = ctypes.py_object
api.PyInterpreterState_GetDict.argtypes = [ctypes.c_void_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
interpreter = api.PyInterpreterState_GetDict(api.PyInterpreterState_Get())
# `PyInterpreterState_GetDict` returns a borrowed reference, which ctypes treats as its own.
api.Py_IncRef(ctypes.py_object(interpreter))

class Span(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("start", "end", "step", "width")]

Take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Span), ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))
GiveBack = ctypes.CFUNCTYPE(None, ctypes.c_uint64)

class Interface(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("take", Take), ("give_back", GiveBack)]

calls, status = [], 0

@Take
def take(span, writes, token):
    span = span[0]
    calls.append((span.start - a.ctypes.data, span.end - a.ctypes.data, span.step, span.width, writes))
    token[0] = 77
    return status

@GiveBack
def give_back(token):
    calls.append(token)

NAME = b"dlpack_pyo3.leases"
a = np.arange(4.0)
v = dlpack_probe.views

def share(major, minor, name=NAME):
    global interface
    interface = Interface(major, minor, take, give_back)
    interpreter["dlpack_pyo3.leases"] = api.PyCapsule_New(ctypes.addressof(interface), name, None)

def fails(kind, text, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError("not refused")
"""


def test_a_table_of_a_newer_minor_version_is_used(script):
    script(
        FOREIGN
        + """
share(1, 9)
v.add(a[::2], a[1::2])
assert calls == [(0, 24, 16, 8, 1), (8, 32, 16, 8, 0), 77, 77], calls
a = np.arange(4.0)
calls.clear()
assert v.dot(a, a) == 14.0
assert calls == [(0, 32, 8, 8, 0)] * 2 + [77] * 2, calls
calls.clear()
status = 1
fails(TypeError, "shares no memory", v.sort, a)
status = 2
fails(MemoryError, "", v.sort, a)
status = -5
fails(TypeError, "shares no memory", v.sort, a)
assert 77 not in calls, "what was not taken is not given back"
# Views without a promise have no lease.
calls.clear()
v.scale(a, 2.0)
assert calls == []
"""
    )


@pytest.mark.parametrize(
    "share, text",
    [
        ("share(2, 0)", "built with a version of dlpack-pyo3 whose table has another form; build both with the same one"),
        ("share(1, 0, b'something.else')", "the capsule of their table has another name"),
        ("interpreter['dlpack_pyo3.leases'] = 1", "their table is no capsule"),
    ],
)
def test_a_table_that_is_not_understood_refuses_promises(script, share, text):
    script(
        FOREIGN
        + f"""
{share}
for _ in range(2):
    fails(RuntimeError, "views with a promise cannot be kept apart: ", v.sort, a)
    fails(RuntimeError, {text!r}, v.dot, a, a)
    fails(RuntimeError, {text!r}, v.promised_twice, a, [1.0])
assert calls == []
# Without a promise no lease is needed.
v.scale(a, 2.0)
assert a.tolist() == [0, 2, 4, 6]
# When that table is removed, our own is used.
del interpreter["dlpack_pyo3.leases"]
v.sort(a)
assert v.dot(a, a) == 56.0
"""
    )
