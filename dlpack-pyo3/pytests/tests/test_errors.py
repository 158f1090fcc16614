"""Which exception is raised for which error (ERR)."""

import gc
import sys

import capi
import dlpack_probe as p
import pytest


def refused(producer, **request):
    with pytest.raises(BufferError) as raised:
        producer.__dlpack__(**request)
    assert type(raised.value) is BufferError
    assert str(raised.value)
    return str(raised.value)


NOT_EXPORTABLE = {
    "out of bounds": lambda: p.Probe([9], items=3),
    "negative reach": lambda: p.Probe([3], strides=[-1], offset=1, items=3),
    "offset": lambda: p.Probe([1], offset=5, items=3),
    "negative extent": lambda: p.Probe([-1], items=3),
    "stride count": lambda: p.Probe([3], strides=[1, 1], items=3),
    "overflow": lambda: p.Probe([2**62, 2**62], strides=[0, 0], items=1),
    "too many axes": lambda: p.Probe([1] * 65),
    "misaligned": lambda: p.Probe([2], skew=1),
    "no lanes": lambda: p.Probe([1], lanes=0),
    "skipped variant": p.Audio.Silence,
    "bad bool": lambda: p.Raw([7], p.Kind.Bool),
    "part of an element": lambda: p.Raw([1, 2, 3], p.Kind.Float32),
}


@pytest.mark.parametrize("why", NOT_EXPORTABLE)
def test_data_that_cannot_be_exported(why):
    """ERR-01, ERR-03, ERR-06, ERR-11, faults 47, 61, 64, 65, 66, 67: a `BufferError`, for each call, and nothing is kept."""
    owner = NOT_EXPORTABLE[why]()
    held = capi.references(owner)
    for request in [{}, {"max_version": (1, 0)}, {"copy": True}, {"copy": True, "max_version": (1, 3)}]:
        refused(owner, **request)
    with pytest.raises(BufferError):
        capi.Exchange(type(owner)).from_object(owner)
    assert capi.references(owner) == held
    gc.collect()


def test_the_numbers_are_named():
    """ERR-01: an error says what was found."""
    assert refused(p.Probe([9], items=3)) == "`Probe`: shape [9] needs 9 elements, the data has 3"
    assert "Silence" in refused(p.Audio.Silence())
    assert "65" in refused(p.Probe([1] * 65))


@pytest.mark.parametrize("device", [(2, 0), (2, 1), (3, 0), (10, 0), (14, 0), (99, 0), (-1, -1)])
@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_devices_without_a_copy(device, copy, version):
    """ERR-02, DEV-06, fault 79: a device to which the data cannot be copied is a `BufferError`."""
    refused(p.WProbe([2]), dl_device=device, copy=copy, max_version=version)


def test_copies_that_are_forbidden():
    """ERR-02, CPY-02, CPY-13: copy=False is a `BufferError` if a copy is needed."""
    refused(p.Doubled([1.0]), copy=False, max_version=(1, 0))
    refused(p.Probe([2]), copy=False)
    refused(p.Elsewhere(2), copy=False, dl_device=(1, 0), max_version=(1, 0))


BAD_ARGUMENTS = [
    {"max_version": 1},
    {"max_version": "10"},
    {"max_version": (1,)},
    {"max_version": (1, 0, 0)},
    {"max_version": ()},
    {"max_version": ("1", "0")},
    {"max_version": (1.0, 0.0)},
    {"max_version": object()},
    {"max_version": {1: 0}},
    {"dl_device": 1},
    {"dl_device": (1,)},
    {"dl_device": (1, 0, 0)},
    {"dl_device": ("cpu", 0)},
    {"dl_device": "cpu"},
    {"dl_device": (1.0, 0)},
    {"copy": 1},
    {"copy": 0},
    {"copy": "yes"},
    {"copy": []},
    {"stream": "1"},
    {"stream": 1.0},
    {"stream": object()},
    {"stream": []},
    {"unknown": None},
    {"Max_version": (1, 0)},
]


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS, ids=repr)
@pytest.mark.parametrize("cls", ["plain", "info", "tensor"])
def test_arguments_of_a_wrong_type(arguments, cls):
    """ERR-03, NEG-17, NEG-18, CPY-11, STC-13: a `TypeError` is raised exactly for arguments that the signature does not accept."""
    producer = {"plain": p.WProbe([2]), "info": p.Draft([1.0]), "tensor": p.take(p.WProbe([2]))}[cls]
    held = capi.references(producer)
    with pytest.raises(TypeError) as raised:
        producer.__dlpack__(**arguments)
    assert str(raised.value)
    assert capi.references(producer) == held


@pytest.mark.parametrize("stream", [0, 1, 2, 3, -2, 2**40, 2**62, -(2**62)])
def test_streams_on_the_processor(stream):
    """ERR-04, STC-12: a stream for host memory is a `ValueError`, and is not ignored."""
    with pytest.raises(ValueError) as raised:
        p.WProbe([2]).__dlpack__(stream=stream, max_version=(1, 0))
    assert str(raised.value) == f"stream {stream} is not valid for data on cpu; pass none, or -1 for no order"


@pytest.mark.parametrize("cls", [lambda: p.WProbe([2]), lambda: p.take(p.WProbe([2]))], ids=["class", "tensor"])
def test_no_order_on_the_processor(cls):
    """STC-12: -1 requests no order, which host memory always satisfies; PyTorch accepts it, and passes it."""
    for device in [None, (1, 0)]:
        assert "dltensor_versioned" in repr(cls().__dlpack__(stream=-1, dl_device=device, max_version=(1, 0)))


@pytest.mark.parametrize("device, bad", [(2, [0, -2]), (13, [0, -5]), (10, [1, 2, -2])])
def test_streams_of_devices(device, bad):
    """ERR-04, STC-06, STC-07: a number that names no stream is a `ValueError`, raised before any other operation."""
    for stream in bad:
        with pytest.raises(ValueError):
            p.Elsewhere(device).__dlpack__(stream=stream, max_version=(1, 0))


def test_numbers_beyond_64_bits():
    """ERR-03, ERR-04: an int of any size has the right type, so it is never a `TypeError`."""
    for stream in [2**63, 2**200, -(2**200)]:
        with pytest.raises(ValueError):
            p.WProbe([2]).__dlpack__(stream=stream, max_version=(1, 0))
    for device in [(2**40, 0), (1, 2**200)]:
        with pytest.raises((BufferError, ValueError)):
            p.WProbe([2]).__dlpack__(dl_device=device, max_version=(1, 0))
    for version in [(2**200, 0), (2**32, 2**32), (1, 2**200)]:
        seen = capi.export(p.WProbe([2]), max_version=version)
        assert seen.version == (1, 3)
        seen.release()


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_copies_that_cannot_be_allocated(version):
    """ERR-05: a copy that cannot be allocated is a `MemoryError`, and nothing is kept."""
    huge = p.Probe([2**42], strides=[0], items=1)
    held = capi.references(huge)
    with pytest.raises(MemoryError):
        huge.__dlpack__(copy=True, max_version=version)
    assert capi.references(huge) == held
    if version:
        seen = capi.export(huge)
        assert (seen.shape, seen.strides) == ((2**42,), (0,))
        seen.release()


def test_panics_are_buffer_errors(capfd):
    """ERR-06, fault 49: a panic in user code is an `Exception`, not a `PanicException`, and nothing is kept."""
    owner = p.PanicInDescribe([1.0, 2.0])
    held = capi.references(owner)
    owner.arm(True)
    for request in [{}, {"max_version": (1, 0)}, {"copy": True}]:
        assert "panic on purpose" in refused(owner, **request)
    with pytest.raises(BufferError):
        capi.Exchange(p.PanicInDescribe).from_object(owner)
    # The type determines the device, so the object is not described.
    assert owner.__dlpack_device__() == (1, 0)
    assert capi.references(owner) == held
    owner.arm(False)
    seen = capi.export(owner)
    assert seen.floats() == [1.0, 2.0]
    seen.release()
    capfd.readouterr()


@pytest.mark.parametrize("via", ["object", "capsule", "deleter", "no gil", "foreign thread", "tensor"])
@pytest.mark.parametrize("cls", [p.PanicInDrop, p.PanicInOwner], ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_panics_in_drop(cls, via, capfd):
    """ERR-06, CAP-17, fault 49: a panic in `Drop` is printed to stderr and not propagated."""
    alive = p.alive()
    owner = cls([1.0, 2.0])
    assert p.alive() == alive + 1
    if via == "object":
        del owner
    elif via == "capsule":
        capsule = owner.__dlpack__(max_version=(1, 0))
        del owner
        del capsule
    elif via == "tensor":
        tensor = p.take(owner)
        del owner
        del tensor
    else:
        seen = capi.export(owner)
        del owner
        assert seen.floats() == [1.0, 2.0]
        if via == "foreign thread":
            seen.release_on_foreign_thread()
        else:
            seen.release(gil=via == "deleter")
    gc.collect()
    assert "panic on purpose" in capfd.readouterr().err
    assert p.alive() == alive


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_panics_in_drop_while_an_exception_is_pending(capfd):
    """ERR-06, CAP-16, fault 49: an exception that was pending during the panic is the one that is raised."""
    for cls in [p.PanicInDrop, p.PanicInOwner]:
        for act in [lambda o: o.__dlpack__(max_version=(1, 0)), p.take]:
            with pytest.raises(ZeroDivisionError):
                _ = (act(cls([1.0])), 1 // 0)
    assert capfd.readouterr().err.count("panic on purpose") >= 4


@pytest.mark.parametrize("how", [p.take, p.Tensor.from_dlpack])
def test_panics_of_a_producer(how):
    """ERR-06, own faults 10: a panic while an import queries the device is an `Exception`, whatever the payload."""
    with pytest.raises(BufferError):
        how(p.PanicByHand())


def test_each_error_has_its_class():
    """ERR-01, ERR-04, ERR-05, ERR-10: `MemoryError` and `ValueError` for one error each, `BufferError` for all others."""
    found = p.errors()
    special = {"out of memory": MemoryError, "bad stream": ValueError}
    for name, exception in found.items():
        assert type(exception) is special.get(name, BufferError), name
        assert str(exception), name
    text = str(found["unsupported major"])
    assert "2.7" in text and " 1." in text


def test_exceptions_of_a_producer_are_passed_on():
    """ERR-07: the importer passes the producer's exception on."""

    class Special(Exception):
        pass

    for raised in [Special("own"), ValueError("v"), BufferError("b"), KeyboardInterrupt(), MemoryError()]:

        class Producer:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **request):
                raise raised

        with pytest.raises(type(raised)) as arrived:
            p.take(Producer())
        assert arrived.value is raised


@pytest.mark.parametrize("error", [KeyboardInterrupt("own"), SystemExit(3), MemoryError("own")])
@pytest.mark.parametrize("method", ["__dlpack__", "__dlpack_device__", "__index__"])
def test_interrupts_are_passed_on(numpy, error, method):
    """An interrupt says nothing about the object: no other way to read it is tried, and it is not replaced by another error."""

    def fail(*_, **__):
        raise error

    class Number:
        __index__ = fail

    class Producer:
        def __dlpack_device__(self):
            return (Number(), Number()) if method == "__index__" else (1, 0)

        def __dlpack__(self, **request):
            return numpy.arange(2.0).__dlpack__(**request)

        def __array__(self, dtype=None, copy=None):
            return numpy.arange(2.0)

    if method != "__index__":
        setattr(Producer, method, fail)
    for take in p.take, p.views.converted:
        with pytest.raises(type(error)) as arrived:
            take(Producer())
        assert arrived.value is error


def test_an_interrupt_is_not_replaced_by_an_error_about_strides(numpy):
    class Producer(numpy.ndarray):
        def __dlpack__(self, **request):
            raise error

    column = numpy.zeros(2, "u1, f8")["f1"].view(Producer)
    for error in [KeyboardInterrupt("own"), MemoryError("own"), TypeError("own")]:
        with pytest.raises(type(error)) as arrived:
            p.Settings(2).state = column
        assert (arrived.value is error) == (type(error) is not TypeError)


@pytest.mark.parametrize("error", [KeyboardInterrupt("own"), SystemExit(3), MemoryError("own"), RuntimeError("own")])
def test_an_interrupt_while_a_setter_describes_the_refused_array(numpy, error):
    """The array is imported again for the message. An error of that import is left out of the message; an interrupt is passed on."""
    answers = [numpy.arange(2).__dlpack__]

    class Producer:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **request):
            if answers:
                return answers.pop()(**request)
            raise error

    refused = TypeError if isinstance(error, RuntimeError) else type(error)
    with pytest.raises(refused) as arrived:
        p.Settings(2).state = Producer()
    assert not answers
    assert arrived.value is error or "`state` of `Settings` cannot be set: expected dtype float64" in str(arrived.value)


def test_an_integer_without_comparison():
    """A large number is out of range, also if its class defines nothing but `__index__`."""

    class Index:
        def __init__(self, number):
            self.number = number

        def __index__(self):
            return self.number

    image = p.WProbe([2])
    for number in (2**70, -(2**70)):
        with pytest.raises(ValueError, match="stream is out of range"):
            image.__dlpack__(stream=Index(number))
        with pytest.raises(BufferError, match="there is no device"):
            image.__dlpack__(dl_device=(1, Index(number)))
    assert image.__dlpack__(max_version=(1, Index(2**70)))
    with pytest.raises(ValueError, match="max_version is out of range"):
        image.__dlpack__(max_version=(1, Index(-(2**70))))


def test_objects_without_the_methods():
    """ERR-08, fault 50: an object without the methods is an `AttributeError` that names the type and the method."""
    for thing in [object(), 7, "text", [1.0], None]:
        with pytest.raises(AttributeError, match="__dlpack") as raised:
            p.take(thing)
        assert type(thing).__name__ in str(raised.value)
        with pytest.raises((AttributeError, TypeError)):
            p.first(thing)

    class Half:
        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(AttributeError, match="__dlpack__"):
        p.take(Half())


def test_a_tensor_that_the_processor_cannot_read():
    """ERR-09, DEV-13: device memory is imported, but reading it on the CPU is refused."""
    for device in [2, 10]:
        producer = p.Elsewhere(device)
        seen = p.look(Minus1(producer))
        assert seen["bytes"] is None and seen["floats"] is None


class Minus1:
    """Requests no order, whatever the importer requests, because these tests have no driver."""

    def __init__(self, producer):
        self.producer = producer

    def __dlpack_device__(self):
        return self.producer.__dlpack_device__()

    def __dlpack__(self, **request):
        return self.producer.__dlpack__(**{**request, "stream": -1})


def test_versions_are_named():
    """ERR-10, NEG-07: the error of a version that is not supported names the supported ones."""
    foreign = capi.Foreign(version=(2, 5))
    with pytest.raises(BufferError) as raised:
        p.take(foreign)
    assert "2.5" in str(raised.value) and " 1." in str(raised.value)
    assert foreign.deleted == 1
    text = refused(p.Strict([1.0]))
    assert "read-only" in text


def test_arguments_are_checked_before_anything_is_copied():
    """ERR-11, ERR-12: a request with one bad argument copies nothing and describes nothing."""
    described = []
    owner = p.Reentrant([1.0], lambda: described.append(1), lambda: None)
    for arguments in BAD_ARGUMENTS:
        with pytest.raises(TypeError):
            owner.__dlpack__(**{"copy": True, **arguments})
    assert described == []
    huge = p.Probe([2**42], strides=[0], items=1)
    with pytest.raises(ValueError):
        # A copy before the check would be a `MemoryError`.
        huge.__dlpack__(copy=True, stream=7, max_version=(1, 0))
    with pytest.raises(BufferError):
        huge.__dlpack__(copy=True, dl_device=(2, 0), max_version=(1, 0))


TOO_LONG = 10**5000

SHOWN = {
    "stream": lambda it: p.Probe([2]).__dlpack__(stream=it),
    "max_version": lambda it: p.Probe([2]).__dlpack__(max_version=(it, 0)),
    "dl_device": lambda it: p.Probe([2]).__dlpack__(dl_device=(it, 0)),
    "index": lambda it: p.take(p.Probe([2]))[it],
}


@pytest.mark.parametrize("argument", SHOWN)
@pytest.mark.parametrize("error", [KeyboardInterrupt("own"), SystemExit(3), MemoryError("own"), RuntimeError("own")])
def test_an_interrupt_while_a_message_shows_an_argument(argument, error):
    """The text of an argument is code of its class. An interrupt there is passed on; with any other error the class is shown."""

    class Number(int):
        def __str__(self):
            raise error

        __repr__ = __str__

    for number in Number(-(2**80)), Number(2**80):
        if argument == "max_version" and number > 0:
            continue
        with pytest.raises(BaseException) as caught:
            SHOWN[argument](number)
        if isinstance(error, RuntimeError):
            assert isinstance(caught.value, (ValueError, BufferError, IndexError)), caught.value
            shown = "tuple" if argument in ("max_version", "dl_device") else "Number"
            assert shown in str(caught.value), caught.value
        else:
            assert caught.value is error


@pytest.mark.parametrize("argument", ["stream", "dl_device", "index"])
def test_an_integer_of_too_many_digits_for_a_message(argument):
    """CPython does not convert such an integer to text."""
    with pytest.raises((ValueError, BufferError, IndexError), match="<class '(int|tuple)'>"):
        SHOWN[argument](TOO_LONG)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have no `__buffer__`")
@pytest.mark.parametrize("request_number", [1, 2])
def test_a_type_error_in_a_buffer_is_not_the_lack_of_one(numpy, request_number):
    """An array is behind the buffer, so that it is requested twice."""

    class Producer:
        requests = 0

        def __buffer__(self, flags):
            self.requests += 1
            if self.requests == request_number:
                raise TypeError("own")
            return memoryview(numpy.zeros(3))

    with pytest.raises(TypeError, match="^own$"):
        p.take(Producer())
