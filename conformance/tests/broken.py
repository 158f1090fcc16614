"""A producer that does everything right, and one for each way to do it wrong: the negative controls of the kit."""

import ctypes
import threading

import numpy as np

from dlpack_conformance import _abi

C = ctypes.pythonapi
KEPT = []  # what C code points at
NAMES = {name: name for name in _abi.USED}


def aligned(values, offset=0):
    """A copy of an array whose first element is `offset` bytes behind a multiple of 64."""
    values = np.asarray(values)
    raw = np.zeros(values.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    copy = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def struct(capsule):
    """The C struct in a capsule."""
    name = _abi.capsule_name(capsule)
    kind = _abi.DLManagedTensorVersioned if name == b"dltensor_versioned" else _abi.DLManagedTensor
    return kind.from_address(_abi.capsule_pointer(capsule, name))


def recapsuled(capsule, destructor):
    """Another capsule over the same tensor, with another destructor."""
    # Python's own copy of the name would be gone before the capsule.
    name = NAMES[_abi.capsule_name(capsule)]
    address = _abi.capsule_pointer(capsule, name)
    _abi.capsule_rename(capsule, _abi.USED[name])
    return _abi.capsule_new(address, name, ctypes.cast(destructor, ctypes.c_void_p) if destructor else None)


class Good(np.ndarray):
    """NumPy's exports, with the little that they lack."""

    device = (1, 0)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.export(stream, max_version, dl_device, copy)

    def export(self, stream, max_version, dl_device, copy):
        self.check(stream, dl_device, copy)
        capsule = np.ndarray.__dlpack__(self.duplicate() if copy else self, max_version=max_version)
        self.edit(struct(capsule), bool(copy))
        if dl_device == (1, 0):
            struct(capsule).dl_tensor.device.device_type = 1
        return capsule

    def check(self, stream, dl_device, copy):
        if copy not in (None, True, False):
            raise TypeError("copy")
        if stream is not None and (self.device[0] == 1 and stream != -1 or stream == 0 or stream < -1):
            raise ValueError("stream")
        if dl_device not in (None, self.device, (1, 0)):
            raise BufferError("dl_device")

    def duplicate(self):
        return aligned(self)

    def edit(self, managed, copied):
        managed.dl_tensor.device.device_type, managed.dl_tensor.device.device_id = self.device
        if copied and hasattr(managed, "flags"):
            managed.flags |= _abi.IS_COPIED
        if self.size == 0:
            managed.dl_tensor.data = None
        if self.size == 0 or not managed.dl_tensor.strides:
            # NumPy before 2.3 gives none where they are row-major.
            steps = np.cumprod([1, *np.maximum(self.shape, 1)[:0:-1]])[::-1]
            strides = (ctypes.c_int64 * self.ndim)(*map(int, steps)) if self.ndim else None
            KEPT.append(strides)
            managed.dl_tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)) if strides else None


def good(kind=Good, values=None, offset=0):
    return aligned(np.arange(6, dtype=np.float32).reshape(2, 3) if values is None else values, offset).view(kind)


def read_only(kind=Good):
    array = good(kind)
    array.flags.writeable = False
    return array


PLANTED = []


def planted(*rules, make=good):
    """The class breaks these rules, and no others."""

    def register(kind):
        PLANTED.append((rules, kind, make))
        return kind

    return register


def edited(*rules, make=good):
    """As `planted`, for a function that spoils the C struct."""

    def register(spoil):
        def edit(self, managed, copied):
            Good.edit(self, managed, copied)
            spoil(managed)

        planted(*rules, make=make)(type(spoil.__name__, (Good,), {"edit": edit}))
        return spoil

    return register


# Methods, devices.


@planted("CAP-27", make=lambda kind: kind(good()))
class OnlyOnTheInstance:
    def __init__(self, array):
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


@planted("DEV-01")
class DeviceIsAList(Good):
    def __dlpack_device__(self):
        return [1, 0]


@planted("DEV-01")
class NoDevice(Good):
    def __dlpack_device__(self):
        raise RuntimeError


@planted("DEV-03")
class FifthProcessor(Good):
    device = (1, 5)


@planted("DEV-19")
class UnheardOf(Good):
    device = (40, 0)


@planted("DEV-02")
class SaysPinned(Good):
    def __dlpack_device__(self):
        return (3, 0)


@planted("DEV-05")
class RefusesItsOwn(Good):
    def check(self, stream, dl_device, copy):
        if dl_device == self.device:
            raise BufferError
        Good.check(self, stream, dl_device, copy)


@planted("DEV-06")
class IgnoresDevices(Good):
    def check(self, stream, dl_device, copy):
        Good.check(self, stream, None, copy)


@planted("DEV-06")
class ValueErrorForDevices(Good):
    def check(self, stream, dl_device, copy):
        if dl_device == (99, 0):
            raise ValueError
        Good.check(self, stream, dl_device, copy)


@planted("DEV-07")
class NeverLeavesMetal(Good):
    device = (8, 0)

    def check(self, stream, dl_device, copy):
        Good.check(self, stream, dl_device, copy)
        if dl_device == (1, 0):
            raise BufferError


# Keywords and versions.


@planted("NEG-01")
class NoCopyKeyword(Good):
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, **others):
        if others == {"copy": None}:
            raise TypeError
        return super().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, **others)


@planted("NEG-01")
class Positional(Good):
    def __dlpack__(self, stream=None, *, max_version=None, dl_device=None, copy=None):
        return self.export(stream, max_version, dl_device, copy)


@planted("NEG-01")
class OfTheYear2021(Good):
    def __dlpack__(self, stream=None):
        return self.export(stream, None, None, None)


@planted("NEG-01")
class OfTheYear2021AndLocked(Good):
    def __dlpack__(self, stream=None):
        raise BufferError


@planted("NEG-02")
class NoLegacy(Good):
    def export(self, stream, max_version, dl_device, copy):
        if max_version is None and copy is None:
            raise BufferError
        return Good.export(self, stream, max_version, dl_device, copy)


@planted("NEG-04", "NEG-05")
class AlwaysLegacy(Good):
    def export(self, stream, max_version, dl_device, copy):
        if not isinstance(max_version, (tuple, type(None))):
            raise TypeError
        if max_version == (1,):
            raise TypeError
        return Good.export(self, stream, None, dl_device, copy)


@planted("NEG-05")
class RefusesVersion2(Good):
    def export(self, stream, max_version, dl_device, copy):
        if max_version == (2, 0):
            raise BufferError
        return Good.export(self, stream, max_version, dl_device, copy)


@planted("NEG-06")
class ValueErrorForOld(Good):
    def export(self, stream, max_version, dl_device, copy):
        if max_version == (0, 8):
            raise ValueError
        return Good.export(self, stream, max_version, dl_device, copy)


@planted("NEG-07")
class VersionedUnasked(Good):
    def export(self, stream, max_version, dl_device, copy):
        return Good.export(self, stream, max_version or (1, 0), dl_device, copy)


@edited("NEG-08")
def second_major(managed):
    if hasattr(managed, "version"):
        managed.version.major = 2


@planted("NEG-17")
class TakesAnyVersion(Good):
    def export(self, stream, max_version, dl_device, copy):
        return Good.export(self, stream, (1, 0) if max_version == 1 else max_version, dl_device, copy)


@planted("NEG-18")
class TakesAnyKeyword(Good):
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None, **others):
        return self.export(stream, max_version, dl_device, copy)


# Capsules and what gives them back.


@planted("CAP-01")
class NoCapsule(Good):
    def export(self, stream, max_version, dl_device, copy):
        return 5


@planted("CAP-01")
class OtherName(Good):
    def export(self, stream, max_version, dl_device, copy):
        return _abi.capsule_new(1, b"tensor", None)


class Recapsuled(Good):
    destructor = None

    def export(self, stream, max_version, dl_device, copy):
        return recapsuled(Good.export(self, stream, max_version, dl_device, copy), self.destructor)


@planted("CAP-04", "CAP-26")
class NoDestructor(Recapsuled):
    pass


@planted("CAP-26")
class IdleDestructor(Recapsuled):
    destructor = C.Py_GetVersion


@planted("CAP-17", "CAP-26")
class ClearingDestructor(Recapsuled):
    destructor = C.PyErr_Clear


@planted("CAP-17")
class RaisingDestructor(Recapsuled):
    destructor = C.PyErr_NoMemory


# Prototypes that count no reference: the capsule that a destructor gets is dying.
name_of = _abi._api("PyCapsule_GetName", ctypes.c_char_p, ctypes.c_void_p)
pointer_of = _abi._api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


@planted("CAP-05", "CAP-17")
class GreedyDestructor(Recapsuled):
    # Python code cannot run while an exception is set, which is the other rule that this class breaks.
    @_abi.CapsuleDestructor
    def destructor(capsule):
        name = name_of(capsule)
        address = pointer_of(capsule, name)
        kind = _abi.DLManagedTensorVersioned if b"versioned" in name else _abi.DLManagedTensor
        _abi.Deleter(kind.from_address(address).deleter)(address)


@edited("CAP-08", "CAP-26")
def no_deleter(managed):
    managed.deleter = None


@planted("CAP-12")
class OneForAll(Good):
    made = {}

    def export(self, stream, max_version, dl_device, copy):
        self.check(stream, dl_device, copy)
        key = (max_version, bool(copy))
        if copy or key not in self.made:
            self.made[key] = Good.export(self, stream, max_version, dl_device, copy)
        return self.made[key]


class OtherDeleter(Good):
    """Leaves a tensor to `let_go`, with what the deleter was."""

    def edit(self, managed, copied):
        Good.edit(self, managed, copied)
        before = _abi.Deleter(managed.deleter)
        let_go = self.let_go  # without `self`, or the deleter would keep the object
        deleter = _abi.Deleter(lambda address: let_go(before, address))
        KEPT.append(deleter)
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)


@planted("CAP-13", "CAP-17")
class BoundToItsThread(OtherDeleter):
    @staticmethod
    def let_go(before, address):
        if threading.current_thread() is threading.main_thread():
            before(address)


LATER = []


@planted("CAP-28", "CAP-17")
class PutsOff(OtherDeleter):
    @staticmethod
    def let_go(before, address):
        if threading.current_thread() is threading.main_thread():
            before(address)
        else:
            LATER.append((before, address))

    def check(self, stream, dl_device, copy):
        Good.check(self, stream, dl_device, copy)
        while LATER:
            before, address = LATER.pop()
            before(address)


# Copies.


@planted("CPY-01", "CPY-04", "CPY-06", "CPY-09")
class NeverCopies(Good):
    def export(self, stream, max_version, dl_device, copy):
        self.check(stream, dl_device, copy)
        return Good.export(self, stream, max_version, dl_device, None)


@planted("CPY-02")
class AlwaysCopies(Good):
    def export(self, stream, max_version, dl_device, copy):
        return Good.export(self, stream, max_version, dl_device, copy is False or copy)


@planted("CPY-04")
class ForgetsToSay(Good):
    def edit(self, managed, copied):
        Good.edit(self, managed, False)


@planted("CPY-05")
class SaysAlways(Good):
    def edit(self, managed, copied):
        Good.edit(self, managed, True)


@planted("CPY-06")
class CopiesOnce(Good):
    def duplicate(self):
        KEPT.append(aligned(self))
        return next(other for other in KEPT if isinstance(other, np.ndarray) and other.shape == self.shape)


@planted("CPY-07")
class LocksItsCopies(Good):
    def duplicate(self):
        copy = aligned(self)
        copy.flags.writeable = False
        return copy

    def export(self, stream, max_version, dl_device, copy):
        if copy and max_version is None:
            capsule = np.ndarray.__dlpack__(aligned(self))
            self.edit(struct(capsule), True)
            return capsule
        return Good.export(self, stream, max_version, dl_device, copy)


@planted("CPY-09")
class CopiesNoLegacy(Good):
    def export(self, stream, max_version, dl_device, copy):
        return Good.export(self, stream, max_version, dl_device, copy if max_version else None)


@planted("CPY-09", "CPY-10")
class RefusesToCopy(Good):
    def check(self, stream, dl_device, copy):
        Good.check(self, stream, dl_device, copy)
        if copy:
            raise BufferError


@planted("CPY-11")
class TakesAnyCopy(Good):
    def check(self, stream, dl_device, copy):
        Good.check(self, stream, dl_device, bool(copy))


@planted("CPY-14")
class CopiesAnywhere(Good):
    def duplicate(self):
        return aligned(self, 16)


# Streams.


@planted("STC-12")
class TakesAnyStream(Good):
    def check(self, stream, dl_device, copy):
        Good.check(self, None, dl_device, copy)


@planted("ERR-04", "STC-12")
class BufferErrorForStreams(Good):
    def check(self, stream, dl_device, copy):
        if stream is not None:
            raise BufferError
        Good.check(self, stream, dl_device, copy)


@planted("ERR-04", "ERR-06", "STC-12")
class AssertsNoStream(Good):
    def check(self, stream, dl_device, copy):
        assert stream is None
        Good.check(self, stream, dl_device, copy)


class Panic(BaseException):
    pass


@planted("ERR-06")
class Panics(Good):
    def export(self, stream, max_version, dl_device, copy):
        raise Panic


@planted("STC-05")
class NeverWithoutWaiting(Good):
    device = (2, 0)

    def check(self, stream, dl_device, copy):
        Good.check(self, stream, dl_device, copy)
        if stream == -1:
            raise BufferError


@planted("STC-06", "STC-07")
class AnyStreamOfTheGpu(Good):
    device = (2, 0)

    def check(self, stream, dl_device, copy):
        Good.check(self, None, dl_device, copy)


# Data types, flags, layout.


@edited("DTY-01")
def code_of_the_future(managed):
    managed.dl_tensor.dtype.code = 30


@edited("DTY-02")
def float_of_a_byte(managed):
    managed.dl_tensor.dtype.bits = 8


@edited("DTY-07")
def no_lanes(managed):
    managed.dl_tensor.dtype.lanes = 0


@edited("FLG-01")
def fourth_flag(managed):
    if hasattr(managed, "flags"):
        managed.flags |= 8


@edited("FLG-07")
def padded_floats(managed):
    if hasattr(managed, "flags"):
        managed.flags |= _abi.IS_SUBBYTE_TYPE_PADDED


@edited("FLG-04")
def only_the_flag(managed):
    if hasattr(managed, "flags") and not managed.flags & _abi.IS_COPIED:
        managed.flags |= _abi.READ_ONLY


@edited("LAY-02")
def null_strides(managed):
    managed.dl_tensor.strides = None
    if hasattr(managed, "version"):
        managed.version.minor = 3


@edited("LAY-02")
def null_strides_long_ago(managed):
    managed.dl_tensor.strides = None


def empty(kind):
    return np.zeros((0, 3)).view(kind)


@planted("LAY-05", "LAY-18", make=empty)
class EmptyAsNumpyDoes(Good):
    def edit(self, managed, copied):
        Good.edit(self, managed, copied)
        managed.dl_tensor.data = self.ctypes.data
        managed.dl_tensor.strides[0] = managed.dl_tensor.strides[1] = 0


@edited("LAY-06")
def nowhere(managed):
    managed.dl_tensor.data = None


@edited("LAY-08")
def offset(managed):
    managed.dl_tensor.data -= 64
    managed.dl_tensor.byte_offset = 64


@planted("LAY-11", make=lambda kind: good(kind, offset=16))
class AnyMemory(Good):
    pass


@planted("LAY-11", "LAY-12", make=lambda kind: good(kind, offset=1))
class OddMemory(Good):
    pass


@planted("LAY-16", make=lambda kind: np.lib.stride_tricks.as_strided(good(kind), (2, 3), (0, 4), subok=True))
class SameRowTwice(Good):
    pass


@edited("LAY-19")
def negative_rank(managed):
    managed.dl_tensor.ndim = -1


@edited("LAY-19")
def negative_extent(managed):
    managed.dl_tensor.shape[0] = -2


@edited("LAY-19")
def endless(managed):
    managed.dl_tensor.shape[0] = managed.dl_tensor.shape[1] = 1 << 40


ONES = (ctypes.c_int64 * 65)(*[1] * 65)


@edited("LAY-20")
def sixty_five_axes(managed):
    managed.dl_tensor.ndim = 65
    managed.dl_tensor.shape = managed.dl_tensor.strides = ctypes.cast(ONES, ctypes.POINTER(ctypes.c_int64))


@planted("KIT-1")
class OtherShapeForLegacy(Good):
    def edit(self, managed, copied):
        Good.edit(self, managed, copied)
        if not hasattr(managed, "version"):
            managed.dl_tensor.shape[0] = 1


@planted("KIT-1")
class CopiesZeros(Good):
    def duplicate(self):
        return aligned(np.zeros_like(self))


# The exchange table.


def table(**spoilt):
    """A class with a table that does everything right, but for the functions given."""

    @_abi.FromPyObject
    def from_object(address, out):
        obj = ctypes.cast(address, ctypes.py_object).value
        capsule = obj.__dlpack__(max_version=(1, 3))
        out[0] = _abi.capsule_pointer(capsule, b"dltensor_versioned")
        _abi.capsule_rename(capsule, b"used_dltensor_versioned")
        return 0

    @_abi.ToPyObject
    def to_object(address, out):
        array = np.from_dlpack(Once(_abi.capsule_new(address, b"dltensor_versioned", None)))
        _abi.take_reference(id(array))
        out[0] = id(array)
        return 0

    @_abi.Allocator
    def allocate(prototype, out, context, set_error):
        set_error(context, b"NotImplementedError", b"no allocator")
        return -1

    @_abi.CurrentWorkStream
    def stream(kind, number, out):
        out[0] = None
        return 0

    parts = {
        "managed_tensor_allocator": allocate,
        "managed_tensor_from_py_object_no_sync": from_object,
        "managed_tensor_to_py_object_no_sync": to_object,
        "current_work_stream": stream,
        "version": (1, 3),
    } | {key: part for key, part in spoilt.items() if not key.startswith("__") and key not in ("name", "destructor")}
    made = _abi.DLPackExchangeAPI()
    made.version.major, made.version.minor = parts.pop("version")
    for key, part in parts.items():
        setattr(made, key, ctypes.cast(part, ctypes.c_void_p) if part else None)
    KEPT.append((made, parts))
    address = ctypes.addressof(made)
    destructor = ctypes.cast(C.Py_GetVersion, ctypes.c_void_p) if "destructor" in spoilt else None
    capsule = _abi.capsule_new(address, spoilt.get("name", b"dlpack_exchange_api"), destructor)
    words = {"__dlpack_c_exchange_api__": capsule, "__c_dlpack_exchange_api__": address}
    return type("Tabled", (Good,), words | {key: word for key, word in spoilt.items() if key.startswith("__")})


class Once:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def tabled(*rules, make=good, **spoilt):
    planted(*rules, make=make)(table(**spoilt))


tabled()  # nothing is wrong with this one
tabled("XAP-02", __dlpack_c_exchange_api__=5)
tabled("XAP-02", name=b"dlpack_exchange")
tabled("XAP-04", __c_dlpack_exchange_api__=5)
tabled("XAP-05", destructor=True)
tabled("XAP-06", version=(2, 0))
tabled("XAP-07", current_work_stream=None)


@_abi.FromPyObject
def another(address, out):
    """Exports a tensor that is not the object's."""
    capsule = good(values=np.zeros((2, 3), np.float32)).__dlpack__(max_version=(1, 3))
    out[0] = _abi.capsule_pointer(capsule, b"dltensor_versioned")
    _abi.capsule_rename(capsule, b"used_dltensor_versioned")
    return 0


@_abi.FromPyObject
def held_twice(address, out):
    """Never lets go of the object."""
    obj = ctypes.cast(address, ctypes.py_object).value
    KEPT.append(obj)
    capsule = obj.__dlpack__(max_version=(1, 3))
    out[0] = _abi.capsule_pointer(capsule, b"dltensor_versioned")
    _abi.capsule_rename(capsule, b"used_dltensor_versioned")
    return 0


@_abi.FromPyObject
def failing(address, out):
    return -1


@_abi.ToPyObject
def nothing(address, out):
    out[0] = None
    return 0


@_abi.ToPyObject
def something_else(address, out):
    """Gives an object, and forgets the tensor."""
    array = np.zeros(3)
    _abi.take_reference(id(array))
    out[0] = id(array)
    return 0


def looking(shift):
    @_abi.DLTensorFromPyObject
    def look(address, out):
        obj = ctypes.cast(address, ctypes.py_object).value
        capsule = obj.__dlpack__(max_version=(1, 3))
        out[0] = struct(capsule).dl_tensor
        out[0].data += shift
        out[0].shape = ctypes.cast(obj.ctypes.shape, ctypes.POINTER(ctypes.c_int64))
        return 0

    return look


@_abi.Allocator
def allocates_nothing(prototype, out, context, set_error):
    out[0] = None
    return 0


@_abi.Allocator
def fails_in_silence(prototype, out, context, set_error):
    return -1


@_abi.CurrentWorkStream
def some_stream(kind, number, out):
    out[0] = 7
    return 0


tabled("XAP-14", managed_tensor_from_py_object_no_sync=another)
tabled("XAP-14", managed_tensor_from_py_object_no_sync=failing)
tabled("XAP-15", "XAP-17", managed_tensor_from_py_object_no_sync=held_twice)
tabled("XAP-17", managed_tensor_to_py_object_no_sync=nothing)
tabled("XAP-17", managed_tensor_to_py_object_no_sync=something_else)
tabled("XAP-19", dltensor_from_py_object_no_sync=looking(4))
tabled(dltensor_from_py_object_no_sync=looking(0))
tabled("XAP-20", dltensor_from_py_object_no_sync=looking(0), make=read_only)
tabled("XAP-22", managed_tensor_allocator=allocates_nothing)
tabled("XAP-22", managed_tensor_allocator=fails_in_silence)
tabled("XAP-24", current_work_stream=some_stream)
