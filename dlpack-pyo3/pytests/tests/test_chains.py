"""Repeated round trips of one memory through Python and back to a field or class: no intermediate object is kept.

In at least one of several rounds the number of Python's blocks grows by almost nothing. A chain adds some for each of its links,
whatever other code does.
"""

import array
import functools
import gc
import pickle
import sys
import weakref

import capi
import dlpack_probe as p
import pytest

TIMES = 300


def grows(step):
    """The smallest number of Python blocks that a round adds."""
    found = []
    for _ in range(5):
        gc.collect()
        found.append(sys.getallocatedblocks())
        for _ in range(TIMES):
            step()
    return min(after - before for before, after in zip(found, found[1:]))


def few(blocks):
    return blocks < TIMES // 2


def filled(len):
    settings = p.Settings(len)
    settings.state = array.array("d", range(1, len + 1))
    return settings


@pytest.mark.skipif(sys.getallocatedblocks() == 0, reason="with PYTHONMALLOC=malloc Python does not count its blocks")
def test_the_control_grows():
    """The control: a chain with as many links is noticed."""
    chain = []

    def step():
        chain[:] = [[*chain]]

    assert not few(grows(step))


SETS = {
    "itself": lambda it: setattr(it, "state", it.state),
    "a part": lambda it: setattr(it, "state", it.state[:]),
    "an import": lambda it: setattr(it, "state", p.take(it.state)),
    "a buffer": lambda it: setattr(it, "state", memoryview(it.state)),
    "a part of a buffer": lambda it: setattr(it, "state", memoryview(it.state)[0:]),
    "a capsule": lambda it: setattr(it, "state", it.state.__dlpack__(max_version=(1, 3))),
    "a pickle": lambda it: setattr(it, "state", loaded(it.state)),
}


def loaded(thing):
    """The same memory, after pickling without a copy."""
    buffers = []
    data = pickle.dumps(thing, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers)


def restored(thing):
    make, values = thing.__reduce_ex__(5)
    return make(*values)


@pytest.mark.parametrize("way", SETS)
def test_a_field_that_is_set_to_itself(way):
    """A field that is set to itself keeps its memory, and no tensor over it."""
    settings, set = p.Settings(3), SETS[way]
    address = settings.state.data_ptr
    alive = p.alive()
    blocks = grows(lambda: set(settings))
    assert few(blocks), blocks
    assert p.alive() == alive and settings.state.data_ptr == address
    assert not settings.state.readonly
    assert memoryview(settings.state).tolist() == [0.0, 0.0, 0.0]


def array_in_pickle(numpy, state):
    return loaded(numpy.asarray(state))


ARRAYS = {
    "an array over the buffer": lambda numpy, state: numpy.asarray(state),
    "a part of an array": lambda numpy, state: numpy.asarray(state)[:],
    "the result of a function": lambda numpy, state: numpy.add(state, 1, out=numpy.asarray(state)),
    "an array over an import": lambda numpy, state: numpy.from_dlpack(state),
    "an array of a method": lambda numpy, state: state.numpy(),
    "an array over a value": lambda numpy, state: p.to_numpy(p.take(state)),
    "a result": lambda numpy, state: p.adopted_numpy(state),
    "an array over bytes": lambda numpy, state: numpy.frombuffer(state),
    "a memoryview of an array": lambda numpy, state: memoryview(numpy.asarray(state)),
    "a pickle buffer of an array": lambda numpy, state: pickle.PickleBuffer(numpy.asarray(state)),
    "a pickled array": array_in_pickle,
    "a window": lambda numpy, state: numpy.lib.stride_tricks.sliding_window_view(numpy.asarray(state), 3, writeable=True)[0],
    "strided": lambda numpy, state: numpy.lib.stride_tricks.as_strided(numpy.asarray(state)),
}


@pytest.mark.parametrize("way", ARRAYS)
def test_a_field_that_is_set_to_an_array_over_itself(way, numpy):
    """No array is kept, nor what it is based on."""
    if "import" in way and tuple(map(int, numpy.__version__.split(".")[:2])) < (2, 1):
        pytest.skip("older versions import a legacy tensor, which has no flags: its array is read-only")
    settings, array = p.Settings(3), ARRAYS[way]
    address = settings.state.data_ptr

    def step():
        settings.state = array(numpy, settings.state)

    step()
    alive = p.alive()
    blocks = grows(step)
    assert few(blocks), blocks
    assert p.alive() == alive and settings.state.data_ptr == address
    assert not settings.state.readonly


class Users:
    """The number of users of a lease."""

    def __init__(self):
        self.number = 1

    def end(self):
        self.number -= 1


def array_with_del(numpy, part, users):
    class Lease(numpy.ndarray):
        def __del__(self):
            users.end()

    return part.view(Lease)


def watched(part, users):
    weakref.finalize(part, users.end)
    return part


class Slot:
    """Lends a part, and is told when a user has released it."""

    def __init__(self, part, users):
        self.part, self.users = part, users
        users.number = 0

    def __buffer__(self, flags):
        self.users.number += 1
        return memoryview(self.part)

    def __release_buffer__(self, view):
        view.release()
        self.users.end()


class Based:
    def __init__(self, base, users):
        self.__array_interface__, self.base = base.__array_interface__, base
        weakref.finalize(self, users.end)


LEASES = {
    "an array of a derived class": array_with_del,
    "a memoryview of it": lambda numpy, part, users: memoryview(array_with_del(numpy, part, users))[:],
    "a memoryview of an array with a weak reference": lambda numpy, part, users: memoryview(watched(part, users)),
    "an object with a base": lambda numpy, part, users: numpy.asarray(Based(part, users)),
}
if sys.version_info >= (3, 12):
    LEASES |= {
        "a buffer": lambda numpy, part, users: Slot(part, users),
        "a memoryview of a buffer": lambda numpy, part, users: memoryview(Slot(part, users)),
        "an array over a buffer": lambda numpy, part, users: numpy.frombuffer(Slot(part, users)),
    }


@pytest.mark.parametrize("way", LEASES)
@pytest.mark.parametrize("use", ["take", "set"])
def test_a_lease_lasts_as_long_as_its_user(way, use, numpy):
    """An object that code watches, or that has code for its end, is kept until the import ends, also over memory of ours."""
    users, settings = Users(), filled(8)
    user = filled(1)
    lease = LEASES[way](numpy, numpy.asarray(settings.state)[2:5], users)
    if use == "take":
        imported = p.take(lease)
    else:
        user.state = lease
        imported = user.state
    del lease
    gc.collect()
    assert users.number == 1 and imported.tolist() == [3.0, 4.0, 5.0]
    del imported
    user.state = array.array("d", [0.0])
    gc.collect()
    assert users.number == 0


def test_a_value_lasts_as_long_as_its_array(numpy):
    """Also a value whose memory is shared: its end may have an effect."""
    alive = p.alive()
    arrays = p.slotted()
    gc.collect()
    assert p.alive() == alive + 2
    assert [array.tolist() for array in arrays] == [[1.0, 2.0]] * 2
    del arrays
    gc.collect()
    assert p.alive() == alive


@pytest.mark.parametrize("links", [20_000])
def test_a_long_chain_is_released_without_recursion(links, numpy):
    """Each link is an array over a capsule with a tensor over the link before, in an object that no import looks behind. The stack
    has no space for a call of each link's deleter inside that of the one before."""
    settings = filled(3)
    for _ in range(links):
        settings.state = capi.Relay(numpy.from_dlpack(settings.state))
    assert settings.state.tolist() == [1.0, 2.0, 3.0]
    alive = p.alive()
    del settings
    gc.collect()
    assert p.alive() < alive


def test_deleters_of_another_library_see_no_exception():
    """An exception is pending while CPython drops the items of a display. The deleter of a tensor, which runs Python code, must not
    see it: in a field of an object, and at the end of a chain in which it is queued."""

    class Node(p.Picture):
        pass

    def chain(links):
        top = p.take(capi.Foreign(shape=(1,), dtype=(2, 64, 1)))
        for _ in range(links):
            node = Node(1, 1)
            node.next = top
            top = memoryview(node)
        return node.__dlpack__(max_version=(1, 0))

    def field():
        settings = p.Settings(1)
        settings.state = capi.Foreign(shape=(3,), dtype=(2, 64, 1))
        return settings

    for make in [field, *(functools.partial(chain, links) for links in (1, 15, 16, 17, 40))]:
        made = [make()]
        with pytest.raises(ZeroDivisionError):
            [made.pop(), 1 / 0]
        gc.collect()


def test_fields_that_change_places():
    """Three objects exchange their memory in a circle."""
    things = [filled(2) for _ in range(3)]
    addresses = {it.state.data_ptr for it in things}

    def step():
        states = [it.state for it in things]
        for it, state in zip(things, states[1:] + states[:1]):
            it.state = state

    blocks = grows(step)
    assert few(blocks), blocks
    assert {it.state.data_ptr for it in things} == addresses


def test_a_slice_of_a_field_keeps_its_memory():
    """After many slices, the rest of the memory is still valid and writable."""
    settings = filled(8)
    address = settings.state.data_ptr
    for _ in range(7):
        settings.state = settings.state[1:]
    gc.collect()
    assert settings.state.tolist() == [8.0] and settings.state.data_ptr == address + 56
    memoryview(settings.state)[0] = 9.0
    assert settings.state.tolist() == [9.0]
    kept = settings.state
    del settings
    gc.collect()
    assert kept.tolist() == [9.0]


def test_adopted_memory_is_kept_until_the_last_use():
    """Adopted memory is released with the last object that keeps it, whatever objects were in between."""
    foreign = capi.Foreign(shape=(3,), dtype=(2, 64, 1))
    settings = p.Settings(1)
    settings.state = foreign
    for _ in range(5):
        settings.state = settings.state
        settings.state = loaded(settings.state)
    kept = settings.state
    del settings
    gc.collect()
    assert foreign.deleted == 0
    del kept
    gc.collect()
    assert foreign.deleted == 1


def test_an_array_of_a_tensor_keeps_a_frozen_object_itself(numpy):
    """Not the tensor in between. Any other object is kept through its tensor, which has it borrowed."""
    for owner, keeps_owner in [(p.Probe([2]), True), (p.Mutable([1.0]), False)]:
        tensor = p.take(owner)
        before = [capi.references(tensor), capi.references(owner)]
        array = tensor.numpy()
        after = [capi.references(tensor), capi.references(owner)]
        more = [count - old for count, old in zip(after, before)]
        assert more == ([0, 1] if keeps_owner else [1, 0]), array


def test_read_only_memory_stays_read_only():
    """A read-only view of writable memory stays read-only, and so does a field that adopted read-only memory."""
    settings = filled(2)
    settings.state = memoryview(settings.state).toreadonly()
    for _ in range(3):
        assert settings.state.readonly
        settings.state = settings.state
    settings.state = memoryview(array.array("d", [1.0, 2.0])).toreadonly()
    settings.state = loaded(settings.state)
    assert settings.state.readonly and settings.state.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("way", [restored, loaded])
@pytest.mark.parametrize("make", [p.Canvas, p.Plate, lambda len: filled(len).state], ids=["owner", "object", "tensor"])
def test_pickled_without_a_copy_again_and_again(make, way):
    """Each round has the same memory, and keeps no memoryview, tensor or object of the round before."""
    first = make(4)
    held = [first]

    def step():
        held[0] = way(held[0])

    step()
    alive = p.alive()
    blocks = grows(step)
    assert few(blocks), blocks
    assert p.alive() <= alive
    address = capi.export(first)
    now = capi.export(held[0])
    assert now.data == address.data
    now.release(), address.release()
