"""Imports: `from_dlpack`, arguments of functions, malformed capsules."""

import ctypes as c
import gc
import struct
import sys

import capi
import dlpack_probe as p
import pytest


def a_table(address):
    """An exchange table of another library, whose tensors are at the addresses that `address` returns."""

    @c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(c.c_void_p))
    def from_object(producer, out):
        out[0] = address(producer)
        return 0

    table = capi.ExchangeTable()
    table.header.version = capi.DLVersion(1, 3)
    table.managed_tensor_from_py_object_no_sync = c.cast(from_object, c.c_void_p).value
    # The table has only the address of the function, so this keeps it.
    table.keeps = from_object
    return table


def ints(*values):
    return struct.pack(f"{len(values)}i", *values)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("how", [p.take, p.first], ids=["from_dlpack", "argument"])
def test_a_foreign_tensor(legacy, how):
    """CAP-06, CAP-20, fault 1: the capsule is renamed, and the tensor is released once, with the import."""
    foreign = capi.Foreign(legacy=legacy)
    capsule = foreign.capsule()
    foreign.__class__ = type("Fixed", (capi.Foreign,), {"__dlpack__": lambda self, **request: capsule})
    tensor = how(foreign)
    assert capi.capsule_name(capsule) == (b"used_dltensor" if legacy else b"used_dltensor_versioned")
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((2, 3), (3, 1), "float32")
    assert tensor.data_ptr == c.addressof(foreign.memory)
    del capsule
    gc.collect()
    assert foreign.deleted == 0
    seen = capi.export(tensor)
    del tensor
    assert foreign.deleted == 0
    assert seen.floats() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    seen.release()
    assert foreign.deleted == 1


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("strides", ["packed", None, (1, 2)])
def test_a_producer_that_changes_its_lists(legacy, strides):
    """The lists of an exported PyTorch tensor are its own: `x.t_()` changes them."""
    foreign = capi.Foreign(legacy=legacy, strides=strides)
    tensor, part = p.take(foreign), p.take(foreign)[1:]
    before = tensor.strides, tensor.tolist()
    foreign.shape[0] = 1 << 40
    if strides:
        foreign.strides[0] = 7
    assert tensor.shape == (2, 3) and (tensor.strides, tensor.tolist()) == before
    assert part.shape == (1, 3) and part.tolist() == before[1][1:]
    for request in {}, {"max_version": (1, 0)}:
        seen = capi.consume(tensor.__dlpack__(**request))
        # A read-only tensor is copied for the legacy struct.
        assert seen.shape == (2, 3) and (seen.strides == before[0] or not request)
        seen.release()
    assert memoryview(tensor).tolist() == before[1]


def test_attributes_of_a_tensor():
    """CAP-20, FLG-09: the attributes of a `Tensor`."""
    tensor = p.take(p.Probe([2, 3], "int16", [1, 2]))
    assert tensor.shape == (2, 3) and tensor.strides == (1, 2)
    assert (tensor.dtype, tensor.device, tensor.nbytes, tensor.ndim) == ("int16", (1, 0), 12, 2)
    assert tensor.readonly is True and len(tensor) == 2
    assert "int16" in repr(tensor) and "2, 3" in repr(tensor)
    assert p.take(p.WProbe([2])).readonly is False
    assert p.take(p.Probe([])).shape == ()
    with pytest.raises(TypeError):
        len(p.take(p.Probe([])))
    for name in ["shape", "dtype", "data_ptr"]:
        with pytest.raises(AttributeError):
            setattr(tensor, name, None)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_null_deleter(legacy):
    """CAP-09: a null deleter is accepted, and a re-export has a deleter."""
    foreign = capi.Foreign(deleter=False, legacy=legacy)
    tensor = p.take(foreign)
    seen = capi.export(tensor)
    assert seen.struct.deleter
    del tensor
    seen.release()
    assert foreign.deleted == 0


NAMES = [b"used_dltensor", b"used_dltensor_versioned", b"dltensor ", b"dltensor_versioned2", b"DLTENSOR", b"", b"array", None]


@pytest.mark.parametrize("name", NAMES)
def test_capsules_of_another_name(name):
    """CAP-22, CAP-23, NEG-16, fault 51: capsules with another name are refused and unchanged."""
    foreign = capi.Foreign()
    text = c.c_char_p(name)
    capsule = capi.capsule_new(c.addressof(foreign.managed), c.cast(text, c.c_void_p).value, None)
    foreign.__class__ = type("Fixed", (capi.Foreign,), {"__dlpack__": lambda self, **request: capsule})
    with pytest.raises((BufferError, ValueError, TypeError)):
        p.take(foreign)
    assert foreign.deleted == 0
    assert capi.capsule_name(capsule) == name


def test_a_capsule_is_taken_once():
    """CAP-06, CAP-22, fault 51: a second import of a capsule is refused, and the first one stays valid."""
    probe = p.Probe([2])
    capsule = probe.__dlpack__(max_version=(1, 0))

    class Repeats:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **request):
            return capsule

    tensor = p.take(Repeats())
    with pytest.raises((BufferError, ValueError)):
        p.take(Repeats())
    assert tensor.shape == (2,)


@pytest.mark.parametrize("given", [None, 7, "capsule", object(), b"dltensor"], ids=repr)
def test_objects_that_are_no_capsule(given):
    """CAP-22, ERR-01: a producer that returns no capsule is refused with a text."""

    class Producer:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **request):
            return given

    with pytest.raises(BufferError) as raised:
        p.take(Producer())
    assert type(given).__name__ in str(raised.value)


MALFORMED = {
    "major 2": dict(version=(2, 0)),
    "major 0": dict(version=(0, 8)),
    "code": dict(dtype=(18, 32, 1)),
    "bits": dict(dtype=(2, 33, 1)),
    "zero bits": dict(dtype=(2, 0, 1)),
    "lanes": dict(dtype=(2, 32, 0)),
    "fp6 of 8 bits": dict(dtype=(15, 8, 1)),
    "fp4 of 8 bits": dict(dtype=(17, 8, 1)),
    "device": dict(device=(99, 0)),
    "device of main": dict(device=(19, 0)),
    "no data": dict(data=None),
    "no shape": dict(shape=None, ndim=2, strides=None),
    "no strides since 1.2": dict(strides=None, version=(1, 2)),
    "negative rank": dict(ndim=-1),
    "rank": dict(ndim=2**31 - 1),
    "negative extent": dict(shape=(2, -3), strides=(1, 1)),
    "overflow": dict(shape=(2**32, 2**32)),
    "bytes overflow": dict(shape=(2**61,), strides=(1,), dtype=(2, 64, 1)),
    "strides overflow": dict(shape=(3, 3), strides=(2**62, 2**62)),
    "negative overflow": dict(shape=(3,), strides=(-(2**63),)),
    "offset overflow": dict(byte_offset=2**64 - 1),
    "padded float32": dict(flags=capi.PADDED),
}


@pytest.mark.parametrize("how", [p.take, p.first, p.look, p.keep, p.adopt, p.take_points], ids=lambda f: f.__name__)
@pytest.mark.parametrize("why", MALFORMED)
def test_malformed_tensors(how, why):
    """CAP-23, NEG-12, DTY-06, DTY-08, LAY-21, LAY-22, DEV-14, faults 3, 4, 63, 66, 68, 69: refused, and released exactly once.

    The capsule owns the tensor until it is renamed; after that the importer releases it, whatever it finds.
    """
    tolerated = {"no strides since 1.2", "padded float32"}
    foreign = capi.Foreign(**MALFORMED[why])
    try:
        found = how(foreign)
    except BufferError as error:
        assert str(error)
        if how is p.first:
            assert str(error)
    else:
        assert why in tolerated
        del found
        p.let_go()
    gc.collect()
    assert foreign.deleted == 1


@pytest.mark.parametrize("why", MALFORMED)
def test_malformed_legacy_tensors(why):
    """CAP-23, LAY-04, LAY-21, LAY-22, fault 69: legacy tensors, without version and flags, are refused and released like others."""
    how = {key: value for key, value in MALFORMED[why].items() if key not in ("version", "flags")}
    foreign = capi.Foreign(legacy=True, **how)
    if not how or why == "no strides since 1.2":
        assert p.look(foreign)["shape"] == [2, 3]
    else:
        with pytest.raises(BufferError):
            p.take(foreign)
    gc.collect()
    assert foreign.deleted == 1


@pytest.mark.parametrize("version", [(2, 0), (0, 5), (2**32 - 1, 0)])
def test_another_major_version_is_not_read(version):
    """NEG-12, ABI-07: of another major version only version and deleter are read."""
    unreadable = 8
    foreign = capi.Foreign(version=version)
    tensor = foreign.managed.dl_tensor
    tensor.data, tensor.ndim = unreadable, 3
    tensor.shape = tensor.strides = c.cast(unreadable, c.POINTER(c.c_int64))
    for how in [p.take, p.first, p.inspect]:
        foreign.deleted = 0
        try:
            how(foreign)
        except BufferError:
            pass
        else:
            assert how is p.inspect
        # `inspect` requests both structs.
        assert foreign.deleted == 1 or how is p.inspect and foreign.deleted == 2


@pytest.mark.parametrize("version", [(1, 0), (1, 1), (1, 3), (1, 4), (1, 99)])
def test_other_minors(version):
    """NEG-13, FLG-08: newer minor versions and unknown flags are accepted."""
    for flags in [0, 1 << 40, 1 << 3]:
        foreign = capi.Foreign(version=version, flags=flags)
        assert p.look(foreign)["floats"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        assert foreign.deleted == 1


@pytest.mark.parametrize("legacy", [True, False])
def test_null_strides(legacy):
    """LAY-04, fault 54: before 1.2 and in legacy capsules null strides mean row-major; a re-export has strides."""
    foreign = capi.Foreign(strides=None, legacy=legacy, version=(1, 1))
    tensor = p.take(foreign)
    assert tensor.strides == (3, 1)
    seen = capi.export(tensor)
    assert seen.strides == (3, 1)
    assert seen.floats() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    del tensor
    seen.release()
    assert foreign.deleted == 1
    # The producer's struct was not written.
    assert not foreign.managed.dl_tensor.strides


def test_byte_offsets():
    """LAY-07, LAY-08, fault 58: byte offsets are applied, and added to the pointer of a re-export."""
    foreign = capi.Foreign(shape=(2,), byte_offset=8)
    assert p.look(foreign)["floats"] == [3.0, 4.0]
    foreign.deleted = 0
    tensor = p.take(foreign)
    assert tensor.data_ptr == c.addressof(foreign.memory) + 8
    seen = capi.export(tensor)
    assert seen.data + seen.tensor.byte_offset == c.addressof(foreign.memory) + 8
    assert seen.floats() == [3.0, 4.0]
    del tensor
    seen.release()
    assert foreign.deleted == 1


LAYOUTS = [
    ((2, 3), (1, 2), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]),
    ((3,), (2,), [1.0, 3.0, 5.0]),
    ((2, 3), (0, 1), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]),
    ((1, 6), (1000, 1), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ((1, 1), (-5, 2**62), [1.0]),
    ((), (), [1.0]),
    ((0,), (1,), []),
    ((2, 0, 3), (0, 3, 1), []),
]


@pytest.mark.parametrize("shape, strides, expected", LAYOUTS)
@pytest.mark.parametrize("legacy", [True, False])
def test_layouts(shape, strides, expected, legacy):
    """LAY-07, LAY-14, LAY-15, LAY-17, faults 53, 57, 61, 62: tensors with any strides are read in the order of their indices."""
    foreign = capi.Foreign(shape=shape, strides=strides, legacy=legacy)
    seen = p.look(foreign)
    assert (tuple(seen["shape"]), seen["floats"]) == (shape, expected)
    assert foreign.deleted == 1


def test_negative_strides():
    """LAY-14, fault 48: negative strides are accepted, and read backwards."""
    foreign = capi.Foreign(shape=(3,), strides=(-2,), byte_offset=16)
    assert p.look(foreign)["floats"] == [5.0, 3.0, 1.0]


def test_memory_that_others_write_is_not_lent():
    """CAP-20: a producer may write at any time, so no import is lent as a slice, whatever function imported it."""
    table = a_table(lambda producer: c.addressof(producer.managed))

    class Fast(capi.Foreign):
        __dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.EXCHANGE)

    for foreign in [Fast(), capi.Foreign(), capi.Foreign(legacy=True), capi.Foreign(flags=capi.READ_ONLY)]:
        seen = p.look(foreign)
        assert not seen["lent"] and seen["floats"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        assert bool(foreign.asked) != isinstance(foreign, Fast)


def test_null_data_of_an_empty_tensor():
    """LAY-06, faults 6, 7: a tensor without elements may have null data, and is released like any other."""
    for shape in [(0,), (0, 3), (3, 0)]:
        foreign = capi.Foreign(shape=shape, data=None)
        assert p.look(foreign)["floats"] == []
        assert foreign.deleted == 1


def test_the_header_is_not_changed():
    """CAP-11, fault 60: the importer does not write the producer's struct, lists or memory."""
    foreign = capi.Foreign(strides=None, version=(1, 1), byte_offset=4, shape=(5,))
    before = bytes(foreign.managed), bytes(foreign.shape), foreign.memory.raw
    tensor = p.take(foreign)
    p.look(tensor)
    capi.export(tensor).release()
    assert (bytes(foreign.managed), bytes(foreign.shape), foreign.memory.raw) == before
    del tensor


def test_the_read_only_flag():
    """FLG-03, FLG-09, NEG-20, faults 29, 75, 76: a read-only tensor stays read-only, and a legacy tensor counts as read-only."""
    for foreign in [capi.Foreign(flags=capi.READ_ONLY), capi.Foreign(legacy=True)]:
        tensor = p.take(foreign)
        assert tensor.readonly
        seen = capi.export(tensor)
        assert seen.flags & capi.READ_ONLY
        seen.release()
        del tensor
    foreign = capi.Foreign()
    tensor = p.take(foreign)
    assert not tensor.readonly
    del tensor
    adopted = p.adopt(capi.Foreign(flags=capi.READ_ONLY, shape=(6,)))
    with pytest.raises(BaseException, match="read-only"):
        adopted.set(0, 1.0)
    del adopted


def test_an_adopted_tensor():
    """CAP-20, CPY-12, fault 15: `SharedBuffer` keeps the producer's memory, and writes reach it."""
    foreign = capi.Foreign(shape=(6,))
    adopted = p.adopt(foreign)
    assert adopted.data_ptr == c.addressof(foreign.memory)
    adopted.set(2, 30.0)
    assert struct.unpack("6f", foreign.memory.raw[:24])[2] == 30.0
    seen = capi.export(adopted)
    del adopted
    assert foreign.deleted == 0
    assert seen.floats()[2] == 30.0
    seen.release_on_foreign_thread()
    assert foreign.deleted == 1


def test_a_copied_import():
    """CPY-12: a `Vec` is filled, and the tensor is released before the function returns."""
    foreign = capi.Foreign(strides=(1, 2))
    points = p.take_points(foreign)
    assert foreign.deleted == 1
    assert points.dims == [2, 3] and points.values == [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]
    for wrong in [capi.Foreign(shape=(6,)), capi.Foreign(dtype=(0, 32, 1))]:
        with pytest.raises(BufferError):
            p.take_points(wrong)
        assert wrong.deleted == 1


def test_our_own_objects():
    """CAP-20, XAP-27: objects of our classes are imported like others."""
    for owner in [p.Probe([2, 3]), p.WProbe([2, 3]), p.Mutable([1.0]), p.Owned([1.0]), p.Audio.Float([1.0])]:
        held = capi.references(owner)
        tensor = p.take(owner)
        again = p.take(tensor)
        assert again.data_ptr == tensor.data_ptr
        del tensor
        assert p.look(again)["bytes"] is None or again.dtype == "uint8"
        del again
        assert capi.references(owner) == held


def test_the_table_of_a_foreign_class():
    """XAP-27, XAP-31: the table of the type is used if its major version is ours, otherwise the method."""
    calls = []

    def address(producer):
        calls.append("table")
        return c.addressof(producer.managed)

    table = a_table(address)

    class Fast(capi.Foreign):
        __dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.EXCHANGE)

        def __dlpack__(self, **request):
            calls.append("method")
            return super().__dlpack__(**request)

    foreign = Fast()
    assert p.look(foreign)["floats"][0] == 1.0
    assert foreign.deleted == 1
    assert calls in (["table"], ["method"])
    calls.clear()
    table.header.version = capi.DLVersion(2, 0)
    # The previous version of the table is the table itself: an endless chain counts as none.
    table.header.prev_api = c.addressof(table)
    foreign = Fast()
    assert p.look(foreign)["floats"][0] == 1.0
    assert (calls, foreign.deleted) == (["method"], 1)
    calls.clear()
    table.header.prev_api = None
    table.header.version = capi.DLVersion(1, 3)
    Fast.__dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.VERSIONED)
    foreign = Fast()
    assert p.look(foreign)["floats"][0] == 1.0
    assert (calls, foreign.deleted) == (["method"], 1)
    calls.clear()
    del Fast.__dlpack_c_exchange_api__
    foreign = Fast()
    # A table of an instance is ignored.
    foreign.__dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.EXCHANGE)
    assert p.look(foreign)["floats"][0] == 1.0
    assert calls == ["method"]


def test_a_table_that_fails():
    """XAP-27, XAP-32, ERR-07: any other exception of the table is passed on, and nothing leaks."""
    table = capi.ExchangeTable()
    table.header.version = capi.DLVersion(1, 3)
    # A function of our table, which refuses the foreign object.
    ours = capi.Exchange(p.Probe).table
    table.managed_tensor_from_py_object_no_sync = ours.managed_tensor_from_py_object_no_sync

    class Fast(capi.Foreign):
        __dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.EXCHANGE)

    foreign = Fast()
    with pytest.raises(TypeError):
        p.take(foreign)
    assert (foreign.deleted, foreign.asked) == (0, [])


def test_a_table_that_refuses():
    """XAP-32: after a `BufferError` of the table, the method is called."""
    foreign = capi.Foreign()

    class Derived(p.Mutable):
        def __dlpack__(self, **request):
            return foreign.__dlpack__(**request)

    owner = Derived([1.0])
    tensor = owner.during_change(lambda: p.take(owner))
    assert tensor.data_ptr == c.addressof(foreign.memory)
    del tensor
    assert foreign.deleted == 1


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_itself(version):
    """CAP-06, CAP-22: a capsule is accepted as the producer of its tensor."""
    probe = p.WProbe([3])
    capsule = probe.__dlpack__(max_version=version)
    tensor = p.take(capsule)
    assert tensor.data_ptr == probe.data_ptr
    assert capi.capsule_name(capsule).startswith(b"used_")
    with pytest.raises((BufferError, ValueError)):
        p.take(capsule)
    del capsule
    assert p.look(tensor)["floats"] == [0.0, 1.0, 2.0]


class Obeys(capi.Foreign):
    """Copies on request."""

    def __dlpack__(self, *, copy=None, **request):
        self.asked.append({"copy": copy, **request})
        self.managed.flags = capi.IS_COPIED if copy else 0
        return self.capsule()


class Deaf(capi.Foreign):
    """A producer without the keywords `copy` and `dl_device`."""

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append({"max_version": max_version})
        return self.capsule()


class DeafAndLegacy(Deaf):
    """Also without versions, so that no flag says whether the tensor is a copy."""

    def __dlpack__(self, *, stream=None):
        self.asked.append({})
        return self.capsule()


class Unable(Obeys):
    """A producer that knows `copy`, but cannot copy."""

    def __dlpack__(self, *, copy=None, **request):
        if copy:
            raise BufferError("copies are not supported")
        return super().__dlpack__(copy=copy, **request)


class Copies(Deaf):
    """A producer without the keyword `copy`, which copies anyway."""

    def __dlpack__(self, **request):
        self.managed.flags = capi.IS_COPIED
        return super().__dlpack__(**request)


class Raises(capi.Foreign):
    """Raises one exception with keywords, and another one without."""

    def __init__(self, with_keywords, without):
        super().__init__()
        self.with_keywords, self.without = with_keywords, without

    def __dlpack__(self, **request):
        raise self.with_keywords if request else self.without


def test_a_refusal_whose_retry_fails_too():
    """ERR-07, NEG-14: the first `TypeError` names the reason, or the keyword that the producer does not know. None of the two is lost."""
    reason = TypeError("the array has nulls")
    for without in [TypeError("the array has nulls"), DeprecationWarning("unversioned capsules are deprecated")]:
        with pytest.raises(TypeError) as raised:
            p.Tensor.from_dlpack(Raises(reason, without))
        assert raised.value is reason and reason.__context__ is None
    for without in [TypeError("the array is read-only"), RuntimeError("unversioned capsules are not supported")]:
        with pytest.raises(type(without)) as raised:
            p.Tensor.from_dlpack(Raises(reason, without))
        assert raised.value is without and without.__context__ is reason


def test_a_retry_that_fails_keeps_its_own_context():
    """ERR-07: the refusal of the keywords comes after the reasons of the last error, and never makes a cycle."""
    reason, cause, last = TypeError("a keyword"), OSError("the file was truncated"), RuntimeError("cannot map the array")
    last.__context__ = cause
    with pytest.raises(RuntimeError) as raised:
        p.Tensor.from_dlpack(Raises(reason, last))
    assert raised.value is last and last.__context__ is cause and cause.__context__ is reason and reason.__context__ is None
    with pytest.raises(RuntimeError) as raised:
        p.Tensor.from_dlpack(Raises(reason, last))
    assert last.__context__ is cause and cause.__context__ is reason and reason.__context__ is None
    last.__context__ = cause
    reason.__context__ = last
    cause.__context__ = None
    with pytest.raises(RuntimeError):
        p.Tensor.from_dlpack(Raises(reason, last))
    assert last.__context__ is cause and cause.__context__ is None and reason.__context__ is last


@pytest.mark.parametrize("links", [1, 5, 9, 10, 150])
def test_long_chains_of_contexts(links):
    """Nothing is lost, no cycle is made, and nothing is linked to a chain of more contexts than are followed."""

    def link(first, end):
        for _ in range(links - 1):
            first.__context__ = ValueError()
            first = first.__context__
        first.__context__ = end

    reason, cause, last = TypeError("a keyword"), OSError("the file was truncated"), RuntimeError("cannot map the array")
    link(last, cause)
    with pytest.raises(RuntimeError):
        p.Tensor.from_dlpack(Raises(reason, last))
    assert cause.__context__ is (reason if links < 10 else None) and reason.__context__ is None
    last.__context__ = None
    link(reason, last)
    with pytest.raises(RuntimeError):
        p.Tensor.from_dlpack(Raises(reason, last))
    assert last.__context__ is None


def test_copies_that_the_producer_does_not_know():
    """NEG-15, CPY-10, CPY-12: `copy=False` is never ignored, and `copy=True` always copies, once."""
    with pytest.raises(TypeError, match="unexpected keyword"):
        p.Tensor.from_dlpack(DeafAndLegacy(legacy=True), copy=False)
    unable = Unable()
    tensor = p.Tensor.from_dlpack(unable, copy=True)
    assert tensor.data_ptr != c.addressof(unable.memory)
    with pytest.raises(BufferError, match="not supported"):
        p.Tensor.from_dlpack(unable, device=(1, 0), copy=True)
    copies = Copies()
    tensor = p.Tensor.from_dlpack(copies, copy=True)
    assert tensor.data_ptr == c.addressof(copies.memory)


def test_copies_that_the_importer_requests():
    """NEG-14, NEG-15, CPY-12, CPY-13: the request is passed to the producer; if it does not support the keyword, the importer copies."""
    obeys = Obeys()
    tensor = p.Tensor.from_dlpack(obeys, copy=True)
    assert obeys.asked[0]["copy"] is True
    # The producer copied it, so the importer does not copy again.
    assert tensor.data_ptr == c.addressof(obeys.memory)
    del tensor
    assert obeys.deleted == 1
    deaf = Deaf()
    tensor = p.Tensor.from_dlpack(deaf, copy=True)
    assert tensor.data_ptr != c.addressof(deaf.memory)
    assert deaf.deleted == 1
    assert not tensor.readonly
    assert p.look(tensor)["floats"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for producer in [Obeys(), Deaf()]:
        tensor = p.Tensor.from_dlpack(producer, copy=False)
        assert tensor.data_ptr == c.addressof(producer.memory)
        del tensor
        assert producer.deleted == 1
    own = p.WProbe([2])
    assert p.Tensor.from_dlpack(own, copy=True).data_ptr != own.data_ptr
    assert p.Tensor.from_dlpack(own, copy=False).data_ptr == own.data_ptr
    with pytest.raises(BufferError):
        p.Tensor.from_dlpack(p.Doubled([1.0]), copy=False)


def test_devices_that_the_importer_requests():
    """DEV-12, DEV-13, NEG-15, ERR-09: the data is on the requested device, or it is a `BufferError`."""
    for producer in [Obeys(), Deaf(), p.WProbe([2])]:
        assert p.Tensor.from_dlpack(producer, device=(1, 0)).device == (1, 0)
        with pytest.raises(BufferError):
            p.Tensor.from_dlpack(producer, device=(2, 0))
    with pytest.raises(BufferError):
        p.Tensor.from_dlpack(p.Elsewhere(2), device=(1, 0))
    deaf = Deaf(device=(2, 0), data=0x1000)
    with pytest.raises(BufferError):
        p.Tensor.from_dlpack(deaf, device=(1, 0))
    assert deaf.deleted == 1


def test_an_exception_in_flight():
    """CAP-17, ERR-07: an import in an `except` block does not affect the exception there."""
    foreign = capi.Foreign()
    try:
        raise KeyError("outer")
    except KeyError:
        p.take(foreign)
        with pytest.raises(BufferError):
            p.take(capi.Foreign(version=(2, 0)))
        assert sys.exc_info()[0] is KeyError
    gc.collect()
    assert foreign.deleted == 1


def test_imports_leak_nothing():
    """CAP-06, CAP-21, fault 1: neither imports nor refusals leak memory or references."""
    probe = p.Probe([4])
    bad = capi.Foreign(version=(2, 0))
    held, held_bad = capi.references(probe), capi.references(bad)

    def hundred():
        for _ in range(100):
            p.take(probe)
            p.text(bad)
        bad.asked.clear()

    # A leak would be at least one block of Rust or one object of Python for each.
    assert capi.least_growth(hundred, lambda: p.allocated_in_rust()[0]) <= 0
    assert capi.least_growth(hundred, sys.getallocatedblocks) < 50
    assert (capi.references(probe), capi.references(bad)) == (held, held_bad)
    assert bad.deleted == 2 * 5 * 100


def test_leaks_are_counted():
    """The control for tests of growth: each tensor that is kept is one more block of Rust and object of Python."""
    probe, kept = p.Probe([4]), []

    def hundred():
        kept.extend([p.take(probe) for _ in range(100)])

    assert capi.least_growth(hundred, lambda: p.allocated_in_rust()[0]) >= 100
    # If Python allocates only by malloc, as under a sanitizer, it counts no blocks.
    assert capi.least_growth(hundred, sys.getallocatedblocks) >= 100 or not sys.getallocatedblocks()


@pytest.mark.parametrize("method", ["__dlpack__", "__dlpack_device__"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError, ValueError])
def test_inspecting_is_interrupted(method, kind):
    """An exception that says nothing about the object is passed on, and no other method is called."""
    calls = []

    class Producer:
        def __dlpack_device__(self):
            return self.answer("__dlpack_device__", (1, 0))

        def __dlpack__(self, **_):
            return self.answer("__dlpack__", None)

        def answer(self, name, value):
            calls.append(name)
            if name == method:
                raise kind("of the producer")
            return value

    if kind is ValueError:
        assert "ValueError'>: of the producer" in p.inspect(Producer())
        return
    with pytest.raises(kind, match="of the producer"):
        p.inspect(Producer())
    assert calls[-1] == method and calls.count(method) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, ValueError])
def test_inspecting_an_exception_is_interrupted(kind):
    class Class(type):
        def __str__(cls):
            if cls is OfClass:
                raise kind("of the class")
            return type.__str__(cls)

    class OfClass(Exception, metaclass=Class):
        pass

    class OfText(Exception, metaclass=Class):
        def __str__(self):
            raise kind("of the text")

    class Producer:
        def __dlpack_device__(self):
            raise error

    for error, words in (OfClass(), "of the class"), (OfText(), "of the text"):
        if kind is ValueError:
            assert "<unprintable " in p.inspect(Producer())
            continue
        with pytest.raises(kind, match=words):
            p.inspect(Producer())


def test_inspecting():
    """CAP-20: `inspect` describes what a producer exports, and keeps nothing."""
    probe = p.Probe([2, 3])
    held = capi.references(probe)
    text = p.inspect(probe)
    for word in ["float32", "2, 3", "read"]:
        assert word in text.lower(), text
    assert capi.references(probe) == held
    for thing in [object(), 7]:
        try:
            assert p.inspect(thing)
        except Exception as error:
            assert "__dlpack" in str(error)
    foreign = capi.Foreign(version=(2, 0))
    try:
        assert p.inspect(foreign)
    except BufferError:
        pass
    assert foreign.deleted >= 1


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (0, "none"),
        (capi.READ_ONLY, "read-only"),
        (capi.IS_COPIED, "copied"),
        (capi.PADDED, "padded"),
        (capi.READ_ONLY | capi.IS_COPIED | capi.PADDED, "read-only, copied, padded"),
        (1 << 40, "and some that are not known"),
        (capi.PADDED | 1 << 3, "padded, and some that are not known"),
    ],
)
def test_inspecting_names_each_flag(flags, names):
    """FLG-08: `inspect` names exactly the flags that are set."""
    text = p.inspect(capi.Foreign(flags=flags, dtype=(17, 4, 1)))
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    assert [words[1] for words in lines if words[0] == "flags"] == [names, names], text
    dtype = "float4_e2m1fn, one a byte" if flags & capi.PADDED else "float4_e2m1fn"
    assert [words[1] for words in lines if words[0] == "dtype"] == [dtype, dtype], text


def test_inspecting_tells_the_address():
    """`inspect` prints the address of the data, and the largest power of two that divides it, up to a page."""
    foreign = capi.Foreign()
    address = c.addressof(foreign.memory)
    alignment = min(address & -address, 4096)
    assert f"{address:#x}, a multiple of {alignment}\n" in p.inspect(foreign)
    foreign.managed.dl_tensor.data = None
    (line,) = {line.strip() for line in p.inspect(foreign).splitlines() if line.strip().startswith("data ")}
    assert line.split() == ["data", "null"]


@pytest.mark.parametrize("legacy", [True, False])
def test_inspecting_lists_that_are_not_aligned(legacy):
    """Own faults 11: `inspect` reports misaligned lists, and does not read them."""
    foreign = capi.Foreign(legacy=legacy)
    shape = (c.c_char * 24)()
    foreign.managed.dl_tensor.shape = c.cast(c.addressof(shape) + 1, c.POINTER(c.c_int64))
    assert "no multiple of 8" in p.inspect(foreign)


def beside(thing, offset):
    """The address of a copy of a ctypes struct, this many bytes after an aligned address, and the object that keeps it."""
    memory = c.create_string_buffer(c.sizeof(thing) + 64)
    address = -(-c.addressof(memory) // 64) * 64 + offset
    c.memmove(address, c.addressof(thing), c.sizeof(thing))
    return address, memory


@pytest.mark.parametrize("offset", [1, 4])
@pytest.mark.parametrize("legacy", [True, False])
def test_structs_that_are_not_aligned(legacy, offset):
    """Own faults 11: neither an import nor `inspect` reads a misaligned struct; the capsule keeps it."""
    foreign = capi.Foreign(legacy=legacy)
    address, memory = beside(foreign.managed, offset)
    name = capi.LEGACY if legacy else capi.VERSIONED
    foreign.capsule = lambda: capi.make_capsule(address, name)
    capsule = foreign.capsule()
    for act in [lambda: p.take(foreign), lambda: p.take(capsule), lambda: p.adopt(foreign)]:
        with pytest.raises(BufferError, match=rf"no multiple of 8 \({address}\)"):
            act()
    assert capi.capsule_name(capsule) == name.value
    assert "no multiple of 8" in p.inspect(foreign)
    assert foreign.deleted == 0
    del memory


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_tables_that_are_not_aligned(offset):
    """Own faults 11: a misaligned table, or a misaligned tensor from a table, is not read."""
    foreign = capi.Foreign()
    tensor, memory = beside(foreign.managed, offset)
    given = {"tensor": tensor}
    table = a_table(lambda producer: given["tensor"])

    class Fast(capi.Foreign):
        __dlpack_c_exchange_api__ = capi.make_capsule(c.addressof(table), capi.EXCHANGE)

    class Odd(capi.Foreign):
        elsewhere, memory = beside(table, offset)
        __dlpack_c_exchange_api__ = capi.make_capsule(elsewhere, capi.EXCHANGE)

    foreign.callback = capi._DELETER(lambda address: None)
    capi.Versioned.from_address(tensor).deleter = c.cast(foreign.callback, c.c_void_p).value
    if offset == 0:
        assert p.look(Fast())["floats"] == p.look(Odd())["floats"]
        return
    with pytest.raises(BufferError, match="no multiple of 8"):
        p.take(Fast())
    odd = Odd()
    assert p.look(odd)["floats"] and odd.deleted == 1
    assert p.inspect(odd).endswith("none\n")
    given["tensor"] = None
    with pytest.raises(BufferError, match="returned no tensor"):
        p.take(Fast())
    del memory


def test_a_long_chain_of_tensors():
    """Own faults 5: each tensor keeps the one before; the release of the last, and so of all of them, is not recursive."""
    alive = p.alive()
    tensor = p.Tensor.from_dlpack(p.Probe([2]))
    for _ in range(50_000):
        tensor = p.Tensor.from_dlpack(tensor)
    del tensor
    assert p.alive() == alive


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize("make", [lambda: p.Probe([2]), lambda: p.Mutable([1.0]), capi.Foreign, lambda: p.Owned([1.0])])
def test_tensors_kept_by_rust(make, thread):
    """CAP-13, CAP-28, faults 32, 35: Rust releases tensors without the GIL, on its own thread or on this one."""
    producer = make()
    held = capi.references(producer)
    for _ in range(3):
        p.keep(producer)
    p.let_go(thread=thread, detached=True)
    assert capi.references(producer) == held
    if isinstance(producer, capi.Foreign):
        assert producer.deleted == 3
    p.keep(producer)
    p.let_go(thread=False, detached=False)
    assert capi.references(producer) == held


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "bfloat16", "complex64", "float8_e5m2"])
def test_foreign_data_types(name):
    """DTY-18, fault 71: foreign data types are imported and exported with their code."""
    source = p.Probe([4], name)
    first = p.take(source)
    second = p.take(first)
    assert second.dtype == name
    seen = capi.export(second)
    assert seen.tobytes() == source.tobytes()
    seen.release()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"])
def test_arrays_of_ml_dtypes(numpy, name):
    """Fault 71: NumPy exports no array of these data types, which is read by its fields."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = numpy.arange(12, dtype="f4").astype(getattr(ml_dtypes, name)).reshape(3, 4)[:, ::2]
    tensor = p.take(array)
    assert (tensor.dtype, tensor.shape, tensor.strides) == (name, (3, 2), (4, 2))
    assert tensor.data_ptr == array.ctypes.data
    assert not tensor.readonly
    back = tensor.numpy()
    assert back.dtype == array.dtype and back.tobytes() == array.tobytes()
    array.flags.writeable = False
    assert p.take(array).readonly
    held = capi.references(array)
    del tensor, back
    gc.collect()
    assert capi.references(array) <= held


@pytest.mark.parametrize("device", [None, (1, 0)])
@pytest.mark.parametrize("copy", [None, False, True])
def test_a_request_for_an_array_of_ml_dtypes(numpy, device, copy):
    """NumPy exports no such array."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = numpy.arange(12, dtype="f4").astype(ml_dtypes.bfloat16).reshape(3, 4)[:, ::2]
    tensor = p.Tensor.from_dlpack(array, device=device, copy=copy)
    assert tensor.dtype == "bfloat16" and tensor.tolist() == array.astype("f4").tolist()
    assert (tensor.data_ptr == array.ctypes.data) is (copy is not True)
    # A `ValueError` of NumPy before 2.3.
    with pytest.raises((BufferError, ValueError)):
        p.Tensor.from_dlpack(array, device=(2, 0), copy=copy)
    with pytest.raises(BufferError):
        p.Tensor.from_dlpack(array.astype(ml_dtypes.int4), device=device, copy=copy)


@pytest.mark.parametrize("request_", ["copy=True", "copy=False", "device=(1, 0)"])
def test_a_request_that_is_the_first_import(script, request_):
    pytest.importorskip("ml_dtypes")
    script(f"""
import dlpack_probe as p, ml_dtypes, numpy as np
assert p.Tensor.from_dlpack(np.ones(3, ml_dtypes.bfloat16), {request_}).tolist() == [1.0] * 3
""")


def test_arrays_of_ml_dtypes_that_have_no_equal(numpy):
    """Items of four bits would have to be packed, and an imitation is not trusted."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in [ml_dtypes.float4_e2m1fn, ml_dtypes.int4, numpy.dtype([("bfloat16", "u2")]), "datetime64[s]", "S2"]:
        with pytest.raises((BufferError, TypeError)):
            p.take(numpy.zeros(2, dtype))


def test_a_renamed_type_of_ml_dtypes(numpy, script):
    """The items of a type that only calls itself `bfloat16` have another size; other integers are not imported by their names."""
    pytest.importorskip("ml_dtypes")
    ended = script(
        """
import dlpack_probe as p
import ml_dtypes
import numpy as np

arrays = [np.zeros((), ml_dtypes.int4), np.zeros(5, ml_dtypes.int4)[::2]]
for ml_dtypes.int4.__name__ in ["bfloat16", "int8"]:
    for array in arrays:
        try:
            print(p.take(array).dtype)
        except (BufferError, TypeError):
            print("refused")
"""
    )
    assert ended.out.split() == ["refused"] * 4


@pytest.mark.parametrize("legacy", [True, False])
def test_a_foreign_deleter_runs_beside_an_exception(legacy):
    """CAP-16: the list is dropped while the exception is pending, and the deleter is Python code."""
    foreign = capi.Foreign(legacy=legacy)
    with pytest.raises(ZeroDivisionError):
        [p.take(foreign), 1 / 0]
    assert foreign.deleted == 1


def test_modules_that_a_program_replaced(script):
    """`ctypes` and NumPy are asked for addresses. A mock of them would answer with any number, which must not be called. Without
    `ctypes` a module for the stable ABI finds no buffer; it looks again at the next import."""
    script("""
import contextlib
import sys
from types import SimpleNamespace
from unittest import mock
import ctypes

import dlpack_probe as p

def take_and_release():
    data = bytearray(b"abc")
    with contextlib.suppress(AttributeError):
        assert p.take(data).tolist() == [97, 98, 99]
    data.append(1)

for replaced in "cast", "c_void_p", "pythonapi", "PyDLL":
    with mock.patch.object(ctypes, replaced):
        take_and_release()
with mock.patch.dict(sys.modules, ctypes=mock.MagicMock()):
    take_and_release()
    with contextlib.suppress(AttributeError):
        p.take(object())
assert p.Tensor.from_dlpack(b"abc").tolist() == [97, 98, 99]
assert p.take(memoryview(b"abc")).shape == (3,)
take_and_release()
try:
    import numpy as np
except ImportError:
    sys.exit()
real = sys.modules["numpy._core._multiarray_umath"]
for fake in mock.MagicMock(), SimpleNamespace(_ARRAY_API=real._UFUNC_API):
    sys.modules["numpy._core._multiarray_umath"] = fake
    assert p.take(np.arange(3)).tolist() == [0, 1, 2]
""")


def test_a_data_type_that_a_program_replaced(numpy, script):
    """NumPy's C function reads the object that `numpy.dtype` returns as the struct of a data type."""
    pytest.importorskip("ml_dtypes")
    script("""
from types import SimpleNamespace
from unittest import mock
import ml_dtypes
import numpy as np

import dlpack_probe as p

tensor = p.take(np.array([1, 2], ml_dtypes.float8_e5m2))
for replacement in mock.MagicMock(), lambda scalar: SimpleNamespace(itemsize=1):
    with mock.patch.object(np, "dtype", replacement):
        try:
            tensor.numpy()
            raise AssertionError("an array of no data type")
        except BufferError as error:
            assert "NumPy has no data type for float8_e5m2" in str(error), error
assert tensor.numpy().tolist() == [1, 2]
""")


def test_finalizers_that_need_what_is_being_made(numpy, script):
    """Classes, tuples and imports are made at their first use. A finalizer that runs meanwhile, at any allocation, needs the same
    class, and does not wait for it on the thread that makes it."""
    script("""
import gc, os, signal

import numpy
import dlpack_probe as p

if not hasattr(os, "fork"):
    raise SystemExit

class Garbage:
    def __init__(self):
        self.cycle = self

    def __del__(self):
        first_uses()

def first_uses():
    tensor.numpy()
    memoryview(tensor)
    p.take(Producer())

class Producer:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        return array.__dlpack__(**keywords)

array = numpy.arange(3)
tensor = p.take(numpy.arange(3))
for allocations in range(1, 80):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        gc.disable()
        Garbage()
        gc.set_threshold(allocations)
        gc.enable()
        first_uses()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, (allocations, status)
""")


@pytest.mark.parametrize("name", ["ctypes", "pickle"])
def test_import_hooks_that_need_what_is_being_imported(script, name):
    """The import of a module at its first use may run Python code, which may need the same module."""
    script(
        """
import faulthandler, os, pickle, sys

import dlpack_probe as p

tensor = p.take(b"abc")
name = os.environ["NAME"]

def use():
    data = bytearray(b"abc")
    p.take(data)
    data.append(1)
    tensor.__reduce_ex__(5)

class Hook:
    def find_spec(self, module, path=None, target=None):
        if module == name:
            sys.meta_path.remove(self)
            use()

sys.modules.pop(name, None)
sys.meta_path.insert(0, Hook())
faulthandler.dump_traceback_later(30, exit=True)
use()
""",
        NAME=name,
    )


@pytest.mark.parametrize("attribute", ["mask", "state"])
@pytest.mark.parametrize("legacy", [True, False])
def test_a_refused_setter_raises_its_error_beside_a_foreign_deleter(legacy, attribute):
    """CAP-16: the deleter is Python code that handles exceptions of its own, and runs while the setter's exception is set."""

    class Deleted(capi.Foreign):
        def _delete(self, tensor):
            getattr(self, "log", None)
            super()._delete(tensor)

    foreign = Deleted(legacy=legacy)
    with pytest.raises((TypeError, ValueError), match=f"`{attribute}` of `Settings` cannot be set to an array"):
        setattr(p.Settings(2), attribute, foreign)
    assert foreign.deleted >= 1


@pytest.mark.parametrize(
    "attribute, array, kind, text",
    [
        ("state", "i8", TypeError, "cannot be set: expected dtype float64, found int64"),
        ("state", "f8", ValueError, "cannot be set: .* not contiguous.*; pass numpy.ascontiguousarray"),
        ("mask", "?", ValueError, "cannot be set: "),
    ],
)
def test_a_refused_setter_whose_array_is_a_capsule(attribute, array, kind, text):
    """A capsule can be imported only once, so the message says nothing of its shape."""
    np = pytest.importorskip("numpy")
    capsule = np.zeros(7, array)[::2].__dlpack__(max_version=(1, 0))
    with pytest.raises(kind, match=f"`{attribute}` of `Settings` {text}"):
        setattr(p.Settings(2), attribute, capsule)


def test_a_setter_that_needs_a_contiguous_array():
    np = pytest.importorskip("numpy")
    settings = p.Settings(2)
    with pytest.raises(ValueError, match=r"to an array of float64 of shape \(4,\): .*; pass numpy\.ascontiguousarray\(x\)$"):
        settings.state = np.zeros(7)[::2]
    settings.state = np.ascontiguousarray(np.arange(7.0)[::2])
    assert np.asarray(settings.state).tolist() == [0.0, 2.0, 4.0, 6.0]
    # What the message says is what helps.
    for array in (np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(2, 6)[:, ::2]):
        with pytest.raises(ValueError, match=r"array of float64 of shape \(2, 3\): it is not (.*), with strides .*; pass") as refused:
            settings.kept_matrix = array
        assert ("numpy.asfortranarray(x)" in str(refused.value)) and ("for a field in" in str(refused.value)) is not array.flags.c_contiguous
        if array.flags.c_contiguous:
            assert str(refused.value).endswith("it is not in Fortran order, with strides (3, 1); pass numpy.asfortranarray(x)")
        settings.kept_matrix = np.asfortranarray(array)
        assert np.asarray(settings.kept_matrix).tolist() == array.tolist()


def test_an_adoption_that_needs_a_contiguous_array():
    np = pytest.importorskip("numpy")
    array = np.arange(6.0, dtype="f4")[::2]
    with pytest.raises(BufferError, match=r"shape \[3\] with strides \[2\] does not have the contiguous layout .* in NumPy with `ascontiguousarray`"):
        p.adopt(array)
    assert np.asarray(p.adopt(np.ascontiguousarray(array))).tolist() == array.tolist()
