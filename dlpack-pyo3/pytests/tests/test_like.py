"""Results as arrays of the argument's library: `Like<T>`, and zeros from that library's allocator.

A library of the test has an exchange table in ctypes, which counts its calls and returns wrong values on request."""

import array
import ctypes as c
import gc
import os
import struct
import sys
import types

import capi
import dlpack_probe as p
import pytest
from test_views import Refused

r = p.like

ALLOCATE = c.PYFUNCTYPE(c.c_int, c.POINTER(capi.DLTensor), c.POINTER(c.c_void_p), c.c_void_p, c.c_void_p)
EXPORT = c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(c.c_void_p))
CREATE = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_void_p))
incref = capi._python("Py_IncRef", None, c.py_object)


def itemsize(dtype):
    return dtype[1] * dtype[2] // 8


class Library:
    """A library with an exchange table. `made` has its tensors, `prototypes` the requests to its allocator.

    fields: what an allocated tensor has instead of what was asked for
    report: the error that the allocator reports, and its status; None for none
    """

    def __init__(self, *, status=0, report=None, fields=None, instead=None, **functions):
        self.prototypes, self.allocated, self.created = [], [], []
        self.status, self.report, self.fields, self.instead = status, report, fields or {}, instead
        table = self.table = capi.ExchangeTable()
        table.header.version = capi.DLVersion(1, 3)
        self.kept = {
            "managed_tensor_allocator": ALLOCATE(self.allocate),
            "managed_tensor_from_py_object_no_sync": EXPORT(self.export),
            "managed_tensor_to_py_object_no_sync": CREATE(self.create),
            **functions,
        }
        for name, function in self.kept.items():
            setattr(table, name, c.cast(function, c.c_void_p).value)
        capsule = capi.make_capsule(c.addressof(table), capi.EXCHANGE)
        self.Array = type("Array", (Array,), {"__dlpack_c_exchange_api__": capsule, "library": self})

    def array(self, values=(1.0, 2.0, 3.0), shape=None):
        return self.Array(capi.Foreign(values, shape or (len(values),)))

    def allocate(self, prototype, out, context, set_error):
        asked = prototype[0]
        shape, dtype = tuple(asked.shape[: asked.ndim]), (asked.dtype.code, asked.dtype.bits, asked.dtype.lanes)
        self.prototypes.append((shape, tuple(asked.strides[: asked.ndim]), dtype, (asked.device.device_type, asked.device.device_id)))
        assert (asked.data, asked.byte_offset) == (None, 0)
        for report in [self.report] if isinstance(self.report, tuple) else self.report or []:
            capi.SET_ERROR(set_error)(context, *report)
        if self.instead is not None:
            out[0] = self.instead
            return self.status
        size = itemsize(dtype)
        for extent in shape:
            size *= extent
        # Not zeroed, and a cache line longer than needed.
        raw = struct.pack("B", 0xA5) * (size + 64)
        made = capi.Foreign(**{"raw": raw, "shape": shape, "dtype": dtype, **self.fields})
        self.allocated.append(made)
        out[0] = c.addressof(made.managed)
        return self.status

    def export(self, producer, out):
        out[0] = c.addressof(producer.tensor.managed)
        return 0

    def create(self, address, out):
        made = self.Array(capi.Seen(address, True))
        self.created.append(made)
        incref(made)
        out[0] = id(made)
        return 0


class Array:
    """An array of such a library, over a tensor that it exports or owns."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __del__(self):
        if isinstance(self.tensor, capi.Seen):
            self.tensor.release()

    def __dlpack__(self, **request):
        raise AssertionError("the table is used")

    __dlpack_device__ = __dlpack__


# -- the type of the result -------------------------------------------------------------------------


def test_numpy(numpy):
    """An array that owns the same memory; also for an argument of a subclass."""

    class Derived(numpy.ndarray):
        pass

    before = p.alive()
    for a in [numpy.arange(3, dtype="f4"), numpy.arange(3, dtype="f4").view(Derived), numpy.arange(6, dtype="f4")[::2]]:
        result, address = r.doubled(a)
        assert type(result) is numpy.ndarray and result.tolist() == [2 * x for x in a.tolist()]
        assert result.ctypes.data == address and result.flags.writeable
        assert p.alive() == before + 1
        del result
        assert p.alive() == before
    assert r.as_row(numpy.ones(3, "f4")).tolist() == [[1, 1, 1]]
    assert type(r.like_any(numpy.float32(1), numpy.ones(2))) is numpy.ndarray


def test_ours():
    """A `Tensor`, for a `Tensor` and for an object of our classes."""
    before = p.alive()
    for make in [lambda: p.WProbe([3]), lambda: p.take(p.WProbe([3]))]:
        result, address = r.doubled(make())
        assert type(result) is p.Tensor and result.data_ptr == address and not result.readonly
        assert result.tolist() == [0, 2, 4] and p.alive() == before + 1
        del result
        assert p.alive() == before
    # Its table makes a `Points` object, by a copy.
    result = r.like_any(p.Points([1.0, 2.0], (1, 2)), p.WProbe([2]))
    assert type(result) is p.Tensor and result.shape == (2,)


@pytest.mark.functions_keep
def test_a_library_with_a_table():
    """XAP-16: the library's table creates the object over the same memory; also for a subclass that has its own `__dlpack__`."""
    library = Library()
    before = p.alive()
    a = library.array()
    for _ in range(3):
        result, address = r.doubled(a)
        assert type(result) is library.Array and result.tensor.floats() == [2, 4, 6]
        assert result.tensor.data == address and p.alive() == before + 1
        library.created.clear()
        del result
        assert p.alive() == before
    assert a.tensor.deleted == 3 and not library.prototypes

    class Parameter(library.Array):
        pass

    result, _ = r.doubled(Parameter(capi.Foreign((1.0,), (1,))))
    assert type(result) is library.Array


def test_the_argument_is_not_kept():
    """Only the library of the argument is stored."""
    library = Library()
    a = library.array()
    references = capi.references(a)
    first, second = r.pair(a)
    assert capi.references(a) == references and a.tensor.deleted == 1
    assert first.tensor.floats() == [0, 0] and second.tensor.floats() == [1, 2, 3]


def test_jax():
    jax = pytest.importorskip("jax")
    a = jax.numpy.arange(3.0)
    result, address = r.aligned(a)
    assert isinstance(result, jax.Array) and result.tolist() == [0, 1, 2]
    assert result.unsafe_buffer_pointer() == address
    result, address = r.table(a.reshape(1, 3))
    assert isinstance(result, jax.Array) and result.tolist() == [[0, 1, 2]]
    assert result.unsafe_buffer_pointer() == address, "zeros are aligned as JAX wants it"


def test_array_api_strict():
    """A library that is found by its `__array_namespace__`."""
    strict = pytest.importorskip("array_api_strict")
    result, _ = r.doubled(strict.asarray([1.0, 2.0], dtype=strict.float32))
    assert isinstance(result, type(strict.asarray([1.0]))) and [float(x) for x in result] == [2, 4]


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no exchange table")
    return torch


def test_torch(torch):
    """A plain tensor over the same memory; also for a parameter and a subclass."""

    class Derived(torch.Tensor):
        pass

    before = p.alive()
    a = torch.arange(3.0)
    for argument in [a, torch.nn.Parameter(a, requires_grad=False), a.as_subclass(Derived)]:
        result, address = r.doubled(argument)
        assert type(result) is torch.Tensor and result.tolist() == [0, 2, 4]
        assert result.data_ptr() == address and p.alive() == before + 1 and not result.requires_grad
        result += 1
        del result
        assert p.alive() == before


def test_zeros_of_torch(torch):
    """XAP-21: PyTorch's allocator is called once, and the object is over that memory."""
    theirs = capi.Exchange(torch.Tensor).table
    allocate, allocated = ALLOCATE(theirs.managed_tensor_allocator), []

    @ALLOCATE
    def counted(prototype, out, context, set_error):
        status = allocate(prototype, out, context, set_error)
        allocated.append(capi.Seen(out[0], True).data)
        return status

    table = capi.ExchangeTable.from_buffer_copy(theirs)
    table.managed_tensor_allocator = c.cast(counted, c.c_void_p).value
    capsule = capi.make_capsule(c.addressof(table), capi.EXCHANGE)
    Derived = type("Derived", (torch.Tensor,), {"__dlpack_c_exchange_api__": capsule})
    result, address = r.table(torch.ones(2, 3).as_subclass(Derived))
    assert type(result) is torch.Tensor and result.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert allocated == [address] == [result.data_ptr()]
    plain, address = r.table(torch.ones(2, 3))
    assert plain.data_ptr() == address and plain.tolist() == result.tolist()
    assert r.zeros(torch.ones(1), (0, 3)).shape == (0, 3)
    assert r.full(torch.ones(1), (1, 2), 7).tolist() == [[[7, 2, 3]] * 2]
    assert r.from_elements(torch.ones(1), (2, 2), 4, True).tolist() == [[1, 2], [3, 4]]
    with pytest.raises((RuntimeError, MemoryError), match="the allocator of the array's library failed: .*"):
        r.zeros(torch.ones(1), (2**25, 2**25))


def test_paddle():
    paddle = pytest.importorskip("paddle")
    a = paddle.to_tensor([[1.0, 2.0, 3.0]])
    result, address = r.table(a)
    assert isinstance(result, paddle.Tensor) and result.tolist() == [[0, 1, 2]]
    assert result.data_ptr() == address
    result, address = r.doubled(a[0])
    assert isinstance(result, paddle.Tensor) and result.data_ptr() == address


def module(monkeypatch, name, **has):
    made = types.ModuleType(name)
    vars(made).update(has)
    made.__path__ = []
    monkeypatch.setitem(sys.modules, name, made)


def test_libraries_by_the_module_of_the_class(numpy, monkeypatch):
    """Classes without a table: known libraries by name, others by a `from_dlpack` in the package of the class, if it is imported."""
    took = lambda name: lambda tensor: (name, p.look(tensor)["floats"])
    module(monkeypatch, "fake", from_dlpack=took("fake"))
    module(monkeypatch, "tensorflow")
    module(monkeypatch, "tensorflow.experimental")
    module(monkeypatch, "tensorflow.experimental.dlpack", from_dlpack=took("tensorflow"))
    module(monkeypatch, "mlx")
    module(monkeypatch, "mlx.core", from_dlpack=took("mlx"))
    for where in ["fake", "fake.deeper", "tensorflow.python.ops", "mlx.core"]:
        Foreign = type("Foreign", (capi.Foreign,), {"__module__": where})
        result = r.doubled(Foreign((1.0,), (1,)))[0]
        assert result == (where.split(".")[0], [2])
    Derived = type("Derived", (type("Foreign", (capi.Foreign,), {"__module__": "mlx.core"}),), {"__module__": "fake"})
    assert r.doubled(Derived((1.0,), (1,)))[0] == ("mlx", [2])
    for where in ["absent", "", ".", "fake\0", 3, None, types.SimpleNamespace()]:
        Foreign = type("Foreign", (capi.Foreign,), {"__module__": where})
        assert type(r.doubled(Foreign((1.0,), (1,)))[0]) is numpy.ndarray
    # A program may have imported the function into its main module.
    monkeypatch.setattr(sys.modules["__main__"], "from_dlpack", took("main"), raising=False)
    Foreign = type("Foreign", (capi.Foreign,), {"__module__": "__main__"})
    assert type(r.doubled(Foreign((1.0,), (1,)))[0]) is numpy.ndarray
    # A class without `__dlpack__` is none of an array library.
    Numbers = type("Numbers", (list,), {"__module__": "fake"})
    assert type(r.converted(Numbers([1.0]))) is numpy.ndarray
    module(monkeypatch, "fake", from_dlpack=3)
    Foreign = type("Foreign", (capi.Foreign,), {"__module__": "fake"})
    assert type(r.doubled(Foreign((1.0,), (1,)))[0]) is numpy.ndarray


def test_known_libraries_are_imported_for_their_classes(script):
    """Even if nothing has imported the package itself, and the package of the class has no `from_dlpack`."""
    script("""
import pathlib, sys, tempfile
import capi, dlpack_probe as p
made = "import dlpack_probe as p\\nfrom_dlpack = lambda tensor: (__name__, p.look(tensor)['floats'])"
with tempfile.TemporaryDirectory() as folder:
    sys.path.insert(0, folder)
    for name, text in [("torch.py", made), ("cupy.py", made), ("jax/__init__.py", ""), ("jax/dlpack.py", made)]:
        path = pathlib.Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for where, library in [("torch.deep", "torch"), ("cupy", "cupy"), ("jaxlib.xla", "jax.dlpack"), ("jax", "jax.dlpack")]:
        Foreign = type("Foreign", (capi.Foreign,), {"__module__": where})
        result = p.like.doubled(Foreign((1.0,), (1,)))[0]
        assert result == (library, [2]), (where, result)
""")


def test_libraries_by_their_namespace(numpy):
    """A library by `__array_namespace__` of the array API standard."""

    class Foreign(capi.Foreign):
        namespace = types.SimpleNamespace(from_dlpack=lambda tensor: ("namespace", p.look(tensor)["floats"]))

        def __array_namespace__(self, **options):
            assert not options
            if isinstance(self.namespace, Exception):
                raise self.namespace
            return self.namespace

    assert r.doubled(Foreign((1.0,), (1,)))[0] == ("namespace", [2])

    class Mixed(Foreign, numpy.lib.mixins.NDArrayOperatorsMixin):
        """NumPy defines a base of the class, which makes no array of NumPy's of it."""

    assert r.doubled(Mixed((1.0,), (1,)))[0] == ("namespace", [2])
    Foreign.namespace = None
    assert type(r.doubled(Foreign((1.0,), (1,)))[0]) is numpy.ndarray
    Foreign.namespace = KeyError("which")
    foreign = Foreign((1.0,), (1,))
    with pytest.raises(KeyError, match="which"):
        r.doubled(foreign)
    assert foreign.deleted == 1


class Hides(type):
    """A metaclass that returns another object, or raises an exception, instead of the MRO."""

    shown = None

    @property
    def __mro__(cls):
        if cls.shown in (KeyError, SystemExit):
            raise cls.shown("mro")
        return cls.shown


@pytest.mark.functions_keep
@pytest.mark.parametrize("shown", [None, 3, (), (3, None), [object], KeyError, SystemExit])
def test_a_class_that_hides_its_mro(numpy, shown):
    """ERR-06: a wrong MRO causes no panic. The build with the stable ABI reads the attribute."""
    Foreign = Hides("Foreign", (capi.Foreign,), {"shown": shown})
    assert type(r.doubled(Foreign((1.0,), (1,)))[0]) is numpy.ndarray
    # The table is found, and its first import searches the MRO for the class that defines it.
    library = Library()
    Derived = Hides("Derived", (library.Array,), {"shown": shown})
    derived = Derived(capi.Foreign((1.0, 2.0), (2,)))
    assert type(r.doubled(derived)[0]) is library.Array and derived.tensor.deleted == 1


def test_objects_without_a_library(numpy):
    """For buffers, lists, capsules and scalars: NumPy arrays."""
    for a in [array.array("f", [1, 2]), memoryview(array.array("f", [1, 2])), capi.Foreign((1.0, 2.0), (2,)).capsule()]:
        result, _ = r.doubled(a)
        assert type(result) is numpy.ndarray and result.tolist() == [2, 4]
    for a in [[1, 2], (1.0, 2.0), numpy.array([1, 2]), array.array("f", [1, 2])]:
        result = r.converted(a)
        assert type(result) is numpy.ndarray and result.tolist() == [1, 2]
    assert type(r.zeros(b"12", (1, 2))) is type(r.zeros(3, (1, 2))) is numpy.ndarray


def test_an_argument_that_does_not_fit(numpy):
    """The error is that of the view, with the name of the argument."""
    with Refused("a", r"expected an array of float32 .*, found one of float64 "):
        r.doubled(numpy.ones(3))
    with Refused("a", "expected an array of float32 "):
        r.doubled("abc")


def test_without_numpy(script):
    script("""
import sys
sys.modules["numpy"] = None
import array
import dlpack_probe as p
assert p.like.doubled(p.take(p.WProbe([2])))[0].tolist() == [0, 2]
try:
    p.like.doubled(array.array("f", [1]))
except ImportError as error:
    assert "`numpy` is not installed: `pip install numpy`" in str(error), error
else:
    raise AssertionError
assert p.alive() == 0
""")


# -- zeros ------------------------------------------------------------------------------------------


def test_zeros_of_the_library():
    """XAP-21, XAP-22: the library's allocator is called once, with the needed size; its memory is then zeroed."""
    library = Library()
    a = library.array((1.0,) * 6, (2, 3))
    result, address = r.table(a)
    [made] = library.allocated
    assert library.prototypes == [((2, 3), (3, 1), capi.FLOAT32, (capi.CPU, 0))]
    assert type(result) is library.Array and result.tensor.data == address == c.addressof(made.memory)
    assert result.tensor.address == c.addressof(made.managed), "the library's own struct goes back to it"
    assert result.tensor.floats() == [0, 1, 2, 10, 11, 12]
    assert made.memory.raw[24:88] == b"\xa5" * 64, "nothing is written behind the last item"
    library.created.clear()
    del result
    assert made.deleted == 1


def test_zeros_of_other_elements():
    library = Library()
    result = r.pixels(library.array())
    assert result.tensor.shape == (2, 2, 3) and result.tensor.tobytes() == b"\0" * 6 + b"\1\2\3" + b"\0" * 3
    assert library.prototypes[-1] == ((2, 2, 3), (6, 3, 1), (1, 8, 1), (capi.CPU, 0))
    assert r.flags(library.array()).tensor.tobytes() == b"\0\0\1"
    assert r.scalar(library.array()).tensor.tobytes() == struct.pack("d", 4.5)
    assert library.prototypes[-1] == ((), (), (2, 64, 1), (capi.CPU, 0))
    for shape in [(0, 3), (3, 0), (0, 0), (1, 1), (100, 1000)]:
        result = r.zeros(library.array(), shape)
        assert result.tensor.shape == shape and not any(result.tensor.tobytes()[:4096])
    library.created.clear()
    del result
    assert all(made.deleted == 1 for made in library.allocated)


def test_zeros_where_the_library_has_no_allocator(numpy):
    """Zeros are allocated by this crate for NumPy, for `Tensor`, and for a table without an allocator."""
    result, address = r.table(numpy.ones((2, 3), "f4"))
    assert type(result) is numpy.ndarray and result.ctypes.data == address and result.flags.writeable
    assert result.tolist() == [[0, 1, 2], [10, 11, 12]] and address % 64 == 0
    result, address = r.table(p.WProbe([1, 2]))
    assert type(result) is p.Tensor and result.data_ptr == address and not result.readonly
    library = Library(managed_tensor_allocator=None)
    result, address = r.table(library.array((1.0, 2.0), (1, 2)))
    assert type(result) is library.Array and result.tensor.data == address
    result = r.pixels(numpy.ones(1))
    assert result.shape == (2, 2, 3) and result[1, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("exact", [True, False])
def test_arrays_of_given_elements(numpy, exact):
    """Each element of the library's memory is written once, in row-major order, and nothing behind the last."""
    library = Library()
    result = r.full(library.array(), (2, 1), 1)
    assert result.tensor.shape == (2, 1, 3) and result.tensor.tobytes() == b"\1\2\3" * 2
    assert library.allocated[0].memory.raw[6:70] == b"\xa5" * 64
    for shape in [(2, 3), (1, 1), (70, 100), (0, 3)]:
        count = shape[0] * shape[1]
        result = r.from_elements(library.array(), shape, count, exact)
        assert result.tensor.shape == shape and result.tensor.floats() == [*range(1, count + 1)]
        assert library.allocated[-1].memory.raw[4 * count :][:64] == b"\xa5" * 64
        assert r.from_elements(numpy.ones(1), shape, count, exact).tolist() == numpy.arange(1, count + 1).reshape(shape).tolist()
    assert r.full(numpy.ones(1), (1, 2), 7).tolist() == [[[7, 2, 3]] * 2]
    assert r.full(p.WProbe([1]), (1, 1), 7).tolist() == [[[7, 2, 3]]]
    library.created.clear()
    del result
    assert all(made.deleted == 1 for made in library.allocated)


@pytest.mark.parametrize("exact", [True, False])
def test_another_number_of_elements(numpy, exact):
    """Too few elements or too many are an error, and the library's memory is released."""
    library = Library()
    for shape, count in [((2, 3), 0), ((2, 3), 5), ((2, 3), 7), ((2, 3), 900), ((0, 3), 1), ((1, 1), 2)]:
        needed = shape[0] * shape[1]
        # Without its length, it is only known that an iterator has one element more.
        found = count if exact else min(count, needed + 1)
        for a in [library.array(), numpy.ones(1)]:
            with pytest.raises(BufferError, match=f"expected {needed} elements, found {found}$"):
                r.from_elements(a, shape, count, exact)
    assert all(made.deleted == 1 for made in library.allocated) and len(library.allocated) == 6


def test_zeros_that_are_dropped(numpy):
    """Released once, however they end; a slice of them needs a promise, whichever allocator made them."""
    library = Library()
    assert "may" in r.dropped(library.array())
    assert [made.deleted for made in library.allocated] == [1]
    assert r.dropped(numpy.ones(1)) == r.dropped(library.array())


def test_zeros_on_a_thread_that_is_not_attached(numpy):
    library = Library()
    result = r.in_background(library.array((1.0,), (1, 1)))
    assert type(result) is library.Array and result.tensor.floats() == [3] * 4
    assert r.in_background(numpy.ones((1, 1), "f4")).tolist() == [[3, 3], [3, 3]]


def test_zeros_that_exceed_the_address_space(numpy):
    """A size beyond the address space is not passed to the library, which might overflow."""
    library = Library()
    for a in [library.array(), numpy.ones(1), p.WProbe([1])]:
        for shape in [(2**31, 2**31), (2**62, 2), (2**63 - 1, 1), (2**63, 1)]:
            with pytest.raises((MemoryError, BufferError), match=str(shape[0])):
                r.zeros(a, shape)
    with pytest.raises(MemoryError, match=r"float32 with shape \(0, 4611686018427387904\) exceeds the address space"):
        r.zeros(library.array(), (0, 2**62))
    assert not library.prototypes


# -- allocators that fail ---------------------------------------------------------------------------

KINDS = "BufferError IndexError MemoryError NotImplementedError OverflowError RuntimeError TypeError ValueError".split()


@pytest.mark.parametrize("kind", KINDS)
def test_an_allocator_that_reports_an_error(kind):
    """XAP-23: a reported error becomes that exception, with its text."""
    library = Library(status=-1, report=(kind.encode(), b"no room for \xc3\xa4"), instead=0)
    with pytest.raises(__builtins__[kind] if isinstance(__builtins__, dict) else getattr(__builtins__, kind)) as raised:
        r.zeros(library.array(), (1, 2))
    assert type(raised.value).__name__ == kind
    assert str(raised.value) == "the allocator of the array's library failed: no room for ä"


LONG = b"x" * 5000


@pytest.mark.parametrize(
    ("report", "raises", "says"),
    [
        (None, BufferError, "reported no error"),
        ((None, None), BufferError, "reported no error"),
        ((b"", b"words"), BufferError, "reported no error"),
        ((b"CudaError", b"words"), RuntimeError, "CudaError: words"),
        ((b"KeyboardInterrupt", b"words"), RuntimeError, "KeyboardInterrupt: words"),
        ((b"ValueError", None), ValueError, "failed: "),
        ((b"ValueError", LONG), ValueError, "failed: " + "x" * 512 + "$"),
        ((LONG, b"words"), RuntimeError, "x" * 32 + ": words"),
        ((b"ValueError", b"one \xff two"), ValueError, "failed: one $"),
        ((b"ValueError", b"x" * 511 + "ä".encode()), ValueError, "failed: " + "x" * 511 + "$"),
        ([(b"ValueError", b"first"), (b"MemoryError", b"last")], MemoryError, "failed: last$"),
    ],
)
@pytest.mark.parametrize("status", [-1, 1])
def test_an_allocator_that_reports_badly(report, raises, says, status):
    """After a failure the output pointer of the allocator is not read."""
    library = Library(status=status, report=report, instead=0xDEAD)
    a = library.array()
    with pytest.raises(raises, match=says):
        r.zeros(a, (1, 2))
    assert len(library.prototypes) == 1


def test_an_allocator_that_succeeds_with_nothing():
    with pytest.raises(BufferError, match="returned no tensor"):
        r.zeros(Library(instead=0).array(), (1, 2))
    # The function sets an exception, although its status reports success.
    raises = Library(managed_tensor_allocator=c.pythonapi.PyErr_BadArgument)
    with pytest.raises(TypeError, match="bad argument"):
        r.zeros(raises.array(), (1, 2))


def test_an_error_that_was_reported_in_spite_of_success():
    """The status decides."""
    library = Library(report=(b"ValueError", b"words"))
    assert r.zeros(library.array(), (1, 2)).tensor.floats() == [0, 0]


@pytest.mark.parametrize("zeros", [True, False])
def test_an_allocator_that_returns_the_memory_of_an_argument(zeros):
    """It is refused before it is written: the argument is borrowed as a slice."""
    library = Library()
    a = library.array((1.0, 2.0), (1, 2))
    library.fields = {"data": c.addressof(a.tensor.memory)}
    with pytest.raises(BufferError, match="another view of this memory is alive"):
        r.fill_beside_slice(a, zeros)
    assert a.tensor.memory.raw[:8] == struct.pack("2f", 1, 2) and library.allocated[0].deleted == 1
    library.fields = {}
    assert r.fill_beside_slice(a, zeros).tensor.floats() == [0 if zeros else 7] * 2


LIES = {
    "another shape": ({"shape": (2, 1)}, r"shape \(1, 2\).*returned a writable float32 .*\(2, 1\)"),
    "another rank": ({"shape": (2,)}, r"shape \(2,\)"),
    "more axes than there are": ({"ndim": 65}, "axes"),
    "a negative rank": ({"ndim": -1}, "-1"),
    "another type": ({"dtype": (0, 32, 1)}, "int32"),
    "a smaller type": ({"dtype": (2, 16, 1)}, "float16"),
    "lanes": ({"dtype": (2, 32, 2)}, "float32x2"),
    "no type": ({"dtype": (77, 32, 1)}, "77|unknown"),
    "a GPU": ({"device": (capi.CUDA, 0)}, "cuda:0"),
    "pinned memory": ({"device": (capi.CUDA_HOST, 0)}, "cuda_host"),
    "read-only": ({"flags": capi.READ_ONLY}, "read-only"),
    "backwards": ({"strides": (2, -1)}, "strides"),
    "columns": ({"shape": (2, 2), "strides": (1, 2)}, "strides"),
    "one item for all": ({"strides": (0, 0)}, "strides"),
    "no memory": ({"data": None}, "null"),
    "half an item": ({"byte_offset": 2}, "align|offset"),
    "another version": ({"version": (2, 0)}, "2.0"),
    "no shape": ({"shape": None, "ndim": 2, "strides": None}, "shape"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_allocator_that_lies(lie):
    """ABI-07: an allocated tensor is checked like any import, and released once; a wrong one is not written."""
    fields, says = LIES[lie]
    library = Library(fields=fields)
    shape = (2, 2) if lie == "columns" else (1, 2)
    if lie == "half an item":
        # Misaligned elements can be accessed.
        result = r.zeros(library.array(), shape)
        assert result.tensor.floats() == [0, 0] and library.allocated[0].memory.raw[:2] == b"\xa5\xa5"
        return
    with pytest.raises(BufferError, match=says):
        r.zeros(library.array(), shape)
    [made] = library.allocated
    capi_memory = made.memory.raw[:-1]
    assert capi_memory == b"\xa5" * len(capi_memory), "nothing is written"
    gc.collect()
    p.collect_and_wait()
    assert made.deleted == 1


@pytest.mark.parametrize("kept", [["shape"], ["strides"], ["shape", "strides"]])
@pytest.mark.parametrize("swapped", [False, True])
def test_an_allocator_that_keeps_lists_of_the_prototype(kept, swapped):
    """The allocator copies the prototype's struct, with pointers to lists that are valid only during the call."""

    class Lazy(Library):
        def allocate(self, prototype, out, *rest):
            status = super().allocate(prototype, out, *rest)
            tensor = self.allocated[-1].managed.dl_tensor
            for name in kept:
                other = {"shape": "strides", "strides": "shape"}[name] if swapped else name
                setattr(tensor, name, getattr(prototype[0], other))
            return status

    library = Lazy()
    # The lists are equal, so that a swapped one differs only in its address.
    with pytest.raises(BufferError, match="shape or strides of the prototype, which are only valid during the call"):
        r.zeros(library.array(), (1, 1))
    assert [made.deleted for made in library.allocated] == [1]
    # Without axes there are no lists.
    assert r.scalar(library.array()).tensor.tobytes() == struct.pack("d", 4.5)


def test_an_allocator_without_deleters():
    library = Library(fields={"deleter": False})
    assert r.zeros(library.array(), (1, 2)).tensor.floats() == [0, 0]


def test_an_allocator_that_returns_memory_in_use(numpy):
    """The memory of an argument is refused; any other is accessed as memory that other code may write."""
    library = Library()
    a = library.array((1.0, 2.0), (1, 2))
    library.fields = {"data": c.addressof(a.tensor.memory)}
    with pytest.raises(BufferError, match="overlap|argument|memory"):
        r.table(a)
    assert library.allocated[0].deleted == 1
    other = numpy.ones(2, "f4")
    library.fields = {"data": other.ctypes.data}
    result, _ = r.table(library.array((1.0, 2.0), (1, 2)))
    assert other.tolist() == [0, 1] and result.tensor.floats() == [0, 1]


def test_a_torch_result_is_created_by_the_table(script):
    """`Torch<T>` calls `from_dlpack` only if PyTorch has no table."""
    script("""
import sys, types
import dlpack_probe as p
from test_like import Library
library = Library()
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.Tensor = library.Array
torch.Tensor.is_conj = torch.Tensor.is_neg = lambda self: False
def from_dlpack(tensor):
    raise AssertionError("the table is used")
torch.from_dlpack = from_dlpack
before = p.alive()
for turn in range(1, 4):
    result = p.libraries.torch([1, 2], (1, 2))
    assert type(result) is library.Array and result.tensor.floats() == [1, 2]
    assert len(library.created) == turn
del result
library.created.clear()
assert p.alive() == before
""")


# -- tables that lie about objects ------------------------------------------------------------------


def test_a_table_that_creates_no_object():
    """XAP-17: a failure leaves the tensor to us, and it is released once."""
    before = p.alive()
    for create, raises, says in [
        (CREATE(lambda address, out: -1), BufferError, "without an exception"),
        (capi.Exchange(p.Points).table.managed_tensor_to_py_object_no_sync, BufferError, "."),
    ]:
        library = Library(managed_tensor_to_py_object_no_sync=create)
        with pytest.raises(raises, match=says):
            r.doubled(library.array())
        assert p.alive() == before
        with pytest.raises(raises, match=says):
            r.pixels(library.array())
        assert [made.deleted for made in library.allocated] == [1]


@pytest.mark.leaks
def test_a_table_that_succeeds_without_an_object():
    """The library may have kept the tensor, so it is not released here."""
    for create, raises in [
        (CREATE(lambda address, out: 0), BufferError),
        (c.pythonapi.PyErr_BadArgument, TypeError),
    ]:
        library = Library(managed_tensor_to_py_object_no_sync=create)
        with pytest.raises(raises):
            r.zeros(library.array(), (1, 2))
        assert [made.deleted for made in library.allocated] == [0]


def test_a_table_without_the_function(numpy):
    """A table without the function is treated like no table."""
    library = Library(managed_tensor_to_py_object_no_sync=None)
    assert type(r.doubled(library.array())[0]) is numpy.ndarray
    assert type(r.zeros(library.array(), (1, 2))) is numpy.ndarray and not library.prototypes


def test_a_table_of_another_version(numpy):
    """XAP-27: a table of another major version is not read."""
    library = Library()
    library.table.header.version = capi.DLVersion(2, 0)
    assert type(r.zeros(library.array(), (1, 2))) is numpy.ndarray


def test_memory_in_use_does_not_grow():
    """Results, zeros and errors leak no memory."""
    good, bad = Library(), Library(status=-1, report=(b"ValueError", LONG), instead=0)
    arrays = good.array((1.0, 2.0), (1, 2)), bad.array()

    def hundred():
        for _ in range(100):
            r.table(arrays[0])
            with pytest.raises(ValueError):
                r.zeros(arrays[1], (1, 2))
            for library in (good, bad):
                library.created.clear()
                library.allocated.clear()
                library.prototypes.clear()

    if not capi.ctypes_leaks():
        assert capi.least_growth(hundred, sys.getallocatedblocks) < 50


# -- memory of GPUs ---------------------------------------------------------------------------------

WORK_STREAM = c.PYFUNCTYPE(c.c_int, c.c_int32, c.c_int32, c.POINTER(c.c_void_p))


@pytest.fixture(params=["cuda", "rocm"])
def gpu(request):
    """A simulator with two devices, which is restored after the test."""
    if not os.environ.get("DLPACK_SIMULATOR"):
        pytest.skip("cargo xtask pytest builds the driver")
    import simulator as sim

    sim.reset(2)
    yield sim.Gpu(request.param)
    gc.collect()
    p.release_captured()
    found, live = sim.faults(), (sim.live(sim.EVENTS), sim.live(sim.ALLOCATIONS))
    sim.reset(8)
    sim.lib.cuCtxSetCurrent(None)
    assert (found, live) == ([], (0, 0))


def library_on(stream, status=0):
    asked = []

    @WORK_STREAM
    def current(kind, index, out):
        asked.append((kind, index))
        out[0] = stream
        return status

    return Library(current_work_stream=current if stream is not None else None), asked


@pytest.mark.parametrize("of_consumer", [True, False])
def test_a_gpu_is_read_on_the_stream_of_the_library(gpu, of_consumer):
    """XAP-29, STC-02: work that the library queues on its current stream is ordered after the writes; on another stream it would not be."""
    import simulator as sim

    producer, consumer = gpu.stream(), gpu.stream()
    library, asked = library_on(consumer if of_consumer else gpu.stream())
    owner = gpu.written(p.Queued, producer)
    result = r.like_any(library.array(), owner)
    assert asked == [gpu.device] and result.tensor.device == gpu.device
    gpu.kernel(consumer, result.tensor.data, 16)
    if of_consumer:
        assert sim.faults() == []
    else:
        assert "race" in sim.faults()[0]
    gpu.synchronize()
    del owner, result
    library.created.clear()
    if not of_consumer:
        p.collect()
        sim.reset(2)


@pytest.mark.functions_keep
def test_a_gpu_where_the_library_names_no_stream(gpu):
    """No stream means the default stream; for memory that the CPU reads, the function is not called."""
    for stream in [None, 0]:
        library, _ = library_on(stream)
        owner = gpu.written(p.Queued, gpu.stream())
        result = r.like_any(library.array(), owner)
        gpu.kernel(0, result.tensor.data, 16)
        del owner, result
        library.created.clear()
    library, asked = library_on(gpu.stream())
    r.doubled(library.array())
    assert asked == []


def test_a_library_that_does_not_know_its_stream(gpu):
    library, _ = library_on(0, status=-1)
    owner = gpu.written(p.Queued, gpu.stream())
    with pytest.raises(BufferError, match="has no stream for (cuda|rocm):0"):
        r.like_any(library.array(), owner)
    assert not library.created
    del owner
