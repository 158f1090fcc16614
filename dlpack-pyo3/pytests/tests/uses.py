"""Uses of the API that are based on an export: views, results, arrays, buffers, pickles, setters, slices of tensors, numbers.

The tests of exits and forks, and the campaigns of threads, round trips and failing allocations, do each of them.
"""

import copy
import importlib.util
import os
import pickle
import sys

import capi
import dlpack_probe as p

try:
    import numpy
except ImportError:
    numpy = None

# The first words of the names of the uses in each group.
GROUPS = {
    "views": ("view",),
    "buffers": ("memoryview",),
    "pickles": ("pickle", "copied"),
    "parts": ("part", "iteration", "tolist", "item"),
    "arrays": ("Numpy", "asarray", "Tensor.numpy", "attribute"),
    "fields": ("setter", "columns", "Exported"),
}
# PyO3 releases the GIL while it makes the `TypeError` of an argument, also of a variant that does not fit. If the interpreter exits
# during that, the thread never gets the GIL back. It crashes with PyO3 0.28; later versions halt it. It also crashes in debug builds
# of CPython before 3.14: `test_daemon_threads_that_attach` shows it without our code.
CRASHES = os.environ.get("DLPACK_OLDER_PYO3") == "0.28" or (capi.DEBUG_BUILD and sys.version_info < (3, 14))
CRASHING = ("view, refused", "view, of one of two types") if CRASHES else ()
# The import of a memoryview over a class's `__buffer__` calls `gc.get_referents`. Without the GIL that stops all threads, and
# CPython 3.13t hangs if it happens during exit: `TestDaemonThreadsOf313t` shows it without our code.
HANGING = () if capi.GIL else ("pickle, out of band", "pickle, of a class, out of band")
REFUSALS = (AttributeError, BufferError, ImportError, IndexError, TypeError, ValueError)
FLOATS = [0.0, 1.0, 2.0, 3.0]


def refused(act, *arguments):
    """A use that must raise."""

    def use():
        try:
            act(*arguments)
        except REFUSALS:
            return
        raise AssertionError("it is not refused")

    return use


def out_of_band(tensor):
    buffers = []
    data = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers)


def kept_and_released(owner, kind):
    def use():
        p.keep_view(owner, kind)
        p.release_views()

    return use


def set_field(settings, name, value):
    return lambda: setattr(settings, name, value)


def uses():
    """Each use by its name, and the objects that the uses need. A use leaves alive only what it returns.

    A use may be repeated, also by several threads at once, but for those with "alone" in their names.
    """
    frozen, shared = p.Probe([4]), p.WProbe([4])
    matrix, rows = p.Probe([2, 3]), p.Rows([1.0] * 6)
    tensor, shared_tensor = p.take(frozen), p.take(shared)
    one = p.take(p.Probe([1]))
    picture, canvas, tables, settings = p.Picture(2, 3), p.Canvas(4), p.Tables(3), p.Settings(2)
    pickled = pickle.dumps(tensor)
    found = {f"view, {kind}": (lambda kind=kind: p.make_view(shared, kind)) for kind in p.kinds_of_views() if "promised" not in kind}
    found |= {
        "view, read-only": lambda: p.make_view(frozen, "View"),
        "view, of a Tensor": lambda: p.make_view(tensor, "ViewDyn"),
        "view, of a part": lambda: p.make_view(tensor[1:], "View"),
        "view, of bytes": lambda: p.views.shape(matrix),
        "view, to_vec": lambda: p.make_view(shared, "to_vec"),
        "view, collected": lambda: p.differential.read(frozen, "float32", "any rank", "iter"),
        "view, promised, alone": lambda: p.make_view(shared, "View, promised"),
        "view, promised and written, alone": lambda: p.make_view(shared, "ViewMut, promised"),
        "view, kept in Rust, alone": kept_and_released(frozen, "View"),
        "view, written and kept in Rust, alone": kept_and_released(shared, "ViewMut"),
        "view, promised and kept in Rust, alone": kept_and_released(shared, "View, promised"),
        "view, as a slice kept in Rust, alone": kept_and_released(shared, "View, promised, as a slice"),
        "view, refused for the data type": refused(p.views.total, frozen),
        "view, refused for the rank": refused(p.make_view, matrix, "View"),
        "view, refused to write": refused(p.make_view, frozen, "ViewMut"),
        "memoryview": lambda: memoryview(frozen),
        "memoryview, of a Tensor": lambda: memoryview(shared_tensor),
        "memoryview, of a part": lambda: memoryview(shared_tensor[::2]),
        "memoryview, released": lambda: memoryview(shared_tensor[::2]).release(),
        "pickle, protocol 2": lambda: pickle.loads(pickle.dumps(tensor, 2)),
        "pickle, protocol 4": lambda: pickle.loads(pickle.dumps(tensor[::2], 4)),
        "pickle, protocol 5": lambda: pickle.loads(pickle.dumps(shared_tensor, 5)),
        "pickle, out of band": lambda: out_of_band(shared_tensor),
        "pickle, of a class": lambda: pickle.loads(pickle.dumps(picture)),
        "pickle, of a class, out of band": lambda: out_of_band(canvas),
        "pickle, dumped": lambda: pickle.dumps(tensor),
        "pickle, loaded": lambda: pickle.loads(pickled),
        "pickle, refused": refused(p.Tensor._restore, b"1234", (2, 32, 1, False), (2,)),
        "copied": lambda: copy.copy(tensor),
        "copied, deep": lambda: copy.deepcopy(tensor[1:]),
        "part": lambda: tensor[1:, None],
        "part, of a part": lambda: tensor[::-1][1:][0],
        "part, refused": refused(lambda: tensor[9]),
        "part, no index": refused(lambda: tensor["x"]),
        "iteration": lambda: list(tensor),
        "iteration, of a class": lambda: list(rows),
        "iteration, not to its end": lambda: next(iter(tensor)),
        "tolist": lambda: tensor.tolist(),
        "item": lambda: (one.item(), float(one), bool(one)),
        "item, refused": refused(tensor.item),
        "columns": lambda: tables.price,
        "Exported": lambda: p.libraries.vector(FLOATS),
        "Exported, refused": refused(p.libraries.points, FLOATS, [3, 3]),
    }
    if numpy:
        array = numpy.arange(4, dtype="float32")
        integers, doubles = numpy.arange(6, dtype="int32").reshape(2, 3).T, numpy.arange(3.0)
        numbered, lent = numpy.zeros((2, 3), dtype="int32"), numpy.ndarray((2, 3), "int32", buffer=bytearray(24))
        matrix_of_two, state = numpy.ones((2, 2), dtype="float32"), numpy.ones(3)
        ledger = p.Ledger(3)
        found |= {
            "view, of numpy": lambda: p.views.elements(integers),
            "view, of numpy over a bytearray": lambda: p.views.elements(lent),
            "view, of its rows": lambda: p.views.sums(integers),
            "view, written, of numpy": lambda: p.views.scale(doubles, 1.0),
            "view, its rows written": lambda: p.views.number_rows(numbered),
            "view, copied from another": lambda: p.views.copy(numpy.empty_like(integers), integers),
            "view, converted": lambda: p.views.converted([1, 2, 3]),
            "view, of one of two types": lambda: p.views.either(doubles),
            "view, of one variant": lambda: p.views.bytes(integers[0]),
            "view, sorted, alone": lambda: p.views.sort(doubles),
            "view, promised twice": lambda: p.views.dot(state, state),
            "Numpy<T>": lambda: p.ramp(8)[0],
            "Numpy<Array>": lambda: p.matrix(),
            "Numpy<Managed>": lambda: p.to_numpy(frozen),
            "Numpy<Managed>, of numpy": lambda: p.to_numpy(array),
            "Numpy<T>, copied by ndarray": lambda: p.differential.to_owned(array, "float32"),
            "asarray": lambda: numpy.asarray(frozen),
            "asarray, of a Tensor": lambda: numpy.asarray(shared_tensor),
            "asarray, of a part": lambda: numpy.asarray(tensor[::-2]),
            "asarray, another data type": lambda: numpy.asarray(frozen, "float64"),
            "asarray, of a memoryview": lambda: numpy.asarray(memoryview(shared_tensor)),
            "Tensor.numpy": lambda: tensor.numpy(),
            "attribute, an array": lambda: ledger.times,
            "pickle, of numpy": lambda: pickle.loads(pickle.dumps(p.take(integers))),
            "setter, copied, alone": set_field(settings, "weights", matrix_of_two),
            "setter, refused": refused(setattr, settings, "mask", array),
            "setter, adopted, alone": set_field(settings, "state", state),
        }
    for library, act in [
        ("torch", lambda: p.libraries.torch(FLOATS, [2, 2])),
        ("jax", lambda: p.libraries.jax(4)),
        ("cupy", lambda: p.libraries.cupy(FLOATS)),
    ]:
        # If the library is not installed, the use raises an ImportError.
        is_there = importlib.util.find_spec(library) is not None and library != "cupy"
        found[f"{library}, a result"] = act if is_there else refused(act)
    # The objects of all uses, to count their references.
    owners = [frozen, shared, matrix, rows, tensor, shared_tensor, one, picture, canvas, tables, settings]
    return found, owners


def group(found, name, alone=True):
    """The uses of one of `GROUPS`. Without `alone`, those that several threads may make, also while the interpreter exits."""

    def fits(title):
        return alone or ("alone" not in title and not title.startswith(CRASHING + HANGING))

    return [use for title, use in found.items() if title.startswith(GROUPS[name]) and fits(title)]
