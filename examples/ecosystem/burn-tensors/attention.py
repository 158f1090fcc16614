"""Attention by burn, called with NumPy arrays. `python attention.py` says what is copied."""

import numpy as np
from burn_tensors import attention, over, round_trip


def main():
    chance = np.random.default_rng(1)
    queries, keys, values = (chance.random((rows, 4), np.float32) for rows in (2, 5, 5))
    found = attention(queries, keys, values)
    print(f"burn's attention in NumPy, {found.shape}\n{found.round(3)}")
    for transposed in [False, True]:
        array, address = round_trip(3, 4, transposed)
        what = "not copied" if array.ctypes.data == address else "copied"
        print(f"into burn{', transposed there,' if transposed else ''} and out: {what}")
    array = np.ones((3, 4), np.float32)
    for added in [None, 1.0]:
        what = "not copied" if over(array, added).ctypes.data == array.ctypes.data else "copied"
        print(f"an array into burn{', changed there,' if added else ''} and out: {what}")


if __name__ == "__main__":
    main()
