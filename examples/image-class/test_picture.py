"""The class has four data types and the memory of either side, and what is written on one side is read on the other."""

import gc
import sys
import threading
import weakref

import numpy as np
import picture
import pytest
from image_class import Image

DTYPES = [np.uint8, np.uint16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_image_of_its_own(dtype):
    image = Image(2, 3, 4, np.dtype(dtype).name)
    array = np.asarray(image)
    assert array.shape == image.shape == (2, 3, 4) and array.dtype == dtype and array.flags.writeable
    array[:] = np.arange(24).reshape(2, 3, 4)
    assert image.mean() == 11.5
    image.scale(2.0)
    assert np.array_equal(array, 2 * np.arange(24).reshape(2, 3, 4))
    assert np.from_dlpack(image).ctypes.data == array.ctypes.data == np.asarray(image).ctypes.data
    del image
    gc.collect()
    assert array.sum() == 552


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_image_over_an_array(dtype, order):
    frame = np.array(np.arange(24).reshape(2, 3, 4), dtype, order=order)
    strides, expected, gone = frame.strides, 2 * frame, weakref.ref(frame)
    image = Image.over(frame)
    again = np.asarray(image)
    assert again.ctypes.data == frame.ctypes.data and again.strides == strides and again.flags.writeable
    image.scale(2.0)
    assert np.array_equal(frame, expected)
    frame[0, 0, 0] = 7
    assert again[0, 0, 0] == 7
    del frame, image
    gc.collect()
    assert gone() is not None and again[1, 2, 3] == 46
    del again
    gc.collect()
    assert gone() is None


def test_an_image_over_a_read_only_array():
    frame = np.ones((2, 2, 1))
    frame.setflags(write=False)
    image = Image.over(frame)
    assert np.asarray(image).ctypes.data == frame.ctypes.data and not np.asarray(image).flags.writeable
    with pytest.raises(ValueError, match="read-only array"):
        image.scale(2.0)
    assert image.mean() == 1.0


def test_an_image_over_an_image():
    image = Image(1, 2, dtype="uint16")
    over = Image.over(image)
    np.asarray(over)[:] = 9
    assert image.mean() == 9 and np.asarray(over).ctypes.data == np.asarray(image).ctypes.data
    del image
    gc.collect()
    assert over.mean() == 9


def test_what_is_not_adopted_is_copied():
    frame = np.arange(24.0).reshape(2, 3, 4)
    for view in [frame[::-1], frame[:, ::2], frame[..., :3]]:
        with pytest.raises(BufferError, match="contiguous|stride"):
            Image.over(view)
        image = Image.copy_of(view)
        assert np.array_equal(np.asarray(image), view) and not np.shares_memory(np.asarray(image), frame)


def test_what_is_no_image():
    with pytest.raises(BufferError, match="no variant of `AnyPixels` accepts int32"):
        Image.over(np.zeros((2, 2, 3), np.int32))
    with pytest.raises(BufferError, match="rank 2"):
        Image.over(np.zeros((2, 2), np.uint8))
    with pytest.raises(BufferError, match="no variant of `AnyCopied` accepts int32"):
        Image.copy_of(np.zeros((2, 2, 3), np.int32))
    with pytest.raises(ValueError, match="no images of bool"):
        Image(2, 2, dtype="bool")
    with pytest.raises((MemoryError, BufferError)):
        Image(sys.maxsize, sys.maxsize)


def test_empty_images():
    image = Image(0, 5)
    assert np.asarray(image).shape == (0, 5, 3) and np.isnan(image.mean())
    assert Image.over(np.zeros((3, 0, 1), np.float32)).shape == (3, 0, 1)


def test_numbers_saturate():
    image = Image.over(np.full((1, 1, 1), 200, np.uint8))
    image.scale(2.0)
    assert image.mean() == 255
    image.scale(-1.0)
    assert image.mean() == 0


def test_an_image_over_a_tensor_of_torch():
    torch = pytest.importorskip("torch")
    tensor = torch.ones(2, 2, 3)
    image = Image.over(tensor)
    image.scale(3.0)
    assert tensor.sum() == 36 and torch.from_dlpack(image).data_ptr() == tensor.data_ptr()


def test_threads():
    """Python writes while Rust computes, without the GIL: the numbers are old or new ones."""
    image = Image(16, 16, dtype="float64")
    array, ended = np.asarray(image), []

    def write():
        while not ended:
            array[:] = 1.0
            array[:] = 2.0

    thread = threading.Thread(target=write)
    thread.start()
    means = [image.mean() for _ in range(20)]
    ended.append(True)
    thread.join()
    assert all(0.0 <= mean <= 2.0 for mean in means)


def test_the_program(capsys):
    picture.main()
    assert capsys.readouterr().out.splitlines() == [
        "an array over an image: [0.5 0.5 0.5], their mean 0.5",
        "an image over an array: [255 255 255]",
        "and an array over that image: not copied",
    ]
