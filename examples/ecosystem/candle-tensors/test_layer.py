"""candle's numbers are right, and what is said of copies is so: addresses tell."""

import layer
import numpy as np
import pytest
from candle_tensors import Layer, round_trip


def test_softmax():
    chance = np.random.default_rng(3)
    weight, x = chance.random((5, 4), np.float32), chance.random((3, 5), np.float32)
    for turn in [np.array, np.asfortranarray]:
        y = Layer(turn(weight))(turn(x))
        wanted = np.exp(x @ weight)
        assert np.allclose(y, wanted / wanted.sum(1, keepdims=True), rtol=1e-5)
        assert y.flags.writeable and y.dtype == np.float32


def test_the_weight_is_copied_in_and_out():
    weight = np.ones((2, 2), np.float32)
    one = Layer(weight)
    weight[:] = 5
    first, second = one.weight(), one.weight()
    first[:] = 7
    assert (second == 1).all() and (one.weight() == 1).all()


def test_what_is_moved_in_and_out_stays_where_it_is():
    array, address = round_trip(3, 4)
    assert array.ctypes.data == address + 4 and array.strides == (4, 16)
    assert np.array_equal(array, np.arange(12.0).reshape(3, 4).T[1:])


def test_what_does_not_fit():
    with pytest.raises(RuntimeError, match="shape mismatch"):
        Layer(np.ones((2, 2), np.float32))(np.ones((2, 3), np.float32))
    with pytest.raises(TypeError, match="weight"):
        Layer(np.ones((2, 2)))


def test_the_program(capsys):
    layer.main()
    text = capsys.readouterr().out
    assert "so these are copies: True" in text
    assert text.splitlines()[-1].endswith("not copied, (4, 16) bytes a step, from byte 4")
