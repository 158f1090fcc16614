"""Memory in a class, lent to functions over slices: only while no other code has it, or under a promise."""

import gc
import threading
import time

import numpy as np
import pytest
from dlpack_probe import Locked, Photo, Promised

RAMP = np.arange(6, dtype=np.uint8).reshape(3, 2)


@pytest.mark.parametrize(
    "consume",
    [
        np.from_dlpack,
        np.asarray,
        memoryview,
        lambda photo: photo.__dlpack__(),
        lambda photo: np.from_dlpack(photo)[1:],
        lambda photo: Photo(photo),
        lambda photo: Photo(np.from_dlpack(photo)),
    ],
    ids=["from_dlpack", "asarray", "memoryview", "capsule", "part", "class", "class of an array"],
)
def test_memory_is_lent_while_no_array_has_it(consume):
    photo = Photo.ramp(3, 2)
    assert np.array_equal(photo.flipped(), RAMP[::-1])
    assert photo.is_lent()
    array = consume(photo)
    for method in photo.flipped, photo.sort:
        with pytest.raises(BufferError, match="an array, an export or a clone has this buffer too"):
            method()
    assert not photo.is_lent()
    del array
    gc.collect()
    assert photo.is_lent()
    photo.sort()
    assert np.array_equal(photo.flipped(), RAMP[::-1])


def test_what_python_wrote_is_in_the_slice():
    photo = Photo.ramp(3, 2)
    array = np.from_dlpack(photo)
    array[:] = 7
    array[2, 1] = 1
    del array
    assert np.array_equal(photo.flipped(), [[7, 1], [7, 7], [7, 7]])


def test_memory_of_another_library_is_never_lent():
    array = RAMP.copy()
    photo = Photo(array)
    with pytest.raises(BufferError, match="memory that was imported, and others may write to it"):
        photo.flipped()
    assert not photo.is_lent()
    array[0, 0] = 9
    assert np.asarray(photo)[0, 0] == 9
    del array
    gc.collect()
    # No other code may have it any more, but only NumPy knows that.
    assert not photo.is_lent()


def test_a_slice_is_not_lent_while_another_thread_drops_its_arrays():
    photo = Photo.ramp(3, 2)
    stop = threading.Event()

    def consume():
        while not stop.is_set():
            try:
                array = np.from_dlpack(photo)
            # `flipped` borrows the object at this moment.
            except (BufferError, RuntimeError):
                continue
            array[:] = 255
            # Lets the other threads run while the array has the memory.
            time.sleep(1e-5)
            array[:] = RAMP
            del array

    threads = [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2000):
            try:
                flipped = photo.flipped()
            # Arrays keep the buffer, or an export borrows the object at this moment.
            except (BufferError, RuntimeError):
                continue
            assert np.array_equal(flipped, RAMP[::-1])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    gc.collect()
    assert np.array_equal(photo.flipped(), RAMP[::-1])


def test_a_frozen_class_lends_from_behind_a_lock():
    locked = Locked(2, 2)
    locked.brighten()
    array = np.from_dlpack(locked)
    array[0] = 4
    with pytest.raises(BufferError, match="drop that one first"):
        locked.brighten()
    again = np.asarray(locked)
    assert again[0, 1] == 4 and again.flags.writeable
    del array, again
    locked.brighten()
    assert np.array_equal(locked, [[5, 5], [2, 2]])


def test_a_promise_lends_memory_that_others_have():
    for promised in Promised(RAMP.copy()), Promised(Photo.ramp(3, 2)):
        array = np.asarray(promised)
        assert np.array_equal(promised.flipped(), RAMP[::-1])
        array[0, 0] = 9
        promised.sort()
        assert np.array_equal(array, [[1, 2], [3, 4], [5, 9]])
        # A view without a promise works at the same time.
        assert promised.halve() == 1 // 2 + 2 // 2 + 3 // 2 + 4 // 2 + 5 // 2 + 9 // 2


def test_promised_slices_are_kept_apart():
    promised, other = Promised(RAMP.copy()), Promised(np.zeros_like(RAMP))
    promised.flip_into(other)
    assert np.array_equal(other, RAMP[::-1])
    refused = "another view of this memory is alive"
    with pytest.raises(BufferError, match=refused):
        promised.flip_into(promised)
    # The same memory, in another object and as an argument.
    same = Promised(np.asarray(promised))
    with pytest.raises(BufferError, match=refused):
        promised.flip_into(same)
    with pytest.raises(BufferError, match=refused):
        promised.flip_to(np.asarray(promised))
    assert np.array_equal(promised, RAMP)
    out = np.zeros_like(RAMP)
    promised.flip_to(out)
    assert np.array_equal(out, RAMP[::-1])


def test_read_only_memory_is_not_written():
    array = RAMP.copy()
    array.flags.writeable = False
    promised = Promised(array)
    assert np.array_equal(promised.flipped(), RAMP[::-1])
    with pytest.raises(BufferError, match="read-only"):
        promised.sort()


def test_views_of_other_values_are_refused():
    not_shared, dtype, rank, slice_ = Promised.errors()
    assert "not in a `SharedBuffer`" in not_shared
    assert dtype == "expected dtype float32, found uint8"
    assert "rank 2" in rank
    assert "others may write" in slice_


def test_an_empty_picture():
    photo = Photo.ramp(0, 4)
    assert photo.is_lent()
    assert np.asarray(Photo(np.zeros((0, 4), np.uint8))).shape == (0, 4)
    assert np.asarray(Promised(np.zeros((0, 4), np.uint8)).flipped()).size == 0
