"""What an export keeps borrowed, and what it does not."""

import gc
import operator
import re
import sys
import weakref

import capi
import dlpack_probe as p
import pytest

WAYS = {
    "method": lambda owner: capi.export(owner),
    "legacy": lambda owner: capi.consume(owner.__dlpack__()),
    "table": lambda owner: capi.Exchange(type(owner)).from_object(owner),
}


@pytest.mark.parametrize("way", ["method", "table"])
def test_a_mutable_class_is_held(way):
    """CAP-18, FLG-05: while an export lives, methods that may move the memory fail; afterwards they succeed."""
    owner = p.Mutable([1.0, 2.0])
    first, second = WAYS[way](owner), WAYS[way](owner)
    for change in [owner.clear, lambda: owner.push(3.0)]:
        with pytest.raises(RuntimeError, match="borrowed"):
            change()
    assert owner.get(0) == 1.0 and len(owner) == 2
    assert first.flags & capi.READ_ONLY
    first.release()
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.clear()
    assert second.floats() == [1.0, 2.0]
    second.release(gil=False)
    owner.push(3.0)
    assert len(owner) == 3


def test_the_error_of_a_method_names_the_array():
    """CAP-18: a method that fails because of an array says so, and what to do, unlike PyO3's "Already borrowed"; other errors are
    unchanged."""
    shared = (
        "Already borrowed: this `Mutable` cannot be changed while an array that shares its data is alive; drop that array first "
        "(`del array`), or make it a copy (`numpy.array(obj)`). If there is none, another method of the object is running"
    )
    owner = p.Mutable([1.0])
    seen = capi.export(owner)
    for change in [owner.clear, lambda: owner.push(3.0), lambda: operator.setitem(owner, 0, 1.0)]:
        with pytest.raises(RuntimeError, match=re.escape(shared)):
            change()
    seen.release()
    with pytest.raises(TypeError, match=r"descriptor '.*' for 'dlpack_probe\.Mutable'|'Mutable'"):
        p.Mutable.clear(3)
    exclusive = p.Exclusive([1.0])
    seen = capi.export(exclusive)
    alone = "Already mutably borrowed: this `Exclusive` cannot be read while an array that writes to its data is alive; "
    for use in [lambda: exclusive.get(0), lambda: len(exclusive), lambda: exclusive.data_ptr]:
        with pytest.raises(RuntimeError, match=alone):
            use()
    seen.release()


@pytest.mark.skipif(not capi.SAYS_SIZES, reason="the C library does not say how much it gave")
@pytest.mark.parametrize("cls", [p.Open, p.Mutable, p.Bent, p.BentAlone])
@pytest.mark.parametrize("way", ["method", "table"])
def test_an_export_takes_one_small_block(cls, way):
    """The keepalive of object and borrow takes one pointer: with 3 axes, the block has 80 bytes of DLPack's struct, 48 of shape and
    strides, 8 for the table of its owner's type, and 8. The C library rounds the size up to its next size, by up to 8 bytes."""
    owner = cls([1.0, 2.0], *[[1, 1, 2]] * (cls in [p.Bent, p.BentAlone]))
    seen = WAYS[way](owner)
    assert capi.size_of_block(seen.address) <= 80 + 48 + 8 + 8 + 8
    seen.release()


@pytest.mark.parametrize("cls", [p.Bent, p.BentAlone])
def test_a_refusal_holds_nothing(cls):
    """CAP-21: a description that fails releases the borrow of the object."""
    owner = cls([1.0, 2.0], [3])
    held = capi.references(owner)
    for act in [*WAYS.values(), lambda owner: owner.__dlpack_device__()]:
        try:
            act(owner)
        except BufferError:
            pass
        else:
            assert act not in WAYS.values()
        owner.bend([3])
    assert capi.references(owner) == held
    owner.bend([2])
    seen = WAYS["method"](owner)
    assert seen.floats() == [1.0, 2.0]
    seen.release()


def test_an_unconsumed_capsule_holds_too():
    """CAP-04, CAP-18: the tensor in a capsule may be read at any time, so the capsule keeps the borrow."""
    owner = p.Mutable([1.0])
    capsule = owner.__dlpack__(max_version=(1, 0))
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.clear()
    del capsule
    owner.clear()


def test_a_copy_holds_nothing():
    """CPY-06, FLG-04: neither a requested copy nor one for a legacy consumer keeps the object."""
    owner = p.Mutable([1.0])
    copies = [owner.__dlpack__(), owner.__dlpack__(copy=True), owner.__dlpack__(copy=True, max_version=(1, 0))]
    owner.push(2.0)
    owner.clear()
    for capsule in copies:
        seen = capi.consume(capsule)
        assert seen.floats() == [1.0]
        seen.release()


def test_a_computed_tensor_keeps_nothing():
    """CAP-18: a tensor that is computed for the request does not keep the object."""
    owner = p.Doubled([1.0, 2.0])
    seen = capi.export(owner)
    owner.push(3.0)
    assert seen.floats() == [2.0, 4.0]
    assert seen.flags == capi.IS_COPIED
    seen.release()


def test_an_export_during_a_change():
    """ERR-01, CAP-18: an export while a method changes the object is a `BufferError`."""
    for owner in [p.Mutable([1.0]), p.Exclusive([1.0])]:
        for request in [{}, {"max_version": (1, 0)}, {"copy": True}]:
            with pytest.raises(BufferError, match="borrow"):
                owner.during_change(lambda: owner.__dlpack__(**request))
        seen = capi.export(owner)
        seen.release()


def test_an_export_during_a_read():
    """FLG-05: a read-only export is possible during a method with `&self`; a writable one is not."""
    owner = p.Mutable([1.0])
    owner.during_read(lambda: capi.export(owner)).release()
    exclusive = p.Exclusive([1.0])
    with pytest.raises(BufferError, match="borrow"):
        exclusive.during_read(lambda: exclusive.__dlpack__(max_version=(1, 0)))


@pytest.mark.parametrize("way", WAYS)
def test_a_writable_class_is_held_alone(way):
    """FLG-05, fault 30: a writable export excludes every method and every other export, until it ends."""
    owner = p.Exclusive([1.0, 2.0])
    seen = WAYS[way](owner)
    assert not (seen.versioned and seen.flags & capi.READ_ONLY)
    for use in [owner.clear, lambda: owner.push(1.0), lambda: owner.get(0), lambda: len(owner)]:
        with pytest.raises(RuntimeError, match="borrowed"):
            use()
    for request in [{}, {"max_version": (1, 0)}]:
        with pytest.raises(BufferError, match="borrow"):
            owner.__dlpack__(**request)
    capi.c.memmove(seen.data, b"\0\0\x80\x3f" * 2, 8)
    seen.release(gil=False)
    assert (owner.get(0), owner.get(1)) == (1.0, 1.0)
    capi.export(owner).release()


def test_shared_memory_holds_the_object_only():
    """FLG-05: shared memory that is written through `&` can have any number of writable exports."""
    owner = p.WProbe([2])
    one, two = capi.export(owner), capi.export(owner)
    assert one.flags == two.flags == 0
    capi.c.memmove(one.data, b"\0\0\x80\x3f", 4)
    assert two.floats()[0] == 1.0 and owner.tobytes() == two.tobytes()
    one.release()
    two.release()


def test_frozen_classes_hold_the_object_only():
    """FLG-02: exports of a frozen class are read-only and block no method, also if a lock guards other fields."""
    owner = p.Guarded([1.0])
    seen = capi.export(owner)
    assert seen.flags == capi.READ_ONLY
    assert owner.note("while exported") == 1
    seen.release()


@pytest.mark.parametrize("way", ["method", "table"])
def test_an_owner_field_frees_the_object(way):
    """CAP-15, CAP-18: memory of an `owner` field lives after the object changes or is dropped."""
    owner = p.Owned([1.0, 2.0])
    held = capi.references(owner)
    seen = WAYS[way](owner)
    assert capi.references(owner) == held
    assert owner.owners() == 2
    owner.replace([3.0])
    assert seen.floats() == [1.0, 2.0]
    alive = p.alive()
    seen.release(gil=False)
    assert p.alive() == alive - 1
    seen = WAYS[way](owner)
    del owner
    assert seen.floats() == [3.0]
    seen.release_on_foreign_thread()


@pytest.mark.parametrize("way", ["method", "table"])
def test_an_owner_that_keeps_other_memory_is_refused(way):
    with pytest.raises(BufferError, match="^`Copying`: a clone of the field marked `owner` does not hold the memory"):
        WAYS[way](p.Copying([1.0, 2.0]))


def test_errors_like_those_of_a_bytearray():
    """ERR-01: with the option, methods raise `BufferError`, too."""
    for owner, reading in [(p.Mutable([1.0]), True), (p.Exclusive([1.0]), False)]:
        seen = capi.export(owner)
        with pytest.raises(BufferError):
            owner.push_or_buffer_error(2.0)
        if reading:
            assert owner.get_or_buffer_error(0) == 1.0
        else:
            with pytest.raises(BufferError):
                owner.get_or_buffer_error(0)
        seen.release()
        owner.push_or_buffer_error(2.0)
        assert owner.get_or_buffer_error(1) == 2.0


def test_attributes_have_the_docs_of_their_fields():
    """The docstring of an attribute is the doc comment of its field, of a class or of its rows; otherwise a default text."""
    assert p.Batch.rewards.__doc__ == "One for each step."
    assert p.Tables.price.__doc__ == 'What was paid.\n\n  in "euros"'
    assert p.Tables.size.__doc__.startswith("The tensor `size`:")
    assert p.Tables.times.__doc__.startswith("The tensor `times`:")


def test_one_attribute_is_enough():
    """One attribute macro finds out whether a class is a tensor, has tensors by name, or both."""
    both, tensors, tensor = p.Batch, p.Tables, p.Owned
    for kind, methods in [(both, True), (tensors, False), (tensor, True)]:
        for name in ["__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"]:
            assert hasattr(kind, name) == methods, (kind, name)
    assert tensors.__dlpack_tensors__ == ("times", "price", "size", "side")
    assert tensor.__dlpack_tensors__ == ()


def test_attributes_are_tensors():
    """CAP-18, CAP-20: each tensor of a struct is an attribute that keeps the object."""
    owner = p.Batch(3)
    assert type(owner).__dlpack_tensors__ == ("rewards", "mask", "absent")
    rewards, mask = owner.rewards, owner.mask
    assert type(rewards) is p.Tensor
    assert (rewards.shape, rewards.dtype) == ((3,), "float64")
    assert (mask.shape, mask.dtype) == ((3, 2), "bool")
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.push()
    assert rewards.readonly
    seen = capi.export(rewards)
    del rewards, mask
    gc.collect()
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.push()
    seen.release()
    owner.push()
    assert owner.rewards.shape == (4,)
    with pytest.raises(BufferError, match="absent"):
        _ = owner.absent


def test_attributes_with_an_owner_free_the_object():
    """CAP-15, CAP-18: a tensor of a field with `owner` keeps only the field; one without keeps the object."""
    owner = p.Simulation(3)
    held = capi.references(owner)
    state, reward = owner.state, owner.reward
    assert capi.references(owner) == held
    seen = capi.export(state)
    owner.step()
    assert seen.floats() == [1.0] * 3 and not state.readonly
    capi.c.memmove(seen.data, b"\0\0\0\x40", 4)
    owner.step()
    assert seen.floats() == [3.0, 2.0, 2.0]
    seeds = owner.seeds
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.step()
    assert capi.references(owner) == held + 1
    del seeds, owner
    assert seen.floats() == [3.0, 2.0, 2.0] and reward.shape == (3,)
    seen.release_on_foreign_thread()


def test_columns():
    """CAP-18, LAY-01: every field of a record is a tensor with the record's stride; the class itself is no tensor."""
    owner = p.Tables(4)
    assert set(type(owner).__dlpack_tensors__) == {"price", "size", "side", "times"}
    price, side = owner.price, owner.side
    assert (price.strides, side.strides) == ((2,), (4,))
    assert side.data_ptr - price.data_ptr == 12
    del owner
    seen = capi.export(side)
    assert seen.tobytes() == b"".join(n.to_bytes(4, sys.byteorder) for n in [0, 1, 0, 1])
    seen.release()
    assert not hasattr(p.Tables, "__dlpack__")
    assert not hasattr(p.Tables, "__dlpack_device__")
    assert not hasattr(p.Tables, "__dlpack_c_exchange_api__")


def test_tensors_keep_the_object_alive():
    """CAP-18: a tensor that an attribute returned outlives the object."""
    owner = p.Batch(3)
    rewards = owner.rewards
    del owner
    gc.collect()
    seen = capi.export(rewards)
    del rewards
    assert seen.tobytes()
    seen.release_on_foreign_thread()


def test_a_class_with_a_dict():
    """CAP-27: weak references, a `__dict__` and subclasses work; the object lives as long as its exports."""
    owner = p.Open([1.0])
    owner.note = "kept"
    reference = weakref.ref(owner)
    seen = capi.export(owner)
    del owner
    gc.collect()
    assert reference().note == "kept"
    seen.release(gil=False)
    assert reference() is None


def test_the_buffer_protocol():
    """CAP-18: a `memoryview` has the same memory and keeps the same borrow."""
    owner = p.Buffered([0.0, 1.0, 2.0, 3.0])
    view = memoryview(owner)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 2), (8, 4), "f", True)
    assert view.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    seen = capi.export(owner)
    assert seen.tobytes() == view.tobytes()
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.clear()
    view.release()
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.clear()
    seen.release()
    owner.clear()
    # Requests for writable memory, and for memory without strides.
    for flags, fine in [(0x1, False), (0x1 | 0x18, False), (0, True), (0x18, True), (0x11C, True)]:
        assert (capi.buffer(p.Buffered([0.0, 1.0]), flags) is not None) == fine


@pytest.mark.parametrize("cls", [p.Mutable, p.Exclusive])
def test_many_borrows_are_given_back(cls):
    """CAP-10, CAP-21: however an export ends, its borrow ends."""
    owner = cls([1.0])
    for _ in range(100):
        capsule = owner.__dlpack__(max_version=(1, 0))
        del capsule
        capi.export(owner).release()
        capi.export(owner).release(gil=False)
        for bad in [{"dl_device": (2, 0)}, {"stream": 5}, {"copy": 3}]:
            with pytest.raises((BufferError, ValueError, TypeError)):
                owner.__dlpack__(max_version=(1, 0), **bad)
        owner.__dlpack__(copy=True)
        p.take(owner)
    owner.push(2.0)


@pytest.mark.leaks
def test_a_leaked_tensor_stays_borrowed():
    """CAP-18: if a consumer never calls the deleter, the object stays borrowed forever."""
    owner = p.Mutable([1.0])
    capi.export(owner)
    gc.collect()
    with pytest.raises(RuntimeError, match="borrowed"):
        owner.clear()


def test_the_device_needs_no_borrow():
    """DEV-01: if the types determine the device, it is known while a consumer writes, and for a variant without a tensor."""
    owner = p.Exclusive([1.0])
    seen = capi.export(owner)
    assert owner.__dlpack_device__() == (1, 0)
    seen.release()
    assert p.Audio.Silence().__dlpack_device__() == p.Audio.Float([1.0]).__dlpack_device__() == (1, 0)


def test_the_device_of_an_expression_needs_no_value():
    """DEV-01: the types of `data = ..` and `via = ..` determine the device; the expressions are not evaluated."""
    if not hasattr(p, "arm"):
        pytest.skip("the hooks need more than the stable ABI")
    p.arm("via", "text")
    try:
        assert p.HookedVia().__dlpack_device__() == (1, 0)
    finally:
        p.arm("", "text")
    outside = p.Probe([4], strides=[-1])
    with pytest.raises(BufferError):
        outside.__dlpack__()
    assert outside.__dlpack_device__() == (1, 0)
