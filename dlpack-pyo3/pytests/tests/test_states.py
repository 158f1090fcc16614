"""Arrays in states that DLPack cannot describe are refused, and a `__dlpack__` that a subclass defines is called."""

import sys

import dlpack_probe as p
import pytest

MASKED = "found a masked array, whose mask would be lost; pass x.filled"


class Closed(p.Open):
    """A Python class that inherits our exchange table, and whose `__dlpack__` exports nothing."""

    def __dlpack__(self, **_):
        raise BufferError("closed")


def words(error):
    """The text of an error with its notes, where PyO3 names the argument on Pythons with notes."""
    return " ".join([str(error), *getattr(error, "__notes__", [])])


def imports(array):
    """Each function that imports an object."""
    yield lambda: p.take(array)
    yield lambda: p.first(array)
    yield lambda: p.Tensor.from_dlpack(array)
    yield lambda: p.Tensor.from_dlpack(array, copy=True)
    yield lambda: p.Tensor.from_dlpack(array, device=(1, 0))
    yield lambda: p.take_points(array)
    yield lambda: p.states.real(array)
    yield lambda: p.states.clear(array)
    yield lambda: p.states.writable(array)


class TestOverrides:
    """The method of a subclass that defines `__dlpack__`, but no exchange table, is called."""

    def test_a_method_that_raises_is_not_passed_over(self):
        array = Closed([1.0, 2.0])
        for take in imports(array):
            with pytest.raises(BufferError, match="closed"):
                take()

    def test_a_method_that_exports_something_else_is_taken_at_its_word(self):
        class Doubled(p.Open):
            def __dlpack__(self, **keywords):
                return p.Open([2.0, 4.0]).__dlpack__(**keywords)

        assert p.take(Doubled([1.0, 2.0])).tolist() == [2.0, 4.0]
        assert p.states.real(Doubled([1.0, 2.0])) == [2.0, 4.0]

    def test_an_overriding_method_further_up_is_found(self):
        class Derived(Closed):
            pass

        with pytest.raises(BufferError, match="closed"):
            p.take(Derived([1.0]))

    def test_the_class_can_be_changed(self):
        class Changing(p.Open):
            calls = 0

        def count(self, **keywords):
            Changing.calls += 1
            return p.Open.__dlpack__(self, **keywords)

        array = Changing([1.0, 2.0])
        for round in range(1, 3):
            assert p.take(array).tolist() == [1.0, 2.0]
            assert Changing.calls == round - 1
            Changing.__dlpack__ = count
            assert p.take(array).tolist() == [1.0, 2.0]
            assert Changing.calls == round
            del Changing.__dlpack__

    def test_a_class_with_the_table_and_the_method_is_asked_by_the_table(self):
        class Whole(p.Open):
            __dlpack_c_exchange_api__ = p.Open.__dlpack_c_exchange_api__

            def __dlpack__(self, **_):
                raise AssertionError("the table is there")

        assert p.take(Whole([1.0])).tolist() == [1.0]

    def test_a_table_below_the_method_is_asked(self):
        class Table(Closed):
            __dlpack_c_exchange_api__ = p.Open.__dlpack_c_exchange_api__

        assert p.take(Table([1.0])).tolist() == [1.0]

    def test_many_classes(self):
        """More classes than the import caches, each with its own method."""
        classes = [
            type(f"Class{index}", (p.Open,), {
                "__dlpack_c_exchange_api__": p.Open.__dlpack_c_exchange_api__,
                "__dlpack__": lambda self, **_: None,
            })
            for index in range(40)
        ]
        for _ in range(2):
            for cls in classes:
                assert p.take(cls([3.0])).tolist() == [3.0]
                with pytest.raises(BufferError, match="closed"):
                    p.take(type("Closing", (cls,), {"__dlpack__": Closed.__dlpack__})([3.0]))

    def test_a_class_that_overrides_nothing_is_asked_by_the_table(self):
        class Watched(p.Open):
            def __getattribute__(self, name):
                assert name != "__dlpack__", "the table was passed over"
                return super().__getattribute__(name)

        assert p.take(Watched([1.0])).tolist() == [1.0]


class TestMasked:
    """`numpy.ma.MaskedArray` inherits all exports of the array, without its mask."""

    @pytest.fixture(params=["masked", "without a mask", "subclass"])
    def array(self, request, numpy):
        if request.param == "without a mask":
            return numpy.ma.array([1.0, 2.0], dtype="f4")
        array = numpy.ma.array([1.0, 2.0], mask=[0, 1], dtype="f4")
        return array if request.param == "masked" else array.view(type("Derived", (numpy.ma.MaskedArray,), {}))

    def test_every_import_refuses(self, array):
        for take in imports(array):
            with pytest.raises((BufferError, TypeError), match=MASKED):
                take()

    def test_an_argument_is_named(self, array):
        for call in (p.states.real, p.states.clear, p.states.converted, p.first, p.states.writable):
            with pytest.raises(TypeError, match=f"expected an array.*{MASKED}") as error:
                call(array)
            name = "tensor" if call is p.first else "array"
            # PyO3 adds the name as a note. Exceptions have notes from Python 3.11 on.
            assert f"'{name}'" in words(error.value) or sys.version_info < (3, 11)

    def test_the_fix_works(self, array):
        assert p.states.real(array.filled(0)) in ([1.0, 0.0], [1.0, 2.0])

    def test_other_subclasses_of_an_array_are_read(self, numpy):
        assert p.states.real(numpy.array([1.0, 2.0], "f4").view(numpy.recarray)) == [1.0, 2.0]


# A library with the name of PyTorch, whose tensors are ours: its class has our exchange table, which ignores these states, as
# PyTorch's does.
FAKE = """
import sys, types
import dlpack_probe as p
import pytest

torch = sys.modules["torch"] = types.ModuleType("torch")
calls = []

class Base(p.Open):
    conj = neg = grad = False
    requires_grad = property(lambda self: calls.append("grad") or self.grad)
    def is_conj(self): calls.append("conj"); return self.conj
    def is_neg(self): calls.append("neg"); return self.neg

class Tensor(Base):
    __dlpack_c_exchange_api__ = p.Open.__dlpack_c_exchange_api__
    def __dlpack__(self, **keywords):
        calls.append("method")
        return p.Open.__dlpack__(self, **keywords)

class Parameter(Tensor): pass
torch.Tensor = Tensor
"""


class TestLibraries:
    """The parts that need neither PyTorch nor PaddlePaddle. `cargo xtask consumers` tests the libraries themselves."""

    def test_bits_and_gradients_are_refused(self, script):
        script(
            FAKE
            + """
for cls in (Tensor, Parameter):
    assert p.take(cls([1.0])).tolist() == [1.0]
    # The data type is real, so the conjugate bit is not queried.
    assert calls == ["neg", "grad"], calls
    calls.clear()
    for state, fix in [("neg", "resolve_neg"), ("grad", "detach")]:
        array = cls([1.0])
        setattr(array, state, True)
        for copy in (None, True, False):
            with pytest.raises(BufferError, match=f"expected an array that DLPack can describe, found a torch tensor.*x.{fix}"):
                p.Tensor.from_dlpack(array, copy=copy)
        with pytest.raises(BufferError, match=fix):
            p.take(array)
        for call in (p.states.real, p.states.clear, p.states.converted, p.first, p.states.writable):
            with pytest.raises(TypeError, match=f"expected an array.*found a torch tensor.*x.{fix}"):
                call(array)
    assert "method" not in calls
    array = cls([1.0])
    # Before a call of the method the data type is unknown.
    array.conj = True
    with pytest.raises(BufferError, match="resolve_conj"):
        p.Tensor.from_dlpack(array, copy=True)
    calls.clear()
"""
        )

    def test_a_subclass_with_a_method_of_its_own_answers_for_itself(self, script):
        script(
            FAKE
            + """
class Own(Tensor):
    def __dlpack__(self, **keywords):
        return p.Open([7.0]).__dlpack__(**keywords)
array = Own([1.0])
array.neg = True
assert p.take(array).tolist() == [7.0]
assert p.Tensor.from_dlpack(array, copy=True).tolist() == [7.0]
assert calls == [], calls
"""
        )

    def test_what_a_state_raises_is_passed_on(self, script):
        script(
            FAKE
            + """
class Loud(Tensor):
    def is_neg(self): raise AssertionError("a method of an object is not asked")
assert p.take(Loud([1.0])).tolist() == [1.0]
class Wrong(Tensor):
    requires_grad = property(lambda self: 1 / 0)
with pytest.raises(ZeroDivisionError):
    p.take(Wrong([1.0]))
"""
        )

    def test_a_module_of_that_name_that_is_something_else(self, script):
        script(
            """
import sys, types
import dlpack_probe as p
import numpy
for torch in (types.ModuleType("torch"), None, types.SimpleNamespace(Tensor=3), types.SimpleNamespace(Tensor=int)):
    sys.modules["torch"] = torch
    assert p.take(p.Open([1.0])).tolist() == [1.0]
    assert p.take(type("Derived", (p.Open,), {})([1.0])).tolist() == [1.0]
    assert p.take(memoryview(b"ab")).tolist() == [97, 98]
"""
        )

    def test_the_table_of_paddle_is_asked_only_for_what_its_method_exports(self, script):
        script(
            """
import sys, types
import dlpack_probe as p
import pytest

class Tensor(p.Open):
    __dlpack_c_exchange_api__ = p.Open.__dlpack_c_exchange_api__
    stop_gradient, dense, initialized = True, True, True
    def is_dense(self): return self.dense
    def _is_initialized(self): return self.initialized
    def __dlpack__(self, **_): raise BufferError("the method")

sys.modules["paddle"] = types.SimpleNamespace(Tensor=Tensor)
assert p.take(Tensor([1.0])).tolist() == [1.0]
for state in ("stop_gradient", "dense", "initialized"):
    array = Tensor([1.0])
    setattr(array, state, False)
    for call in (p.take, p.first, p.states.real, p.states.clear):
        with pytest.raises(BufferError, match="the method"):
            call(array)
class Newer(Tensor):
    stop_gradient = property(lambda self: 1 / 0)
with pytest.raises(BufferError, match="the method"):
    p.take(Newer([1.0]))
"""
        )

    def test_torch_itself(self, script):
        pytest.importorskip("torch")
        script("import torch_states; torch_states.main()", timeout=300, noisy=True)
