"""Tensors are those of the file, in its map."""

import gc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import weights
from safetensors_map import Weights


@pytest.fixture
def tensors():
    chance = np.random.default_rng(4)
    return {
        "embedding": chance.random((5, 4)).astype(ml_dtypes.bfloat16),
        "bias": chance.random(4).astype(np.float16),
        "empty": np.empty((0, 3), np.float32),
        "scale": np.array(2.5, np.float32),
    }


@pytest.fixture
def path(tmp_path, tensors):
    weights.save(tmp_path / "model.safetensors", tensors)
    return tmp_path / "model.safetensors"


def test_tensors_are_those_of_the_file(path, tensors):
    file = Weights(path)
    assert file.keys() == ["embedding", "bias", "empty", "scale"]
    assert [file[name].dtype for name in file.keys()] == ["bfloat16", "float16", "float32", "float32"]
    for name, wanted in tensors.items():
        array = file[name].numpy()
        assert array.dtype == wanted.dtype and array.shape == wanted.shape, name
        assert array.tobytes() == wanted.tobytes(), name


def test_they_are_parts_of_one_map(path):
    file = Weights(path)
    embedding, bias = file["embedding"], file["bias"]
    assert embedding.numpy().ctypes.data == embedding.data_ptr == file["embedding"].data_ptr
    assert bias.data_ptr - embedding.data_ptr == embedding.nbytes == 40
    assert embedding.readonly and not embedding.numpy().flags.writeable
    maps = Path("/proc/self/maps")
    if maps.exists():
        (line,) = (line for line in maps.read_text().splitlines() if line.endswith(path.name))
        begin, end = (int(number, 16) for number in line.split()[0].split("-"))
        assert begin < embedding.data_ptr < end
        # The map goes with the last tensor.
        array = bias.numpy()
        del file, embedding, bias
        gc.collect()
        assert path.name in maps.read_text() and array.size == 4
        del array
        gc.collect()
        assert path.name not in maps.read_text()


def test_what_is_not_there(path, tmp_path):
    with pytest.raises(KeyError, match="head"):
        Weights(path)["head"]
    with pytest.raises(FileNotFoundError):
        Weights(tmp_path / "none")
    short = tmp_path / "short"
    short.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="(?i)incomplete"):
        Weights(short)


def test_torch_reads_them(path, tensors):
    torch = pytest.importorskip("torch")
    tensor = torch.from_dlpack(Weights(path)["embedding"])
    assert tensor.dtype == torch.bfloat16 and tensor.float().tolist() == tensors["embedding"].astype(float).tolist()


def test_the_program(capsys):
    weights.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["bf16", "f16", "f32"]
    assert all("not copied: [4" in line for line in lines)
