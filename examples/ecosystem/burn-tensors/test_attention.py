"""burn's numbers are right, and what is said of copies is so: addresses tell."""

import gc
import weakref

import attention
import numpy as np
import pytest
from burn_tensors import over, round_trip


@pytest.mark.parametrize("turn", [np.array, np.asfortranarray, lambda x: x[::-1].copy()[::-1]])
def test_attention(turn):
    chance = np.random.default_rng(3)
    queries, keys, values = (turn(chance.random((rows, 6), np.float32)) for rows in (3, 4, 4))
    weights = np.exp(queries @ keys.T)
    wanted = weights / weights.sum(1, keepdims=True) @ values
    assert np.allclose(attention.attention(queries, keys, values), wanted, rtol=1e-5)


def test_what_does_not_fit():
    two, three = np.ones((2, 2), np.float32), np.ones((3, 2), np.float32)
    with pytest.raises(ValueError, match=r"keys are \[2, 2\] instead of \[3, 2\]"):
        attention.attention(two, two, three)


def test_what_is_moved_in_and_out_stays_where_it_is():
    array, address = round_trip(3, 4, False)
    assert array.ctypes.data == address
    assert np.array_equal(array, np.arange(12.0).reshape(3, 4))


def test_what_burn_has_to_pack_is_copied():
    array, address = round_trip(3, 4, True)
    assert array.ctypes.data != address
    assert np.array_equal(array, np.arange(12.0).reshape(3, 4).T)


def test_an_array_becomes_a_tensor_where_it_lies():
    array = np.arange(12, dtype=np.float32).reshape(3, 4).copy()
    address, gone = array.ctypes.data, weakref.ref(array)
    out = over(array, None)
    assert out.ctypes.data == address and not out.flags.writeable
    del array
    gc.collect()
    assert gone() is not None and np.array_equal(out, np.arange(12.0).reshape(3, 4))
    del out
    gc.collect()
    assert gone() is None


def test_burn_copies_before_it_writes():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = over(array, 1.0)
    assert out.ctypes.data != array.ctypes.data
    assert np.array_equal(out, array + 1) and np.array_equal(array, np.arange(12.0).reshape(3, 4))


def test_what_burn_cannot_take_is_refused():
    odd = np.frombuffer(bytearray(49), np.float32, 12, offset=1).reshape(3, 4)
    for array in [np.ones((4, 3), np.float32).T, odd]:
        with pytest.raises(BufferError, match="contiguous|multiple of 4"):
            over(array, None)


def test_the_program(capsys):
    attention.main()
    last = capsys.readouterr().out.splitlines()[-4:]
    assert last == [
        "into burn and out: not copied",
        "into burn, transposed there, and out: copied",
        "an array into burn and out: not copied",
        "an array into burn, changed there, and out: copied",
    ]
