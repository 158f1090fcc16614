"""Tensors that are set, copied, pickled, and sent to other processes."""

import copy
import ctypes
import gc
import importlib.util
import multiprocessing
import pickle
import subprocess
import threading

import capi
import dlpack_probe as p
import pytest

TWO_TO_FIVE = pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))


class TestSetters:
    def test_an_array_is_put_into_the_field(self, numpy):
        owner = p.Settings(2)
        owner.mask = numpy.array([[True, False], [False, True]])
        owner.matrix = numpy.array([[1, 2, 3], [4, 5, 6]], dtype="int32")
        assert owner.items() == ([True, False, False, True], [1, 4, 2, 5, 3, 6])
        assert numpy.from_dlpack(owner.matrix).tolist() == [[1, 2, 3], [4, 5, 6]]
        owner.weights = numpy.array([[1, 2, 0], [3, 4, 0]], dtype="float32")[:, :2]
        assert numpy.from_dlpack(owner.weights).tolist() == [[1, 2], [3, 4]]
        owner.weights = None
        with pytest.raises(BufferError, match="None"):
            _ = owner.weights

    def test_shared_memory_is_adopted(self, numpy):
        owner = p.Settings(2)
        old = owner.state
        array = numpy.zeros(3)
        owner.state = array
        array[1] = 5
        assert owner.state.data_ptr == array.ctypes.data
        assert numpy.from_dlpack(owner.state).tolist() == [0, 5, 0]
        assert old.shape == (2,), "arrays over the old memory keep it"

    @pytest.mark.parametrize(
        "name, make, error, words",
        [
            ("mask", lambda np: np.zeros((3, 2), bool), ValueError, r"`mask` of `Settings` .* bool of shape \(3, 2\): .* size 2 for axis 0 .* found 3"),
            ("mask", lambda np: np.zeros(6, bool), ValueError, r"`mask`.* \(6,\): expected a tensor of rank 2, found one of rank 1"),
            ("mask", lambda np: np.zeros((2, 3), "uint8"), TypeError, "`mask`.* uint8 .*expected dtype bool, found uint8"),
            ("mask", lambda np: None, TypeError, "`mask` of `Settings` cannot be None"),
            ("mask", lambda np: [[True]], TypeError, "list.* no array"),
            ("matrix", lambda np: np.zeros((3, 2), "int32"), ValueError, "`matrix`.* size 2 for axis 0 .* found 3"),
            ("weights", lambda np: np.zeros(4, "float32"), ValueError, "`weights`.* rank 2, found one of rank 1"),
            ("weights", lambda np: np.zeros((2, 3), "float32"), ValueError, "`weights`.* size 2 for axis 1 .* found 3"),
            ("state", lambda np: np.zeros((2, 2)), ValueError, "`state`.* rank 1, found one of rank 2"),
            ("state", lambda np: np.zeros(4)[::2], ValueError, "`state`.* not contiguous"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, numpy, name, make, error, words):
        owner = p.Settings(2)
        before = owner.items()
        with pytest.raises(error, match=words):
            setattr(owner, name, make(numpy))
        assert owner.items() == before

    def test_as_many_elements_are_set_in_place(self, numpy):
        owner = p.Settings(2)
        owner.matrix = numpy.arange(6, dtype="int32").reshape(2, 3)
        address = owner.matrix.data_ptr
        for array in [numpy.full((2, 3), 7, "int32"), numpy.arange(6, dtype="int32").reshape(3, 2).T, numpy.arange(12, dtype="int32").reshape(2, 6)[:, ::2]]:
            owner.matrix = array
            assert owner.matrix.data_ptr == address
            assert numpy.from_dlpack(owner.matrix).tolist() == array.tolist()
        with pytest.raises(ValueError):
            owner.matrix = numpy.zeros((3, 2), "int32")
        with pytest.raises(TypeError):
            owner.matrix = numpy.zeros((2, 3), "float32")
        assert (owner.matrix.data_ptr, numpy.from_dlpack(owner.matrix).tolist()) == (address, array.tolist())
        owner.matrix = numpy.ones((2, 0), "int32")
        assert owner.matrix.shape == (2, 0)

    def test_bytes_that_are_no_bool_are_refused(self, numpy):
        owner = p.Settings(1)
        array = numpy.array([[0, 7]], dtype="uint8").view(bool)
        with pytest.raises(ValueError, match="`mask`.* 7; expected 0 or 1"):
            owner.mask = array

    def test_an_array_over_the_old_data_prevents_the_setter(self, numpy):
        owner = p.Settings(2)
        array = numpy.from_dlpack(owner.mask)
        for name, value in [("mask", array), ("state", numpy.zeros(2))]:
            with pytest.raises(BufferError, match=f"`{name}` of `Settings` .* array .* alive"):
                setattr(owner, name, value)
        with pytest.raises(BufferError, match="method"):
            del array
            owner.during_read(lambda: setattr(owner, "state", numpy.zeros(2)))
        gc.collect()
        owner.mask = numpy.zeros((2, 1), bool)

    def test_an_array_over_an_owner_does_not_prevent_it(self, numpy):
        owner = p.Settings(2)
        array = numpy.from_dlpack(owner.state)
        owner.state = numpy.ones(2)
        array[0] = 7
        assert numpy.from_dlpack(owner.state).tolist() == [1, 1] and array.tolist() == [7, 0]

    def test_only_some_are_set_and_none_deleted(self, numpy):
        owner = p.Settings(2)
        with pytest.raises(AttributeError):
            owner.fixed = numpy.zeros(1, "uint8")
        with pytest.raises(AttributeError, match="`mask` of `Settings` cannot be deleted"):
            del owner.mask

    def test_code_of_the_class_cannot_free_the_memory(self, numpy):
        """An expression of the derive runs after the array was read, and before its elements are copied."""
        base = bytearray(numpy.arange(1024.0).tobytes())

        def count_rows():
            with pytest.raises(BufferError):
                base.clear()
            return 2

        owner = p.Measured(count_rows)
        owner.grid = numpy.ndarray((2, 512), "f8", buffer=base)
        assert owner.items() == list(range(1024))
        base.clear()

    def test_code_of_the_array_sees_the_object_free(self):
        owner = p.Settings(1)

        class Nosy:
            # Not in a closure: a free-threaded Python 3.13 never frees a function.
            def __init__(self, owner):
                self.owner = owner

            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **wishes):
                self.owner.mask
                return p.Probe([2]).__dlpack__(**wishes)

        with pytest.raises((TypeError, ValueError), match="`state`"):
            owner.state = Nosy(owner)


def fails_without_us(script):
    """The control of `test_without_memory`, without our code. Python 3.13t crashes in it."""
    code = """
import _testcapi, pickle
class Plain:
    def __reduce_ex__(self, protocol):
        return Plain, ()
acts = [lambda: pickle.dumps([Plain(), {"a": (1, "x")}])]
acts.append(lambda data=acts[0](): pickle.loads(data))
for act in 5 * acts:
    for k in range(200):
        _testcapi.set_nomemory(k, k + 1)
        try:
            act()
        except BaseException:
            pass
        finally:
            _testcapi.remove_mem_hooks()
"""
    try:
        return script(code, timeout=60, status=None).status != 0
    except subprocess.TimeoutExpired:
        return True


class TestPickle:
    @TWO_TO_FIVE
    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "float64", "complex128"])
    def test_there_and_back(self, numpy, protocol, dtype):
        array = numpy.arange(24).reshape(2, 3, 4).astype(dtype)
        for part in [array, array[:, ::2, ::-1], array.T, array[0, 0, 0:0], array[1, 2, 3, ...], array[:0]]:
            back = pickle.loads(pickle.dumps(p.Tensor.from_dlpack(part), protocol))
            again = numpy.from_dlpack(back)
            assert type(back) is p.Tensor and not back.readonly
            assert (again.dtype, again.shape) == (part.dtype, part.shape)
            assert (again == part).all()

    @TWO_TO_FIVE
    def test_what_numpy_does_not_know(self, protocol):
        """bfloat16, lanes and packed groups are pickled by the numbers of DLPack."""
        bits = b"\x80\x3f\x00\x40"
        for dtype, shape in [((4, 16, 1, False), (2,)), ((2, 16, 2, False), (1,)), ((17, 4, 1, False), (2, 4)), ((17, 4, 1, True), (4,))]:
            one = p.Tensor._restore(bits, dtype, shape)
            back = pickle.loads(pickle.dumps(one, protocol))
            assert (back.dtype, back.shape, back.nbytes, back.readonly) == (one.dtype, shape, 4, True)
            assert ctypes.string_at(back.data_ptr, 4) == bits

    @TWO_TO_FIVE
    def test_read_only_tensors_stay_read_only(self, protocol):
        one = p.Batch(3).rewards
        assert one.readonly and pickle.loads(pickle.dumps(one, protocol)).readonly

    @TWO_TO_FIVE
    def test_a_packed_copy_of_a_read_only_tensor_is_read_only(self, numpy, protocol):
        """The packed copy of a strided read-only tensor is read-only, although it could be written."""
        one = p.Batch(4).rewards[::2]
        assert one.readonly
        back = pickle.loads(pickle.dumps(one, protocol))
        assert back.readonly and numpy.from_dlpack(back).tolist() == [0, -2]
        buffers = []
        data = pickle.dumps(one, protocol, buffer_callback=buffers.append) if protocol == 5 else None
        if data:
            assert pickle.loads(data, buffers=buffers).readonly

    def test_out_of_band_nothing_is_copied(self, numpy):
        array = numpy.zeros((3, 4))
        buffers = []
        data = pickle.dumps(p.Tensor.from_dlpack(array), protocol=5, buffer_callback=buffers.append)
        assert len(buffers) == 1 and len(data) < 200
        back = pickle.loads(data, buffers=buffers)
        assert back.data_ptr == array.ctypes.data and not back.readonly
        held = pickle.loads(data, buffers=[memoryview(bytes(96))])
        assert held.readonly and held.shape == (3, 4)

    def test_a_pickle_keeps_its_memory(self, numpy):
        owner, buffers = p.WProbe([3]), []
        alive = p.alive()
        data = pickle.dumps(p.Tensor.from_dlpack(owner), protocol=5, buffer_callback=buffers.append)
        del owner
        back = pickle.loads(data, buffers=buffers)
        buffers.clear()
        gc.collect()
        assert p.alive() == alive
        numpy.from_dlpack(back)[1] = 3
        assert numpy.from_dlpack(back)[1] == 3
        del back
        gc.collect()
        assert p.alive() == alive - 1

    def test_read_only_memory_is_not_written(self, numpy):
        """The memory belongs to Rust: no object behind the buffer is writable, or can be freed by other code."""
        owner, buffers = p.Batch(3), []
        rewards = owner.rewards
        data = pickle.dumps(rewards, protocol=5, buffer_callback=buffers.append)
        behind = buffers[0].raw()
        assert behind.readonly
        while type(behind) is memoryview:
            behind = behind.obj
        assert not hasattr(behind, "__dict__")
        # From Python 3.12 on, the object behind the buffer is the wrapper of `__buffer__`, which exports nothing itself.
        if type(behind).__name__ != "_buffer_wrapper":
            assert memoryview(behind).readonly
        back = pickle.loads(data, buffers=buffers)
        assert back.readonly and back.data_ptr == rewards.data_ptr
        del rewards, behind
        buffers.clear()
        with pytest.raises((RuntimeError, BufferError)):
            owner.push()
        assert numpy.from_dlpack(back).tolist() == [0, -1, -2]
        del back
        gc.collect()
        owner.push()

    def test_in_a_thread(self, numpy):
        data = pickle.dumps(p.Tensor.from_dlpack(numpy.arange(5)))
        found = []
        for act in [lambda: found.append(pickle.loads(data)), lambda: found.append(pickle.dumps(found[0]))]:
            thread = threading.Thread(target=act)
            thread.start()
            thread.join()
        assert pickle.loads(found[1]).shape == (5,)

    def test_the_class_has_its_module(self):
        pickle.dumps(p.Tensor.from_dlpack(b"ab"))
        assert p.Tensor.__module__ == "dlpack_probe"

    def test_a_class_that_no_module_has_is_refused(self, script):
        with pytest.raises(pickle.PicklingError, match='`Homeless`.*#\\[pyclass\\(module = "your_module"\\)\\]'):
            pickle.dumps(p.homeless())
        script(
            "import pickle, dlpack_probe as p\n"
            "tensor = p.Tensor.from_dlpack(b'ab')\n"
            "Tensor = p.Tensor\n"
            "del p.Tensor\n"
            "try: pickle.dumps(tensor)\n"
            "except pickle.PicklingError as error: assert '#[pymodule_export] use dlpack_pyo3::Tensor;' in str(error), error\n"
            "else: raise SystemExit('pickled')\n"
        )

    FORGED = [
        (b"1234", (2, 32, 1, False), (2,), BufferError, "expected 8 bytes for the items, found 4"),
        (b"12345678", (2, 32, 1, False), (1,), BufferError, "expected 4 bytes for the items, found 8"),
        (b"", (2, 32, 1, False), (1,), BufferError, "expected 4 bytes for the items, found 0"),
        (b"1", (1, 8, 1, False), (0,), BufferError, "expected 0 bytes for the items, found 1"),
        (b"1234", (2, 32, 1, False), (-1,), BufferError, "-1"),
        (b"1234", (2, 32, 1, False), (-1, -1), BufferError, "-1"),
        (b"1234", (2, 32, 1, False), (2**62, 4), BufferError, "does not fit in the address space"),
        (b"1234", (2, 32, 1, False), (2**32, 2**32), BufferError, "does not fit in the address space"),
        (b"1234", (2, 32, 1, False), (2**64,), OverflowError, None),
        (b"1234", (2, 32, 1, False), (1,) * 65, BufferError, "65 axes"),
        (b"1234", (2, 32, 0, False), (2**40,), BufferError, "no data type"),
        (b"1234", (2, 0, 1, False), (4,), BufferError, "no data type"),
        (b"1234", (99, 8, 1, False), (4,), BufferError, "no data type"),
        (b"1234", (2, 32, 1, True), (2,), BufferError, "expected 8 bytes for the items, found 4"),
        (b"1234", (2, 300, 1, False), (1,), OverflowError, None),
        (b"1234", (2, -1, 1, False), (1,), OverflowError, None),
        (b"1234", (2, 32, 1), (1,), ValueError, None),
        (b"1234", (2, 32, 1, False), [1], TypeError, None),
        (b"1234", (2, 32, 1, False), ("1",), TypeError, None),
        ("1234", (2, 32, 1, False), (1,), TypeError, None),
        (memoryview(b"12345678")[::2], (1, 8, 1, False), (4,), BufferError, None),
    ]

    @pytest.mark.parametrize("bytes_, dtype, shape, error, words", FORGED)
    def test_a_forged_state_is_refused(self, bytes_, dtype, shape, error, words):
        with pytest.raises(error, match=words):
            p.Tensor._restore(bytes_, dtype, shape)
        with pytest.raises(error):
            p.Picture.__dlpack_restore__(bytes_, dtype, shape)

    def test_a_hostile_shape_is_refused(self):
        class Shape(tuple):
            def __len__(self):
                return 2**60

        assert p.Tensor._restore(b"ab", (1, 8, 1, False), Shape((2,))).shape == (2,)

    def test_misaligned_bytes_are_copied(self, numpy):
        data = bytearray(17)
        views = [memoryview(data)[start : start + 16] for start in (0, 1)]
        tensors = [p.Tensor._restore(view, (2, 64, 1, False), (2,)) for view in views]
        assert sorted(one.data_ptr % 8 for one in tensors) == [0, 0]
        data[:] = b"\1" * 17
        shared = sum(numpy.from_dlpack(one).any() for one in tensors)
        assert shared == 1, "the other was copied"
        assert not any(one.readonly for one in tensors)
        fixed = bytes(range(17))
        for start in (0, 1):
            one = p.Tensor._restore(memoryview(fixed)[start : start + 16], (2, 64, 1, False), (2,))
            assert one.readonly and one.data_ptr % 8 == 0 and one.numpy().tobytes() == fixed[start : start + 16]

    def test_bytes_that_are_no_bool_are_found_by_reads(self):
        one = p.Tensor._restore(b"\7", (6, 8, 1, False), (1, 1))
        with pytest.raises(ValueError, match="7; expected 0 or 1"):
            p.Settings(1).mask = one

    @TWO_TO_FIVE
    def test_a_truncated_pickle_is_refused(self, protocol):
        data = pickle.dumps(p.Tensor.from_dlpack(bytearray(b"12345678")), protocol)
        for end in range(len(data)):
            with pytest.raises((pickle.UnpicklingError, EOFError, IndexError, ValueError, TypeError, KeyError, AttributeError)):
                pickle.loads(data[:end])

    def test_without_memory(self, script):
        """Whatever allocation fails, nothing leaks, and a later call succeeds."""
        pytest.importorskip("_testcapi")
        if not capi.GIL and fails_without_us(script):
            pytest.skip("this Python crashes or hangs where an object in plain Python is pickled and one allocation fails")
        ended = script(
            """
import _testcapi, pickle, dlpack_probe as p
picture = p.Picture(2, 2)
tensor = p.Tensor.from_dlpack(picture)
acts = [lambda: pickle.dumps(tensor), lambda: pickle.dumps(picture), lambda: tensor.__copy__()]
acts += [lambda data=act(): pickle.loads(data) for act in acts[:2]]
failed = 0
for act in acts:
    act()
    alive = p.alive()
    for k in range(200):
        _testcapi.set_nomemory(k, k + 1)
        try:
            act()
        except BaseException:
            failed += 1
        finally:
            _testcapi.remove_mem_hooks()
    assert p.alive() == alive
    act()
print(failed > 20)
""",
            noisy=True,
        )
        assert ended.out == "True\n", ended

    def test_copies(self, numpy):
        array = numpy.arange(6.0).reshape(2, 3)
        array.flags.writeable = False
        one = p.Tensor.from_dlpack(array[:, ::2])
        for other in [copy.copy(one), copy.deepcopy(one), copy.deepcopy([one, one])[1]]:
            assert other.data_ptr != one.data_ptr and not other.readonly
            assert numpy.from_dlpack(other).tolist() == [[0, 2], [3, 5]]
        twice = copy.deepcopy([one, one])
        assert twice[0] is twice[1]


class TestClasses:
    @TWO_TO_FIVE
    def test_there_and_back(self, numpy, protocol):
        one = p.Picture(2, 3)
        back = pickle.loads(pickle.dumps(one, protocol))
        assert type(back) is p.Picture
        assert numpy.from_dlpack(back).tolist() == [[0, 1, 2], [3, 4, 5]]
        other = copy.deepcopy(one)
        assert numpy.from_dlpack(other).ctypes.data != numpy.from_dlpack(one).ctypes.data

    def test_shared_memory_out_of_band(self, numpy):
        one, buffers = p.Canvas(4), []
        data = pickle.dumps(one, protocol=5, buffer_callback=buffers.append)
        back = pickle.loads(data, buffers=buffers)
        numpy.from_dlpack(back)[1] = 9
        assert numpy.from_dlpack(one).tolist() == [0, 9, 0, 0]
        assert p.Canvas.__module__ == "dlpack_probe", "the class names no module"

    @TWO_TO_FIVE
    def test_a_class_in_fortran_order(self, numpy, protocol):
        """The pickle has the bytes in C order; the class adopts memory in Fortran order only."""
        one = p.ColumnMajor([0, 3, 1, 4, 2, 5], [2, 3])
        for back in (pickle.loads(pickle.dumps(one, protocol)), copy.copy(one)):
            array = numpy.from_dlpack(back)
            assert type(back) is p.ColumnMajor and array.tolist() == [[0, 1, 2], [3, 4, 5]] and array.strides == (8, 16)

    @TWO_TO_FIVE
    def test_rust_writes_to_a_copy_that_python_cannot_write(self, numpy, protocol):
        one, buffers = p.Gauge([1, 2]), []
        data = pickle.dumps(one, protocol, buffer_callback=buffers.append if protocol == 5 else None)
        for back in (pickle.loads(data, buffers=buffers), copy.copy(one)):
            back.set(0, 7)
            array = numpy.from_dlpack(back)
            assert array.tolist() == [7, 2] and not array.flags.writeable
        assert numpy.from_dlpack(one).tolist() == [1, 2]

    @TWO_TO_FIVE
    def test_the_variants_of_an_enum(self, numpy, protocol):
        for made, numbers in [(p.Measure.Whole([1, 2]), [1, 2]), (p.Measure.Real([0.5]), [0.5])]:
            assert type(made) is not p.Measure
            for back in (pickle.loads(pickle.dumps(made, protocol)), copy.deepcopy(made)):
                assert type(back) is type(made) and back.numbers == numbers

    @TWO_TO_FIVE
    def test_a_class_in_fortran_order_with_elements_of_numbers(self, numpy, protocol):
        points = numpy.arange(24.0).reshape(8, 3)
        one = p.PointGrid(points.tolist(), [2, 4])
        expected = points.reshape(4, 2, 3).transpose(1, 0, 2)
        for back in (pickle.loads(pickle.dumps(one, protocol)), copy.copy(one)):
            array = numpy.from_dlpack(back)
            assert array.tolist() == expected.tolist() and array.strides == (24, 48, 8)

    @TWO_TO_FIVE
    def test_a_variant_that_would_become_another_is_refused(self, protocol):
        assert pickle.loads(pickle.dumps(p.Channel.Left([1]), protocol)).samples == [1]
        for act in (lambda one: pickle.dumps(one, protocol), copy.copy, copy.deepcopy):
            with pytest.raises(pickle.PicklingError, match="this variant of `Channel` would be restored as another one.*`__reduce__`"):
                act(p.Channel.Right([1]))

    def test_a_subclass_that_is_an_attribute_of_its_base_is_no_variant(self):
        class Derived(p.Picture):
            pass

        p.Picture.Derived = Derived
        try:
            with pytest.raises(pickle.PicklingError, match="Derived` derives from `Picture`.*__reduce_ex__"):
                pickle.dumps(Derived(1, 1))
        finally:
            del p.Picture.Derived

    def test_a_subclass_pickles_as_itself(self):
        class Derived(p.Picture):
            pass

        with pytest.raises(pickle.PicklingError, match="Derived` derives from `Picture`.*__reduce_ex__"):
            pickle.dumps(Derived(1, 1))

    def test_a_class_that_does_not_ask_is_not_pickled(self):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(p.Open([1.0]))


def test_other_processes(script):
    """However a worker is started, it gets a copy; within one process nothing is copied."""
    rows = script("import carry; carry.main()", noisy=True).out.splitlines()[1:]
    found = {tuple(row.replace(",", "").split()) for row in rows}
    names = ["Canvas", "Tensor"]
    for name in names:
        assert {("pickle", "out", "of", "band", name, "pickled", "shared"), ("pickle", "in", "band", name, "pickled", "copy")} <= found
        for method in multiprocessing.get_all_start_methods():
            assert ("multiprocessing", method, name, "pickled", "copy") in found
        if importlib.util.find_spec("joblib"):
            for backend, sent, there in [("loky", "pickled", "copy"), ("multiprocessing", "pickled", "copy"), ("threading", "itself", "shared")]:
                assert ("joblib", backend, name, sent, there) in found
