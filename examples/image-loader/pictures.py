"""A data set of pictures, which worker processes decode for a DataLoader. `python pictures.py`

Where torch is installed, its DataLoader is used; `Loader` below does the same in few lines without it.
"""

import multiprocessing
import tempfile
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np
from image_loader import decode, decode_into, encode


class Pictures:
    """What any DataLoader takes: a length, and items by index. It is pickled to the workers, as a list of paths."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return decode(self.paths[index])


class Batch:
    """An array of pictures in memory that several processes have."""

    def __init__(self, shape, name=None):
        self.shape = shape
        self.memory = SharedMemory(name, create=name is None, size=int(np.prod(shape)))
        self.pictures = np.ndarray(shape, np.uint8, self.memory.buf)

    def close(self, unlink=False):
        del self.pictures
        self.memory.close()
        if unlink:
            self.memory.unlink()


def fill(shape, name, index, path):
    """What a worker does: it decodes a picture into its place."""
    batch = Batch(shape, name)
    decode_into(path, batch.pictures[index])
    batch.close()


class Loader:
    """A small DataLoader: spawned workers decode into batches in shared memory, which are not sent between processes."""

    def __init__(self, pictures, batch_size, num_workers):
        self.pictures, self.batch_size, self.num_workers = pictures, batch_size, num_workers

    def __iter__(self):
        paths, size = self.pictures.paths, self.pictures[0].shape
        with multiprocessing.get_context("spawn").Pool(self.num_workers) as pool:
            for start in range(0, len(paths), self.batch_size):
                some = paths[start : start + self.batch_size]
                batch = Batch((len(some), *size))
                try:
                    name = batch.memory.name
                    pool.starmap(fill, [(batch.shape, name, *each) for each in enumerate(some)])
                    # Good until the next one is asked for.
                    yield batch.pictures
                finally:
                    batch.close(unlink=True)


def main(count=8):
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.png") for number in range(count)]
        for number, path in enumerate(paths):
            encode(path, 48, 64, number)
        pictures = Pictures(paths)
        first = pictures[0]
        assert first.flags.writeable and first.base is not None
        print(f"{len(pictures)} pictures of {first.shape}, {first.dtype}, in the decoder's memory")
        means = [batch.mean(axis=(0, 1, 2)).round(2).tolist() for batch in Loader(pictures, 4, num_workers=2)]
        print(f"our loader, 2 spawned workers, decoded into shared memory: means {means}")
        try:
            from torch.utils.data import DataLoader
        except ModuleNotFoundError:
            print("no torch here")
            return
        loader = DataLoader(pictures, 4, num_workers=2, multiprocessing_context="spawn")
        torchs = [batch.double().mean(dim=(0, 1, 2)).numpy().round(2).tolist() for batch in loader]
        assert torchs == means
        print(f"torch's, 2 spawned workers: {type(batch := next(iter(loader))).__name__} of {tuple(batch.shape)}, the same means")


if __name__ == "__main__":
    main()
