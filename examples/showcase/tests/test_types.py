"""maturin writes the stubs, type checkers accept them, and they say what the module has."""

import os
import subprocess
import sys
from pathlib import Path

import dlpack_conformance
import dlpack_showcase
import pytest

pytest.importorskip("mypy")
pytest.importorskip("basedpyright")

MYPY = ["mypy", "--strict"]
# Pyright, as a package that brings its own Node.
PYRIGHT = ["basedpyright", "--level", "error", "--pythonpath", sys.executable]

STUB = "dlpack_showcase/_native.pyi"
KIT = Path(dlpack_conformance.__file__).parent.parent

# The one thing that only type checkers see, and the addresses that only consumers read.
NOT_COMPARED = r"""
dlpack_showcase\._native\.Tensor\._Producer
dlpack_showcase\._native\.\w+\.__(c_)?dlpack_(c_)?exchange_api__
"""
# Type checkers recognise buffers of every Python by a method that only Python 3.12 has.
NOT_COMPARED += r"dlpack_showcase\._native\.\w+\.__buffer__" if sys.version_info < (3, 12) else ""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, for spoiling."""
    copy = tmp_path / "dlpack_showcase"
    copy.mkdir()
    for file in Path(dlpack_showcase.__file__).parent.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "reportPrivateUsage": false}')
    return tmp_path


def run(package, *words):
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "MYPYPATH": os.pathsep.join([str(package), str(KIT)])}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=package, env=environment)


def stubtest(package):
    (package / "allowlist").write_text(NOT_COMPARED)
    words = ["--allowlist", "allowlist", "--ignore-unused-allowlist", "--ignore-disjoint-bases"]
    return run(package, "mypy.stubtest", "dlpack_showcase._native", *words)


def test_the_stubs_are_those_of_the_module(package):
    result = stubtest(package)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("def step(self, /, right: bool)", "def step(self, /, left: bool)"),
        ("max_version: tuple[SupportsIndex, SupportsIndex] | None = None, ", ""),
        ("def rewards(self, /)", "def reward(self, /)"),
        ("def inspect(obj: Any)", "def inspekt(obj: Any)"),
    ],
)
def test_a_wrong_stub_is_found(package, right, wrong):
    stub = package / STUB
    text = stub.read_text()
    assert right in text
    stub.write_text(text.replace(right, wrong))
    assert stubtest(package).returncode != 0


def test_the_packages_are_typed(package):
    result = run(package, *MYPY, "-p", "dlpack_showcase", "-p", "dlpack_conformance")
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_is_written_in_rust_is_read_in_python(package):
    """The comment above a field, in the stub and in `help()`."""
    assert dlpack_showcase.Batch.rewards.__doc__ == "1.0 a step, as long as the pole stands."
    assert dlpack_showcase.PointCloud.intensity.__doc__ == "How much came back of the beam."
    text = (package / STUB).read_text()
    assert text.count("1.0 a step, as long as the pole stands.") == 1
    assert text.count("How much came back of the beam.") == 1


def test_getters_are_those_of_the_derive():
    """Those that PyO3 made for the stubs would raise."""
    batch = dlpack_showcase.CartPole().play(3)
    assert isinstance(batch.rewards, dlpack_showcase.Tensor)
    assert batch.rewards.shape == (3,)


def test_only_the_stubs_have_a_buffer_method_before_python_3_12():
    """The method that PyO3 made for the stubs would raise."""
    for tensor in dlpack_showcase.CartPole(), dlpack_showcase.PointCloud(2, 2), dlpack_showcase.PointCloud(2, 2).x:
        assert hasattr(tensor, "__buffer__") == (sys.version_info >= (3, 12))
        assert memoryview(tensor).nbytes > 0


# Each class, used as its users do.
USE = """
from typing import Any

import numpy as np
import numpy.typing as npt
import dlpack_showcase as s
from typing_extensions import assert_type

def tensor_of(cloud: s.PointCloud) -> s.Tensor:
    return cloud.x

cloud = s.PointCloud(2, 2)
points: npt.NDArray[Any] = np.asarray(memoryview(cloud))
columns: list[s.Tensor] = [cloud.time, cloud.x, cloud.y, cloud.z, cloud.intensity, cloud.ring, cloud.ground]
extents: tuple[int, ...] = cloud.x.shape + cloud.x.strides
x = np.from_dlpack(cloud.x)

pole = s.CartPole()
pole.reset()
reward, fallen = pole.step(True)
rewarded: float = reward + len(pole.play(3))
batch = pole.play(100)
steps = [batch.observations, batch.actions, batch.rewards, batch.fallen]
seen: npt.NDArray[Any] = np.from_dlpack(pole)

picture = s.Image.from_array(np.zeros((2, 2, 3), np.uint8))
assert_type(np.asarray(picture), npt.NDArray[np.uint8])
assert_type(np.asarray(pole), npt.NDArray[np.float32])
bright: float = s.brightness(s.Image(4, 4)) + s.brightness(picture) + s.brightness(bytearray(3))
pixels = np.from_dlpack(picture)
flipped: npt.NDArray[np.uint8] = s.mirrored(np.zeros((2, 2, 3), np.uint8))
flipped_tensor: s.Tensor = s.mirrored(s.Tensor.from_dlpack(picture))
octets: bytes = memoryview(picture).tobytes() + memoryview(pole).tobytes() + memoryview(tensor_of(cloud)).tobytes()

sound = s.Samples.chord(3, "float32")
other: s.Samples = s.Samples.I16([1, 2])
samples = [np.from_dlpack(sound), np.from_dlpack(other)]

trace = s.Trace()
trace.push(1.0)
trace.extend([2.0, 3.0])
values: list[float] = [float(value) for value in trace] + [float(len(trace))]
measured = np.from_dlpack(trace)

def read(path: str) -> npt.NDArray[Any]:
    return np.from_dlpack(s.Recording(path))

tensor = s.Tensor.from_dlpack(cloud.x)
words: str = s.inspect(tensor) + tensor.dtype
count: int = len(tensor[::2]) + tensor.nbytes
part: s.Tensor = tensor[0:, ..., None, -1]
extents = next(iter(part)).shape + tuple(size for row in tensor for size in row.shape)
one: float = float(tensor[0]) + int(tensor[0]) + complex(tensor[0]).real
lent: list[s.Tensor] = [s.Tensor.from_dlpack(x), s.Tensor.from_dlpack(bytearray(3)), s.Tensor.from_dlpack(pole)]
array: npt.NDArray[Any] = tensor.numpy()

def is_tensor(value: object) -> bool:
    return isinstance(value, s.Tensor)

names: tuple[str, ...] = s.Batch.__dlpack_tensors__
"""

MISTAKES = {
    "s.Image.from_array(3)": 'incompatible type "int"',
    "batch.reward": "has no attribute",
    "cloud.x = cloud.y": "read-only",
    "s.brightness([1, 2])": 'incompatible type "list[int]"',
    "s.brightness('abc')": 'incompatible type "str"',
    "assert_type(np.asarray(picture), npt.NDArray[np.int8])": "Expression is of type",
    "s.Tensor.from_dlpack([1.0])": 'incompatible type "list[float]"',
    "tensor[1.5]": "Invalid index type",
    "next(iter(tensor)).name": '"Tensor" has no attribute "name"',
    "s.mirrored(tensor).name": '"Tensor" has no attribute "name"',
    "s.mirrored(x).tensor": 'has no attribute "tensor"',
    "float(tensor).shape": '"float" has no attribute "shape"',
}


def test_type_checkers_understand_the_classes(package):
    (package / "use.py").write_text(USE)
    for words in [MYPY, [*PYRIGHT, STUB]]:
        result = run(package, *words, "use.py")
        assert result.returncode == 0, result.stdout + result.stderr


def test_type_checkers_find_mistakes(package):
    (package / "use.py").write_text(USE + "\n".join(MISTAKES) + "\n")
    found = run(package, *MYPY, "use.py").stdout
    assert found.count("error:") == len(MISTAKES), found
    assert all(told in found for told in MISTAKES.values()), found
    found = run(package, *PYRIGHT, "use.py").stdout
    lines = {line.split(":")[1] for line in found.splitlines() if " - error:" in line}
    assert len(lines) == len(MISTAKES), found
