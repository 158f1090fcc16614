"""A layer of candle, called with NumPy arrays. `python layer.py` says what is copied."""

import numpy as np
from candle_tensors import Layer, round_trip


def main():
    chance = np.random.default_rng(1)
    layer = Layer(chance.random((4, 3), np.float32))
    chances = layer(chance.random((2, 4), np.float32))
    print(f"candle's softmax in NumPy, writable: {chances.flags.writeable}\n{chances.round(3)}")
    first, second = layer.weight(), layer.weight()
    print(f"the weight stays in candle, so these are copies: {not np.shares_memory(first, second)}")
    array, address = round_trip(3, 4)
    offset = array.ctypes.data - address
    print(f"into candle, transposed and cut there, and out: not copied, {array.strides} bytes a step, from byte {offset}")
    return array


if __name__ == "__main__":
    main()
