"""Results of functions: any value that implements `DLPack`, as a `Tensor` or as an array of a library.

Modules of the test stand in for libraries that are not installed; `cargo xtask consumers` tests the real ones."""

import gc
import sys
import threading
import types

import capi
import dlpack_probe as p
import pytest

r = p.libraries


class Took:
    """The array that a library of the test makes of a tensor."""

    def __init__(self, tensor):
        assert isinstance(tensor, p.Tensor)
        self.tensor = tensor
        self.seen = p.look(tensor)


@pytest.fixture
def library(monkeypatch):
    """Makes a module importable, with submodules by dotted names."""

    def put(name, **has):
        module = types.ModuleType(name)
        vars(module).update(has)
        if "." not in name:
            # Without it the module would not be a package.
            module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


# -- any tensor ---------------------------------------------------------------------------------


def test_any_value_is_a_tensor_in_python():
    """A vector, an ndarray array, a struct, a tensor: moved, so writable, and dropped with the last reference."""
    vector = r.vector([1, 2, 3])
    assert type(vector) is p.Tensor and p.look(vector)["floats"] == [1, 2, 3] and not vector.readonly
    assert r.matrix(2, 3).shape == (2, 3) and r.matrix(2, 3).dtype == "float64"
    before = p.alive()
    points = r.points([1, 2, 3, 4, 5, 6], (2, 3))
    assert points.shape == (2, 3) and p.alive() == before + 1
    part = points[1]
    del points
    assert p.look(part)["floats"] == [4, 5, 6] and p.alive() == before + 1
    del part
    assert p.alive() == before
    foreign = capi.Foreign()
    tensor = r.managed(foreign)
    assert tensor.data_ptr == p.take(foreign).data_ptr


def test_a_value_that_describes_itself_wrongly():
    """The call raises `BufferError`, and the value is dropped."""
    before = p.alive()
    with pytest.raises(BufferError, match="2, 3|24"):
        r.points([1, 2, 3], (2, 3))
    assert p.alive() == before


# -- arrays of libraries ------------------------------------------------------------------------


def test_libraries_with_a_type_of_their_own(script):
    """`Torch`, `Jax` and `Cupy` call the library's `from_dlpack` with the value, and look it up once."""
    script("""
import sys, types
import dlpack_probe as p
r = p.libraries
calls = []
class Found(types.ModuleType):
    def __getattr__(self, name):
        calls.append((self.__name__, name))
        if name == "from_dlpack":
            return lambda tensor: (self.__name__, p.look(tensor)["floats"])
        raise AttributeError(name)
for name in ["torch", "jax", "jax.dlpack", "cupy"]:
    sys.modules[name] = Found(name)
sys.modules["jax"].__path__ = []
for _ in range(3):
    assert r.torch([1, 2], (1, 2)) == ("torch", [1, 2])
    assert r.jax(3) == ("jax.dlpack", [0, 1, 2])
    assert r.cupy([7]) == ("cupy", [7])
found = [name for name, what in calls if what == "from_dlpack"]
assert sorted(found) == ["cupy", "jax.dlpack", "torch"], calls
""")


def test_a_library_by_name(library):
    """A library by its name or its module, by a dotted path, or by the path of a function."""
    fake = library("fake", from_dlpack=Took)
    for named in ("fake", fake):
        took = r.array(named, [2, 1])
        assert took.seen["floats"] == [1, 1] and took.tensor.shape == (2, 1)
    library("fake.deeper", from_dlpack=lambda tensor: ("deeper", Took(tensor)))
    assert r.array("fake.deeper", [1])[0] == "deeper"

    class Array:
        from_dlpack = staticmethod(lambda tensor: ("class", Took(tensor)))

    fake.Array, fake.of = Array, lambda tensor: ("function", Took(tensor))
    assert r.array("fake.Array", [1])[0] == "class"
    assert r.array("fake.of", [1])[0] == "function"


@pytest.mark.parametrize("name, where", [("jax", "jax.dlpack"), ("mlx", "mlx.core")])
def test_libraries_with_a_submodule(library, name, where):
    """`jax` and `mlx` have `from_dlpack` only in a submodule."""
    outer, inner = library(name), library(where, from_dlpack=Took)
    for named in (name, outer, where, inner):
        assert r.array(named, [1]).seen["floats"] == [1]


def test_tensorflow_takes_a_capsule_only(library):
    """TensorFlow gets the legacy capsule."""
    outer = library("tensorflow")
    library("tensorflow.experimental").__path__ = []
    library("tensorflow.experimental.dlpack", from_dlpack=lambda capsule: p.look(capsule))
    for named in ("tensorflow", outer, "tensorflow.experimental.dlpack"):
        seen = r.array(named, [2])
        assert seen["floats"] == [1, 1] and seen["version"] is None


def test_a_missing_library(library, monkeypatch):
    """The error is an ImportError that says what to install, and the value is dropped."""
    before = p.alive()
    for name in ("absent", "absent.deeper"):
        with pytest.raises(ModuleNotFoundError, match="an array of absent was asked for, and `absent` is not installed: `pip install absent") as raised:
            r.array(name, [1])
        assert isinstance(raised.value.__cause__, ModuleNotFoundError)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ModuleNotFoundError, match="pip install cupy"):
        r.cupy([1])
    library("fake")
    with pytest.raises(ImportError, match="`fake` has no function `from_dlpack`"):
        r.array("fake", [1])
    with pytest.raises(ImportError, match="no `fake.from_dlpak`: .*no attribute 'from_dlpak'"):
        r.array("fake.from_dlpak", [1])
    for name in ("", "a b", "a..b", "a."):
        with pytest.raises(ValueError, match="format"):
            r.array(name, [1])
    for other in (None, 1, object(), b"torch"):
        with pytest.raises(TypeError, match="expected a library, as a name such as `\"torch\"` or a module, found <class"):
            r.array(other, [1])
    assert p.alive() == before


def test_what_a_library_raises_is_passed_on(library, tmp_path, monkeypatch):
    """Exceptions of the import of a library, and of its function, are passed on unchanged; the value is dropped."""

    def refuse(tensor):
        raise RuntimeError("not on this device")

    library("fake", from_dlpack=refuse)
    with pytest.raises(RuntimeError, match="not on this device"):
        r.array("fake", [1])
    (tmp_path / "broken.py").write_text("import something_that_it_needs")
    (tmp_path / "failing.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="^No module named 'something_that_it_needs."):
        r.array("broken", [1])
    with pytest.raises(ZeroDivisionError):
        r.array("failing", [1])


# -- attributes of a class ----------------------------------------------------------------------


def test_attributes_are_arrays_of_numpy(numpy):
    """Each access makes a new array over the memory of the object, and keeps the object; user-defined attributes are not replaced."""
    before = p.alive()
    ledger = p.Ledger(4)
    assert type(ledger.times) is numpy.ndarray and ledger.times.tolist() == [0, 1, 2, 3]
    assert ledger.price.mean() == 0.75 and ledger.price.strides == (16,)
    assert ledger.times is not ledger.times and numpy.shares_memory(ledger.times, ledger.times)
    assert not ledger.times.flags.writeable
    assert ledger.list == [1, 2]
    assert sorted(p.Ledger.__dlpack_tensors__) == ["absent", "price", "side", "size", "times"]
    assert "In order." in p.Ledger.times.__doc__ and "`absent`" in p.Ledger.absent.__doc__
    with pytest.raises(BufferError, match="`absent` is None"):
        ledger.absent
    with pytest.raises(AttributeError):
        ledger.times = [1]
    with pytest.raises(AttributeError):
        del ledger.times
    with pytest.raises(TypeError):
        p.Ledger.times.__get__(object())
    times = ledger.times[1:]
    with pytest.raises(RuntimeError, match="borrowed"):
        ledger.push()
    del ledger
    assert times.tolist() == [1, 2, 3] and p.alive() == before + 1
    del times
    gc.collect()
    assert p.alive() == before


def test_an_attribute_that_holds_its_field(numpy):
    """The object can be changed, given other memory and dropped while arrays over the field live."""
    before = p.alive()
    arena = p.Arena(3)
    state, rules = arena.state, arena.rules
    assert (state.flags.writeable, rules.flags.writeable, rules.tolist()) == (True, False, [7, 7, 7])
    assert type(state.base) is type(rules.base) and arena.count_of_rules() == 2
    arena.step()
    state[1] = 5
    arena.step()
    assert state.tolist() == [2, 6, 2] and numpy.shares_memory(state, arena.state)
    arena.replace_state()
    assert arena.state.tolist() == [0] and state.tolist() == [2, 6, 2]
    del rules
    assert arena.count_of_rules() == 1
    del arena
    gc.collect()
    assert p.alive() == before and state.tolist() == [2, 6, 2]
    part = state[1:]
    del state
    assert part.tolist() == [6, 2]


def test_an_attribute_that_holds_its_object(numpy):
    """The object is kept, also if its memory could live without it. The last view is dropped on another thread."""
    before = p.alive()
    arena = p.Arena(2)
    views = [arena.scores[1:]]
    assert views[0].flags.writeable
    with pytest.raises(RuntimeError, match="borrowed"):
        arena.step()
    thread = threading.Thread(target=views.clear)
    thread.start()
    thread.join()
    arena.step()
    views.append(arena.scores)
    del arena
    gc.collect()
    assert p.alive() == before + 1
    views.clear()
    assert p.alive() == before


def test_an_attribute_that_is_read_only_stays_so(numpy):
    """NumPy requests a writable buffer from the base of an array, and no object behind such an array has one."""
    for array in [p.Ledger(2).times, p.Arena(2).rules, p.take(p.Ledger(2).times).numpy()]:
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
            array.flags.writeable = True


def test_inherited_attributes_are_overridden():
    """A tensor is the attribute of its name, whatever the base class and the class `type` call their own."""
    derived = p.Derived()
    assert [bytes(getattr(derived, name)) for name in p.Derived.__dlpack_tensors__] == [b"\x02", b"\x03", b"\x04"]
    assert bytes(p.Base.first.__get__(derived)) == b"\x01"


def test_a_field_that_hides_its_tensor_is_an_error():
    """Each access raises an error for the class, whose cause is the error of the constant."""
    for _ in range(2):
        with pytest.raises(RuntimeError, match="initializing class Hidden") as error:
            p.create_hidden_class()
        reason = str(error.value.__cause__.__cause__)
        assert "`Hidden.seen` is an attribute of the class, and hides the tensor `seen`" in reason
        assert "remove `#[pyo3(get)]`, `#[pyo3(set)]`, `get_all`, `set_all`, or the getter, setter or method" in reason
        assert "tensor(name" in reason


@pytest.mark.parametrize(
    ("tensors", "getter", "hides"),
    [
        ([], "a", False),
        (["a"], "a", True),
        (["ab", "b"], "a", False),
        (["b", "a"], "ab", False),
        (["b", "c", "abc"], "abc", True),
        (["abc", "b", "c"], "abc", True),
        (["abc"], "abd", False),
        (["bbc"], "abc", False),
    ],
)
def test_a_getter_hides_the_tensor_of_its_name(tensors, getter, hides, capfd):
    """The macros compare the names when a class is compiled; here the same function runs."""
    assert p.getter_hides_tensor(tensors, getter) == hides
    assert ("hides the tensor of the same name" in capfd.readouterr().err) == hides


def test_attributes_of_a_missing_library(library):
    """The class works as a tensor; each access to the attribute names the missing library."""
    foreigner = p.Foreigner()
    assert p.look(foreigner)["floats"] == [1] and p.Foreigner.__dlpack_tensors__ == ("more",)
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="`library_of_the_test` is not installed: `pip install library_of_the_test`"):
            foreigner.more
    library("library_of_the_test")
    library("library_of_the_test.deeper", from_dlpack=Took)
    assert foreigner.more.seen["floats"] == [2, 3]


# -- arrays of JAX ------------------------------------------------------------------------------


def test_an_array_of_jax_is_read_by_its_buffer(script):
    """Without a call of `__dlpack__`, which remains for arrays whose buffer is refused, for requests, and for other classes."""
    script("""
import array, sys, types, warnings
import dlpack_probe as p
module = sys.modules["jaxlib._jax"] = types.ModuleType("jaxlib._jax")
calls = []
class Stand(array.array):
    def __dlpack__(self, **named):
        calls.append(named.get("copy"))
        return p.libraries.vector([7, 8]).__dlpack__(**named)
    def __dlpack_device__(self):
        return (1, 0)
class ArrayImpl(Stand):
    pass
class Derived(ArrayImpl):
    pass
module.ArrayImpl = ArrayImpl

held = ArrayImpl("f", [1, 2])
tensor = p.take(held)
assert p.look(tensor)["floats"] == [1, 2] and tensor.data_ptr == held.buffer_info()[0] and not calls
try:
    held.append(3)
except BufferError:
    pass
else:
    raise AssertionError("the buffer is not held")
del tensor
held.append(3)
assert p.look(p.take(held))["floats"] == [1, 2, 3] and not calls

# No data type of DLPack. Python 3.13 warns of it.
warnings.simplefilter("ignore", DeprecationWarning)
assert p.look(p.take(ArrayImpl("u", "ab")))["floats"] == [7, 8] and calls == [None]
assert p.look(p.Tensor.from_dlpack(held, copy=True))["floats"] == [7, 8] and calls == [None, True]
for other in (Stand, Derived):
    assert p.look(p.take(other("f", [1, 2])))["floats"] == [7, 8]
assert len(calls) == 4

# Of a deleted array, the error of `__dlpack__` says so, and that of `__dlpack_device__` does not.
def fail(self, **named):
    raise RuntimeError("deleted") if named else TypeError("no devices")
ArrayImpl.is_deleted = lambda self: True
ArrayImpl.__dlpack__ = lambda self: fail(self, said=True)
ArrayImpl.__dlpack_device__ = fail
for call in p.take, lambda one: p.Tensor.from_dlpack(one, copy=True):
    try:
        call(ArrayImpl("u", "ab"))
    except RuntimeError as error:
        assert str(error) == "deleted"
    else:
        raise AssertionError
""")


# -- real ones ----------------------------------------------------------------------------------


def test_numpy_shares(numpy):
    """NumPy by its name, like any library."""
    array = r.array("numpy", [2, 3])
    assert type(array) is numpy.ndarray and array.tolist() == [[1, 1, 1], [1, 1, 1]]
    array[0, 0] = 7
    again = p.take(array)
    assert p.look(again)["floats"][0] == 7


def test_jax_shares():
    """Memory of a `SharedBuffer` has the alignment that JAX requires."""
    jax = pytest.importorskip("jax")
    array = r.jax(5)
    assert isinstance(array, jax.Array) and array.tolist() == [0, 1, 2, 3, 4]
    tensor = r.managed(array)
    # By this name the import detects an array of JAX.
    assert sys.modules["jaxlib._jax"].ArrayImpl is type(array)
    assert r.array(jax, [1]).tolist() == r.array("jax.numpy", [1]).tolist() == [1]
    assert tensor.data_ptr == array.unsafe_buffer_pointer()


def test_torch_shares():
    """The object is dropped with the tensor, and PyTorch can write it."""
    torch = pytest.importorskip("torch")
    before = p.alive()
    tensor = r.torch([1, 2, 3, 4, 5, 6], (2, 3))
    assert type(tensor) is torch.Tensor and tensor.tolist() == [[1, 2, 3], [4, 5, 6]]
    again = r.torch_of(tensor)
    assert again.data_ptr() == tensor.data_ptr()
    tensor += 1
    assert again[0].tolist() == [2, 3, 4]
    assert p.alive() == before + 1
    del tensor, again
    gc.collect()
    assert p.alive() == before
