"""Who else has imported memory: a reference into it is given only where it is proven that nobody has.

A producer's IS_COPIED is a statement. `__dlpack__(copy=True)` of a subclass of `numpy.ndarray` makes an instance of that
subclass, which Python code reaches while the capsule says that the consumer has the memory alone.
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

# NumPy makes a copy for a consumer, and flags it, since 2.1.
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
    """Keeps nothing: the garbage collector finds its instances."""


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
    """Gives the copy that another object makes, whatever itself was asked."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **request):
        return self.array.__dlpack__(max_version=(1, 0), copy=True)

    def __dlpack_device__(self):
        return (1, 0)


class Keeps(capi.Foreign):
    """Says that it copied, and keeps the memory."""

    def __init__(self):
        raw = values().tobytes()
        super().__init__(dtype=(2, 64, 1), shape=(2, 3), raw=raw, flags=capi.IS_COPIED)


HOW = {
    "itself": lambda array: array,
    "another object": Asks,
    "its capsule": lambda array: array.__dlpack__(max_version=(1, 0), copy=True),
}


COPY = {"max_version": (1, 0), "copy": True}

# What is lent of a tensor that is ours alone: all. A `SharedBuffer` that adopts it has its memory alone, too.
OWN = e.lenders()

# The ways in which no copy is asked for.
SHARING = [source for source in e.sources() if source != "from_dlpack_with a copy"]


def nothing():
    pass


def lent(producer, source="from_dlpack_with a copy", between=nothing):
    """The functions that lend a reference to the elements of an import; each of the others refuses because others may write."""
    names = []
    for lender in e.lenders():
        try:
            before, after = e.lend(producer(), source, lender, between)
        except (BufferError, TypeError) as refused:
            assert "others may write" in str(refused), (lender, refused)
        else:
            assert before == after == 1.0, f"{lender}: an element changed from {before} to {after} while it was lent"
            names.append(lender)
    return names


@numpy_copies
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("source", e.sources())
def test_no_reference_into_memory_that_python_code_reaches(subclass, source, how):
    """CAP-20: a copy that a subclass of `numpy.ndarray` made is shared memory, whatever its flag says."""

    def write():
        for array in FOUND[subclass]():
            array[...] = 99.0

    found = lent(lambda: HOW[how](values(subclass)), source, write)
    # A capsule is not asked for a copy: then we make it.
    assert found == (OWN if (source, how) == ("from_dlpack_with a copy", "its capsule") else [])


@pytest.mark.parametrize("source", e.sources())
def test_no_reference_into_memory_that_a_producer_keeps(source):
    """CAP-20: the flag is a statement, and so is the copy that was asked for."""
    assert lent(Keeps, source) == []


@numpy_copies
def test_no_bool_of_another_byte(subclass):
    """A `&[bool]` in which other code writes 200 would be undefined."""

    def write():
        for array in FOUND[subclass]():
            array.view("u1")[...] = 200

    flags = values(subclass, bool)
    with pytest.raises(BufferError, match="others may write"):
        assert set(e.lend_bools(Asks(flags), write)) <= {0, 1}


@numpy_copies
def test_what_is_proven_is_lent():
    """The copy that exactly `numpy.ndarray` made for us, and a copy of our own: by all functions."""
    assert len(OWN) > 20
    array = values()
    assert lent(lambda: array) == OWN
    assert lent(lambda: p.take(array)) == OWN
    for source in SHARING:
        # Our own block, found in a capsule.
        owned = lent(lambda: p.take(array).__dlpack__(**COPY), source)
        assert owned == ([] if source == "a Tensor" else OWN)
        # NumPy's copy, but not made for us by our request.
        assert lent(lambda: array, source) == []
        assert lent(lambda: array.__dlpack__(**COPY), source) == []
        assert lent(lambda: Asks(array), source) == []
    assert lent(lambda: Asks(array)) == []
    assert array.tolist() == values().tolist()


def test_a_copy_of_ours_that_others_have():
    """A `Tensor` shares what it has with all who get it, also where that was made as a copy."""
    tensor = p.Tensor.from_dlpack(values(), copy=True)
    for source in SHARING:
        assert lent(lambda: tensor, source) == []
    assert lent(lambda: tensor) == OWN


def test_each_function_that_gives_a_reference_is_argued_for():
    """The public API has no such function that soundness.md does not name, nor a safe one that is not tried here."""
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
