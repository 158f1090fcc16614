"""Comparison of reads and writes with NumPy: 15 data types, any strides, and every method that reads or writes.

A case is a NumPy array with a random layout over its own bytes, and an object that exports it. It is read by some
methods, whose results are compared with NumPy's, and written by some, after which all bytes are compared with those that
NumPy's own assignment leaves, including the gaps between the elements. Operations that must be refused are refused.

A failed case is named by its seed: `DLPACK_SEED=.. DLPACK_CASES=1` repeats it.

Longer than 500 lines because each method that reads or writes is a function of its own.
"""

import copy
import gc
import math
import pickle
import random
import warnings

import capi
import dlpack_probe as p
import numpy as np
import report

try:
    import ml_dtypes

    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:
    BFLOAT16 = None

# The bits are random numbers, and NumPy warns about conversions of some.
warnings.simplefilter("ignore")
d = p.differential
NEWEST = {"max_version": (1, 3)}
REFUSALS = (BufferError, IndexError, TypeError, ValueError)
DTYPES = [np.dtype(name) for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()]
TABLE = capi.Exchange(p.Tensor)
# With so many random cases every method is called.
SHORT = 5_000


class Subclass(np.ndarray):
    pass


# -- cases ------------------------------------------------------------------------------------------


class Case:
    """A random array, the bytes under it, and an object that exports it."""

    def __init__(self, seed):
        self.dice = dice = random.Random(seed)
        self.dtype = dice.choice(DTYPES)
        self.shape, steps = self.a_layout()
        step = self.dtype.itemsize
        self.strides = tuple(step * stride for stride in steps)
        reach = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides)] if self.size else []
        low, high = -sum(min(far, 0) for far in reach), sum(max(far, 0) for far in reach)
        self.before = low + step * dice.choice([0, 0, 1, 5]) + (dice.randrange(step) if dice.random() < 0.05 else 0)
        self.memory = bytearray(self.some_bytes(self.before + high + step + step * dice.choice([0, 0, 3])))
        self.array = self.over(self.memory)
        self.readonly = dice.random() < 0.2
        self.array.flags.writeable = not self.readonly
        self.how, self.source = self.a_producer()

    def a_layout(self):
        """A shape, and strides in elements."""
        dice = self.dice
        rank = dice.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, dice.randrange(6, 33)])
        few = [1, 1, 1, 2] if rank > 5 else [0, 1, 2, 3, 3, 4, 5, 7] if dice.random() < 0.3 else [1, 2, 3, 3, 4, 5, 7, 8]
        shape = [dice.choice(few) for _ in range(rank)]
        while math.prod(shape) > 600:
            shape[dice.randrange(rank)] = 1
        if rank in (1, 2) and dice.random() < 0.04:
            # More than one batch of the copy loops.
            shape[-1] = dice.randrange(200, 1500)
        self.size = math.prod(shape)
        kind = dice.random()
        order = list(range(rank))
        if kind > 0.25:
            dice.shuffle(order)
        strides, step = [0] * rank, 1
        for axis in reversed(order):
            strides[axis] = step
            if kind > 0.4:
                # Gaps, reversed axes, repeated elements, elements of other axes.
                strides[axis] *= dice.choice([1, 1, 1, 2, 3]) if step < 3000 else 1
                strides[axis] *= dice.choice([1, 1, -1])
                if dice.random() < 0.06:
                    strides[axis] = dice.choice([0, 0, 1, -1, 2, 5])
            step = max(abs(strides[axis]), 1) * max(shape[axis], 1)
        if dice.random() < 0.1 and 1 in shape:
            # The stride of an axis of size 1 is arbitrary.
            strides[shape.index(1)] = dice.choice([0, -7, 1000])
        return tuple(shape), strides

    def some_bytes(self, count):
        if self.dtype == bool:
            return bytes(self.dice.choices(b"\0\1", k=count))
        return self.dice.randbytes(count)

    def over(self, memory):
        return np.ndarray(self.shape, self.dtype, memory, self.before, self.strides)

    def a_producer(self):
        array, dice = self.array, self.dice
        made = {
            "array": lambda: array,
            "methods": lambda: capi.Relay(array),
            "subclass": lambda: array.view(Subclass),
            "Tensor": lambda: p.take(array),
            "part of a Tensor": lambda: p.take(array)[...],
            "table": lambda: TABLE.to_object(TABLE.from_object(p.take(array))),
        }
        if not self.readonly:
            # The legacy struct has no read-only flag, so NumPy refuses to export it.
            made["legacy"] = lambda: capi.OldRelay(array)
        # Some NumPy versions lend no buffer of an array that is contiguous in neither order.
        if self.dtype.kind != "c" and self.size and array.flags.forc:
            made["memoryview"] = lambda: memoryview(array)
        how = dice.choice(["array", *made])
        return how, made[how]()

    @property
    def exports_readonly(self):
        """Whether an export of an import must be read-only: LAY-16 if elements overlap."""
        return self.readonly or self.how == "legacy" or self.overlaps

    @property
    def overlaps(self):
        """Whether several indices may mean one element, by the rule that `ViewMut` states."""
        if self.array.flags.c_contiguous:
            return False
        inner = 0
        for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(self.strides, self.shape) if extent > 1):
            if stride <= inner:
                return True
            inner += stride * (extent - 1)
        return False

    def __repr__(self):
        flags = ", read-only" if self.readonly else ""
        return f"{self.dtype} {self.shape}, strides {self.strides}, offset {self.before}{flags}, by {self.how}"

    def views(self):
        """The kinds of views that accept an array of this rank."""
        rank = len(self.shape)
        return ["any rank", "promised", *([str(rank)] if 1 <= rank <= 3 else [])]

    def an_index(self):
        """A tuple of basic indices."""
        dice, items = self.dice, []
        for extent in self.shape[: dice.randrange(len(self.shape) + 1)]:
            if extent and dice.random() < 0.3:
                items.append(dice.randrange(-extent, extent))
            else:
                ends = [None, *range(-extent - 1, extent + 2)][:20]
                items.append(slice(dice.choice(ends), dice.choice(ends), dice.choice([None, 1, 2, 3, -1, -2])))
        if dice.random() < 0.2:
            items.insert(dice.randrange(len(items) + 1), None)
        return (*items, ...)


def refused(act, *arguments):
    try:
        act(*arguments)
    except REFUSALS:
        return ""
    return "it is not refused"


def differs(got, want):
    return "" if got == want else f"{got!r:.200} where NumPy has {want!r:.200}"


def same(got, want):
    """Whether an array equals NumPy's in type, shape and bytes."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype} {got.shape} where NumPy has {want.dtype} {want.shape}"
    return differs(got.tobytes(), want.tobytes())


def same_memory(got, want):
    if want.size and got.ctypes.data != want.ctypes.data:
        return "it is other memory"
    return same(got, want)


# -- reads ------------------------------------------------------------------------------------------
# Each returns a description of what is wrong, or None if it does not apply to the case.


def by_view(method):
    def read(case):
        return differs(d.read(case.source, case.dtype.name, case.dice.choice(case.views()), method), case.array.tobytes())

    return read


def by_slice_of_memory(case):
    kind = case.dice.choice(["promised", "any rank"])
    act = lambda: d.read(case.source, case.dtype.name, kind, "as_slice")
    array = case.array
    is_slice = array.size == 0 or array.flags.c_contiguous and array.ctypes.data % (case.dtype.alignment or 1) == 0
    # Without a promise, other code may write it.
    return differs(act(), array.tobytes()) if kind == "promised" and is_slice else refused(act)


def by_axis(case):
    if not case.shape:
        return refused(d.read, case.source, case.dtype.name, "any rank", "axis", 0)
    axis = case.dice.randrange(len(case.shape))
    got = d.read(case.source, case.dtype.name, case.dice.choice(case.views()), "axis", axis)
    return differs(got, np.moveaxis(case.array, axis, 0).tobytes())


def by_index_of_axis(case):
    axis = case.dice.randrange(len(case.shape) + 1)
    extent = case.shape[axis] if axis < len(case.shape) else 0
    at = case.dice.randrange(extent + 1)
    act = lambda: d.read(case.source, case.dtype.name, case.dice.choice(case.views()), "index", axis, at)
    return refused(act) if at == extent else differs(act(), case.array.take(at, axis).tobytes())


def by_slice(case):
    if not case.shape:
        return None
    axis = case.dice.randrange(len(case.shape))
    extent = case.shape[axis]
    start, end = sorted([case.dice.randrange(extent + 2), case.dice.randrange(extent + 2)])
    act = lambda: d.read(case.source, case.dtype.name, case.dice.choice(case.views()), "slice", axis, start, end)
    if end > extent:
        return refused(act)
    return differs(act(), case.array[(slice(None),) * axis + (slice(start, end),)].tobytes())


def by_permute(case):
    axes = case.dice.sample(range(len(case.shape)), len(case.shape))
    got = d.read(case.source, case.dtype.name, case.dice.choice(case.views()), "permute", *axes)
    return differs(got, case.array.transpose(axes).tobytes())


def by_transpose(case):
    got = d.read(case.source, case.dtype.name, case.dice.choice(case.views()), "transpose")
    return differs(got, case.array.T.tobytes())


def by_reshape(case):
    try:
        got = d.read(case.source, case.dtype.name, case.dice.choice(case.views()), "reshape")
    except REFUSALS:
        # NumPy reveals by the address whether it copied.
        flat = case.array.reshape(-1)
        return "it is refused, and NumPy needs no copy" if case.size and np.shares_memory(flat, case.array) else ""
    return differs(got, case.array.tobytes())


def by_contiguous(case):
    act = lambda: d.read(case.source, case.dtype.name, "contiguous", "iter")
    return differs(act(), case.array.tobytes()) if case.array.flags.c_contiguous else refused(act)


def by_convert(case):
    to = np.dtype("complex128" if case.dtype.kind == "c" else case.dice.choice(["float64", "complex128"]))
    act = lambda: d.read(case.source, to.name, "convert", "iter")
    if isinstance(case.source, capi.Relay) and to != case.dtype:
        # `numpy.asarray` does not call `__dlpack__`.
        return refused(act)
    return differs(act(), np.asarray(case.array, to).tobytes())


def by_threes(case):
    act = lambda: d.read(case.source, case.dtype.name, "threes", case.dice.choice(["iter", "to_vec", "get", "rows"]))
    if not case.size:
        # The strides of an empty array are arbitrary.
        return None
    if not case.shape or case.shape[-1] != 3 or case.strides[-1] != case.dtype.itemsize:
        return refused(act)
    return differs(act(), case.array.tobytes())


def by_another_dtype(case):
    other = case.dice.choice(DTYPES)
    act = lambda: d.read(case.source, other.name, "any rank", "iter")
    return refused(act) if other != case.dtype else None


def by_another_rank(case):
    rank = case.dice.choice([1, 2, 3])
    return refused(d.read, case.source, case.dtype.name, str(rank), "iter") if rank != len(case.shape) else None


def by_tensor(case):
    return differs(d.read(case.source, case.dtype.name, "tensor", case.dice.choice(["iter", "to_vec"])), case.array.tobytes())


def by_vec(case):
    return differs(d.read(case.source, case.dtype.name, "vec", ""), case.array.tobytes())


def by_ndarray(case):
    act = lambda: d.read(case.source, case.dtype.name, "ndarray", "")
    if case.size and case.array.ctypes.data % (case.dtype.alignment or 1):
        return refused(act)
    return differs(act(), case.array.tobytes())


def by_owned_ndarray(case):
    if case.size and case.array.ctypes.data % (case.dtype.alignment or 1):
        return None
    got = d.to_owned(case.source, case.dtype.name)
    # An array of `bool`s must not be writable by NumPy.
    return same(got, case.array) or differs(got.flags.writeable, case.dtype != bool)


def by_from_dlpack(case):
    got = np.from_dlpack(p.take(case.source))
    # NumPy gives an empty array its own memory.
    if case.size and got.flags.writeable is case.exports_readonly:
        return "it may be written" if got.flags.writeable else "it may not be written"
    return same_memory(got, case.array)


def by_asarray(case):
    return same_memory(np.asarray(p.take(case.source)), case.array)


def by_numpy_method(case):
    return same_memory(p.take(case.source).numpy(), case.array)


def by_result(case):
    return same_memory(p.to_numpy(case.source), case.array)


def by_array_of_another_dtype(case):
    to = case.dice.choice(DTYPES)
    return same(p.take(case.source).__array__(to), case.array.astype(to))


def by_memoryview(case):
    view = memoryview(p.take(case.source))
    got = (view.shape, view.itemsize, view.readonly, view.tobytes())
    return differs(got, (case.shape, case.dtype.itemsize, case.exports_readonly, case.array.tobytes())) or same(np.asarray(view), case.array)


def by_tolist(case):
    return differs(repr(p.take(case.source).tolist()), repr(case.array.tolist()))


def by_item(case):
    tensor = p.take(case.source)
    if case.size != 1:
        return refused(tensor.item) or (refused(float, tensor) if case.dtype.kind == "f" else "")
    found = [tensor.item()]
    want = [case.array.item()]
    if case.dtype.kind in "biuf" and math.isfinite(want[0]):
        found += [float(tensor), int(tensor), complex(tensor), bool(tensor)]
        want += [float(want[0]), int(want[0]), complex(want[0]), bool(want[0])]
    return differs(repr(found), repr(want))


def by_items(case):
    if not case.size or case.size > 60:
        return None
    tensor = p.take(case.source)
    indices = [tuple(int(at) for at in index) for index in np.ndindex(*case.shape)]
    return differs(repr([tensor[index].item() for index in indices]), repr([case.array[index].item() for index in indices]))


def by_part(case):
    got, want = p.take(case.source), case.array
    for _ in range(2):
        index = case.an_index() if got.shape == case.shape else (..., *[slice(None, None, -1)] * min(1, len(got.shape)))
        got, want = got[index], want[index]
    return same_memory(np.from_dlpack(got), want)


def by_part_that_views(case):
    """A slice of a tensor as an argument."""
    index = case.an_index()
    return differs(d.read(p.take(case.source)[index], case.dtype.name, "any rank", "iter"), case.array[index].tobytes())


def by_iteration(case):
    tensor = p.take(case.source)
    if not case.shape:
        return refused(list, tensor) or refused(len, tensor)
    rows = list(tensor)
    if len(rows) != len(tensor) or len(rows) != len(case.array):
        return f"{len(rows)} rows"
    return next(filter(None, map(same_memory, map(np.asarray, rows), (case.array[at, ...] for at in range(len(rows))))), "")


def by_attributes(case):
    tensor, array = p.take(case.source), case.array
    steps = tuple(stride // array.itemsize for stride in array.strides)
    got = (tensor.shape, tensor.dtype, tensor.ndim, tensor.nbytes, tensor.readonly, tensor.device)
    wrong = differs(got, (array.shape, array.dtype.name, array.ndim, array.nbytes, case.exports_readonly, (1, 0)))
    if not wrong and array.size:
        walked = [axis for axis, extent in enumerate(array.shape) if extent > 1]
        wrong = differs([tensor.strides[axis] for axis in walked], [steps[axis] for axis in walked])
    return wrong


def by_pickle(case):
    protocol = case.dice.randrange(2, pickle.HIGHEST_PROTOCOL + 1)
    back = pickle.loads(pickle.dumps(p.take(case.source), protocol))
    if back.readonly is not case.exports_readonly:
        return "whether it may be written is lost"
    return same(np.from_dlpack(back), case.array)


def by_pickle_out_of_band(case):
    buffers = []
    data = pickle.dumps(p.take(case.source), protocol=5, buffer_callback=buffers.append)
    if len(buffers) != 1:
        return f"{len(buffers)} buffers"
    back = pickle.loads(data, buffers=buffers)
    got = np.from_dlpack(back)
    aligned = case.array.ctypes.data % (case.dtype.alignment or 1) == 0
    return (same_memory if case.array.flags.c_contiguous and aligned else same)(got, case.array)


def by_copies(case):
    tensor = p.take(case.source)
    got = case.dice.choice([copy.copy, copy.deepcopy, lambda tensor: p.Tensor.from_dlpack(tensor, copy=True)])(tensor)
    if got.readonly or case.size and got.data_ptr == tensor.data_ptr:
        return "it is no copy of its own"
    return same(np.from_dlpack(got), case.array)


def by_copy_request(case):
    """A copy that the consumer requests, versioned or legacy."""
    request = case.dice.choice([{}, NEWEST])
    capsule = p.take(case.source).__dlpack__(copy=True, **request)
    return same(np.from_dlpack(p.take(capsule)), case.array)


def by_legacy(case):
    """A struct without a version has no read-only flag, so a read-only tensor is copied."""
    got = np.from_dlpack(p.take(p.take(case.source).__dlpack__()))
    return (same if case.exports_readonly else same_memory)(got, case.array)


def by_table(case):
    seen = TABLE.from_object(p.take(case.source))
    wrong = differs(seen.tobytes(), case.array.tobytes()) if case.size else ""
    return wrong or same_memory(np.asarray(TABLE.to_object(seen)), case.array)


def by_bfloat16(case):
    """Numbers of a type of another package, over the bytes of the case, in parts."""
    if BFLOAT16 is None:
        return None
    memory = bytearray(case.dice.randbytes(48))
    array = np.ndarray((4, 3, 2), BFLOAT16, memory)
    tensor = p.Tensor._restore(memory, (4, 16, 1, False), (4, 3, 2))
    shape, case.shape = case.shape, array.shape
    index = case.an_index()
    case.shape = shape
    part, want = tensor[index], array[index]
    method = case.dice.choice(["iter", "to_vec", "get", "rows"])
    read = d.read(case.dice.choice([part, want]), "bfloat16", "any rank", method)
    return same_memory(np.asarray(part), want) or differs(read, want.tobytes())


FIELDS = [("time", "u8"), ("price", "f8"), ("level", "f4"), ("count", "i4"), ("size", "u2"), ("side", "i1"), ("kind", "u1")]
LINE = np.dtype(FIELDS, align=True)


def some_lines(case):
    count = case.dice.randrange(6)
    packed = np.frombuffer(case.dice.randbytes(count * 28), np.dtype(FIELDS))
    lines = np.zeros(count, LINE)
    for name, _ in FIELDS:
        # Python's floats make signalling NaNs quiet, so these fields get other values.
        lines[name] = packed[name] if name not in ("price", "level") else packed["count"]
    return lines


def by_column(case):
    """A field of records: of ours, and of a structured NumPy array."""
    lines = some_lines(case)
    journal, name = d.Journal(lines.tolist()), case.dice.choice(FIELDS)[0]
    wrong = same(np.asarray(getattr(journal, name)), lines[name])
    return wrong or differs(d.read(lines[name], lines[name].dtype.name, case.dice.choice(["any rank", "1"]), "iter"), lines[name].tobytes())


def by_uneven_strides(case):
    """Strides in bytes that are not a multiple of an element, which NumPy does not export."""
    if case.dtype.itemsize == 1 or case.how not in ("array", "methods"):
        return None
    array = np.zeros(3, np.dtype([("gap", "u1"), ("value", case.dtype)]))["value"]
    return refused(d.read, array if case.how == "array" else capi.Relay(array), case.dtype.name, "any rank", "iter")


def by_other_byte_order(case):
    if case.dtype.itemsize == 1:
        return None
    return refused(d.read, case.array.astype(case.dtype.newbyteorder()), case.dtype.name, "any rank", "iter")


METHODS = ["iter", "iter from the middle", "get", "at", "rows", "to_vec", "copy_to_slice"]
READS = {f"View, {method}": by_view(method) for method in METHODS}
READS |= {
    "View, as_slice": by_slice_of_memory,
    "View, axis": by_axis,
    "View, index": by_index_of_axis,
    "View, slice": by_slice,
    "View, permute": by_permute,
    "View, transpose": by_transpose,
    "View, reshape": by_reshape,
    "View, Contiguous": by_contiguous,
    "View, Convert": by_convert,
    "View, elements of three": by_threes,
    "View, another data type": by_another_dtype,
    "View, another rank": by_another_rank,
    "View, as_ndarray": by_ndarray,
    "View, a part of a tensor": by_part_that_views,
    "Managed": by_tensor,
    "Vec": by_vec,
    "Numpy<Array>": by_owned_ndarray,
    "Numpy<Managed>": by_result,
    "numpy.from_dlpack": by_from_dlpack,
    "numpy.asarray": by_asarray,
    "Tensor.numpy": by_numpy_method,
    "Tensor.__array__": by_array_of_another_dtype,
    "memoryview": by_memoryview,
    "tolist": by_tolist,
    "item": by_item,
    "items": by_items,
    "Tensor[..]": by_part,
    "for": by_iteration,
    "attributes": by_attributes,
    "pickle": by_pickle,
    "pickle, out of band": by_pickle_out_of_band,
    "copies": by_copies,
    "copy=True": by_copy_request,
    "legacy capsule": by_legacy,
    "exchange table": by_table,
    "bfloat16": by_bfloat16,
    "columns": by_column,
    "uneven strides": by_uneven_strides,
    "other byte order": by_other_byte_order,
}


# -- writes -----------------------------------------------------------------------------------------


def with_numpy(case, act, assign, refuses=False):
    """Writes by `act`, and into a copy of the bytes by NumPy's own `assign`."""
    before, twin = bytes(case.memory), bytearray(case.memory)
    array = case.over(twin)
    old = array.tobytes()
    if refuses or case.exports_readonly or case.overlaps:
        wrong = refused(act)
        return wrong or ("what was refused is written" if bytes(case.memory) != before else "")
    assign(array)
    got = act()
    if got and got != old:
        return "what it gives is not what was there"
    return "" if case.memory == twin else f"bytes differ from number {next(at for at, pair in enumerate(zip(case.memory, twin)) if pair[0] != pair[1])} on"


def some_elements(case, shape=None):
    """An array of the type of the case, contiguous or not."""
    shape = case.shape if shape is None else shape
    count = math.prod(shape)
    if case.dice.random() < 0.3:
        doubled = np.frombuffer(case.some_bytes(2 * count * case.dtype.itemsize), case.dtype)
        return doubled[::-2].reshape(shape) if count else doubled[:0].reshape(shape)
    return np.frombuffer(case.some_bytes(count * case.dtype.itemsize), case.dtype).reshape(shape)


def into_view(method):
    def write(case):
        new, view = some_elements(case), case.dice.choice(case.views())
        return with_numpy(
            case,
            lambda: d.write(case.source, new, case.dtype.name, view, method),
            lambda array: array.__setitem__(..., new),
        )

    return write


def into_fill(case):
    new, view = some_elements(case), case.dice.choice(case.views())
    return with_numpy(
        case,
        lambda: d.write(case.source, new, case.dtype.name, view, "fill"),
        lambda array: array.__setitem__(..., new.flat[0]) if new.size else None,
    )


def into_indices_of_axis(case):
    if not case.shape:
        return None
    axis, view = case.dice.randrange(len(case.shape)), case.dice.choice(case.views())
    shape = (case.shape[axis], *case.shape[:axis], *case.shape[axis + 1 :])
    new = some_elements(case, shape)
    return with_numpy(
        case,
        lambda: d.write(case.source, new, case.dtype.name, view, "index_mut", axis),
        lambda array: np.moveaxis(array, axis, 0).__setitem__(..., new),
    )


def into_slice(case):
    if not case.shape:
        return None
    axis, view = case.dice.randrange(len(case.shape)), case.dice.choice(case.views())
    start, end = sorted([case.dice.randrange(case.shape[axis] + 1), case.dice.randrange(case.shape[axis] + 1)])
    part = (slice(None),) * axis + (slice(start, end),)
    new = some_elements(case, case.array[part].shape)
    return with_numpy(
        case,
        lambda: d.write(case.source, new, case.dtype.name, view, "slice_mut", axis, start, end),
        lambda array: array.__setitem__(part, new),
    )


def into_permuted(case):
    axes = case.dice.sample(range(len(case.shape)), len(case.shape))
    new, view = some_elements(case, [case.shape[axis] for axis in axes]), case.dice.choice(case.views())
    return with_numpy(
        case,
        lambda: d.write(case.source, new, case.dtype.name, view, "permute_mut", *axes),
        lambda array: array.transpose(axes).__setitem__(..., new),
    )


def into_slice_of_memory(case):
    new = some_elements(case)
    view = case.dice.choice(["promised", "promised", "any rank"])
    array = case.array
    is_slice = array.size == 0 or array.flags.c_contiguous and array.ctypes.data % (case.dtype.alignment or 1) == 0
    return with_numpy(
        case,
        lambda: d.write(case.source, new, case.dtype.name, view, "as_mut_slice"),
        lambda array: array.__setitem__(..., new),
        refuses=not is_slice or view != "promised",
    )


def into_array(make):
    """Writes by NumPy, through an array that we export."""

    def write(case):
        if case.overlaps or not case.size:
            # NumPy writes repeated elements in its own order, and gives an empty array its own memory.
            return None
        new = some_elements(case)
        return with_numpy(case, lambda: make(p.take(case.source)).__setitem__(..., new), lambda array: array.__setitem__(..., new))

    return write


def through_pickle(tensor):
    buffers = []
    data = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
    return np.asarray(pickle.loads(data, buffers=buffers))


def into_pickle(case):
    if not case.array.flags.c_contiguous or case.array.ctypes.data % (case.dtype.alignment or 1):
        return None
    return into_array(through_pickle)(case)


def into_part(case):
    if case.overlaps:
        return None
    index = case.an_index()
    new = some_elements(case, case.array[index].shape)
    return with_numpy(
        case,
        lambda: np.asarray(p.take(case.source)[index]).__setitem__(..., new),
        lambda array: array.__setitem__(index, new),
    )


def into_memoryview(case):
    if len(case.shape) != 1 or not case.size or case.dtype.kind == "c" or case.dtype == "float16":
        return None
    at, new = case.dice.randrange(case.size), some_elements(case, (1,))
    if case.overlaps:
        return None
    return with_numpy(
        case,
        lambda: memoryview(p.take(case.source)).__setitem__(at, new[0].item()),
        # A Python number, as in the tensor's method.
        lambda array: array.__setitem__(at, new[0].item()),
    )


def into_field(case):
    """Setters: two that copy the elements and one that adopts the memory."""
    dice = case.dice
    rows, columns = dice.randrange(1, 5), dice.randrange(5)
    fields, name = d.Fields(rows), dice.choice(["copied", "ordered", "adopted"])
    dtype = np.dtype("int32" if name == "ordered" else "float64")
    shape = (rows, columns) if name != "adopted" else (columns,)
    array = np.frombuffer(bytearray(dice.randbytes(2 * math.prod(shape) * dtype.itemsize)), dtype)
    array = array[: math.prod(shape)].reshape(shape) if dice.random() < 0.4 else array[:: dice.choice([2, -2])].reshape(shape)
    kind = dice.randrange(4)
    if kind == 1:
        array = np.asfortranarray(array)
    array.flags.writeable = kind != 2
    if kind == 3:
        other = dice.choice([array.astype("int16"), array[None]])
        return refused(setattr, fields, name, other)
    if name == "adopted":
        if not array.flags.c_contiguous:
            return refused(setattr, fields, name, array)
        fields.adopted = array
        if kind != 2:
            array[:1] = 7
        return same_memory(np.asarray(fields.adopted), array) or differs(fields.adopted.readonly, kind == 2 and array.size > 0)
    setattr(fields, name, array)
    got = np.asarray(getattr(fields, name))
    order = "C" if name == "copied" else "F"
    return same(got, array) or ("" if got.flags[order + "_CONTIGUOUS"] else "it lies in another order")


WRITES = {f"ViewMut, {method}": into_view(method) for method in ["update", "set", "copy_from_slice", "copy_from", "rows_mut"]}
WRITES |= {
    "ViewMut, fill": into_fill,
    "ViewMut, index_mut": into_indices_of_axis,
    "ViewMut, slice_mut": into_slice,
    "ViewMut, permute_mut": into_permuted,
    "ViewMut, as_mut_slice": into_slice_of_memory,
    "numpy.from_dlpack, written": into_array(np.from_dlpack),
    "numpy.asarray, written": into_array(np.asarray),
    "Numpy<Managed>, written": into_array(p.to_numpy),
    "pickle, out of band, written": into_pickle,
    "Tensor[..], written": into_part,
    "memoryview, written": into_memoryview,
    "setters": into_field,
}


# -- the campaign -----------------------------------------------------------------------------------


def play(tally, seed, played):
    """Runs a case: some reads, some writes."""
    case = Case(seed)
    methods = [*case.dice.sample(list(READS.items()), 14), *case.dice.sample(list(WRITES.items()), 5)]
    for name, act in methods:
        try:
            wrong = act(case)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            # Also a panic.
            wrong = f"{type(error).__name__}: {error}"
            error.__traceback__ = None
        if wrong is None:
            continue
        played[name] = played.get(name, 0) + 1
        tally.judge(wrong and f"{name}: {wrong}; {case}; DLPACK_SEED={seed} DLPACK_CASES=1")


def differential(tally):
    alive, played, seed = p.alive(), {}, report.SEED
    while not tally.done:
        play(tally, seed, played)
        seed += 1
    gc.collect()
    if p.alive() != alive:
        tally.bad(f"{p.alive() - alive} owners are left")
    # Few cases run only some of the methods.
    unplayed = [name for name in [*READS, *WRITES] if name not in played and (BFLOAT16 or name != "bfloat16")]
    if unplayed and tally.planned >= SHORT:
        tally.bad(f"never played: {', '.join(unplayed)}")


if __name__ == "__main__":
    report.main({"comparisons with NumPy": (differential, 1_000_000, SHORT)})
