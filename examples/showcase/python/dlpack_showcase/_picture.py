"""Pictures from arrays: a PNG by hand, and a view of a cloud of points."""

import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]


def write_png(path: Path, pixels: Bytes) -> None:
    """Writes an array of (height, width, 3) bytes."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 3 * width), np.uint8)  # each line begins with the number of its filter: none
    lines[:, 1:] = pixels.reshape(height, 3 * width)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def view(x: Floats, y: Floats, z: Floats, light: Floats, warm: npt.NDArray[np.bool_], size: tuple[int, int]) -> Bytes:
    """The points seen from above and behind: blue where it is low and sand where it is high, or else orange."""
    height, width = size
    tilt, back = np.radians(40), 30.0
    depth = back + y * np.cos(tilt) - z * np.sin(tilt)
    across = width / 2 + 0.95 * width * x / depth
    down = 0.5 * height - 0.95 * width * (y * np.sin(tilt) + z * np.cos(tilt)) / depth
    ground = np.stack(
        [np.interp(z, [-0.8, 0.0, 0.8], channel) for channel in ([30, 40, 240], [70, 170, 220], [150, 170, 150])],
        axis=1,
    )
    leaves = np.stack([np.interp(z, [0.0, 3.0], channel) for channel in ([200, 255], [60, 214], [50, 110])], axis=1)
    colours = np.where(warm[:, None], leaves, ground) * (0.35 + 0.9 * light)[:, None]
    canvas = np.empty((height, width, 3))
    canvas[:] = np.linspace([6.0, 8.0, 20.0], [16.0, 18.0, 34.0], height)[:, None]
    # From far to near, so that what is near covers what is behind it; what is near takes two pixels by two.
    order = np.argsort(-depth)
    for right, below, reach in ((0, 0, 1e9), (1, 0, 30.0), (0, 1, 26.0), (1, 1, 22.0)):
        near = order[depth[order] < reach]
        column, row = across[near].astype(int) + right, down[near].astype(int) + below
        seen = (depth[near] > 1) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
        canvas[row[seen], column[seen]] = colours[near][seen]
    return np.clip(canvas, 0, 255).astype(np.uint8)
