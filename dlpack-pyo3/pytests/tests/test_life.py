"""Tensors that are set."""

import gc

import dlpack_probe as p
import pytest

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
            ("mask", lambda np: np.zeros((3, 2), bool), ValueError, r"`mask` of `Settings` .* bool of shape \(3, 2\): .* 3, not 2"),
            ("mask", lambda np: np.zeros(6, bool), ValueError, r"`mask`.* \(6,\): the tensor has 1 axes where 2 are needed"),
            ("mask", lambda np: np.zeros((2, 3), "uint8"), TypeError, "`mask`.* uint8 .*holds uint8 where bool is needed"),
            ("mask", lambda np: None, TypeError, "`mask` of `Settings` cannot be None"),
            ("mask", lambda np: [[True]], TypeError, "list.* no array"),
            ("matrix", lambda np: np.zeros((3, 2), "int32"), ValueError, "`matrix`.* 3, not 2"),
            ("weights", lambda np: np.zeros(4, "float32"), ValueError, "`weights`.* 1 axes where 2"),
            ("weights", lambda np: np.zeros((2, 3), "float32"), ValueError, "`weights`.* 3, not 2"),
            ("state", lambda np: np.zeros((2, 2)), ValueError, "`state`.* 2 axes where 1"),
            ("state", lambda np: np.zeros(4)[::2], ValueError, "`state`.* not one run"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, numpy, name, make, error, words):
        owner = p.Settings(2)
        before = owner.items()
        with pytest.raises(error, match=words):
            setattr(owner, name, make(numpy))
        assert owner.items() == before

    def test_bytes_that_are_no_bool_are_refused(self, numpy):
        owner = p.Settings(1)
        array = numpy.array([[0, 7]], dtype="uint8").view(bool)
        with pytest.raises(ValueError, match="`mask`.* 7; as bool"):
            owner.mask = array

    def test_an_array_over_the_old_data_is_in_the_way(self, numpy):
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

    def test_an_array_over_an_owner_is_not(self, numpy):
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

    def test_code_of_the_array_sees_the_object_free(self):
        owner = p.Settings(1)

        class Nosy:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **wishes):
                owner.mask
                return p.Probe([2]).__dlpack__(**wishes)

        with pytest.raises((TypeError, ValueError), match="`state`"):
            owner.state = Nosy()
