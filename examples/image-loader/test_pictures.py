"""Pictures come out as they were written, by one process or by several."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pictures
import pytest
from image_loader import decode, decode_into, encode


def wanted(height, width, seed):
    picture = np.empty((height, width, 3), np.uint8)
    picture[:] = np.stack([*np.meshgrid(range(width), range(height)), np.full((height, width), seed)], -1)
    return picture


@pytest.fixture
def path(tmp_path):
    encode(tmp_path / "one.png", 4, 5, 6)
    return tmp_path / "one.png"


def test_a_picture_is_an_array(path):
    picture = decode(path)
    assert np.array_equal(picture, wanted(4, 5, 6))
    # No other object has the memory.
    assert picture.flags.writeable and not np.shares_memory(picture, decode(path))


def test_a_picture_is_decoded_into_its_place(path):
    batch = np.zeros((3, 4, 5, 3), np.uint8)
    decode_into(path, batch[1])
    assert np.array_equal(batch[1], wanted(4, 5, 6)) and not batch[[0, 2]].any()
    decode_into(path, batch[2, ::-1, ::-1])
    assert np.array_equal(batch[2, ::-1, ::-1], wanted(4, 5, 6))


def test_what_does_not_fit(path, tmp_path):
    with pytest.raises(ValueError, match=r"one.png: \[4, 5, 3\] instead of \[5, 4, 3\]"):
        decode_into(path, np.zeros((5, 4, 3), np.uint8))
    with pytest.raises(TypeError, match="out"):
        decode_into(path, np.zeros((4, 5, 3), np.float32))
    (tmp_path / "none.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match="none.png"):
        decode(tmp_path / "none.png")


def test_workers_fill_batches(tmp_path):
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for number, each in enumerate(paths):
        encode(each, 3, 2, number)
    loader = pictures.Loader(pictures.Pictures(paths), 2, num_workers=2)
    batches = [batch.copy() for batch in loader]
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert np.array_equal(np.concatenate(batches), [wanted(3, 2, number) for number in range(5)])


def test_the_program():
    program = Path(__file__).with_name("pictures.py")
    done = subprocess.run([sys.executable, "-W", "error", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "8 pictures of (48, 64, 3), uint8, in the decoder's memory"
    assert lines[1].endswith("means [[31.5, 23.5, 1.5], [31.5, 23.5, 5.5]]")
    assert lines[2] == "no torch here" or lines[2].endswith("the same means")
