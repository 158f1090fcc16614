"""Reference cycles through a buffer, which the garbage collector frees; and the order in which an export releases what it keeps."""

import array
import gc
import sys
import weakref

import capi
import dlpack_probe as p
import pytest


class Frozen(p.Own):
    """A class in Python, whose objects have a `__dict__`."""


class Borrowed(p.Mutable):
    """Its buffers keep the shared borrow."""


class Alone(p.Exclusive):
    """Its buffers keep the exclusive borrow."""


class Bytes(bytearray):
    """A class without our code, as a control."""


class Doubles(array.array):
    """A class without our code, as a control."""

    def __new__(cls, items):
        return super().__new__(cls, "d", items)


# Older versions of PyO3 hide the `__dict__` of a class from the collector, and so every cycle through it.
OURS = {"Frozen": Frozen, "Borrowed": Borrowed, "Alone": Alone} | ({"Open": p.Open} if gc.is_tracked(p.Open([0.0])) else {})
CONTROLS = {"bytearray": lambda items: Bytes(8 * len(items)), "array.array": Doubles}
ALL = OURS | CONTROLS


def is_collected(make, store):
    """Whether a collection frees an object after `store` made a cycle of it."""

    class Mark:
        pass

    thing, mark = make([1.0, 2.0]), Mark()
    gone, thing.mark = weakref.ref(mark), mark
    del mark
    store(thing)
    del thing
    assert gone() is not None
    gc.collect()
    return gone() is None


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_cycles_through_a_memoryview_are_collected(make):
    """The object behind a buffer shows the collector what it keeps: of a class with a `__dict__`, a frozen or a borrowed one, and
    of slices."""
    before = p.alive()
    for cut in [lambda view: view, lambda view: view[1:], lambda view: [view, memoryview(view)]]:
        assert is_collected(make, lambda thing: setattr(thing, "view", cut(memoryview(thing))))
        assert p.alive() == before


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_cycles_of_two_objects_are_collected(make):
    """Each object has a buffer of the other."""

    def store(thing):
        other = make([3.0])
        thing.view, other.view = memoryview(other), memoryview(thing)

    assert is_collected(make, store)


@pytest.mark.leaks
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_cycles_through_an_array_of_numpy(numpy, make):
    """The collector does not traverse a NumPy array, whatever lends the memory; `bytearray` is the control."""
    if gc.is_tracked(numpy.zeros(3)):
        pytest.skip("this NumPy shows the collector what its arrays keep")
    assert not is_collected(make, lambda thing: setattr(thing, "array", numpy.asarray(memoryview(thing))))
    if make in OURS.values():
        assert not is_collected(make, lambda thing: setattr(thing, "array", numpy.asarray(thing)))


@pytest.mark.parametrize("make", OURS.values(), ids=OURS)
def test_what_the_collector_sees(make):
    """The collector finds the object once for each lender, and no lender shows anything else."""
    thing = make([1.0])
    # From Python 3.12 on, a wrapper object of Python is in between.
    view = thing.__buffer__(0) if sys.version_info >= (3, 12) else memoryview(thing)
    lender = view.obj
    assert gc.is_tracked(lender)
    assert [it for it in gc.get_referents(lender) if it is not type(lender)] == [thing]


@pytest.mark.parametrize("make", OURS.values(), ids=OURS)
def test_no_memory_is_released_under_a_buffer(make):
    """The memory of an object that is garbage stays until its buffer is released, because it may still be read or resurrected."""
    read, kept = [], []

    class Last(make):
        def __del__(self):
            read.append(self.view[0])
            kept.append(memoryview(self.view))

    thing = Last([7.0])
    thing.view = memoryview(thing)
    before = p.alive()
    del thing
    gc.collect()
    assert read == [7.0] and p.alive() == before
    # The object was resurrected, because its memory is still read.
    assert kept[0][0] == 7.0
    kept.clear()
    gc.collect()
    assert p.alive() == before - 1


def test_a_buffer_outside_keeps_a_cycle():
    """A reader that is not part of the garbage keeps the cycle."""
    thing = Borrowed([5.0])
    thing.me, view, before = thing, memoryview(thing), p.alive()
    del thing
    gc.collect()
    assert view[0] == 5.0 and p.alive() == before
    view.release()
    gc.collect()
    assert p.alive() == before - 1


# -- the order of releases ------------------------------------------------------------------------------


WAYS = {
    "capsule": lambda owner: [owner.__dlpack__(max_version=(1, 0))].clear,
    "deleter": lambda owner: capi.export(owner).release,
    "deleter, not attached": lambda owner: lambda seen=capi.export(owner): seen.release(gil=False),
    "table": lambda owner: capi.Exchange(type(owner)).from_object(owner).release,
    "tensor": lambda owner: [p.take(owner)].clear,
    "memoryview": lambda owner: memoryview(owner).release,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [p.Mutable, p.Exclusive])
def test_the_borrow_ends_before_the_object_goes(cls, way):
    """CAP-18: a `__del__` that runs when the last export ends finds its object no longer borrowed, and can change it."""
    said = []

    class Last(cls):
        def __del__(self):
            try:
                self.push(2.0)
            except RuntimeError as error:
                said.append(str(error))
            else:
                said.append(len(self))

    owner = Last([1.0])
    release = WAYS[way](owner)
    del owner
    gc.collect()
    assert not said
    release()
    gc.collect()
    assert said == [2]
