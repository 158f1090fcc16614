import numpy as np
import pytest

from {{crate_name}} import Image, mean


def test_an_image_is_an_array_and_nothing_is_copied():
    image = Image(4, 5)
    pixels = np.asarray(image)
    assert pixels.shape == (4, 5, 3) and pixels.dtype == np.float32
    assert np.shares_memory(pixels, np.from_dlpack(image))
    assert not pixels.flags.writeable


def test_arrays_are_arguments():
    assert mean(np.arange(5, dtype=np.float32)) == 2
    assert mean(np.arange(10, dtype=np.float32)[::2]) == 4
    with pytest.raises(TypeError, match="found one of float64"):
        mean(np.arange(5.0))
