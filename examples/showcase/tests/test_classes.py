"""NumPy reads each class where it lies: the pointer, the numbers and the flags are the ones that Rust exported."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest

import dlpack_showcase as showcase
from dlpack_conformance import call_dlpack, check_producer


def read(producer, shape, dtype, steps, writable=False):
    """The array, after comparing everything that it says of itself; `steps` are its strides in bytes."""
    exported = call_dlpack(producer, max_version=(1, 3)).tensor
    array = np.from_dlpack(producer)
    assert array.ctypes.data == exported.first
    assert (array.shape, array.dtype, array.strides) == (shape, np.dtype(dtype), steps)
    assert array.flags.writeable is writable
    assert exported.read_only is not writable
    assert not array.flags.owndata
    return array


def recording(path, letter, array, shape=None):
    frames, channels = shape or array.shape
    header = b"RECORDED" + letter + bytes(7) + frames.to_bytes(8, "little") + channels.to_bytes(8, "little")
    path.write_bytes(header.ljust(64, b"\0") + array.tobytes())
    return showcase.Recording(path)


def test_image():
    pixels = read(showcase.Image(24, 32), (24, 32, 3), "u1", (96, 3, 1))
    assert len(np.unique(pixels)) > 50
    assert np.array_equal(pixels, np.from_dlpack(showcase.Image(24, 32)))


def test_an_image_outlives_its_object():
    image = showcase.Image(24, 32)
    pixels = np.from_dlpack(image)
    wanted = pixels.copy()
    del image
    gc.collect()
    assert np.array_equal(pixels, wanted)


@pytest.mark.parametrize(
    "turn", [np.array, np.flip, lambda a: a.transpose(1, 0, 2), lambda a: a[::2, ::-3], np.asfortranarray]
)
def test_image_from_any_array(turn):
    array = turn(np.arange(6 * 4 * 3, dtype=np.uint8).reshape(6, 4, 3))
    back = np.from_dlpack(showcase.Image.from_array(array))
    assert np.array_equal(back, array)
    assert not np.shares_memory(back, array)
    assert showcase.brightness(array) == pytest.approx(array.mean())


@pytest.mark.parametrize(
    "array", [np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3), np.float32)]
)
def test_what_is_no_image_is_refused(array):
    with pytest.raises(BufferError):
        showcase.Image.from_array(array)


def test_a_picture_is_mirrored_in_its_own_library():
    array = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    mirrored = showcase.mirrored(array)
    assert type(mirrored) is np.ndarray and np.array_equal(mirrored, array[:, ::-1])
    image = showcase.mirrored(showcase.Image.from_array(array))
    assert isinstance(image, showcase.Tensor) and np.array_equal(np.asarray(image), mirrored)
    jax = pytest.importorskip("jax")
    mirrored = showcase.mirrored(jax.numpy.asarray(array))
    assert isinstance(mirrored, jax.Array) and np.array_equal(np.asarray(mirrored), array[:, ::-1])


def test_what_is_no_producer_is_refused():
    with pytest.raises((TypeError, AttributeError)):
        showcase.Image.from_array([1, 2, 3])


def test_point_cloud():
    cloud = showcase.PointCloud(16, 90)
    n = len(cloud)
    assert showcase.PointCloud.__dlpack_tensors__ == ("time", "x", "y", "z", "intensity", "ring", "ground")
    start = np.from_dlpack(cloud.time).ctypes.data
    places = {
        "time": ("f8", 0),
        "x": ("f4", 8),
        "y": ("f4", 12),
        "z": ("f4", 16),
        "intensity": ("u2", 20),
        "ring": ("u1", 22),
    }
    for name, (dtype, at) in (places | {"ground": ("?", 23)}).items():
        column = read(getattr(cloud, name), (n,), dtype, (24,))
        assert column.ctypes.data == start + at
    assert np.all(np.hypot(np.from_dlpack(cloud.x), np.from_dlpack(cloud.y)) >= 1.9)
    assert np.all(np.diff(np.from_dlpack(cloud.time)) >= 0)
    assert not hasattr(cloud, "__dlpack__")
    assert not hasattr(cloud, "colour")


def test_batch():
    batch = showcase.CartPole().play(40)
    n = len(batch)
    observations = read(batch.observations, (n, 4), "f4", (16, 4))
    actions = read(batch.actions, (n,), "i8", (8,))
    rewards = read(batch.rewards, (n,), "f4", (4,))
    fallen = read(batch.fallen, (n,), "?", (1,))
    assert np.allclose(observations[0], [0, 0, 0.04, 0])
    assert set(actions) <= {0, 1} and np.array_equal(rewards == 0, fallen)


def test_an_attribute_outlives_its_object():
    rewards = showcase.CartPole().play(3).rewards
    gc.collect()
    assert np.from_dlpack(rewards).tolist() == [1, 1, 1]
    assert (rewards.shape, rewards.strides, rewards.dtype) == ((3,), (1,), "float32")
    assert rewards.readonly and rewards.device == (1, 0) and rewards.nbytes == 12
    assert rewards.data_ptr == np.from_dlpack(rewards).ctypes.data


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "F32"), ("int16", "I16"), ("uint8", "U8")])
def test_samples(dtype, kind):
    chord = showcase.Samples.chord(100, dtype)
    assert isinstance(chord, getattr(showcase.Samples, kind))
    size = np.dtype(dtype).itemsize
    array = read(chord, (100,), dtype, (size,))
    assert array[0] == (128 if dtype == "uint8" else 0) and len(np.unique(array)) > 50
    assert np.from_dlpack(getattr(showcase.Samples, kind)([1, 2])).tolist() == [1, 2]
    with pytest.raises(ValueError):
        showcase.Samples.chord(1, "float16")


@pytest.mark.parametrize(("letter", "dtype"), [(b"f", "f4"), (b"d", "f8"), (b"h", "i2")])
def test_recording(tmp_path, letter, dtype):
    wanted = np.arange(12).reshape(4, 3).astype(dtype)
    array = read(recording(tmp_path / "file", letter, wanted), (4, 3), dtype, (3 * wanted.itemsize, wanted.itemsize))
    assert np.array_equal(array, wanted)
    assert array.ctypes.data % 64 == 0


SMAPS = Path("/proc/self/smaps")


def resident(path):
    """The bytes of a mapped file that lie in memory for this process."""
    mapped, found = False, 0
    for line in SMAPS.read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            mapped = words[-1] == str(path)
        elif mapped and words[0] == "Rss:":
            found += 1024 * int(words[1])
    return found


def test_a_recording_is_the_file_itself(tmp_path):
    """Only pages that an array reads are loaded, and the mapped bytes stay when another file takes the name."""
    path, frames = tmp_path / "file", 1 << 25
    if not SMAPS.exists():
        pytest.skip("the system does not say which pages of a mapping lie in memory")
    header = b"RECORDEDd" + bytes(7) + frames.to_bytes(8, "little") + (2).to_bytes(8, "little")
    path.write_bytes(header.ljust(64, b"\0"))
    os.truncate(path, 64 + frames * 16)
    array = np.from_dlpack(showcase.Recording(path))
    assert array.shape == (frames, 2) and not array[:: frames // 8].any()
    # Of 512 MiB those around the nine frames that were read.
    assert 0 < resident(path) < 40 << 20
    recording(tmp_path / "new", b"d", np.ones((3, 2)))
    os.replace(tmp_path / "new", path)
    assert not array[-1].any() and np.from_dlpack(showcase.Recording(path)).all()


def test_a_recording_that_promises_too_much_is_refused(tmp_path):
    wanted = np.zeros((4, 3), np.float32)
    for shape in ((5, 3), (1 << 63, 2), (1 << 62, 1 << 62)):
        with pytest.raises(BufferError):
            np.from_dlpack(recording(tmp_path / "file", b"f", wanted, shape))
    for content in (b"", b"RECORDED", b"x" * 100, b"RECORDED?" + bytes(100)):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError):
            showcase.Recording(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        showcase.Recording(tmp_path / "none")


def test_the_observation_is_one_array_for_ever():
    env = showcase.CartPole()
    observation = read(env, (4,), "f4", (4,), writable=True)
    assert observation.tolist() == pytest.approx([0, 0, 0.04, 0])
    for _ in range(3):
        before = observation.copy()
        assert env.step(True) == (1.0, False)
        assert not np.array_equal(observation, before)
    observation[:] = 7
    assert np.from_dlpack(env).tolist() == [7, 7, 7, 7]
    env.reset()
    assert observation.tolist() == pytest.approx([0, 0, 0.04, 0])
    address = observation.ctypes.data
    del env
    gc.collect()
    observation[:] = 1
    assert observation.ctypes.data == address and observation.sum() == 4


def test_a_pole_that_is_pushed_falls():
    env = showcase.CartPole()
    fallen = [env.step(True) for _ in range(100)]
    assert (0.0, True) in fallen


def test_a_trace_grows_only_unobserved():
    trace = showcase.Trace()
    trace.extend([1.0, 2.0])
    array = read(trace, (2,), "f8", (8,))
    with pytest.raises(RuntimeError, match="borrowed"):
        trace.push(3.0)
    with pytest.raises(BufferError):
        trace.extend([3.0])
    assert len(trace) == 2 and array.tolist() == [1.0, 2.0]
    capsule = trace.__dlpack__(max_version=(1, 0))
    del array
    with pytest.raises(RuntimeError):
        trace.push(3.0)
    del capsule
    trace.push(3.0)
    trace.extend([4.0])
    assert np.from_dlpack(trace).tolist() == [1.0, 2.0, 3.0, 4.0]


def producers(tmp_path):
    cloud, batch = showcase.PointCloud(8, 60), showcase.CartPole().play(9)
    yield from (showcase.Image(4, 5), cloud.x, cloud.ground, batch.observations, batch.actions, batch.fallen)
    yield from (showcase.Samples.chord(9, dtype) for dtype in ("float32", "int16", "uint8"))
    yield recording(tmp_path / "file", b"d", np.arange(6.0).reshape(3, 2))
    yield from (showcase.CartPole(), showcase.Trace(), showcase.Image(0, 5))


def test_the_kit_finds_no_fault(tmp_path):
    for producer in producers(tmp_path):
        report = check_producer(producer, hostile=True)
        assert not report.faults, str(report)
        assert {finding.rule for finding in report.notes} <= {"LAY-11", "STC-12"}, str(report)


def test_inspect_says_what_is_exported(tmp_path):
    for producer in producers(tmp_path):
        text = showcase.inspect(producer)
        array = np.from_dlpack(producer)
        assert array.dtype.name in text
        assert all(str(extent) in text for extent in array.shape)
    assert "float64" in showcase.inspect(np.arange(3.0))


def test_the_array_api_reads_them(tmp_path):
    xp = pytest.importorskip("array_api_strict")
    for producer in producers(tmp_path):
        array = xp.from_dlpack(producer)
        wanted = np.from_dlpack(producer)
        assert array.shape == wanted.shape
        assert np.array_equal(np.from_dlpack(array), wanted)


def test_jax_reads_them(tmp_path):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    for producer in producers(tmp_path):
        wanted = np.from_dlpack(producer)
        array = jax.dlpack.from_dlpack(producer)
        assert array.dtype == wanted.dtype
        assert np.array_equal(np.asarray(array), wanted)


def test_torch_reads_them(tmp_path):
    torch = pytest.importorskip("torch")
    for producer in producers(tmp_path):
        wanted = np.from_dlpack(producer)
        tensor = torch.from_dlpack(producer)
        assert tuple(tensor.shape) == wanted.shape
        assert tensor.data_ptr() == wanted.ctypes.data or not wanted.size
        assert tensor.tolist() == wanted.tolist()
