"""The cost of a call of a function that takes or returns an array: ours, rust-numpy's, nanobind's, and NumPy's own if it has one.

A row is a function and an argument; to add one, write the function into `ours/src/takes.rs`, `peers/rust-numpy` and
`peers/nanobind`, and name it in `rows`.
"""

import gc
import importlib
import sys
from array import array

from turns import loop, medians

MODULES = {"ours": "bench_ours", "rust-numpy": "peer_rust_numpy", "nanobind": "peer_nanobind"}
COLUMNS = [*MODULES, "numpy"]
# The promises: a row, the row with which its time is compared, and the largest ratio.
PROMISES = [
    ("rank, NumPy's array", "rust-numpy", 1.5),
    ("rank, NumPy's array", "nanobind", 1.2),
    ("rank, an object of ours", "nanobind", 0.6),
    ("sum, 1 Ki f32", "rust-numpy", 1.2),
    ("sum, 4 Mi f32", "rust-numpy", 1.2),
    ("max, 1 MB u8", "rust-numpy", 2.0),
    ("sum of a slice, 4 Mi f32", "rust-numpy", 1.05),
    ("max of a slice, 1 MB u8", "rust-numpy", 1.1),
    ("give, 8 f32", "rust-numpy", 2.0),
    ("give, 1 MB f32", "rust-numpy", 1.05),
    ("give, 16 MB f32", "rust-numpy", 1.05),
    *((f"{what}, {size} {dtype}", "numpy", 1.5 if size == "4 KB" else 1.2)
      for what in ("copy", "import") for size in ("4 KB", "64 KB", "4 MB") for dtype in ("u8", "f32", "f64")),
    *((f"copy, 4 MB f32, {cut}", "numpy", 1.0) for cut in ("a.T", "a[:, ::2]", "a[:, :n]")),
]


def rows(dlpack_rs):
    """The name of each row, its functions by their names in the modules, the argument, and NumPy's function.

    Of several names a module's last one is meant: nanobind wants a function for each rank.
    """
    import bench_ours
    import numpy as np

    f32 = np.ones(4 << 20, np.float32)
    image = np.random.default_rng(0).integers(0, 255, (1024, 1024), np.uint8)
    result = [
        ("rank, NumPy's array", "rank_2", np.ones((4, 5), np.float32), None),
        ("rank, an object of ours", "rank_3", bench_ours.Frozen3((4, 5, 3)), None),
        ("rank, an array.array", "rank_1", array("f", [1, 2, 3]), None),
        ("sum, 1 Ki f32", "sum", f32[:1024], np.sum),
        ("sum, 4 Mi f32", "sum", f32, np.sum),
        ("max, 1 MB u8", "largest", image, np.max),
        # With a promise that no other code writes.
        ("sum of a slice, 4 Mi f32", "sum sum_of_slice", f32, np.sum),
        ("max of a slice, 1 MB u8", "largest largest_of_slice", image, np.max),
    ]
    for size, length in [("8", 8), ("1 MB", 1 << 18), ("16 MB", 4 << 20)]:
        # A list of this length, and an array over it.
        result.append((f"give, {size} f32", "give", length, None))
    if dlpack_rs is not None:
        result.append(("rank, one of dlpack-rs", "rank_3", dlpack_rs.Image((4, 5, 3)), None))
    for dtype in ["u8", "f32", "f64"]:
        for size, side in [("4 KB", 32), ("64 KB", 128), ("4 MB", 1024)]:
            kind = np.dtype(dtype.replace("f32", "f4").replace("f64", "f8").replace("u8", "u1"))
            matrix = np.ones((side, 4 * side // kind.itemsize), kind)
            result.append((f"copy, {size} {dtype}", f"copy_{dtype}", matrix, np.ndarray.copy))
            result.append((f"import, {size} {dtype}", f"import_{dtype}", matrix, np.ndarray.copy))
    square = np.ones((1024, 1024), np.float32)
    wide = np.ones((1024, 2048), np.float32)
    copy = lambda matrix: matrix.copy("C")
    result.append(("copy, 4 MB f32, a.T", "copy_f32", square.T, copy))
    result.append(("copy, 4 MB f32, a[:, ::2]", "copy_f32", wide[:, ::2], copy))
    result.append(("copy, 4 MB f32, a[:, :n]", "copy_f32", wide[:, :1024], copy))
    return result


def child(folders, rounds):
    """Nanoseconds of a call, by row and column; and why some are missing."""
    import numpy as np

    sys.path[:0] = folders
    modules, missing = {}, {}
    for column, name in MODULES.items() | {("dlpack-rs", "peer_dlpack_rs")}:
        try:
            modules[column] = importlib.import_module(name)
        except ImportError as error:
            missing[f"{column}, functions"] = str(error)
    runs = {}
    for title, names, argument, of_numpy in rows(modules.pop("dlpack-rs", None)):
        functions = {"numpy": of_numpy} if of_numpy else {}
        for column, module in modules.items():
            found = [getattr(module, name) for name in names.split() if hasattr(module, name)]
            functions |= {column: found[-1]} if found else {}
        if not isinstance(argument, (np.ndarray, int)):
            # It accepts only NumPy arrays.
            functions.pop("rust-numpy", None)
        results = {column: function(argument) for column, function in functions.items() if column != "numpy"}
        assert len(set(map(str, results.values()))) == 1, (title, results)
        runs[title] = {column: loop("f(x)", None, f=function, x=argument) for column, function in functions.items()}
        runs[title][None] = loop("pass", None)
    gc.disable()
    return {"times": {title: medians(some, rounds) for title, some in runs.items()}, "missing": missing}
