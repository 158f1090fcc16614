"""Structured arrays that mislead: data types with two names for a field, with shared bytes or far offsets, and objects that only
claim to be arrays."""

import dlpack_probe as p
import pytest

np = pytest.importorskip("numpy")

from layouts import LAYOUTS, TRADE, assert_same, c, filled, leaf  # noqa: E402


def titled(names, titles):
    """The data type of `Trade` with these names, and a title for each field."""
    formats, offsets = ["f8", "u4", "?"], [0, 8, 12]
    return np.dtype({"names": names, "titles": titles, "formats": formats, "offsets": offsets, "itemsize": 16})


def test_a_title_is_not_a_name():
    """NumPy also finds a field by its title, but the record has another name."""
    misnamed = np.zeros(2, titled(["price", "size", "b"], ["x", "y", "bid"]))
    assert misnamed["bid"].dtype == bool
    with pytest.raises(TypeError, match=r"12  bid: bool +b: bool <"):
        p.on_records("Trade", "read", misnamed)
    array = np.zeros(2, titled(["price", "size", "bid"], ["the price", "the size", "the bid"]))
    array["size"] = 3, 4
    assert p.on_records("Trade", "read", array)["size"].tolist() == [3, 4]


def test_a_title_cannot_stand_in_for_another_field():
    """The title of the first field is the name of another field of the record."""
    crossed = np.zeros(2, titled(["price", "s", "bid"], ["size", "y", "z"]))
    with pytest.raises(TypeError, match="items differ"):
        p.on_records("Trade", "read", crossed)


def test_fields_that_share_bytes_are_refused():
    overlapping = np.dtype({"names": ["price", "size", "bid"], "formats": ["f8", "u4", "?"], "offsets": [0, 4, 12], "itemsize": 16})
    with pytest.raises(TypeError, match=r"4 +size: uint32 <"):
        p.on_records("Trade", "read", np.zeros(2, overlapping))
    with pytest.raises(BufferError, match="overlap|has no data type"):
        memoryview(p.Described([0] * 32, 16, [("a", 0, "float64", []), ("b", 4, "uint32", [])]))
    inner = (8, [("x", 0, "uint32", []), ("y", 2, "uint16", [])])
    with pytest.raises(BufferError, match="overlap|has no data type"):
        memoryview(p.Described([0] * 16, 16, [("inner", 0, inner, []), ("b", 8, "uint8", [])]))


@pytest.mark.parametrize("offset", [13, 2**16, 2**31 - 9])
def test_a_field_far_away_is_refused(offset):
    formats, offsets = ["f8", "u4", "?"], [0, 8, offset]
    far = np.dtype({"names": ["price", "size", "bid"], "formats": formats, "offsets": offsets, "itemsize": offset + 1})
    with pytest.raises(TypeError, match=rf"\n *{offset} +bid: bool <"):
        p.on_records("Trade", "read", np.zeros(0, far))


def test_a_class_of_huge_records_is_described():
    """The records have no instances, so the size is only a number. NumPy has no data type of 2**31 bytes or more."""

    def huge(gap):
        return p.Described([], gap + 8, [("x", gap, "float64", [])])

    array = np.asarray(huge(2**31 - 9))
    assert (array.shape, array.itemsize, array.dtype.fields["x"][1]) == ((0,), 2**31 - 1, 2**31 - 9)
    for gap in 2**31, 2**61:
        assert memoryview(huge(gap)).itemsize == gap + 8
        with pytest.raises(ValueError, match="not a valid PEP 3118 buffer format"):
            np.asarray(huge(gap))


def test_records_without_bytes_are_refused():
    for fields in [], [("none", 0, "float64", [0])]:
        with pytest.raises((BufferError, TypeError)):
            memoryview(p.Described([], 0, fields))
    for dtype in np.dtype([("x", "f8", (0,))]), np.dtype({"names": ["x"], "formats": ["V0"], "itemsize": 8}):
        with pytest.raises(TypeError, match="items differ"):
            p.on_records("One", "read", np.zeros(3, dtype))


def test_a_subarray_of_no_elements_is_no_field_of_elements():
    """And the reverse: `Empty.none` has no elements, and this array has one."""
    formats = ["u4", ("f8", 1), "u4"]
    array = np.zeros(2, {"names": ["a", "none", "b"], "formats": formats, "offsets": [0, 4, 12], "itemsize": 16})
    with pytest.raises(TypeError, match="items differ"):
        p.on_records("Empty", "read", array)


def test_another_byte_order_deep_inside_is_seen():
    """Five levels down, one field of one record is big-endian."""

    def swapped(dtype, path):
        names, fields = dtype.names, dtype.fields
        formats = []
        for name in names:
            inner = fields[name][0]
            if name == path[0]:
                base = swapped(inner.base, path[1:]) if path[1:] else inner.base.newbyteorder()
                inner = np.dtype((base, inner.shape)) if inner.shape else base
            formats.append(inner)
        offsets = [fields[name][1] for name in names]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize})

    path = ("deeper", "deep", "outers", "inner", "x")
    dtype = LAYOUTS["Deepest"]
    assert leaf(np.zeros(1, dtype), path).dtype == "f8"
    with pytest.raises(TypeError, match=r"deeper\.deep\[2\]\.outers\[2\]\.inner\[2\]\.x: >f8 <"):
        p.on_records("Deepest", "read", np.zeros(1, swapped(dtype, path)))
    array = filled(dtype, 3)
    assert_same(p.on_records("Deepest", "read", array), array)


def test_the_flag_of_alignment_does_not_matter():
    """NumPy flags a data type as aligned; only the offsets of its fields matter."""
    fields = {"names": ["price", "size", "bid"], "formats": ["f8", "u4", "?"], "offsets": [0, 8, 12], "itemsize": 16}
    for aligned in True, False:
        dtype = np.dtype(fields | {"aligned": aligned})
        assert dtype.isalignedstruct == aligned
        array = filled(dtype, 3)
        assert p.on_records("Trade", "read", array).tobytes() == p.on_records("Trade", "read", array.astype(TRADE)).tobytes()


class Claims:
    """Claims by every protocol of NumPy to be an array of trades, at an address that is not mapped."""

    calls = 0

    def claim(self):
        Claims.calls += 1
        return {"version": 3, "shape": (2,), "typestr": "|V16", "descr": TRADE.descr, "data": (16, False)}

    __array_interface__ = property(claim)
    __array_struct__ = property(lambda self: 1 / 0)

    def __array__(self, *args, **keywords):
        Claims.calls += 1
        return filled(TRADE, 2)

    __dlpack__ = __dlpack_device__ = __array__


def test_an_object_that_claims_to_be_an_array_is_refused():
    """An address that an object only states is not a buffer that it lends."""
    for operation in "read", "update":
        with pytest.raises(TypeError, match="which is no array; pass"):
            p.on_records("Trade", operation, Claims())
    assert Claims.calls == 0


def test_a_type_that_changes_between_two_arguments_is_read_anew():
    """The second argument is refused although it is the object that was accepted as the first."""

    array = filled(TRADE, 4)
    assert_same(p.on_records("Trade", "read", array), array)
    array.dtype = c(("price", "f8"), ("size", "i4"), ("bid", "?"))
    with pytest.raises(TypeError, match="items differ"):
        p.on_records("Trade", "read", array)
