"""Both give the same; ours takes what the twin does, and more."""

import array

import numpy as np
import pytest
import rows
from numpy_rayon import scale, twin, unit_rows


def grid(shape=(31, 17)):
    return np.random.default_rng(2).random(shape, np.float32) + 1


@pytest.mark.parametrize("turn", [np.array, np.transpose, np.asfortranarray, lambda x: x[::-2, ::3]])
def test_both_give_the_same(turn):
    x = turn(grid())
    before = x.copy()
    ours, theirs = unit_rows(x), twin.unit_rows(x)
    # By columns ndarray adds in another order.
    assert np.allclose(ours, theirs, rtol=1e-6) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert np.array_equal(x, before)
    assert np.allclose(np.linalg.norm(ours, axis=1), 1)
    ours, theirs = x.copy(order="A"), x.copy(order="A")
    scale(ours, 3)
    twin.scale(theirs, 3)
    assert np.array_equal(ours, theirs) and np.array_equal(ours, 3 * x)


def test_writing_is_in_place():
    x = grid((4, 6))
    view, wanted = x[::2, ::-3], 5 * x[::2, ::-3]
    scale(view, 5)
    assert np.array_equal(x[::2, ::-3], wanted)
    assert (x[1::2] < 5).all()


@pytest.mark.parametrize("x", [np.zeros((3, 3)), np.zeros(3, np.float32), [[1.0]]])
def test_what_does_not_fit_is_refused_by_both(x):
    for function in [unit_rows, twin.unit_rows]:
        with pytest.raises(TypeError):
            function(x)


def test_ours_is_not_only_for_numpy():
    numbers = memoryview(array.array("f", [3, 4, 6, 8])).cast("B").cast("f", (2, 2))
    assert unit_rows(numbers).tolist() == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8]]))
    torch = pytest.importorskip("torch")
    assert unit_rows(torch.ones(2, 4)).tolist() == [[0.5] * 4] * 2


def test_no_rows():
    assert unit_rows(grid()[:0]).shape == (0, 17) and unit_rows(grid()[:, :0]).shape == (31, 0)


def test_read_only_stays_so():
    x = grid()
    x.flags.writeable = False
    with pytest.raises(TypeError):
        scale(x, 2)


@pytest.mark.parametrize("function", [unit_rows, twin.unit_rows])
def test_other_threads_run_meanwhile(function):
    x = np.ones((8000, 1000), np.float32)
    # With the lock held there might be one before the call and one after it, however often it is tried; without it, on a busy
    # machine, the other thread may get no turn in one call.
    assert any(rows.ticks_during(lambda: function(x))[0] > 2 for _ in range(100))


def test_the_program(capsys):
    rows.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["dlpack-pyo3", "rust-numpy"]
