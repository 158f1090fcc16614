"""The stubs say what the module has, and the package is typed."""

import os
import subprocess
import sys
from pathlib import Path

import dlpack_showcase
import pytest

pytest.importorskip("mypy")

STUB = "dlpack_showcase/_native.pyi"


@pytest.fixture
def package(tmp_path):
    """A copy of the package, for spoiling."""
    copy = tmp_path / "dlpack_showcase"
    copy.mkdir()
    for file in Path(dlpack_showcase.__file__).parent.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    return tmp_path


def mypy(package, *words):
    environment = os.environ | {"PYTHONPATH": str(package), "MYPYPATH": str(package)}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=package, env=environment)


def stubtest(package):
    return mypy(package, "mypy.stubtest", "dlpack_showcase._native")


def test_the_stubs_are_those_of_the_module(package):
    result = stubtest(package)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("def step(self, right: bool)", "def step(self, left: bool)"),
        ("max_version: tuple[SupportsIndex, SupportsIndex] | None = None,", ""),
        ("    def reset(self) -> None: ...\n", ""),
        ("def inspect(obj: object)", "def inspekt(obj: object)"),
    ],
)
def test_a_wrong_stub_is_found(package, right, wrong):
    stub = package / STUB
    text = stub.read_text()
    assert right in text
    stub.write_text(text.replace(right, wrong))
    assert stubtest(package).returncode != 0


def test_the_package_is_typed(package):
    result = mypy(package, "mypy", "--strict", "-p", "dlpack_showcase")
    assert result.returncode == 0, result.stdout + result.stderr


USE = """
import numpy as np
import dlpack_showcase as s

reveal_type(np.from_dlpack(s.Image(4, 4)))
reveal_type(s.PointCloud(2, 2).x)
reveal_type(s.CartPole().step(True))
s.Image.from_array(np.zeros((2, 2, 3), np.uint8))
s.Image.from_array(3)
"""


def test_type_checkers_understand_the_classes(package):
    (package / "use.py").write_text(USE)
    told = mypy(package, "mypy", "--strict", "use.py").stdout
    assert '"numpy.ndarray' in told and '_native.Tensor"' in told and '"tuple[float, bool]"' in told, told
    assert told.count("error:") == 1 and 'incompatible type "int"' in told, told
