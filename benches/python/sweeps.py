"""How cost grows with work: each capability compared with all libraries that have it, over the size of its work.

`SWEEPS` lists them. A function gives, for one amount of work, the contenders by name, each as a loop of so many calls
(`turns.loop`); `ours` is compared with the others. To add one, write such a function. `benches/peers.py` runs them all.
"""

import ctypes
import gc
import importlib
import pickle
import sys
import threading
import time
from array import array as typed_array
from itertools import repeat
from types import SimpleNamespace
from typing import Callable, NamedTuple

from turns import loop, medians

MODULES = {
    "ours": "bench_ours",
    "NumPy": "numpy",
    "rust-numpy": "peer_rust_numpy",
    "nanobind": "peer_nanobind",
    "dlpark": "peer_dlpark",
    "dlpack-rs": "peer_dlpack_rs",
    "pyo3-dlpack": "peer_pyo3_dlpack",
    "C": "bench_c",
}
RANKS = [1, 2, 3, 4]
BYTES = [1 << n for n in range(8, 27, 3)]
COUNTS = [1, 10, 100, 1000]
THREADS = [1, 2, 3, 4]


class Sweep(NamedTuple):
    """A plot over `axis`, in `unit`."""

    title: str
    axis: str
    work: list
    contenders: Callable
    unit: str = "ns"


def modules():
    """The modules that are installed, by column, and why others are missing."""
    found, missing = {}, {}
    for column, name in MODULES.items():
        try:
            found[column] = importlib.import_module(name)
        except ImportError as error:
            missing[column] = str(error)
    return SimpleNamespace(**{name.replace("-", "_"): module for name, module in found.items()}, all=found), missing


def each(m, name, *arguments):
    """The results of the function or class with that name, in each module that has it."""
    some = {column: getattr(module, name, None) for column, module in m.all.items() if column != "NumPy"}
    return {column: make(*arguments) for column, make in some.items() if make}


def with_each(m, names, body, argument):
    """A call of the function in each module that has it, by the last of several names."""
    runs = {}
    for column, module in m.all.items():
        found = [getattr(module, name) for name in names.split() if hasattr(module, name)]
        if found and column != "NumPy":
            runs[column] = loop(body, None, f=found[-1], x=argument)
    return runs


def dims(rank):
    return tuple(range(2, 2 + rank))


def images(m, rank):
    """An object of each kind with that rank; `Image` accepts any."""
    made = {"ours": getattr(m.ours, f"Frozen{rank}")(dims(rank)), "NumPy": m.NumPy.ones(dims(rank), "f4")}
    return made | each(m, f"Image{rank}", dims(rank)) | each(m, "Image", dims(rank))


def square(nbytes):
    """The sizes of a matrix of `f4`."""
    rows = 1 << (nbytes.bit_length() // 2 - 1)
    return rows, nbytes // 4 // rows


# --- The cost of an exported object

CALL = "obj.__dlpack__(max_version=(1, 1))"


def export(m, rank):
    return {name: loop(CALL, made) for name, made in images(m, rank).items()}


def table(m, rank):
    some = {name: made for name, made in images(m, rank).items() if hasattr(type(made), "__dlpack_c_exchange_api__")}
    return {name: lambda n, made=made: m.C.run_table(made, n) for name, made in some.items()}


def from_dlpack(m, nbytes):
    rows, columns = square(nbytes)
    made = {"ours": m.ours.Frozen3((rows, columns, 1)), "NumPy": m.NumPy.ones((rows, columns, 1), "f4")}
    made |= each(m, "Image3", (rows, columns, 1)) | each(m, "Image", (rows, columns, 1))
    made["C"] = m.C.Floor((rows, columns, 1))
    return {name: loop("f(obj)", some, f=m.NumPy.from_dlpack) for name, some in made.items()}


def asarray(m, nbytes):
    rows, columns = square(nbytes)
    made = {"ours": m.ours.Frozen3((rows, columns, 1)), "buffer by hand, in C": m.C.Floor((rows, columns, 1))}
    made |= {name: some for name, some in each(m, "Image3", (rows, columns, 1)).items() if name == "nanobind"}
    runs = {name: loop("f(obj)", some, f=m.NumPy.asarray) for name, some in made.items()}
    held = each(m, "Held", nbytes // 4)
    return runs | {name: loop("f(obj.array)", some, f=m.NumPy.asarray) for name, some in held.items()}


def records(m, nbytes):
    """Records of 16 bytes. NumPy parses the format of both buffers."""
    tape = m.ours.Tape(nbytes // 16)
    array = m.NumPy.asarray(tape).copy()
    made = {"ours": tape, "memoryview": memoryview(array)}
    return {name: loop("f(obj)", some, f=m.NumPy.asarray) for name, some in made.items()}


def copy_out(m, nbytes):
    """A library without requests for copies makes an array, which is then copied.

    NumPy's array lies in the memory of an object of ours: its own memory would be in huge pages, which are read faster.
    """
    runs, all_made = {}, images_of(m, nbytes)
    all_made["NumPy"] = m.NumPy.asarray(all_made["ours"])
    for name, made in all_made.items():
        body = "f(obj, copy=True)" if name == "ours" else "f(obj).copy()"
        runs[name] = loop("obj.copy()" if name == "NumPy" else body, made, f=m.NumPy.from_dlpack)
    return runs


def images_of(m, nbytes):
    shape = square(nbytes)
    made = {"ours": m.ours.Frozen2(shape), "NumPy": m.NumPy.ones(shape, "f4")}
    return made | each(m, "Image2", shape) | each(m, "Image", shape)


# --- Arrays in


def call(m, rank):
    """A call of a function of this rank; some libraries only have functions of any rank."""
    return with_each(m, f"any_rank rank_{rank}", "f(x)", m.NumPy.ones(dims(rank), "f4"))


def call_any(m, rank):
    return with_each(m, "any_rank", "f(x)", m.NumPy.ones(dims(rank), "f4"))


def call_ours(m, rank):
    """A call with an object that has an exchange table."""
    runs = with_each(m, f"any_rank rank_{rank}", "f(x)", getattr(m.ours, f"Frozen{rank}")(dims(rank)))
    # It accepts only NumPy arrays.
    runs.pop("rust-numpy", None)
    return runs


def call_jax(m, rank):
    import jax

    x = jax.numpy.ones(dims(rank), "f4")
    return with_each(m, f"any_rank rank_{rank}", "f(x)", x) | through_numpy(m, "f(g(x))", rank, x)


def call_torch(m, rank):
    import torch

    x = torch.ones(dims(rank))
    return with_each(m, f"any_rank rank_{rank}", "f(x)", x) | through_numpy(m, "f(x.numpy())", rank, x)


def call_buffer(m, nbytes):
    """A call with an `array.array`. The other libraries import no buffers."""
    x = typed_array("f", bytes(nbytes))
    runs = with_each(m, "any_rank rank_1", "f(x)", x) | through_numpy(m, "f(g(x))", 1, x)
    return {name: run for name, run in runs.items() if name in ("ours", "nanobind", "rust-numpy")}


def through_numpy(m, body, rank, x):
    """rust-numpy accepts only NumPy arrays."""
    some = {name: module for name, module in m.all.items() if name == "rust-numpy"}
    return {name: loop(body, None, f=getattr(module, f"rank_{rank}"), g=m.NumPy.asarray, x=x) for name, module in some.items()}


def total(m, nbytes):
    """A loop that adds the elements in their order. NumPy has none."""
    array = m.NumPy.ones(nbytes // 4, "f4")
    promised = {"ours, promised": loop("f(x)", None, f=m.ours.sum_of_slice, x=array)}
    return with_each(m, "sum", "f(x)", array) | promised


def reduced(method):
    """A reduction by several accumulators."""

    def runs(m, nbytes):
        x = m.NumPy.ones(nbytes // 4, "f4")
        return with_each(m, f"reduce_{method}", "f(x)", x) | {"NumPy": loop(f"x.{method}()", None, x=x)}

    return runs


def copy_in(m, nbytes):
    array = m.NumPy.ones(square(nbytes), "f4")
    return with_each(m, "copy_f32", "f(x)", array) | {"NumPy": loop("x.copy()", None, x=array)}


def copy_transposed(m, nbytes):
    array = m.NumPy.ones(square(nbytes), "f4").T
    return with_each(m, "copy_f32", "f(x)", array) | {"NumPy": loop("x.copy('C')", None, x=array)}


def setter(m, nbytes):
    array = m.NumPy.ones(nbytes // 4, "f4")
    return {name: loop("obj.pixels = x", made, x=array) for name, made in each(m, "Settable", len(array)).items()}


def lists_in(m, count):
    return with_each(m, "ranks", "f(x)", [m.NumPy.ones((16, 16), "f4") for _ in range(count)])


# --- Arrays out


def give(m, nbytes):
    return with_each(m, "give", "f(x)", nbytes // 4)


def lists_out(m, count):
    return with_each(m, "arrays", "f(x)", count)


def frames(m, count):
    runs = {}
    for name, module in m.all.items():
        if hasattr(module, "frames"):
            runs[name] = loop("[g(obj) for obj in f(x)]", None, f=module.frames, g=m.NumPy.from_dlpack, x=count)
    return runs


def jax(m, nbytes):
    import jax

    given = {name: getattr(m.all[name], "give") for name in ("rust-numpy", "nanobind") if name in m.all}
    runs = {name: loop("g(f(x))", None, f=f, g=jax.dlpack.from_dlpack, x=nbytes // 4) for name, f in given.items()}
    return runs | {"ours": loop("f(x)", None, f=m.ours.jax, x=nbytes // 4)}


def torch(m, nbytes):
    import torch

    given = {name: getattr(m.all[name], "give") for name in ("rust-numpy", "nanobind") if name in m.all}
    runs = {name: loop("g(f(x))", None, f=f, g=torch.from_numpy, x=nbytes // 4) for name, f in given.items()}
    return runs | {"ours": loop("f(x)", None, f=m.ours.torch, x=nbytes // 4)}


def like(m, nbytes):
    """As many ones as a NumPy array has numbers, in a new array."""
    x = m.NumPy.ones(nbytes // 4, "f4")
    runs = {"ours": loop("f(x)", None, f=m.ours.same_like, x=x), "ours, `Numpy<T>`": loop("f(x)", None, f=m.ours.same_numpy, x=x)}
    return runs | {name: loop("f(x)", None, f=f, x=x) for name, f in same(m).items()}


def same(m):
    return {name: m.all[name].same for name in ("rust-numpy",) if name in m.all}


def like_jax(m, nbytes):
    import jax

    x = jax.numpy.ones(nbytes // 4, "f4")
    runs = {"ours": loop("f(x)", None, f=m.ours.same_like, x=x), "ours, `Jax<T>`": loop("f(x)", None, f=m.ours.same_jax, x=x)}
    body, g, h = "g(f(h(x)))", jax.dlpack.from_dlpack, m.NumPy.asarray
    return runs | {name: loop(body, None, f=f, g=g, h=h, x=x) for name, f in same(m).items()}


def like_torch(m, nbytes):
    import torch

    x = torch.ones(nbytes // 4)
    runs = {"ours": loop("f(x)", None, f=m.ours.same_like, x=x), "ours, `Torch<T>`": loop("f(x)", None, f=m.ours.same_torch, x=x)}
    return runs | {name: loop("g(f(x.numpy()))", None, f=f, g=torch.from_numpy, x=x) for name, f in same(m).items()}


def like_filled(m, nbytes):
    """In PyTorch's own memory."""
    import torch

    x = torch.ones(nbytes // 4)
    runs = {"ours": loop("f(x)", None, f=m.ours.same_filled, x=x), "ours, `Like::new`": loop("f(x)", None, f=m.ours.same_like, x=x)}
    return runs | {"PyTorch": loop("f(x)", None, f=torch.ones_like, x=x)}


# --- What a tensor can do


def tensors(m, shape):
    tensor = m.ours.tensor(shape)
    return {"ours": tensor, "NumPy": m.NumPy.from_dlpack(tensor).copy()}


def index(m, rank):
    return {name: loop("obj[1]", made) for name, made in tensors(m, dims(rank)).items()}


def part(m, rank):
    """A slice along each axis."""
    key = (slice(0, 2),) * rank
    return {name: loop("obj[x]", made, x=key) for name, made in tensors(m, dims(rank)).items()}


def tolist(m, count):
    made = tensors(m, [count])
    runs = {name: loop("obj.tolist()", some) for name, some in made.items()}
    return runs | {"memoryview": loop("obj.tolist()", memoryview(made["NumPy"]))}


def pickled(obj):
    parts = []
    data = pickle.dumps(obj, protocol=5, buffer_callback=parts.append)
    return pickle.loads(data, buffers=parts)


def pickling(m, nbytes):
    return {name: loop("f(obj)", made, f=pickled) for name, made in tensors(m, [nbytes // 4]).items()}


# --- Programs


def loader(m, count):
    return {name: loop("for frame in f(x): pass", None, f=f.Loader, x=count) for name, f in with_programs(m).items()}


def environments(m, steps):
    """A loop of steps, each of which reads what the step has written."""

    def play(made):
        actions = m.NumPy.ones(8, "i8")
        for _ in range(steps):
            made.step(actions)
            made.observations, made.rewards

    return {name: loop("f(obj)", module.Environments(8), f=play) for name, module in with_programs(m).items()}


def columns(m, count):
    runs = {name: module.table for name, module in with_programs(m).items()}
    return {name: loop("dict(f(x, 1000))", None, f=f, x=count) for name, f in runs.items()}


def with_programs(m):
    return {name: module for name, module in m.all.items() if hasattr(module, "Loader")}


# --- Threads


def at_once(loops):
    """Each of the loops in its own thread, all at once. Returns the elapsed time for each call."""

    def run(n):
        ready, start = (threading.Barrier(len(loops) + 1) for _ in range(2))

        def work(one):
            ready.wait()
            start.wait()
            one(n)

        some = [threading.Thread(target=work, args=[one]) for one in loops]
        for one in some:
            one.start()
        ready.wait()
        since = time.perf_counter_ns()
        start.wait()
        for one in some:
            one.join()
        return (time.perf_counter_ns() - since) / len(loops)

    return run


def nothing(m, threads):
    return at_once([loop("pass", None) for _ in range(threads)])


def export_one(m, threads):
    """All threads export the same object."""
    return {name: at_once([loop(CALL, made) for _ in range(threads)]) for name, made in images(m, 3).items()}


def export_own(m, threads):
    """Each thread exports its own object."""
    own = [export(m, 3) for _ in range(threads)]
    return {name: at_once([some[name] for some in own]) for name in own[0]}


def call_own(m, threads):
    """Each thread passes its own array."""
    own = [call(m, 2) for _ in range(threads)]
    return {name: at_once([some[name] for some in own]) for name in own[0]}


SWEEPS = {
    "export": Sweep("`obj.__dlpack__(max_version=(1, 1))`, and releasing the capsule", "rank", RANKS, export),
    "table": Sweep("export and release through the C exchange table", "rank", RANKS, table),
    "from-dlpack": Sweep("`np.from_dlpack(obj)`", "bytes", BYTES, from_dlpack),
    "asarray": Sweep("`np.asarray(obj)`", "bytes", BYTES, asarray),
    "records": Sweep("`np.asarray(obj)` of a list of records", "bytes", BYTES, records),
    "copy-out": Sweep("`np.from_dlpack(obj, copy=True)`", "bytes", BYTES, copy_out),
    "call": Sweep("a call with a NumPy array", "rank", RANKS, call),
    "call-any": Sweep("a call with a NumPy array, of a function for any rank", "rank", RANKS, call_any),
    "call-ours": Sweep("a call with an exported object", "rank", RANKS, call_ours),
    "call-jax": Sweep("a call with a JAX array", "rank", RANKS, call_jax),
    "call-torch": Sweep("a call with a PyTorch tensor", "rank", RANKS, call_torch),
    "call-buffer": Sweep("a call with an `array.array`", "bytes", BYTES, call_buffer),
    "sum": Sweep("a call that adds the elements of an array, one after another", "bytes", BYTES, total),
    "reduce-sum": Sweep("a call that adds them in any order: `array.sum()`", "bytes", BYTES, reduced("sum")),
    "reduce-max": Sweep("a call that finds the largest: `array.max()`", "bytes", BYTES, reduced("max")),
    "copy-in": Sweep("a call that copies a matrix", "bytes", BYTES, copy_in),
    "copy-transposed": Sweep("a call that copies a transposed matrix", "bytes", BYTES, copy_transposed),
    "setter": Sweep("`obj.pixels = array`", "bytes", BYTES, setter),
    "lists-in": Sweep("a call with a list of arrays", "arrays", COUNTS, lists_in),
    "give": Sweep("a function that returns a `Vec` as a NumPy array", "bytes", BYTES, give),
    "lists-out": Sweep("a function that returns a list of NumPy arrays", "arrays", COUNTS, lists_out),
    "frames": Sweep("a list of objects, and a NumPy array over each", "frames", COUNTS, frames),
    "loader": Sweep("a loop over frames that a loader returns, 16 KB each", "frames", COUNTS, loader),
    "environments": Sweep("steps of eight environments, and a look at two arrays after each", "steps", [1, 32, 1024], environments),
    "columns": Sweep("a dict of columns, each with 1,000 numbers", "columns", [1, 10, 50], columns),
    "jax": Sweep("a function that returns a JAX array", "bytes", BYTES, jax),
    "torch": Sweep("a function that returns a PyTorch tensor", "bytes", BYTES, torch),
    "like": Sweep("a function that returns an array like its NumPy argument", "bytes", BYTES, like),
    "like-jax": Sweep("a function that returns an array like its JAX argument", "bytes", BYTES, like_jax),
    "like-torch": Sweep("a function that returns a tensor like its PyTorch argument", "bytes", BYTES, like_torch),
    "like-filled": Sweep("such a tensor, in memory that PyTorch allocates", "bytes", BYTES, like_filled),
    "index": Sweep("`tensor[1]`", "rank", RANKS[1:], index),
    "slice": Sweep("`tensor[0:2, ..]`, a slice for each axis", "rank", RANKS, part),
    "tolist": Sweep("`tensor.tolist()`", "items", [*COUNTS, 10_000, 100_000], tolist),
    "pickle": Sweep("pickling a tensor and loading it, protocol 5", "bytes", BYTES, pickling),
    "threads-one": Sweep("exports by several threads, of one object", "threads", THREADS, export_one),
    "threads-own": Sweep("exports by several threads, each of its own object", "threads", THREADS, export_own),
    "threads-call": Sweep("calls by several threads, each with its own array", "threads", THREADS, call_own),
}
# With many threads, which start slowly.
CALLS_OF_THREADS = 20_000


def child(folders, only, rounds, points):
    """Nanoseconds of each contender at every `points`-th amount of work; and why some are missing."""
    sys.path[:0] = folders
    m, missing = modules()
    gc.disable()
    result = {}
    for name in only:
        sweep = SWEEPS[name]
        try:
            for work in sweep.work[::points]:
                many = sweep.axis == "threads"
                runs = sweep.contenders(m, work) | {None: nothing(m, work) if many else loop("pass", None)}
                found = medians(runs, rounds, CALLS_OF_THREADS if many else None)
                result.setdefault(name, []).append((work, found))
        except ImportError as error:
            missing[name] = str(error)
    return {"times": result, "missing": missing}


# --- Bytes of live objects


class Used(ctypes.Structure):
    """glibc's statistics of its memory; `uordblks` is the memory in use, including its management."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


ALIVE = 1000


def alive(make):
    """Bytes of each of many live objects: the growth for as many again."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Used
    kept = [None] * (2 * ALIVE)
    used = []
    for begin in (0, ALIVE):
        gc.collect()
        for at in range(begin, begin + ALIVE):
            kept[at] = make()
        used.append(mallinfo().uordblks)
    # Blocks of glibc are multiples of 16; other allocations meanwhile are less.
    return 16 * round((used[1] - used[0]) / ALIVE / 16)


# The frozen class is `ours`.
KINDS = {"ours, owner": "Owned", "ours, SharedBuffer": "Shared"}


def exported(m, rank):
    """Objects to export, by name: one repeatedly, or many of a class that allows one export at a time."""
    made = images(m, rank) | {"ours, Tensor": m.ours.tensor(dims(rank))}
    made |= {name: getattr(m.ours, f"{kind}{rank}")(dims(rank)) for name, kind in KINDS.items()}
    writable = getattr(m.ours, f"Writable{rank}")
    many = {"ours, writable": iter([writable(dims(rank)) for _ in range(2 * ALIVE)])}
    return {name: repeat(some) for name, some in made.items()} | many


def capsule(m, rank):
    return {name: lambda some=some: next(some).__dlpack__(max_version=(1, 1)) for name, some in exported(m, rank).items()}


def array(m, rank):
    return {name: lambda some=some: m.NumPy.from_dlpack(next(some)) for name, some in exported(m, rank).items()}


def given(m, count):
    return {name: lambda f=module.give: f(count) for name, module in m.all.items() if hasattr(module, "give")}


MEMORY = {
    "memory-capsule": Sweep("bytes of a live capsule", "rank", RANKS, capsule, "bytes"),
    "memory-array": Sweep("bytes of a live NumPy array over an object", "rank", RANKS, array, "bytes"),
    "memory-given": Sweep("bytes of a NumPy array that a function returned", "items", [1, 8, 64, 512], given, "bytes"),
}


def child_memory(folders):
    """With every Python allocation a `malloc`."""
    sys.path[:0] = folders
    m, missing = modules()
    result = {}
    for name, sweep in MEMORY.items():
        for work in sweep.work:
            found = {column: alive(make) for column, make in sweep.contenders(m, work).items()}
            result.setdefault(name, []).append((work, found))
    return {"times": result, "missing": missing}
