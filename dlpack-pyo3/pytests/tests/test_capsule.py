"""Capsules: names, destructors, deleters, and what consumers do with them (CAP)."""

import ctypes
import gc
import sys
import threading
import weakref

import capi
import dlpack_probe as p
import pytest

REQUESTS = [
    pytest.param({"max_version": (1, 3)}, id="versioned"),
    pytest.param({}, id="legacy"),
    pytest.param({"max_version": (1, 3), "copy": True}, id="copied"),
    pytest.param({"copy": True}, id="legacy copied"),
]
CLASSES = [
    pytest.param(lambda: p.Probe([2, 3]), id="frozen"),
    pytest.param(lambda: p.WProbe([2, 3]), id="shared"),
    pytest.param(lambda: p.Mutable([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), id="mutable"),
    pytest.param(lambda: p.Exclusive([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), id="writable"),
    pytest.param(lambda: p.Owned([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), id="owner"),
    pytest.param(lambda: p.Doubled([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), id="via"),
    pytest.param(lambda: p.Open([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), id="open"),
    pytest.param(lambda: p.ByHand([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), id="by hand"),
    pytest.param(lambda: p.Batch(6), id="several"),
    pytest.param(lambda: p.Lent(2, 3), id="lent"),
    pytest.param(lambda: p.take(p.Probe([2, 3])), id="tensor"),
]


def test_names():
    """CAP-01, CAP-02, INF-12: the name of the capsule is that of its struct."""
    probe = p.WProbe([2])
    legacy, versioned = probe.__dlpack__(), probe.__dlpack__(max_version=(1, 0))
    assert capi.capsule_name(legacy) == b"dltensor"
    assert capi.capsule_name(versioned) == b"dltensor_versioned"
    assert capi.peek(versioned).version == (1, 3)
    assert capi.peek(legacy).shape == (2,)


def test_names_are_static():
    """CAP-03, fault 21: all capsules of a kind have the same address as their name, which outlives the producer."""
    addresses = set()
    for _ in range(3):
        probe = p.WProbe([2])
        capsule = probe.__dlpack__(max_version=(1, 0))
        del probe
        gc.collect()
        addresses.add(capi.capsule_name_address(capsule))
        assert capi.capsule_name(capsule) == b"dltensor_versioned"
    assert len(addresses) == 1


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_an_unconsumed_capsule(make, request_):
    """CAP-04, CAP-26, faults 16, 17: an unconsumed capsule releases its owner, and changes no reference count."""
    owner = make()
    held, alive = capi.references(owner), p.alive()
    for _ in range(5):
        capsule = owner.__dlpack__(**request_)
        assert capi.capsule_destructor(capsule)
        del capsule
    assert capi.references(owner) == held
    assert p.alive() == alive
    capsule = owner.__dlpack__(**request_)
    del owner
    gc.collect()
    assert capi.peek(capsule).tensor.ndim in (1, 2)
    del capsule


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_a_consumed_capsule(make, request_):
    """CAP-05, CAP-06, fault 2: after it was renamed, the destructor of the capsule does nothing; the deleter releases the owner once."""
    owner = make()
    held = capi.references(owner)
    capsule = owner.__dlpack__(**request_)
    seen = capi.consume(capsule)
    during = capi.references(owner)
    del capsule
    gc.collect()
    assert capi.references(owner) == during
    before = seen.tobytes()
    assert len(before) == 24
    assert before == seen.tobytes()
    seen.release()
    assert capi.references(owner) == held


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("pattern", ["rename", "rename and clear", "clear", "neither"])
def test_all_consumers(pattern, versioned):
    """CAP-07, CAP-13, fault 20: consumers that rename the capsule, remove its destructor, do both or neither: released exactly once."""
    probe = p.WProbe([3])
    alive = p.alive()
    held = capi.references(probe)
    capsule = probe.__dlpack__(max_version=(1, 0) if versioned else None)
    seen = capi.peek(capsule)
    if "rename" in pattern:
        capi.rename(capsule, capi.USED[capi.capsule_name(capsule)])
    if "clear" in pattern:
        capi.capsule_set_destructor(capsule, None)
    del capsule
    if pattern == "neither":
        assert capi.references(probe) == held
    else:
        assert capi.references(probe) == held + 1
        assert seen.floats() == [0.0, 1.0, 2.0]
        seen.release()
    assert capi.references(probe) == held
    assert p.alive() == alive


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("name", [b"dltensor", b"dltensor_versioned", b"dltensor_", b"deleted", b"", b"used", None])
def test_names_are_compared_as_text(name, versioned):
    """CAP-05: a capsule with a copy of its own name was not consumed. With any other name it was, also if the names begin alike."""
    probe = p.WProbe([3])
    held = capi.references(probe)
    capsule = probe.__dlpack__(max_version=(1, 0) if versioned else None)
    seen = capi.peek(capsule)
    text = name and ctypes.create_string_buffer(name)
    is_own = name == capi.capsule_name(capsule)
    capi.rename(capsule, text)
    del capsule
    if not is_own:
        assert capi.references(probe) == held + 1
        seen.release()
    assert capi.references(probe) == held


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_the_deleter_is_never_null(make, request_):
    """CAP-08: the deleter is never null; JAX calls it without a check."""
    capsule = make().__dlpack__(**request_)
    assert capi.peek(capsule).struct.deleter


@pytest.mark.parametrize("make", CLASSES)
def test_nothing_is_shared_between_exports(make):
    """CAP-12, fault 27: each call returns a new capsule with its own struct, shape and strides."""
    owner = make()
    if isinstance(owner, p.Exclusive):
        pytest.skip("its second export is refused")
    capsules = [owner.__dlpack__(max_version=(1, 3)) for _ in range(4)]
    seen = [capi.peek(capsule) for capsule in capsules]
    assert len({s.address for s in seen}) == 4
    assert len({capi.c.cast(s.tensor.shape, capi.c.c_void_p).value for s in seen}) == 4
    assert len({capi.c.cast(s.tensor.strides, capi.c.c_void_p).value for s in seen}) == 4
    before = seen[1].shape, seen[1].strides
    for extent in range(seen[0].tensor.ndim):
        seen[0].tensor.shape[extent] = -1
        seen[0].tensor.strides[extent] = -1
    assert (seen[1].shape, seen[1].strides) == before
    assert capi.peek(owner.__dlpack__(max_version=(1, 3))).shape == before[0]


@pytest.mark.parametrize("versioned", [True, False])
def test_fields_that_a_consumer_overwrites(versioned):
    """CAP-10, CAP-11, faults 6, 60: the deleter finds its block after every other field was changed."""
    probe = p.WProbe([2, 3])
    held = capi.references(probe)
    seen = capi.consume(probe.__dlpack__(max_version=(1, 0) if versioned else None))
    tensor = seen.tensor
    tensor.data = None
    tensor.ndim = 77
    tensor.shape = capi.c.POINTER(capi.c.c_int64)()
    tensor.strides = capi.c.POINTER(capi.c.c_int64)()
    tensor.byte_offset = 2**60
    tensor.dtype = capi.DLDataType(99, 99, 99)
    tensor.device = capi.DLDevice(99, 99)
    if versioned:
        seen.struct.flags = 2**64 - 1
    seen.release()
    assert capi.references(probe) == held


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("how", ["gil", "no gil", "python thread", "python thread, no gil", "foreign"])
def test_release_anywhere(make, request_, how):
    """CAP-13, CAP-28, faults 31, 32, 33: any thread may call the deleter, with the GIL or without.

    The object is released by that call, not by a later one.
    """
    owner = make()
    held, alive = capi.references(owner), p.alive()
    seen = capi.consume(owner.__dlpack__(**request_))
    release(seen, how)
    assert capi.references(owner) == held
    assert p.alive() == alive

    # The export has the only reference to the object.
    seen = capi.consume(owner.__dlpack__(**request_))
    gone = weakref.ref(owner) if isinstance(owner, (p.Probe, p.WProbe, p.Open)) else None
    del owner
    gc.collect()
    assert len(seen.tobytes()) == 24
    release(seen, how)
    assert gone is None or gone() is None


@pytest.mark.parametrize("how", ["gil", "no gil", "python thread, no gil", "foreign"])
@pytest.mark.parametrize("make", [lambda: p.Probe([2]), lambda: p.Mutable([1.0]), lambda: p.Exclusive([1.0]), lambda: p.Batch(1).rewards])
def test_an_object_is_dropped_attached(make, how):
    """CAP-13, CAP-28, fault 31: whichever thread calls the deleter, the object is dropped at once, on a thread that holds the GIL."""
    seen = capi.export(make())
    p.drops()
    release(seen, how)
    ((thread, attached),) = p.drops()
    assert attached in (True, None)
    if capi.GIL:
        # Without a GIL, the thread that made the object drops it later.
        assert (thread == p.thread_id()) == (how in ("gil", "no gil"))


def release(seen, how):
    if how == "foreign":
        seen.release_on_foreign_thread()
    elif how.startswith("python thread"):
        thread = threading.Thread(target=seen.release, args=["no gil" not in how])
        thread.start()
        thread.join()
    else:
        seen.release(how == "gil")


def test_an_owner_of_rust_needs_no_interpreter():
    """CAP-15, CAP-19, fault 36: the deleter of an `owner` field runs while another thread holds the GIL."""
    owned = p.Owned([1.0, 2.0])
    p.keep(owned)
    p.drops()
    assert owned.owners() == 2
    # This joins the thread that runs the deleter and keeps the GIL, so a deleter that waits for the GIL would deadlock.
    p.let_go(thread=True, detached=False)
    assert owned.owners() == 1
    p.keep(owned)
    del owned
    p.let_go(thread=True, detached=False)
    ((thread, attached),) = p.drops()
    assert thread != p.thread_id()
    assert attached in (False, None)


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_a_pending_exception_survives(make, request_):
    """CAP-16, CAP-17, faults 44, 46: capsules and tensors can be released while an exception is pending.

    The temporaries of an expression that fails are dropped after the exception was set and before it is caught.
    """
    owner = make()
    held = capi.references(owner)
    with pytest.raises(ZeroDivisionError):
        _ = (owner.__dlpack__(**request_), 1 // 0)
    assert capi.references(owner) == held

    def consumed():
        capsule = owner.__dlpack__(**request_)
        kept.append(capi.consume(capsule))
        return capsule

    kept = []
    with pytest.raises(ZeroDivisionError):
        _ = (consumed(), 1 // 0)
    assert len(kept[0].tobytes()) == 24
    kept[0].release()
    with pytest.raises(ZeroDivisionError):
        _ = (p.take(owner), 1 // 0)
    assert capi.references(owner) == held


def test_python_code_in_a_deleter():
    """CAP-16, faults 42, 45: an owner whose `Drop` runs Python code can be dropped while an exception is pending."""
    calls = []

    def after():
        calls.append("called")
        raise LookupError("printed, and gone")

    for act in [lambda o: o.__dlpack__(max_version=(1, 0)), lambda o: o.__dlpack__(copy=True), p.take]:
        calls.clear()
        with pytest.raises(ZeroDivisionError):
            # The export has the last reference.
            _ = (act(p.Reentrant([1.0, 2.0], lambda: None, after)), 1 // 0)
        assert calls == ["called"]


def test_memory_stays():
    """CAP-18, CAP-20, fault 11: the memory outlives the object at the same address, and both sides can use it."""
    probe = p.WProbe([1000])
    pointer, expected = probe.data_ptr, probe.tobytes()
    seen = capi.export(probe)
    assert seen.data == pointer
    assert probe.tobytes() == seen.tobytes() == expected
    del probe
    gc.collect()
    churn = [p.WProbe([1000]) for _ in range(20)]
    assert seen.data == pointer
    assert seen.tobytes() == expected
    seen.release()
    del churn


@pytest.mark.parametrize("at", range(1, 6))
def test_methods_are_found_on_the_type(at):
    """CAP-27: nanobind and MLX look up the methods on the type, and call the descriptor with the object."""
    owner = [p.Probe([2]), p.Mutable([1.0]), p.ByHand([1.0]), p.Open([1.0]), p.Audio.Short([1, 2])][at - 1]
    for name in ["__dlpack__", "__dlpack_device__"]:
        found = next(vars(base)[name] for base in type(owner).__mro__ if name in vars(base))
        assert callable(found)
        assert hasattr(type(found), "__get__")
    assert type(owner).__dlpack_device__(owner) == (1, 0)
    capsule = type(owner).__dlpack__(owner, max_version=(1, 0))
    assert capi.capsule_name(capsule) == b"dltensor_versioned"


def test_a_hundred_exports_at_once():
    """CAP-12, CAP-20, fault 28: many exports of one object live at once and end in any order."""
    probe = p.Probe([4])
    held = capi.references(probe)
    seen = [capi.export(probe) for _ in range(100)]
    assert capi.references(probe) == held + 100
    for s in seen[1::2] + seen[0::2]:
        assert s.floats() == [0.0, 1.0, 2.0, 3.0]
        s.release()
    assert capi.references(probe) == held


@pytest.mark.parametrize("rank, most", [(1, 112), (2, 128), (3, 144), (6, 192)])
def test_a_live_export_takes_no_more_than_it_needs(rank, most):
    """The struct, the keepalive, shape and strides are one block. Python allocates the capsule itself."""
    probe, count = p.Probe([1] * rank), 100
    before = p.allocated_in_rust()
    kept = [probe.__dlpack__(max_version=(1, 1)) for _ in range(count)]
    blocks, bytes_ = (now - then for now, then in zip(p.allocated_in_rust(), before))
    assert blocks == count
    assert 80 < bytes_ / count <= most
    assert len(kept) == count


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("consumed", [True, False])
def test_exports_leave_no_memory_behind(make, request_, consumed):
    """CAP-10, CAP-21, faults 5, 13, 14, 15: every block of an export is freed, and every Python object."""
    owner = make()

    def hundred():
        for _ in range(100):
            capsule = owner.__dlpack__(**request_)
            if consumed:
                capi.consume(capsule).release()
            del capsule

    assert capi.least_growth(hundred, lambda: p.allocated_in_rust()[0]) <= 0
    if not (consumed and capi.ctypes_leaks()):
        assert capi.least_growth(hundred, sys.getallocatedblocks) < 50
