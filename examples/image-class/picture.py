"""An image and an array over the same memory. `python picture.py` shows it."""

import numpy as np
from image_class import Image


def main():
    image = Image(2, 3, dtype="float32")
    array = np.asarray(image)
    array[:] = 0.25
    image.scale(2)
    print(f"an array over an image: {array[0, 0]}, their mean {image.mean()}")
    frame = np.full((4, 4, 3), 100, np.uint8)
    image = Image.over(frame)
    image.scale(3)
    print(f"an image over an array: {frame[0, 0]}")
    print(f"and an array over that image: {'not copied' if np.asarray(image).ctypes.data == frame.ctypes.data else 'copied'}")


if __name__ == "__main__":
    main()
