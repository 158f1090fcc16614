#!/usr/bin/env python3
"""Copies of strided arrays: dlpack-core compared with NumPy's `.copy()` and with memcpy, in one process.

    python3 benches/copies.py                # common copies of 4-byte items
    python3 benches/copies.py --all          # every layout, items of 1 to 16 bytes
    python3 benches/copies.py --itemsizes 4 8 --sizes 4096 --cases transposed --rounds 21

Builds the cdylib of this package and, where NumPy is missing, a virtual environment with it in a cache
folder outside the checkout. --library takes a cdylib that is already there.

The three take turns, and who goes first changes. Every turn of each makes a destination, fills it and frees
it: ours is a whole export with `copy=True`, NumPy's `.copy()` a whole array. memcpy is malloc, memcpy and free
of as many contiguous bytes, whatever the layout: what the copy would cost if its source were packed.

Each line has medians over the rounds: the times of a copy in microseconds, and how long ours takes for each
second of NumPy's and of memcpy's in the same round; below 1 we are faster. The bytes of each copy are
compared first. The exit status is 1 if a ratio to NumPy is above --limit.
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def import_numpy():
    """NumPy; if it is missing, restarts in an environment that has it."""
    try:
        import numpy
    except ModuleNotFoundError:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dlpack-benches"
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        environment = cache / f"python-{version}"
        python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if Path(sys.prefix) == environment:
            sys.exit(f"copies: NumPy is missing from {environment}; remove that folder and start again")
        if not python.exists():
            print(f"copies: NumPy is missing here, so it is installed into {environment}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy"], check=True)
        sys.exit(subprocess.run([python, *sys.argv]).returncode)
    return numpy


np = import_numpy()

DTYPES = {1: "u1", 2: "u2", 3: "V3", 4: "u4", 8: "u8", 12: "V12", 16: "c16", 20: "V20"}


def build():
    """The path of our cdylib."""
    done = subprocess.run(
        ["cargo", "build", "--release", "-p", "benches", "--lib", "--message-format=json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        sys.exit("copies: the library does not build")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    files = [
        file
        for message in messages
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "benches"
        for file in message["filenames"]
    ]
    return next(file for file in files if Path(file).suffix in (".so", ".dylib", ".dll"))


class Library:
    """The functions of `src/lib.rs`."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        layout = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        self.lib.bench_copy.argtypes = layout
        self.lib.bench_copy.restype = ctypes.c_void_p
        self.lib.bench_copy_turns.argtypes = [*layout, ctypes.c_uint64]
        self.lib.bench_copy_turns.restype = None
        self.lib.bench_memcpy_turns.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64]
        self.lib.bench_memcpy_turns.restype = None
        self.lib.bench_data.argtypes = [ctypes.c_void_p]
        self.lib.bench_data.restype = ctypes.c_void_p
        self.lib.bench_free.argtypes = [ctypes.c_void_p]
        self.lib.bench_free.restype = None

    def arguments(self, array):
        """The arguments that describe `array`. The result owns the shape and strides to which they point."""
        numbers = ctypes.c_int64 * max(array.ndim, 1)
        strides = None
        if not array.flags.c_contiguous:
            strides = numbers(*(stride // array.itemsize for stride in array.strides))
        return (array.ctypes.data, array.ndim, numbers(*array.shape), strides, array.itemsize)

    def copy(self, array):
        """The bytes of our copy of `array`."""
        copy = self.lib.bench_copy(*self.arguments(array))
        if copy is None:
            sys.exit("copies: our copy failed")
        result = ctypes.string_at(self.lib.bench_data(copy), array.nbytes)
        self.lib.bench_free(copy)
        return result


def filled(shape, itemsize):
    """A contiguous array of random bytes."""
    count = math.prod(shape) * itemsize
    raw = np.random.default_rng(1).integers(0, 256, count, dtype=np.uint8)
    return raw.view(DTYPES[itemsize]).reshape(shape)


def square(items):
    """A nearly square shape, with a power of two as the first size."""
    side = 1 << round(math.log2(items) / 2)
    return side, max(items // side, 1)


def cube(items):
    side = 1 << round(math.log2(items) / 3)
    return side, side, max(items // side**2, 1)


def cases(nbytes, itemsize):
    """Views whose copy has about `nbytes` bytes, by name."""
    items = nbytes // itemsize
    h, w = square(items)
    c = cube(items)
    pixels = square(max(items // 3, 1))
    yield "contiguous", lambda: filled((items,), itemsize)
    yield "transposed 2-D", lambda: filled((w, h), itemsize).T
    yield "transposed odd", lambda: filled((w + 1, h + 3), itemsize).T
    for axes in [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        name = "".join(map(str, axes))
        yield f"transposed {name}", lambda axes=axes: filled(c, itemsize).transpose(axes)
    yield "planes of pixels", lambda: filled((*pixels, 3), itemsize).transpose(2, 0, 1)
    yield "pixels of planes", lambda: filled((3, *pixels), itemsize).transpose(1, 2, 0)
    yield "a[:, ::2]", lambda: filled((h, 2 * w), itemsize)[:, ::2]
    yield "a[:, ::3]", lambda: filled((h, 3 * w), itemsize)[:, ::3]
    yield "a[::2]", lambda: filled((2 * h, w), itemsize)[::2]
    yield "a[::2, ::2]", lambda: filled((2 * h, 2 * w), itemsize)[::2, ::2]
    yield "crop", lambda: filled((h + 20, w + 20), itemsize)[7:-13, 9:-11]
    yield "crop narrow", lambda: filled((items // 4, 5), itemsize)[:, :4]
    yield "crop 3-D", lambda: filled(tuple(n + 4 for n in c), itemsize)[1:-3, 2:-2, 3:-1]
    yield "a[::-1]", lambda: filled((h, w), itemsize)[::-1]
    yield "a[:, ::-1]", lambda: filled((h, w), itemsize)[:, ::-1]
    yield "a[::-1, ::-1]", lambda: filled((h, w), itemsize)[::-1, ::-1]
    yield "a[:, ::-2]", lambda: filled((h, 2 * w), itemsize)[:, ::-2]
    yield "broadcast rows", lambda: np.broadcast_to(filled((w,), itemsize), (h, w))
    yield "broadcast items", lambda: np.broadcast_to(filled((h, 1), itemsize), (h, w))


def numpy_turns(array, turns):
    for _ in range(turns):
        array.copy()


def clock(function, *arguments):
    start = time.perf_counter_ns()
    function(*arguments)
    return time.perf_counter_ns() - start


def measure(library, array, rounds):
    """Median times of one copy by NumPy, dlpack-core and memcpy, and the median ratios of ours to the other two."""
    arguments = library.arguments(array)
    packed = filled((array.size,), array.itemsize)
    ways = [
        lambda turns: numpy_turns(array, turns),
        lambda turns: library.lib.bench_copy_turns(*arguments, turns),
        lambda turns: library.lib.bench_memcpy_turns(packed.ctypes.data, packed.nbytes, turns),
    ]
    counts = [max(1, 300_000 // max(clock(way, 1), clock(way, 1), 1)) for way in ways]
    times = []
    for round in range(rounds):
        one = [0.0] * len(ways)
        # The second finds the caches that the first left, so the order changes.
        for at in range(len(ways)):
            way = (round + at) % len(ways)
            one[way] = clock(ways[way], counts[way]) / counts[way]
        times.append((*one, one[1] / one[0], one[1] / one[2]))
    return [statistics.median(column) for column in zip(*times)]


def size(nbytes):
    for unit in ["B", "KB", "MB"]:
        if nbytes < 1024 or unit == "MB":
            return f"{nbytes:.0f} {unit}"
        nbytes /= 1024


USUAL = ["contiguous", "transposed 2-D", "a[:, ::2]", "a[::2]", "crop", "a[::-1]", "a[:, ::-1]", "a[::-1, ::-1]"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=Path, help="the cdylib of this package")
    parser.add_argument("--all", action="store_true", help="every layout, and items of 1 to 16 bytes")
    parser.add_argument("--itemsizes", type=int, nargs="+", choices=DTYPES)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4 << 10, 256 << 10, 4 << 20, 64 << 20])
    parser.add_argument("--cases", nargs="+", help="only layouts whose names contain one of these")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=math.inf)
    options = parser.parse_args()

    def wanted(name):
        if options.cases:
            return any(part in name for part in options.cases)
        return options.all or name in USUAL

    library = Library(options.library or build())
    worst = 0
    print(f"numpy {np.__version__}, medians of {options.rounds} rounds")
    print(f"{'layout':18} {'item':>4} {'bytes':>8} {'numpy us':>10} {'ours us':>10} {'memcpy us':>10} {'to numpy':>9} {'to memcpy':>9}")
    for nbytes in options.sizes:
        for itemsize in options.itemsizes or ([1, 2, 4, 8, 16] if options.all else [4]):
            for name, make in cases(nbytes, itemsize):
                if not wanted(name):
                    continue
                array = make()
                if library.copy(array) != array.tobytes():
                    sys.exit(f"{name}, {itemsize} bytes, shape {array.shape}: the copies differ")
                numpy_ns, ours_ns, memcpy_ns, to_numpy, to_memcpy = measure(library, array, options.rounds)
                worst = max(worst, to_numpy)
                print(
                    f"{name:18} {itemsize:4} {size(nbytes):>8} {numpy_ns / 1e3:10.2f} {ours_ns / 1e3:10.2f} "
                    f"{memcpy_ns / 1e3:10.2f} {to_numpy:9.2f} {to_memcpy:9.2f}",
                    flush=True,
                )
    print(f"worst ratio to numpy {worst:.2f}")
    sys.exit(worst > options.limit)


if __name__ == "__main__":
    main()
