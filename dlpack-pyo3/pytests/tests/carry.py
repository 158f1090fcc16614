"""Ways to pass objects to another process, and whether they share memory: one row for each, by a write in the worker.

`PYTHONPATH=FOLDER_OF_THE_MODULE python carry.py`; joblib and torch are skipped if they are not installed.
"""

import ctypes
import multiprocessing
import pickle

import dlpack_probe as p

LEN = 1000
INHERITED = p.Canvas(LEN)


def first(one):
    """The first number, in place."""
    return ctypes.c_uint16.from_address(p.Tensor.from_dlpack(one).data_ptr)


def write(one):
    """What a worker does with the object."""
    assert first(one).value == 7
    first(one).value = 9
    return one


def write_inherited(_):
    return write(INHERITED)


def canvas():
    one = p.Canvas(LEN)
    first(one).value = 7
    return one


def row(way, one, back, sent="pickled"):
    there = {7: "copy", 9: "shared"}[first(one).value]
    assert type(back) is type(one) and first(back).value == 9
    print(f"{way:28} {type(one).__name__:8} {sent:10} {there}")


def objects():
    """Objects of classes that support pickle, and a tensor."""
    yield canvas()
    yield p.Tensor.from_dlpack(canvas())


def by_pickle():
    for one in objects():
        buffers = []
        data = pickle.dumps(one, protocol=5, buffer_callback=buffers.append)
        assert len(data) < 300
        back = pickle.loads(data, buffers=buffers)
        row("pickle, out of band", one, write(back))
    for one in objects():
        row("pickle, in band", one, write(pickle.loads(pickle.dumps(one))))


def by_multiprocessing():
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(1) as pool:
            for one in objects():
                row(f"multiprocessing, {method}", one, pool.apply(write, [one]))
    if "fork" in multiprocessing.get_all_start_methods():
        first(INHERITED).value = 7
        with multiprocessing.get_context("fork").Pool(1) as pool:
            row("multiprocessing, fork", INHERITED, pool.apply(write_inherited, [0]), "inherited")


def by_joblib():
    import joblib

    for backend in ["loky", "multiprocessing", "threading"]:
        for one in objects():
            (back,) = joblib.Parallel(n_jobs=2, backend=backend)([joblib.delayed(write)(one)])
            row(f"joblib, {backend}", one, back, "itself" if back is one else "pickled")


class Parts:
    """A data set over one object, whose items are parts of it."""

    def __init__(self, one, how):
        self.one, self.how = one, how

    def __len__(self):
        return 8

    def __getitem__(self, index):
        part = p.Tensor.from_dlpack(self.one)[index : index + 2]
        return self.how(part)


def as_it_is(part):
    first(part).value += 10
    return part


def as_torch(part):
    import torch

    return torch.from_dlpack(as_it_is(part)).to(torch.int32)


def by_data_loader():
    from torch.utils.data import DataLoader

    for method in ["spawn", "fork"]:
        for one in objects():
            for how, collate in [(as_it_is, list), (as_torch, None)]:
                loader = DataLoader(Parts(one, how), 4, num_workers=2, multiprocessing_context=method, collate_fn=collate)
                batches = list(loader)
                values = [int(first(part).value) if collate else int(part[0]) for batch in batches for part in batch]
                assert values == [17] + [10] * 7, values
                kind = type(batches[0][0])
                sent = "pickled" if method == "spawn" else "inherited"
                there = {7: "copy", 17: "shared"}[first(one).value]
                print(f"DataLoader, {method:16} {type(one).__name__:8} {sent:10} {there}, gives {kind.__module__}.{kind.__name__}")


def main():
    print(f"{'way':28} {'object':8} {'sent':10} memory there")
    for act in [by_pickle, by_multiprocessing, by_joblib, by_data_loader]:
        try:
            act()
        except ModuleNotFoundError as error:
            print(f"{act.__name__}: no {error.name} here")


if __name__ == "__main__":
    main()
