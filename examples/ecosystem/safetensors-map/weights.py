"""Tensors of a file, in the map of the file. `python weights.py`"""

import json
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors_map import Weights

DTYPES = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32}


def save(path, tensors):
    """Writes a safetensors file: the length of the header, the header, and the tensors. The package of that name has more."""
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    header, end = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in tensors.values()))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        save(path, {name.lower(): np.arange(8).reshape(2, 4).astype(dtype) for name, dtype in DTYPES.items()})
        weights = Weights(path)
        first = weights["bf16"].data_ptr
        for name in weights.keys():
            tensor = weights[name]
            array = tensor.numpy()
            what = "not copied" if array.ctypes.data == tensor.data_ptr else "copied"
            print(f"{name:5} {tensor.dtype:9} {tensor.shape} {tensor.data_ptr - first:3} bytes into the map, {what}: {array[1]}")


if __name__ == "__main__":
    main()
