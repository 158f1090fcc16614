"""Records of random layouts, compared with the data types and the memory of NumPy.

Export: a class exports bytes as records of a random layout, nested up to five deep, with gaps, packed and
aligned fields, subarrays and subarrays without elements. NumPy must see the same data type, and the same bytes.

Import: the data type of a record of the module is changed in one place, or written in another form. A view must accept it if and
only if it still describes that record, and then reads the values that NumPy reads.

`DLPACK_SEED=.. DLPACK_CASES=1` repeats a case.
"""

import random

import dlpack_probe as p
import numpy as np
import report
from layouts import LAYOUTS, filled, leaf, leaves

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]
# Levels of records inside a record.
DEEPEST = 5


class Layouts:
    """Random layouts, in the form that `Described` accepts, and their NumPy data types."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def record(self, depth=0):
        chance = self.random
        fields, formats, names, offsets, at = [], [], [], [], chance.choice([0, 0, 0, 1, 5])
        for index in range(chance.randint(1, 5)):
            name = chance.choice(["a", "long_name", "T", "x", "größe", "_"]) + str(index)
            shape = chance.choice([(), (), (), (1,), (3,), (2, 3), (1, 2, 1), (0,), (2, 0)])
            # The first field is nested more often: each record has one, so that five levels are reached.
            if depth < DEEPEST and chance.random() < (0.4 if index == 0 else 0.1):
                size, inner, dtype = self.record(depth + 1)
                kind = (size, inner)
            else:
                kind = chance.choice(NUMBERS)
                dtype = np.dtype(kind)
            if chance.random() < 0.5:
                at += -at % dtype.alignment
            at += chance.choice([0, 0, 0, 0, 1, 2, 40, 5000 if depth == 0 and chance.random() < 0.02 else 0])
            fields.append((name, at, kind, list(shape)))
            names.append(name), offsets.append(at)
            formats.append((dtype, shape) if shape else dtype)
            at += dtype.itemsize * int(np.prod(shape, dtype=int))
        size = max(at + chance.choice([0, 0, 1, 7]), 1)
        return size, fields, np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def depth_of(dtype):
    """The number of levels of a data type."""
    base = dtype.base
    return 1 + max(depth_of(base[name]) for name in base.names) if base.names else 0


def compare_layout(seed):
    """What is wrong with NumPy's array of a random layout, and the depth of the layout."""
    layouts = Layouts(seed)
    size, fields, dtype = layouts.record()
    depth, count = depth_of(dtype), layouts.random.randint(0, 4)
    raw = layouts.random.randbytes(size * count)
    described = p.Described(list(raw), size, fields)
    found = np.asarray(described)
    if found.dtype != dtype:
        return f"{memoryview(described).format} is read as {found.dtype}, not as {dtype}", depth
    if found.shape != (count,) or found.flags.writeable:
        return f"an array of shape {found.shape} that is {'' if found.flags.writeable else 'not '}writable", depth
    expected = np.frombuffer(raw, dtype) if raw else np.zeros(0, dtype)
    for path, _ in leaves(dtype):
        if leaf(found, path).tobytes() != leaf(expected, path).tobytes():
            return f"{path} has other values", depth
    return "" if found.tobytes() == raw else "the array has other bytes", depth


def changed(dtype, chance):
    """The data type with one difference, or in another form."""
    try:
        return change(dtype, chance)
    except (ValueError, TypeError):
        # NumPy has no such data type.
        return dtype


def change(dtype, chance):
    names = list(dtype.names)
    formats = [dtype.fields[name][0] for name in names]
    offsets = [dtype.fields[name][1] for name in names]
    size = dtype.itemsize
    more = {}
    at = chance.randrange(len(names))
    what = chance.randrange(13)
    if what == 0:
        names[at] += "x"
    elif what == 1:
        offsets[at] += chance.choice([-1, 1, 2, 4, 8, 5000])
        size = max(size, offsets[at] + formats[at].itemsize)
    elif what == 2:
        formats[at] = np.dtype(chance.choice([*NUMBERS, "S3", "U1", "M8[s]", "V1", ">f8", ">i2", "=i4", "<u8"]))
    elif what == 3:
        size += chance.choice([1, 2, 8])
    elif what == 4:
        formats[at] = formats[at].newbyteorder(chance.choice("<>=|"))
    elif what == 5:
        formats[at] = np.dtype((formats[at], chance.choice([(1,), (2,), (3,), (0,), (0, 2)])))
    elif what == 6 and len(names) > 1:
        del names[at], formats[at], offsets[at]
    elif what in (7, 8) and formats[at].base.names:
        shape, inner = formats[at].shape, changed(formats[at].base, chance)
        formats[at] = np.dtype((inner, shape)) if shape else inner
    elif what == 9:
        # The fields in another order in the list, at the same offsets.
        order = list(range(len(names)))
        chance.shuffle(order)
        names, formats, offsets = ([things[i] for i in order] for things in (names, formats, offsets))
    elif what == 10:
        # NumPy also finds a field by its title, which may be the name that the record expects.
        titles = [f"title of {name}" for name in names]
        if chance.random() < 0.5:
            titles[at], names[at] = names[at], "renamed"
        more["titles"] = titles
    elif what == 11:
        # Two fields share bytes.
        offsets[at] = offsets[chance.randrange(len(names))]
    elif what == 12:
        more["aligned"] = True
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size, **more})


def describe(dtype):
    """The properties by which two data types differ; the order of the list of fields is not one of them."""
    base = dtype.base
    if base.names is None:
        return base.str, base.itemsize, dtype.shape
    fields = sorted((base.fields[name][1], name, describe(base.fields[name][0])) for name in base.names)
    return base.itemsize, dtype.shape, tuple(fields)


def compare_changed(seed):
    """What is wrong with a view's answer to a changed data type, and whether it was accepted."""
    chance = random.Random(seed)
    name = chance.choice(list(LAYOUTS))
    dtype = changed(LAYOUTS[name], chance)
    same = describe(dtype) == describe(LAYOUTS[name])
    array = filled(LAYOUTS[name], 2, seed).view(dtype) if same else np.zeros(2, dtype)
    try:
        found = p.on_records(name, "read", array)
    except TypeError as error:
        if same:
            return f"{name}: {dtype} is refused: {error}", False
        return "" if "items differ" in str(error) else f"{name}: {dtype}: {error}", False
    if not same:
        return f"{name}: {dtype} is accepted", True
    for path, _ in leaves(dtype):
        if leaf(found, path).tobytes() != leaf(array, path).tobytes():
            return f"{name}: {dtype}: {path} has other values", True
    return "", True


def layouts(tally):
    deepest, seed = 0, report.SEED
    while not tally.done:
        wrong, depth = compare_layout(seed)
        tally.judge(wrong and f"{wrong}; DLPACK_SEED={seed} DLPACK_CASES=1")
        deepest, seed = max(deepest, depth), seed + 1
    if deepest <= DEEPEST and tally.planned > 1000:
        tally.bad(f"the deepest layout has {deepest} levels")


def data_types(tally):
    counts, seed = {True: 0, False: 0}, report.SEED
    while not tally.done:
        wrong, accepted = compare_changed(seed)
        tally.judge(wrong and f"{wrong}; DLPACK_SEED={seed} DLPACK_CASES=1")
        counts[accepted] += 1
        seed += 1
    if tally.planned > 1000 and min(counts.values()) < tally.planned // 20:
        tally.bad(f"{counts[True]} data types were accepted, {counts[False]} refused")


if __name__ == "__main__":
    report.main({"layouts of records": (layouts, 100_000, 1500), "data types of records": (data_types, 100_000, 1500)})
