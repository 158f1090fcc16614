"""`python -m dlpack_showcase.demo [folder]`: NumPy reads each class. What is printed is asserted."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from dlpack_conformance import call_dlpack, check_producer

from . import Batch, CartPole, Image, PointCloud, Recording, Samples, Trace, brightness, inspect
from ._picture import view, write_png

Array = np.ndarray[Any, Any]


def title(text: str) -> None:
    print(f"\n{text}")
    print(f"    {'':<14}{'dtype':<9}{'shape':<15}{'strides':<14}{'pointer':<16}{'where':<21}access")


def show(name: str, producer: Any, *, start: int | None = None, writable: bool = False) -> Array:
    """Prints what NumPy got of a producer, after comparing it with what Rust exported."""
    array = np.from_dlpack(producer)
    rust = call_dlpack(producer, max_version=(1, 3)).tensor
    assert rust is not None and rust.shape == array.shape and rust.strides is not None
    assert tuple(step * array.itemsize for step in rust.strides) == array.strides
    # The same address: NumPy looks at the memory of the struct.
    pointer = array.ctypes.data
    assert pointer == rust.first
    assert array.flags.writeable == writable and rust.read_only != writable
    where = "Rust's own memory" if start is None else f"byte {pointer - start} of a record"
    access = "writable" if writable else "read-only"
    print(
        f"    {name:<14}{array.dtype.name:<9}{str(array.shape):<15}{str(array.strides):<14}{pointer:<#16x}{where:<21}{access}"
    )
    return array


def refused(kind: type[Exception], call: Callable[[], object]) -> str:
    try:
        call()
    except kind as error:
        return f"{kind.__name__}: {error}"
    raise AssertionError(f"no {kind.__name__}")


def images(folder: Path) -> None:
    title("A picture: Vec<u8> and two numbers")
    image = Image(480, 640)
    pixels = show("Image", image)
    assert pixels.shape == (480, 640, 3) and len(np.unique(pixels)) > 200
    write_png(folder / "image.png", pixels)
    error = refused(ValueError, lambda: pixels.__setitem__(0, 1))
    print(f"    writing to it        {error}")

    # NumPy's picture, upside down and with its colours swapped: negative strides, which Rust follows as it copies.
    turned = pixels[::-1, :, ::-1]
    back = Image.from_array(turned)
    again = np.from_dlpack(back)
    assert np.array_equal(again, turned) and not np.shares_memory(again, pixels)
    print(
        f"    back into Rust       Image.from_array(pixels[::-1, :, ::-1]), strides {turned.strides}: equal, and a copy"
    )
    assert abs(brightness(turned) - pixels.mean()) < 1e-9
    print(f"    as an argument       brightness(pixels) = {brightness(pixels):.2f}, as NumPy finds")
    error = refused(BufferError, lambda: brightness(pixels.astype(np.float32)))
    print(f"    and not              {error}")


def clouds(folder: Path) -> None:
    title("A point cloud: Vec<Point>, a repr(C) struct of mixed fields; each field is an attribute")
    cloud = PointCloud(112, 2400)
    start = np.from_dlpack(cloud.time).ctypes.data
    columns = {name: show(name, getattr(cloud, name), start=start) for name in PointCloud.__dlpack_tensors__}
    assert {array.strides for array in columns.values()} == {(24,)}
    assert len({array.shape for array in columns.values()}) == 1 and len(cloud) == columns["x"].size
    x, y, z = (columns[name].astype(float) for name in "xyz")
    light = columns["intensity"] / 60_000
    write_png(folder / "cloud.png", view(x, y, z, light, ~columns["ground"], (540, 960)))
    print(f"    {len(cloud)} points of 24 bytes, in one piece of memory; columns copied: none")


def batches() -> None:
    title("A batch: several vectors, several tensors")
    batch = CartPole().play(1000)
    assert Batch.__dlpack_tensors__ == ("observations", "actions", "rewards", "fallen")
    arrays = {name: show(name, getattr(batch, name)) for name in Batch.__dlpack_tensors__}
    assert arrays["observations"].shape == (1000, 4) and set(np.unique(arrays["actions"])) <= {0, 1}


def samples() -> None:
    title("An enum: the data type is the variant's")
    for dtype in ("float32", "int16", "uint8"):
        array = show(f"Samples.{dtype[0].upper()}{dtype.lstrip('uintfloa')}", Samples.chord(44_100, dtype))
        assert array.dtype == dtype


def recordings() -> None:
    title("A file: shape and data type are read from its header")
    wanted = np.arange(12, dtype=np.int16).reshape(6, 2)
    header = b"RECORDEDh" + bytes(7) + b"".join(n.to_bytes(8, "little") for n in wanted.shape)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "two-channels.rec")
        path.write_bytes(header.ljust(64, b"\0") + wanted.tobytes())
        array = show("Recording", Recording(path))
        assert np.array_equal(array, wanted)
        # Into another file: the first one is mapped.
        short = Path(directory, "short.rec")
        short.write_bytes(path.read_bytes()[:-4])
        error = refused(BufferError, lambda: np.from_dlpack(Recording(short)))
    print(f"    cut short            {error}")


def environments() -> None:
    title("An environment: a SharedBuffer, filled by each step")
    env = CartPole()
    observation = show("CartPole", env, writable=True)
    before = observation.copy()
    env.step(True)
    assert not np.array_equal(observation, before)
    print(f"    one array, before    {np.array2string(before, precision=4, floatmode='fixed')}")
    print(f"    after env.step()     {np.array2string(observation, precision=4, floatmode='fixed')}")
    began = time.perf_counter()
    for _ in range(100_000):
        env.step(bool(observation[2] > 0))
    print(f"    a loop in Python     {100_000 / (time.perf_counter() - began) / 1e6:.1f} million steps a second")


def traces() -> None:
    title("A class that grows: not while an array looks")
    trace = Trace()
    trace.extend([1.0, 2.0])
    array = show("Trace", trace)
    error = refused(RuntimeError, lambda: trace.push(3.0))
    print(f"    push()               {error}")
    error = refused(BufferError, lambda: trace.extend([3.0]))
    print(f"    extend()             {error}")
    del array
    trace.push(3.0)
    assert np.from_dlpack(trace).tolist() == [1.0, 2.0, 3.0]
    print("    del array, push()    [1.0, 2.0, 3.0]")


def checks() -> None:
    print("\nThe conformance kit, pointed at each of them, and at NumPy")
    image = Image(4, 4)
    producers = [image, PointCloud(8, 90).x, CartPole(), CartPole().play(5).rewards, Samples.chord(9, "int16"), Trace()]
    for producer in producers:
        report = check_producer(producer, hostile=True)
        assert not report.faults, str(report)
        print(f"    {str(report).splitlines()[0]}")
    print(f"    {str(check_producer(np.arange(3))).splitlines()[0]}")
    print("\ninspect(Image(4, 4)) says")
    print("\n".join(f"    {line}" for line in inspect(image).splitlines()))


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    images(folder)
    clouds(folder)
    batches()
    samples()
    recordings()
    environments()
    traces()
    checks()
    print(f"\nAll of this was asserted. Pictures: {folder / 'image.png'}, {folder / 'cloud.png'}")


if __name__ == "__main__":
    main()
