"""The C exchange table: `__dlpack_c_exchange_api__` (XAP)."""

import ctypes as c
import gc
import sys
import threading

import capi
import dlpack_probe as p
import pytest

MAKE = {
    p.Probe: lambda: p.Probe([2, 3]),
    p.WProbe: lambda: p.WProbe([2, 3]),
    p.Mutable: lambda: p.Mutable([0.0, 1.0, 2.0]),
    p.Exclusive: lambda: p.Exclusive([0.0, 1.0, 2.0]),
    p.Owned: lambda: p.Owned([0.0, 1.0, 2.0]),
    p.Doubled: lambda: p.Doubled([0.0, 1.0, 2.0]),
    p.Open: lambda: p.Open([0.0, 1.0, 2.0]),
    p.ByHand: lambda: p.ByHand([0.0, 1.0, 2.0]),
    p.Batch: lambda: p.Batch(3),
    p.Audio: lambda: p.Audio.Float([0.0, 1.0]),
    p.Points: lambda: p.Points([0.0, 1.0], (1, 2)),
    p.Adopted: lambda: p.Adopted([0.0, 1.0]),
    p.Lent: lambda: p.Lent(2, 3),
    p.Still: lambda: p.Still([0.0, 1.0]),
    p.Changing: lambda: p.Changing([0.0, 1.0]),
    p.Floats: lambda: p.Floats([0.0, 1.0], 2),
    p.Tensor: lambda: p.take(p.Probe([2, 3])),
}
CLASSES = [pytest.param(cls, id=cls.__name__) for cls in MAKE]


@pytest.mark.parametrize("cls", CLASSES)
def test_the_attribute(cls):
    """XAP-01, XAP-02, XAP-03, XAP-30, fault 90: a capsule on the type, next to the two methods."""
    capsule = vars(cls)["__dlpack_c_exchange_api__"]
    assert type(capsule).__name__ == "PyCapsule"
    assert capi.capsule_name(capsule) == b"dlpack_exchange_api"
    assert callable(cls.__dlpack__) and callable(cls.__dlpack_device__)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_old_attribute(cls):
    """XAP-04: DLPack 1.2 expects the address under another name."""
    assert cls.__c_dlpack_exchange_api__ == capi.Exchange(cls).address


@pytest.mark.parametrize("cls", CLASSES)
def test_the_table(cls):
    """XAP-05, XAP-06, XAP-07, XAP-08, XAP-33, fault 91: version 1.3, complete, static, one for all objects."""
    exchange = capi.Exchange(cls)
    table = exchange.table
    assert (table.header.version.major, table.header.version.minor) == (1, 3)
    assert table.header.prev_api is None
    for name in [
        "managed_tensor_allocator",
        "managed_tensor_from_py_object_no_sync",
        "managed_tensor_to_py_object_no_sync",
        "current_work_stream",
    ]:
        assert getattr(table, name), name
    assert not has_destructor(exchange.capsule)
    owner = MAKE[cls]()
    assert owner.__dlpack_c_exchange_api__ is exchange.capsule
    assert type(owner).__dlpack_c_exchange_api__ is type(MAKE[cls]()).__dlpack_c_exchange_api__


def has_destructor(capsule):
    return capi.capsule_destructor(capsule) is not None


def test_the_table_outlives_its_capsule():
    """XAP-05, XAP-28, fault 91: consumers cache the address for the whole process."""
    exchange = capi.Exchange(p.Probe)
    probe = p.Probe([2])
    del exchange.capsule
    gc.collect()
    seen = exchange.from_object(probe)
    assert seen.floats() == [0.0, 1.0]
    seen.release()


@pytest.mark.parametrize("cls", CLASSES)
def test_a_managed_tensor(cls):
    """XAP-09, XAP-15, XAP-14: the table returns the same tensor as `__dlpack__`, with its own deleter."""
    owner = MAKE[cls]()
    held, alive = capi.references(owner), p.alive()
    by_method = capi.export(owner)
    expected = (
        by_method.version,
        by_method.flags,
        by_method.shape,
        by_method.strides,
        by_method.dtype,
        by_method.device,
        by_method.tobytes(),
    )
    by_method.release()
    seen = capi.Exchange(cls).from_object(owner)
    assert seen.struct.deleter
    found = (
        seen.version,
        seen.flags,
        seen.shape,
        seen.strides,
        seen.dtype,
        seen.device,
        seen.tobytes(),
    )
    assert found == expected
    seen.release(gil=False)
    assert capi.references(owner) == held
    assert p.alive() == alive


@pytest.mark.parametrize("cls", CLASSES)
def test_the_tensor_outlives_the_object(cls):
    """XAP-15, XAP-29: a consumer that keeps the tensor keeps its memory."""
    seen = capi.Exchange(cls).from_object(MAKE[cls]())
    gc.collect()
    before = seen.tobytes()
    churn = [MAKE[cls]() for _ in range(10)]
    assert seen.tobytes() == before
    seen.release_on_foreign_thread()
    del churn


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("foreign", [None, 7, "text", object(), p.Kind.Int16, [1.0]], ids=repr)
def test_objects_of_another_type(cls, foreign):
    """XAP-12: an object of another class is a `TypeError`, and its memory is not read."""
    exchange = capi.Exchange(cls)
    with pytest.raises(TypeError):
        exchange.from_object(foreign)
    with pytest.raises(TypeError):
        exchange.from_object(MAKE[p.Guarded if cls is p.Probe else p.Probe]() if cls is not p.Probe else p.WProbe([1]))


def test_the_table_on_a_foreign_class():
    """XAP-12: Python code may put our table on its own class."""

    class Evil:
        __dlpack_c_exchange_api__ = p.Probe.__dlpack_c_exchange_api__

    with pytest.raises(TypeError):
        capi.Exchange(Evil).from_object(Evil())
    if p.Lent.__dlpack_c_exchange_api__ and capi.Exchange(p.Lent).table.dltensor_from_py_object_no_sync:
        with pytest.raises(TypeError):
            capi.Exchange(p.Lent).borrow(Evil(), capi.DLTensor())


def test_subclasses():
    """XAP-12, CAP-27: a Python subclass has the table and the methods of its base."""

    class Derived(p.Open):
        pass

    derived = Derived([1.0, 2.0])
    derived.extra = "state"
    assert Derived.__dlpack_c_exchange_api__ is p.Open.__dlpack_c_exchange_api__
    seen = capi.Exchange(Derived).from_object(derived)
    assert seen.floats() == [1.0, 2.0]
    seen.release()
    seen = capi.export(derived)
    assert seen.floats() == [1.0, 2.0]
    seen.release()


def test_variants_of_an_enum():
    """XAP-12, XAP-13: each variant is a subclass; a variant without a tensor is a `BufferError`."""
    for owner, dtype in [(p.Audio.Float([1.0]), (2, 32, 1)), (p.Audio.Short([1]), (0, 16, 1))]:
        seen = capi.Exchange(type(owner)).from_object(owner)
        assert seen.dtype == dtype
        seen.release()
    silence = p.Audio.Silence()
    with pytest.raises(BufferError, match="Silence"):
        capi.Exchange(p.Audio).from_object(silence)
    with pytest.raises(BufferError, match="Silence"):
        silence.__dlpack__(max_version=(1, 0))


def test_refusals_are_buffer_errors():
    """XAP-13, XAP-14, XAP-32: a tensor that the table cannot return is a `BufferError`, after which consumers try `__dlpack__`."""
    mutable = p.Mutable([1.0])
    exchange = capi.Exchange(p.Mutable)
    with pytest.raises(BufferError):
        mutable.during_change(lambda: exchange.from_object(mutable))
    armed = p.PanicInDescribe([1.0])
    armed.arm(True)
    with pytest.raises(BufferError):
        capi.Exchange(p.PanicInDescribe).from_object(armed)
    with pytest.raises(BufferError):
        capi.Exchange(p.Probe).from_object(p.Probe([9], items=3))
    exclusive = p.Exclusive([1.0])
    seen = capi.Exchange(p.Exclusive).from_object(exclusive)
    with pytest.raises(BufferError):
        capi.Exchange(p.Exclusive).from_object(exclusive)
    seen.release()


def test_out_is_untouched_by_a_failure():
    """XAP-15, fault 89: a failing function does not change `out`, so that there is nothing to release."""
    function = c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(c.c_void_p))(
        capi.Exchange(p.Probe).table.managed_tensor_from_py_object_no_sync
    )
    for bad in [object(), p.Probe([9], items=3)]:
        out = c.c_void_p(0x5EED)
        with pytest.raises((TypeError, BufferError)):
            function(bad, c.byref(out))
        assert out.value in (None, 0x5EED)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_status(cls):
    """XAP-09: 0 with a tensor, or -1 with an exception and no tensor."""
    table = cls.__c_dlpack_exchange_api__
    assert p.status_of_export(table, MAKE[cls]()) == (0, True, None)
    status, made, exception = p.status_of_export(table, object())
    assert (status, made, type(exception)) == (-1, False, TypeError)
    foreign = capi_foreign()
    assert p.status_of_import(table, c.addressof(foreign.managed)) == (0, True, None)
    foreign = capi_foreign(version=(2, 0))
    status, made, exception = p.status_of_import(table, c.addressof(foreign.managed))
    assert (status, made, type(exception)) == (-1, False, BufferError)
    assert foreign.deleted == 0


# -- to_py_object -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES)
def test_an_object_of_a_foreign_tensor(cls):
    """XAP-16: `to_py_object` takes ownership of the tensor, and returns one new reference to an object over it."""
    foreign = capi.Foreign()
    made = capi.Exchange(cls).to_object(c.addressof(foreign.managed))
    assert foreign.deleted == (1 if cls is p.Points else 0)
    seen = capi.export(made)
    assert seen.floats() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert seen.shape == (2, 3)
    if cls is not p.Points:
        assert seen.data == c.addressof(foreign.memory)
    seen.release()
    assert foreign.deleted == (1 if cls is p.Points else 0)
    del made
    assert foreign.deleted == 1


def test_the_class_of_what_is_made():
    """XAP-16: a class with `FromDLPack` makes its own objects, every other one a `Tensor`."""
    for cls in MAKE:
        made = capi.Exchange(cls).to_object(c.addressof(capi_foreign().managed))
        assert type(made) is (cls if cls in (p.Points, p.Adopted) else p.Tensor), cls
        del made


ONE_CLASS = """
import ctypes as c, gc, importlib.machinery, importlib.util
import capi

# The second module of the same library, which does not use `Tensor`.
path = importlib.util.find_spec("dlpack_probe").origin
loader = importlib.machinery.ExtensionFileLoader("dlpack_one_class", path)
spec = importlib.util.spec_from_file_location("dlpack_one_class", path, loader=loader)
one_class = importlib.util.module_from_spec(spec)
loader.exec_module(one_class)
exchange = capi.Exchange(one_class.Probe)

foreign = capi.Foreign()
plain = exchange.to_object(c.addressof(foreign.managed))
assert type(plain).__name__ == "PlainTensor" and not hasattr(plain, "tolist")
assert repr(plain) == "PlainTensor(shape=(2, 3), dtype=float32, device=cpu)"
seen = capi.export(plain)
assert seen.floats() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] and seen.data == c.addressof(foreign.memory)
seen.release()
assert plain.__dlpack_device__() == (1, 0) and memoryview(plain).shape == (2, 3)
seen = capi.Exchange(type(plain)).from_object(plain)
assert seen.data == c.addressof(foreign.memory)
seen.release()
try:
    import numpy as np
except ImportError:
    pass
else:
    for array in [plain.numpy(), plain.__array__(), np.asarray(plain), np.from_dlpack(plain)]:
        assert array.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        assert array.ctypes.data == c.addressof(foreign.memory)
        del array
assert foreign.deleted == 0
del plain
gc.collect()
assert foreign.deleted == 1

import dlpack_probe as p

again = capi.Foreign()
tensor = exchange.to_object(c.addressof(again.managed))
assert type(tensor) is p.Tensor and tensor.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
del tensor
assert again.deleted == 1
"""


def test_the_class_of_what_is_made_without_tensor(script):
    """XAP-16: a module that does not use `Tensor` makes a plain object with the same memory, until another module uses `Tensor`."""
    script(ONE_CLASS)


KEPT_FOREIGN = []


def capi_foreign(**how):
    """A foreign tensor whose Python object is kept forever, because its deleter may run at any time."""
    foreign = capi.Foreign(**how)
    KEPT_FOREIGN.append(foreign)
    return foreign


BAD_TENSORS = {
    "major": dict(version=(2, 0)),
    "dtype": dict(dtype=(99, 8, 1)),
    "no data": dict(data=None),
    "no shape": dict(shape=None, ndim=2, strides=None),
    "negative rank": dict(ndim=-1),
    "rank": dict(ndim=1000),
    "negative extent": dict(shape=(-2, 3)),
    "strides": dict(strides=(2**62, 2**62)),
}


@pytest.mark.parametrize("cls", [p.Probe, p.Points, p.Adopted, p.Tensor], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("bad", BAD_TENSORS)
def test_a_tensor_that_is_refused(cls, bad):
    """XAP-17, XAP-18: a failing `to_py_object` leaves the tensor to its caller; the version is checked first."""
    foreign = capi_foreign(**BAD_TENSORS[bad])
    with pytest.raises(BufferError):
        capi.Exchange(cls).to_object(c.addressof(foreign.managed))
    gc.collect()
    assert foreign.deleted == 0, "the caller still owns it"


@pytest.mark.parametrize("offset", [1, 4])
def test_what_is_not_aligned(offset):
    """Own faults 11: a misaligned tensor or prototype is not read."""
    memory = c.create_string_buffer(256)
    place = -(-c.addressof(memory) // 64) * 64 + offset
    for cls in [p.Tensor, p.Points]:
        with pytest.raises(BufferError, match=rf"no multiple of 8 \({place}\)"):
            capi.Exchange(cls).to_object(place)
    out = c.c_void_p()
    prototype = capi.DLTensor.from_address(place)
    status, said = capi.Exchange(p.Tensor).allocate(prototype, out, True)
    assert (status, out.value, said[0][1]) == (-1, None, b"BufferError")
    assert b"no multiple of 8" in said[0][2]


def test_a_tensor_that_the_class_cannot_be():
    """XAP-17: the tensor is valid, but does not fit the struct of the class."""
    for foreign in [
        capi_foreign(shape=(6,)),
        capi_foreign(dtype=(0, 32, 1)),
    ]:
        with pytest.raises(BufferError):
            capi.Exchange(p.Points).to_object(c.addressof(foreign.managed))
        gc.collect()
        assert foreign.deleted == 0


ENDS = [
    (keep, end)
    for keep in ["nothing", "tensor", "buffer", "payload", "hidden"]
    for end in ["well", "error", "panic", "bomb"]
    if end in ("panic", "bomb") or keep not in ("payload", "hidden")
]


@pytest.fixture
def unraised(monkeypatch):
    """The exceptions that were reported as unraisable."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: found.append(what.exc_type))
    return found


@pytest.mark.parametrize("keep, end", ENDS)
def test_a_tensor_that_was_kept(keep, end, unraised):
    """XAP-16, XAP-17, own faults 3: if user code keeps the tensor before it fails, the tensor no longer belongs to the caller."""
    foreign = capi_foreign(shape=(6,))
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    p.Greedy.next(keep, end)
    to_object = capi.Exchange(p.Greedy).to_object
    kept = keep in ("tensor", "buffer")
    # No code can reach the tensor any more, but core cannot know that.
    lost = (keep, end) == ("hidden", "bomb")
    if not (kept or lost or end == "well"):
        with pytest.raises(BufferError):
            to_object(c.addressof(foreign.managed))
        gc.collect()
        assert (foreign.deleted, p.Greedy.kept(), unraised) == (0, [], [])
        return
    made = to_object(c.addressof(foreign.managed))
    if end == "well":
        assert type(made) is p.Greedy and unraised == []
    else:
        assert type(made) is p.Tensor and unraised == [BufferError]
        seen = capi.export(made)
        assert (seen.floats(), seen.data) == (values, c.addressof(foreign.memory))
        seen.release()
    assert foreign.deleted == 0 or keep == "tensor" and end == "well"
    assert p.Greedy.kept() == ([values] if kept else [])
    del made
    gc.collect()
    assert p.Greedy.kept() == ([values] if kept else [])
    assert foreign.deleted == (0 if kept or lost else 1)
    p.Greedy.let_go()
    assert foreign.deleted == (0 if lost else 1)


def test_an_object_that_cannot_be_allocated(script):
    """XAP-17, own faults 3: if the object cannot be allocated, a tensor that user code has kept no longer belongs to the caller."""
    pytest.importorskip("_testcapi")
    ended = script(
        """
import gc, sys
import _testcapi
import capi
import dlpack_probe as p
sys.unraisablehook = lambda what: None
ends = {}
keeps = [(p.Greedy, *how) for how in [("tensor", "well"), ("buffer", "well"), ("nothing", "well"), ("buffer", "error")]]
for cls, keep, end in [(p.Tensor, "", ""), (p.Points, "", ""), (p.Adopted, "", ""), *keeps]:
    table = cls.__c_dlpack_exchange_api__
    for k in range(12):
        # Its deleter is not a Python function, so it allocates no Python memory.
        tensor = p.loose([2, 3] if cls is p.Points else [6])
        if keep:
            cls.next(keep, end)
        _testcapi.set_nomemory(k, k + 1)
        try:
            status, made, error = p.status_of_import(table, tensor)
        except BaseException:
            # PyO3 cannot allocate the result tuple, after the allocation under test.
            status, error = 0, None
        finally:
            _testcapi.remove_mem_hooks()
        gc.collect()
        kept = p.Greedy.kept()
        assert kept in ([], [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]), kept
        where = (cls, keep, end, k, status, error, p.alive())
        if status == -1:
            assert (made, kept, p.alive()) == (False, [], 1), where
            capi.Seen(tensor, True).release()
        elif status == 0:
            assert error is None and p.alive() == bool(kept), where
        p.Greedy.let_go()
        assert p.alive() == 0, where
        ends.setdefault((cls, keep, end), set()).add((status, bool(kept), type(error)))
for (cls, keep, end), found in ends.items():
    if end != "error":
        assert (-1, False, MemoryError) in found, (cls, keep, found)
    if keep in ("tensor", "buffer"):
        assert (0, True, type(None)) in found, (cls, keep, found)
print("well", len(ends))
""",
        # PyO3 panics if it cannot allocate a string, and prints that.
        noisy=True,
    )
    assert ended.out.split() == ["well", "7"]


def test_our_own_tensor_comes_back():
    """XAP-16, XAP-15, fault 10: a round trip through both functions changes neither the memory nor the reference count."""
    probe = p.WProbe([2, 3])
    held = capi.references(probe)
    exchange = capi.Exchange(p.WProbe)
    made = exchange.to_object(exchange.from_object(probe))
    assert made.data_ptr == probe.data_ptr
    assert capi.references(probe) == held + 1
    del made
    assert capi.references(probe) == held


@pytest.mark.parametrize("call", ["from_object(p.Probe([1]), 0)", "from_object(0, place)", "to_object(0, place)", "to_object(tensor, 0)", "borrow(p.Lent(1, 1), 0)", "work_stream(1, 0, 0)"])
def test_null_arguments(script, call):
    """XAP-23: a NULL argument is an error, and no crash."""
    script(
        f"""
import ctypes as c
import capi
import dlpack_probe as p
def of(cls, name, *arguments):
    return c.PYFUNCTYPE(c.c_int, *arguments)(getattr(capi.Exchange(cls).table, name))
place = c.addressof(c.c_void_p())
foreign = capi.Foreign()
tensor = c.addressof(foreign.managed)
def from_object(thing, out):
    kind = c.c_void_p if thing == 0 else c.py_object
    return of(p.Probe, "managed_tensor_from_py_object_no_sync", kind, c.c_void_p)(thing, out)
def to_object(thing, out):
    return of(p.Probe, "managed_tensor_to_py_object_no_sync", c.c_void_p, c.c_void_p)(thing, out)
def borrow(thing, out):
    return of(p.Lent, "dltensor_from_py_object_no_sync", c.py_object, c.c_void_p)(thing, out)
def work_stream(*arguments):
    return of(p.Probe, "current_work_stream", c.c_int32, c.c_int32, c.c_void_p)(*arguments)
try:
    {call}
except (BufferError, TypeError, ValueError):
    pass
assert foreign.deleted == 0
assert p.alive() == 0
"""
    )


# -- dltensor_from_py_object ------------------------------------------------------------------------


def test_which_classes_lend():
    """XAP-08, XAP-19, XAP-20: a class lends only writable memory whose shape and strides are in the object, in a `Layout`."""
    # Own faults 6: a field that a method can change may change while other threads run.
    assert not capi.Exchange(p.Changing).table.dltensor_from_py_object_no_sync
    for cls in MAKE:
        lends = bool(capi.Exchange(cls).table.dltensor_from_py_object_no_sync)
        if cls is p.Lent:
            assert lends
        elif lends:
            # A class that has the function must not ignore that the memory is read-only.
            with pytest.raises(BufferError):
                capi.Exchange(cls).borrow(MAKE[cls](), capi.DLTensor())


def test_a_loan():
    """XAP-19: the pointers of a loan are those in the object; nothing is allocated or kept."""
    lent = p.Lent(2, 3)
    exchange = capi.Exchange(p.Lent)
    held = capi.references(lent)
    tensors = [capi.DLTensor(), capi.DLTensor()]
    for tensor in tensors:
        assert exchange.borrow(lent, tensor) == 0
        assert tensor.data == lent.data_ptr
        assert tensor.shape[:2] == [2, 3]
        assert tensor.strides[:2] == [1, 2]
        assert (tensor.ndim, tensor.byte_offset) == (2, 0)
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == capi.FLOAT32
        assert (tensor.device.device_type, tensor.device.device_id) == (1, 0)
    first, second = (c.cast(t.shape, c.c_void_p).value for t in tensors)
    assert first == second
    assert abs(first - id(lent)) < 1000
    assert capi.references(lent) == held
    with pytest.raises(TypeError):
        exchange.borrow(object(), capi.DLTensor())


def test_loans_that_need_a_flag_or_a_stream():
    """DTY-13, XAP-25: a borrowed tensor has no flag for padded items, and `current_work_stream` does not name the object's stream."""
    queued = p.LentQueued(4096, 4, (2, 0), 77)
    for lent, missing in [(p.LentPadded(4), "padded"), (queued, "written on a stream"), (p.LentOnRequest(), "made for each request")]:
        with pytest.raises(BufferError, match=missing):
            capi.Exchange(type(lent)).borrow(lent, capi.DLTensor())


def test_a_loan_allocates_nothing():
    """XAP-19: a loan succeeds while every allocation fails, and makes no Python object."""
    lent, tensor = p.Lent(2, 3), capi.DLTensor()
    exchange = capi.Exchange(p.Lent)
    function = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_void_p)(
        exchange.table.dltensor_from_py_object_no_sync
    )
    p.set_nomemory_in_rust(0, 0)
    try:
        status = function(lent, c.addressof(tensor))
        with pytest.raises(MemoryError):
            p.take(lent)
    finally:
        p.remove_nomemory_in_rust()
    assert status == 0

    def thousand():
        for _ in range(1000):
            function(lent, c.addressof(tensor))

    assert capi.least_growth(thousand, sys.getallocatedblocks) < 500


# -- the allocator ----------------------------------------------------------------------------------


def prototype(shape, dtype=capi.FLOAT32, device=(1, 0), ndim=None):
    """Sets only the fields that the allocator may read; the others are garbage."""
    tensor = capi.DLTensor()
    tensor.data = 0xDEAD
    tensor.strides = c.cast(0xDEAD, c.POINTER(c.c_int64))
    tensor.byte_offset = 2**63
    tensor.dtype = capi.DLDataType(*dtype)
    tensor.device = capi.DLDevice(*device)
    tensor.ndim = len(shape) if ndim is None else ndim
    tensor.keep = (c.c_int64 * max(1, len(shape)))(*shape)
    tensor.shape = tensor.keep
    return tensor


@pytest.mark.parametrize("gil", [True, False])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 4), (2, 0, 3)])
def test_allocation(shape, gil):
    """XAP-21, XAP-22, CPY-14: memory for any prototype, without the GIL: aligned, writable, released once."""
    exchange = capi.Exchange(p.Probe)
    out = c.c_void_p()
    status, said = exchange.allocate(prototype(shape), out, set_error=True, gil=gil)
    assert (status, said) == (0, [])
    seen = capi.Seen(out.value, True)
    assert seen.shape == shape
    assert seen.version == (1, 3)
    assert not seen.flags & capi.READ_ONLY
    packed = []
    for extent in reversed(shape):
        packed.insert(0, max(1, packed[0] * max(1, shape[len(shape) - len(packed)])) if packed else 1)
    assert list(seen.strides) == packed
    if 0 not in shape:
        assert seen.data % 256 == 0
        size = 4
        for extent in shape:
            size *= extent
        c.memset(seen.data, 7, size)
    seen.release(gil=gil)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (prototype((2**40, 2**40)), b"BufferError"),
        (prototype((2**50,)), b"MemoryError"),
        (prototype((-1,)), b"BufferError"),
        (prototype((3,), dtype=(99, 8, 1)), b"BufferError"),
        (prototype((3,), device=(2, 0)), b"BufferError"),
        (prototype((3,), ndim=-1), b"BufferError"),
        (prototype((3,), ndim=100000), b"BufferError"),
    ],
    ids=["overflow", "too much", "negative", "dtype", "device", "negative rank", "rank"],
)
@pytest.mark.parametrize("set_error", [True, False])
@pytest.mark.parametrize("gil", [True, False])
def test_allocation_that_fails(bad, expected, set_error, gil):
    """XAP-22, XAP-23, fault 63: `SetError` is called exactly on failure, if it is given; no Python exception is set."""
    out = c.c_void_p()
    status, said = capi.Exchange(p.Probe).allocate(bad, out, set_error, gil)
    assert status == -1
    assert out.value is None
    if set_error:
        ((context, kind, message),) = said
        assert context == 0x5EED
        assert kind == expected
        assert message


def test_allocation_without_a_place():
    """XAP-23: a NULL `out` is an error, and nothing leaks."""
    status, _ = capi.Exchange(p.Probe).allocate(prototype((3,)), None, set_error=True)
    assert status == -1
    status, _ = capi.Exchange(p.Probe).allocate(prototype((3,)), None, set_error=False)
    assert status == -1


def test_an_allocation_becomes_an_object():
    """XAP-16, XAP-22: an allocated tensor can be passed to `to_py_object`."""
    exchange = capi.Exchange(p.Probe)
    out = c.c_void_p()
    assert exchange.allocate(prototype((2, 3)), out, set_error=True) == (0, [])
    c.memset(capi.Seen(out.value, True).data, 0, 24)
    made = exchange.to_object(out.value)
    assert (made.shape, made.readonly) == ((2, 3), False)


# -- streams ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [(1, 0), (2, 0), (2, 7), (10, 0), (99, 0), (-1, -1)])
def test_the_current_stream(device):
    """XAP-24, XAP-25, XAP-26: a device without a current stream: NULL is written and 0 returned."""
    out = c.c_void_p(0x5EED)
    assert capi.Exchange(p.Probe).work_stream(*device, out) == 0
    assert out.value is None


@pytest.mark.parametrize("device", [(2, 0), (10, 1), (13, 0), (3, 0), (8, 0)])
def test_tensors_of_a_device(device):
    """XAP-10, DEV-02: tensors of a device are exported without order; the consumer orders its work."""
    owner = p.Elsewhere(*device)
    seen = capi.Exchange(p.Elsewhere).from_object(owner)
    assert (seen.device, seen.data) == (device, 0x1000)
    seen.release(gil=False)


# -- threads ----------------------------------------------------------------------------------------


def test_first_use_from_many_threads(script):
    """XAP-05, XAP-33, fault 39: concurrent first uses of a class find the same table."""
    ended = script(
        """
import threading
import dlpack_probe as p
barrier = threading.Barrier(8)
found = []
def ask():
    barrier.wait()
    found.append((p.Probe.__c_dlpack_exchange_api__, id(p.Probe.__dlpack_c_exchange_api__)))
    p.Probe([2]).__dlpack__(max_version=(1, 0))
threads = [threading.Thread(target=ask) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(set(found)), len(found))
"""
    )
    assert ended.out.split() == ["1", "8"]


def test_attached_from_any_thread():
    """XAP-10, XAP-11: any attached thread may call the functions, and none waits."""
    probe, seen = p.WProbe([3]), []
    thread = threading.Thread(target=lambda: seen.append(capi.Exchange(p.WProbe).from_object(probe)))
    thread.start()
    thread.join()
    assert seen[0].floats() == [0.0, 1.0, 2.0]
    seen[0].release()
