"""References into imported memory: they are lent only if it is proven that no other code has the memory.

A producer's flag IS_COPIED is no proof. `__dlpack__(copy=True)` of a subclass of `numpy.ndarray` makes an instance of that
subclass, which Python code can reach although the capsule is flagged as a copy for the consumer.
"""

import gc
import pathlib
import re
import weakref

import capi
import dlpack_probe as p
import numpy as np
import pytest

e = p.exclusive

# Since 2.1, NumPy makes and flags a copy for a consumer.
numpy_copies = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="this NumPy takes no `copy`")


class Recorded(np.ndarray):
    """Keeps each instance that NumPy makes."""

    made = []

    def __array_finalize__(self, base):
        self.made.append(self)


class Registered(np.ndarray):
    """Keeps a weak reference to each instance."""

    made = []

    def __array_finalize__(self, base):
        self.made.append(weakref.ref(self))


class Silent(np.ndarray):
    """Keeps no instance, but the garbage collector finds them."""


FOUND = {
    Recorded: lambda: Recorded.made,
    Registered: lambda: filter(lambda array: array is not None, (reference() for reference in Registered.made)),
    Silent: lambda: (found for found in gc.get_objects() if type(found) is Silent),
}


@pytest.fixture(params=FOUND, ids=lambda cls: cls.__name__)
def subclass(request):
    cls = request.param
    cls.made = []
    yield cls
    cls.made = []


def values(cls=np.ndarray, dtype="f8"):
    return np.arange(1, 7).reshape(2, 3).astype(dtype).view(cls)


class Asks:
    """Returns the copy that another object makes, whatever it was requested itself."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **request):
        return self.array.__dlpack__(max_version=(1, 0), copy=True)

    def __dlpack_device__(self):
        return (1, 0)


class Keeps(capi.Foreign):
    """Flags its memory as copied, and keeps it."""

    def __init__(self):
        raw = values().tobytes()
        super().__init__(dtype=(2, 64, 1), shape=(2, 3), raw=raw, flags=capi.IS_COPIED)


HOW = {
    "itself": lambda array: array,
    "another object": Asks,
    "its capsule": lambda array: array.__dlpack__(max_version=(1, 0), copy=True),
}


COPY = {"max_version": (1, 0), "copy": True}

# What is lent of a tensor that no other code has: everything. A `SharedBuffer` that adopts it is its only user, too.
OWN = e.lenders()

# The functions by which no copy is requested.
SHARING = [source for source in e.sources() if source != "from_dlpack_with a copy"]


def nothing():
    pass


def lent(producer, source="from_dlpack_with a copy", between=nothing):
    """The functions that lend a reference to the elements of an import; each other one refuses because other code may write."""
    names = []
    for lender in e.lenders():
        try:
            before, after = e.lend(producer(), source, lender, between)
        except (BufferError, TypeError) as refused:
            # A view that writes refuses each copy but that of a capsule.
            reasons = ["others may write", *["exports a copy"] * (source == "a ViewMut")]
            assert any(reason in str(refused) for reason in reasons), (lender, refused)
        else:
            assert before == after == 1.0, f"{lender}: an element changed from {before} to {after} while it was lent"
            names.append(lender)
    return names


@numpy_copies
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("source", e.sources())
def test_no_reference_into_memory_that_python_code_reaches(subclass, source, how):
    """CAP-20: a copy that a subclass of `numpy.ndarray` made is treated as shared memory, whatever its flag."""

    def write():
        for array in FOUND[subclass]():
            array[...] = 99.0

    found = lent(lambda: HOW[how](values(subclass)), source, write)
    # A capsule cannot be asked for a copy, so the import makes one.
    assert found == (OWN if (source, how) == ("from_dlpack_with a copy", "its capsule") else [])


@pytest.mark.parametrize("source", e.sources())
def test_no_reference_into_memory_that_a_producer_keeps(source):
    """CAP-20: neither the flag nor the requested copy is a proof."""
    assert lent(Keeps, source) == []


@numpy_copies
def test_no_bool_of_another_byte(subclass):
    """Other code that writes 200 into a `&[bool]` would be undefined behaviour."""

    def write():
        for array in FOUND[subclass]():
            array.view("u1")[...] = 200

    flags = values(subclass, bool)
    with pytest.raises(BufferError, match="others may write"):
        assert set(e.lend_bools(Asks(flags), write)) <= {0, 1}


@numpy_copies
def test_proven_copies_are_lent():
    """A copy that exactly `numpy.ndarray` made for this request, and a copy made by this crate, are lent by all functions."""
    assert len(OWN) > 20
    array = values()
    assert lent(lambda: array) == OWN
    assert lent(lambda: p.take(array)) == OWN
    for source in SHARING:
        # A block of this crate, found in a capsule.
        owned = lent(lambda: p.take(array).__dlpack__(**COPY), source)
        assert owned == ([] if source == "a Tensor" else OWN)
        # NumPy's copy, but not made for our request.
        assert lent(lambda: array, source) == []
        assert lent(lambda: array.__dlpack__(**COPY), source) == []
        assert lent(lambda: Asks(array), source) == []
    assert lent(lambda: Asks(array)) == []
    assert array.tolist() == values().tolist()


def test_a_copy_of_ours_that_others_have():
    """A `Tensor` shares its memory with all its consumers, also if it was made as a copy."""
    tensor = p.Tensor.from_dlpack(values(), copy=True)
    for source in SHARING:
        assert lent(lambda: tensor, source) == []
    assert lent(lambda: tensor) == OWN


def test_each_function_that_gives_a_reference_is_argued_for():
    """soundness.md names every public function that returns such a reference, and each safe one is tested here."""
    root = pathlib.Path(__file__).parents[3]
    text = (root / "dlpack-core/soundness.md").read_text()
    found = {}
    for line in (root / "spec/api/dlpack-core.txt").read_text().splitlines():
        function = re.match(r"pub (unsafe )?fn (.*) -> (.*)$", line)
        if function and re.search(r"&('a )?(mut )?\[T\]|ArrayView|MatrixView", function[3]):
            head, generics = function[2].split("(")[0], 1
            while generics:
                head, generics = re.subn("<[^<>]*>", "", head)
            found["::".join(head.split("::")[-2:])] = bool(function[1])
    assert len(found) >= 14 and "TensorRef::as_slice" in found, found
    for name, is_unsafe in found.items():
        assert f"`{name}`" in text, name
        assert is_unsafe or any(lender.startswith(name) for lender in e.lenders()), name
