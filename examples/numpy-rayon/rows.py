"""Rows of a NumPy array in parallel, twice: with dlpack-pyo3 and with rust-numpy. `python rows.py`"""

import threading
import time

import numpy as np
from numpy_rayon import scale, twin, unit_rows


def ticks_during(work):
    """How often another thread of Python ran while `work` did."""
    over, ticks = threading.Event(), 0

    def tick():
        nonlocal ticks
        while not over.wait(0.001):
            ticks += 1

    other = threading.Thread(target=tick)
    other.start()
    before, began = ticks, time.perf_counter()
    work()
    during, took = ticks - before, time.perf_counter() - began
    over.set()
    other.join()
    return during, took


def main():
    x = np.random.default_rng(1).random((20_000, 256), np.float32)
    for name, functions in {"dlpack-pyo3": (unit_rows, scale), "rust-numpy": (twin.unit_rows, twin.scale)}.items():
        unit, double = functions
        rows = unit(x)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1)
        assert rows.flags.writeable
        double(rows, 2.0)
        assert np.allclose(np.linalg.norm(rows, axis=1), 2)
        ticks, took = ticks_during(lambda: [unit(x) for _ in range(5)])
        print(f"{name:12} 5 times {x.shape} in {took:.3f} s; meanwhile another thread ran {ticks} times")


if __name__ == "__main__":
    main()
