"""A consumer and a producer as in C, written in ctypes: dlpack.h 1.3, capsules, the exchange table.

Nothing here uses the library under test, so that both sides of every exchange are checked from outside.
"""

import ctypes as c
import functools
import gc
import itertools
import struct
import subprocess
import sys

# -- dlpack.h ---------------------------------------------------------------------------------------

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4
CPU, CUDA, CUDA_HOST = 1, 2, 3
FLOAT32 = (2, 32, 1)


class DLDevice(c.Structure):
    _fields_ = [("device_type", c.c_int32), ("device_id", c.c_int32)]


class DLDataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device", DLDevice),
        ("ndim", c.c_int32),
        ("dtype", DLDataType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


class DLVersion(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32)]


class Legacy(c.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c.c_void_p), ("deleter", c.c_void_p)]


class Versioned(c.Structure):
    _fields_ = [
        ("version", DLVersion),
        ("manager_ctx", c.c_void_p),
        ("deleter", c.c_void_p),
        ("flags", c.c_uint64),
        ("dl_tensor", DLTensor),
    ]


class ExchangeHeader(c.Structure):
    _fields_ = [("version", DLVersion), ("prev_api", c.c_void_p)]


class ExchangeTable(c.Structure):
    _fields_ = [
        ("header", ExchangeHeader),
        ("managed_tensor_allocator", c.c_void_p),
        ("managed_tensor_from_py_object_no_sync", c.c_void_p),
        ("managed_tensor_to_py_object_no_sync", c.c_void_p),
        ("dltensor_from_py_object_no_sync", c.c_void_p),
        ("current_work_stream", c.c_void_p),
    ]


# -- CPython ----------------------------------------------------------------------------------------

# Static strings: a capsule keeps the pointer to its name, not a copy.
LEGACY = c.c_char_p(b"dltensor")
VERSIONED = c.c_char_p(b"dltensor_versioned")
USED_LEGACY = c.c_char_p(b"used_dltensor")
USED_VERSIONED = c.c_char_p(b"used_dltensor_versioned")
EXCHANGE = c.c_char_p(b"dlpack_exchange_api")
USED = {LEGACY.value: USED_LEGACY, VERSIONED.value: USED_VERSIONED}

libc = c.CDLL("msvcrt" if sys.platform == "win32" else None)
GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
FREE_THREADED_313 = not GIL and sys.version_info < (3, 14)
DEBUG_BUILD = hasattr(sys, "gettotalrefcount")


def _python(name, result, *arguments):
    """A function of Python's C API. An exception that it sets is raised."""
    return c.PYFUNCTYPE(result, *arguments)((name, c.pythonapi))


capsule_new = _python("PyCapsule_New", c.py_object, c.c_void_p, c.c_void_p, c.c_void_p)
capsule_name = _python("PyCapsule_GetName", c.c_char_p, c.py_object)
capsule_name_address = _python("PyCapsule_GetName", c.c_void_p, c.py_object)
capsule_pointer = _python("PyCapsule_GetPointer", c.c_void_p, c.py_object, c.c_char_p)
capsule_destructor = _python("PyCapsule_GetDestructor", c.c_void_p, c.py_object)
capsule_set_name = _python("PyCapsule_SetName", c.c_int, c.py_object, c.c_void_p)
capsule_set_destructor = _python("PyCapsule_SetDestructor", c.c_int, c.py_object, c.c_void_p)
# In a destructor the capsule must not be used as an object: its reference count is zero.
_raw_name = _python("PyCapsule_GetName", c.c_char_p, c.c_void_p)
_raw_pointer = _python("PyCapsule_GetPointer", c.c_void_p, c.c_void_p, c.c_char_p)
decref_address = _python("Py_DecRef", None, c.c_void_p)


def _address(name):
    return c.cast(name, c.c_void_p).value


def rename(capsule, name):
    capsule_set_name(capsule, _address(name))


def make_capsule(pointer, name, destructor=None):
    return capsule_new(pointer, _address(name), destructor)


class PyBuffer(c.Structure):
    _fields_ = [
        ("buf", c.c_void_p),
        ("obj", c.c_void_p),
        ("len", c.c_ssize_t),
        ("itemsize", c.c_ssize_t),
        ("readonly", c.c_int),
        ("ndim", c.c_int),
        ("format", c.c_char_p),
        ("shape", c.POINTER(c.c_ssize_t)),
        ("strides", c.POINTER(c.c_ssize_t)),
        ("suboffsets", c.c_void_p),
        ("internal", c.c_void_p),
    ]


_get_buffer = _python("PyObject_GetBuffer", c.c_int, c.py_object, c.c_void_p, c.c_int)
_release_buffer = _python("PyBuffer_Release", None, c.c_void_p)


def buffer(thing, flags):
    """The fields of a buffer that is requested with these flags; `None` for a `BufferError`."""
    view = PyBuffer()
    try:
        _get_buffer(thing, c.addressof(view), flags)
    except BufferError:
        assert not view.obj
        return None
    assert view.obj and not view.suboffsets
    lists = [each[: view.ndim] if each else None for each in (view.shape, view.strides)]
    said = view.buf, view.len, view.itemsize, view.readonly, view.ndim, view.format, *lists
    _release_buffer(c.addressof(view))
    return said


# -- the C library ----------------------------------------------------------------------------------


class _Mallinfo2(c.Structure):
    _fields_ = [
        (name, c.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


COUNTS_MEMORY = hasattr(libc, "mallinfo2")


def memory_in_use():
    """The bytes that malloc has allocated; 0 if the C library does not report it."""
    if not COUNTS_MEMORY:
        return 0
    libc.mallinfo2.restype = _Mallinfo2
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd


SAYS_SIZES = hasattr(libc, "malloc_usable_size")


def size_of_block(address):
    """The usable size of a block of malloc."""
    libc.malloc_usable_size.restype = c.c_size_t
    return libc.malloc_usable_size(c.c_void_p(address))


def _references_of_a_call():
    """How many references the caller and `references` add to the count: from 3.14 on a local variable may add none."""

    def count(thing):
        return sys.getrefcount(thing)

    held = object()
    return count(held) - 1


_OWN_REFERENCES = _references_of_a_call()


def references(thing):
    """The number of references to an object, without those in dead tracebacks."""
    gc.collect()
    return sys.getrefcount(thing) - _OWN_REFERENCES


def least_growth(act, count, rounds=4):
    """The smallest growth of `count()` in any of several equal rounds of `act`.

    A leak shows in every round. The contents of a cache, or objects of other threads, do not.
    """
    act()
    grown = []
    for _ in range(rounds):
        gc.collect()
        before = count()
        act()
        gc.collect()
        grown.append(count() - before)
    return min(grown)


WITHOUT_MEMORY = """
import _testcapi
def act():
    {act}
def attempt(first):
    try:
        _testcapi.set_nomemory(first, first + 1)
        act()
    except BaseException:
        pass
    finally:
        _testcapi.remove_mem_hooks()
# The first ones succeed, and fill the interpreter's caches.
for first in [1000, 1000, *range(60)] * 5:
    attempt(first)
"""


@functools.cache
def python_crashes_without_memory():
    """Whether Python crashes if an allocation fails: a debug build of 3.13 in the traceback of any exception, 3.13t in a generator.

    The control for operations whose allocations in Python fail: no line of the library runs here.
    """
    act = "[].pop()" if GIL else "tuple([number] for number in range(20))"
    return subprocess.run([sys.executable, "-c", WITHOUT_MEMORY.format(act=act)], capture_output=True).returncode != 0


def ctypes_leaks():
    """Whether ctypes leaks with each function that it makes of an address, as in a free-threaded Python 3.13
    once a thread was started.

    The control for growth that is counted where this file consumes tensors: no line of the library runs here.
    """
    free = c.cast(libc.free, c.c_void_p).value

    def hundred():
        for _ in range(100):
            call_deleter(free, None)

    return least_growth(hundred, sys.getallocatedblocks) >= 50


# -- the consumer's side ----------------------------------------------------------------------------


class Seen:
    """A managed tensor, by its address. The test that makes one releases it."""

    def __init__(self, address, versioned):
        self.address = address
        self.versioned = versioned
        self.struct = (Versioned if versioned else Legacy).from_address(address)
        self.tensor = self.struct.dl_tensor
        self.released = False

    @property
    def version(self):
        return (self.struct.version.major, self.struct.version.minor)

    @property
    def flags(self):
        return self.struct.flags

    @property
    def device(self):
        return (self.tensor.device.device_type, self.tensor.device.device_id)

    @property
    def dtype(self):
        dtype = self.tensor.dtype
        return (dtype.code, dtype.bits, dtype.lanes)

    @property
    def shape(self):
        return tuple(self.tensor.shape[: self.tensor.ndim]) if self.tensor.ndim else ()

    @property
    def strides(self):
        return tuple(self.tensor.strides[: self.tensor.ndim]) if self.tensor.ndim else ()

    @property
    def data(self):
        return self.tensor.data

    @property
    def itemsize(self):
        _, bits, lanes = self.dtype
        return 1 if self.versioned and self.flags & PADDED else bits * lanes // 8

    def tobytes(self):
        """The items in row-major order."""
        base = (self.data or 0) + self.tensor.byte_offset
        steps = [stride * self.itemsize for stride in self.strides]
        items = []
        for index in itertools.product(*map(range, self.shape)):
            at = base + sum(i * step for i, step in zip(index, steps))
            items.append(c.string_at(at, self.itemsize))
        return b"".join(items)

    def floats(self):
        raw = self.tobytes()
        return list(struct.unpack(f"{len(raw) // 4}f", raw))

    def release(self, gil=True):
        """Calls the deleter, with or without the GIL."""
        assert not self.released, "a test must not release twice"
        self.released = True
        call_deleter(self.struct.deleter, self.address, gil)

    def release_on_foreign_thread(self):
        """Calls the deleter on a thread that Python does not know."""
        assert not self.released, "a test must not release twice"
        self.released = True
        on_foreign_thread(self.struct.deleter, self.address)


def call_deleter(deleter, address, gil=True):
    kind = c.PYFUNCTYPE if gil else c.CFUNCTYPE
    kind(None, c.c_void_p)(deleter)(address)


def on_foreign_thread(function, argument):
    """Runs a C function on a new thread of the operating system, and waits for it without the GIL."""
    if sys.platform == "win32":
        kernel = c.WinDLL("kernel32")
        kernel.CreateThread.restype = c.c_void_p
        kernel.CreateThread.argtypes = [c.c_void_p, c.c_size_t, c.c_void_p, c.c_void_p, c.c_ulong, c.c_void_p]
        kernel.WaitForSingleObject.argtypes = [c.c_void_p, c.c_ulong]
        kernel.CloseHandle.argtypes = [c.c_void_p]
        thread = kernel.CreateThread(None, 0, function, argument, 0, None)
        assert kernel.WaitForSingleObject(thread, 0xFFFFFFFF) == 0
        kernel.CloseHandle(thread)
        return
    thread = c.c_ulong()
    start = libc.pthread_create
    start.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p]
    assert start(c.addressof(thread), None, function, argument) == 0
    assert libc.pthread_join(c.c_ulong(thread.value), None) == 0


# Windows calls functions without an argument only.
CALLS_AT_EXIT = hasattr(libc, "__cxa_atexit")


def at_exit(function, argument):
    """Lets the C library call `function(argument)` at process exit, after Python."""
    register = libc.__cxa_atexit
    register.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p]
    assert register(function, argument, None) == 0


def peek(capsule):
    """Reads a capsule without changing it."""
    name = capsule_name(capsule)
    assert name in USED, name
    return Seen(capsule_pointer(capsule, name), name == VERSIONED.value)


def consume(capsule):
    """Takes the tensor of a capsule, as NumPy does: the capsule is renamed, and keeps its destructor."""
    seen = peek(capsule)
    rename(capsule, USED[capsule_name(capsule)])
    return seen


def export(producer, **request):
    """Calls `__dlpack__` of `producer` and takes the tensor; with the current version by default."""
    request.setdefault("max_version", (1, 3))
    return consume(producer.__dlpack__(**request))


# -- the producer's side ----------------------------------------------------------------------------

_DELETER = c.CFUNCTYPE(None, c.c_void_p)
_DESTRUCTOR = c.PYFUNCTYPE(None, c.c_void_p)


def _run_deleter(capsule):
    name = _raw_name(capsule)
    if name in USED:
        seen = Seen(_raw_pointer(capsule, name), name == VERSIONED.value)
        if seen.struct.deleter:
            call_deleter(seen.struct.deleter, seen.address)


_run_deleter_c = _DESTRUCTOR(_run_deleter)


class Relay:
    """Exports another object by the two methods alone, without an exchange table or a buffer."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()

    def __dlpack__(self, **request):
        return self.inner.__dlpack__(**request)


class OldRelay(Relay):
    """As before DLPack 1.0: knows no keyword but `stream`, and so exports structs without a version."""

    def __dlpack__(self, stream=None):
        return self.inner.__dlpack__()


class Foreign:
    """A producer in whose struct each field can be wrong. It counts the calls of its deleter."""

    waiting = []

    def __init__(
        self,
        values=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
        shape=(2, 3),
        strides="packed",
        *,
        dtype=FLOAT32,
        device=(CPU, 0),
        version=(1, 3),
        flags=0,
        byte_offset=0,
        ndim=None,
        data="values",
        legacy=False,
        deleter=True,
        raw=None,
        said_device=None,
    ):
        if device[0] != CPU:
            # Its deleter may be called long after the tensor was dropped.
            Foreign.waiting.append(self)
        self.memory = c.create_string_buffer(raw or struct.pack(f"{len(values)}f", *values))
        self.deleted = 0
        self.asked = []
        self.said_device = said_device or device
        self.legacy = legacy
        if strides == "packed":
            strides, size = [], 1
            for extent in reversed(shape):
                strides.insert(0, size)
                size *= max(extent, 1)
        self.shape = shape if shape is None else (c.c_int64 * max(len(shape), 1))(*shape)
        self.strides = strides if strides is None else (c.c_int64 * max(len(strides), 1))(*strides)
        managed = Legacy() if legacy else Versioned()
        tensor = managed.dl_tensor
        tensor.data = c.addressof(self.memory) if data == "values" else data
        tensor.device = DLDevice(*device)
        tensor.ndim = len(shape or ()) if ndim is None else ndim
        tensor.dtype = DLDataType(*dtype)
        if self.shape is not None:
            tensor.shape = self.shape
        if self.strides is not None:
            tensor.strides = self.strides
        tensor.byte_offset = byte_offset
        if not legacy:
            managed.version = DLVersion(*version)
            managed.flags = flags
        self.managed = managed
        self.callback = _DELETER(self._delete)
        managed.deleter = c.cast(self.callback, c.c_void_p).value if deleter else None

    def _delete(self, address):
        assert address == c.addressof(self.managed)
        self.deleted += 1

    def capsule(self):
        name = LEGACY if self.legacy else VERSIONED
        return make_capsule(
            c.addressof(self.managed), name, c.cast(_run_deleter_c, c.c_void_p).value
        )

    def __dlpack__(self, **request):
        self.asked.append(request)
        return self.capsule()

    def __dlpack_device__(self):
        return self.said_device


# -- the exchange table -----------------------------------------------------------------------------

SET_ERROR = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_char_p)


class Exchange:
    """The functions of the table of a type or an object."""

    def __init__(self, owner):
        self.capsule = owner.__dlpack_c_exchange_api__
        self.address = capsule_pointer(self.capsule, EXCHANGE.value)
        self.table = ExchangeTable.from_address(self.address)

    def from_object(self, producer):
        """A managed tensor of `producer`; raises the exception that the function sets."""
        function = c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(c.c_void_p))(
            self.table.managed_tensor_from_py_object_no_sync
        )
        out = c.c_void_p()
        assert function(producer, c.byref(out)) == 0
        return Seen(out.value, True)

    def to_object(self, seen):
        """An object over the tensor, which it owns."""
        function = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_void_p))(
            self.table.managed_tensor_to_py_object_no_sync
        )
        out = c.c_void_p()
        assert function(seen.address if isinstance(seen, Seen) else seen, c.byref(out)) == 0
        made = c.cast(out, c.py_object).value
        # The function gave us a reference, and ctypes took another.
        decref_address(out)
        return made

    def borrow(self, producer, tensor):
        function = c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(DLTensor))(
            self.table.dltensor_from_py_object_no_sync
        )
        return function(producer, c.byref(tensor))

    def allocate(self, prototype, out, set_error, gil=True):
        """The status, and the arguments of each call of `set_error`."""
        said = []
        callback = SET_ERROR(lambda context, *words: said.append((context, *words)))
        kind = c.PYFUNCTYPE if gil else c.CFUNCTYPE
        function = kind(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p)(
            self.table.managed_tensor_allocator
        )
        status = function(
            c.addressof(prototype),
            c.addressof(out) if out is not None else None,
            0x5EED,
            c.cast(callback, c.c_void_p) if set_error else None,
        )
        return status, said

    def work_stream(self, device_type, device_id, out):
        function = c.PYFUNCTYPE(c.c_int, c.c_int32, c.c_int32, c.c_void_p)(
            self.table.current_work_stream
        )
        return function(device_type, device_id, c.addressof(out))
