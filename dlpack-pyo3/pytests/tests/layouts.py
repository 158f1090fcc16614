"""The NumPy data type of each record of the module, and comparisons of structured arrays."""

import os

import numpy as np

SEED = int(os.environ.get("DLPACK_SEED", 1))


def c(*fields):
    """The data type of a C struct."""
    return np.dtype(list(fields), align=True)


def packed(*fields):
    return np.dtype(list(fields))


def by_two(*fields):
    names, formats, offsets, at = [], [], [], 0
    for name, dtype in fields:
        dtype = np.dtype(dtype)
        at += -at % min(2, dtype.alignment)
        names.append(name), formats.append(dtype), offsets.append(at)
        at += dtype.itemsize
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": at + at % 2})


TRADE = c(("price", "f8"), ("size", "u4"), ("bid", "?"))
INNER = c(("x", "f8"), ("y", "i1"))
PACKED_INNER = packed(("x", "f8"), ("y", "i1"))
OUTER = c(("a", "u1"), ("inner", INNER), ("b", "u2"))
OUTERS = c(("a", "u1"), ("inner", INNER, 2), ("b", "u2"))
DEEP = c(("outer", OUTER), ("outers", OUTERS, 2), ("z", "?"))
DEEPER = c(("deep", DEEP, 2), ("x", "u2"))
POINT = c(("x", "f4"), ("y", "f4"))
LAYOUTS = {
    "Trade": TRADE,
    "Padded": c(("a", "i1"), ("b", "f8"), ("c", "i1")),
    "Packed": packed(("a", "i1"), ("b", "f8"), ("c", "i1")),
    "PackedByTwo": by_two(("a", "i1"), ("b", "f8"), ("c", "i1")),
    "Aligned": np.dtype({"names": ["a", "b"], "formats": ["u1", "u2"], "offsets": [0, 2], "itemsize": 32}),
    "One": c(("x", "f8")),
    "Transparent": c(("x", "i2")),
    "Byte": c(("x", "u1")),
    "Bools": c(("a", "?"), ("b", "?", 3), ("c", "?")),
    "Unsigned": c(("a", "u1"), ("b", "u2"), ("c", "u4"), ("d", "u8")),
    "Signed": c(("a", "i1"), ("b", "i2"), ("c", "i4"), ("d", "i8")),
    "Floats": c(("a", "f2"), ("b", "f4"), ("c", "f8")),
    "Complexes": c(("a", "c8"), ("b", "c16")),
    "Sizes": c(("a", np.uintp), ("b", np.intp)),
    "Vector": c(("at", "f4", 3), ("id", "u4")),
    "Matrix": c(("id", "u2"), ("at", "f8", (2, 3))),
    "Cube": c(("at", "i2", (4, 3, 2)), ("end", "u1")),
    "OneByOne": c(("at", "f4", (1, 1))),
    "Empty": np.dtype(
        {"names": ["a", "none", "b"], "formats": ["u4", ("f8", 0), "u4"], "offsets": [0, 8, 8], "itemsize": 16}
    ),
    "Inner": INNER,
    "Outer": OUTER,
    "Outers": OUTERS,
    "OuterMatrix": c(("a", "u1"), ("inner", INNER, (2, 3))),
    "Deep": DEEP,
    "Deeper": DEEPER,
    "Deepest": c(("a", "i1"), ("deeper", DEEPER)),
    "PackedInner": PACKED_INNER,
    "PackedOuter": packed(("a", "u1"), ("inner", PACKED_INNER), ("b", "u2")),
    "PackedPadded": packed(("a", "u1"), ("inner", INNER), ("b", "u2")),
    "PaddedPacked": np.dtype(
        {"names": ["a", "inner", "b"], "formats": ["u2", (PACKED_INNER, 2), "f8"], "offsets": [0, 2, 24], "itemsize": 32}
    ),
    "OnlyNested": c(("inner", INNER)),
    "Raw": c(("type", "u1"), ("fn", "f4")),
    "NotAscii": c(("größe", "f8"), ("数", "u1")),
    "Gaps": c(("a", "u1"), ("b", "u8"), ("c", "u1"), ("d", "u4"), ("e", "u1"), ("f", "u2"), ("g", "u1")),
    "TailPadding": c(("a", "u8"), ("b", "u1")),
    "Long": c(("a", "u1", 300), ("b", "f8")),
    "Many": c(*((name, "u1") for name in "abcdefghijk"), ("l", "u2")),
    "Tick": packed(("time", "i8"), ("price", "f4"), ("flags", "u1", 3), ("buy", "?")),
    "Header": c(("magic", "u1", 4), ("version", "u2"), ("count", "u8")),
    "Point": POINT,
    "Body": np.dtype({"names": ["at", "mass"], "formats": [("f4", 2), "f8"], "offsets": [0, 8], "itemsize": 16}),
    "Bodies": c(("at", POINT, 2), ("mass", "f8")),
    "SingleNames": c(("T", "f4"), ("x", "f4"), ("B", "u1")),
    "Underscored": c(("_a", "f4"), ("__b", "u1")),
}


def leaves(dtype, path=()):
    """The paths of all fields without fields of their own."""
    base = dtype.base
    if base.names is None:
        yield path, base
        return
    for name in base.names:
        yield from leaves(base[name], (*path, name))


def leaf(array, path):
    for name in path:
        array = array[name]
    return array


def spans(dtype, at=0):
    """The bytes that belong to fields, as pairs of start and end."""
    count = int(np.prod(dtype.shape, dtype=int))
    base = dtype.base
    for index in range(count):
        start = at + index * base.itemsize
        if base.names is None:
            yield start, start + base.itemsize
        else:
            for name in base.names:
                yield from spans(base.fields[name][0], start + base.fields[name][1])


def padding(dtype):
    """The bytes that belong to no field."""
    fields = {byte for start, end in spans(dtype) for byte in range(start, end)}
    return [byte for byte in range(dtype.itemsize) if byte not in fields]


def filled(dtype, count, seed=SEED):
    """Records of random bytes, in which a `bool` is 0 or 1."""
    bytes_ = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, dtype="u1")
    array = bytes_.view(dtype) if count else np.zeros(0, dtype)
    for path, base in leaves(dtype):
        if base.kind == "b":
            raw = leaf(array, path).view("u1")
            raw &= 1
    return array


def assert_same(found, expected):
    """Asserts equal types and values, bit by bit, except for padding."""
    assert found.dtype == expected.dtype
    assert found.dtype.itemsize == expected.dtype.itemsize and found.shape == expected.shape
    for path, _ in leaves(expected.dtype):
        assert leaf(found, path).tobytes() == leaf(expected, path).tobytes(), path
