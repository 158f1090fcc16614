"""A program that uses CUDA or HIP, on the driver without a GPU that `cargo xtask` builds (dlpack-core/simulator).

It has no clock: two accesses without a wait between them are a race, however fast they run. `Gpu` is one API as a program uses it.
"""

import ctypes as c
import os
import struct
import threading

import dlpack_probe as probe

lib = c.CDLL(os.environ["DLPACK_SIMULATOR"])
CUDA, CUDA_HOST, CUDA_MANAGED, ROCM, ROCM_HOST = 2, 3, 13, 10, 11
BLOCKING, NON_BLOCKING = 0, 1
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
EVENTS, ALLOCATIONS, STREAMS, GRAPHS = 0, 1, 2, 3


def _lines(function):
    buffer = c.create_string_buffer(1 << 16)
    function(buffer, c.c_size_t(len(buffer)))
    return buffer.value.decode().splitlines()


def faults():
    return _lines(lib.sim_faults)


def calls():
    """The entry points called since `forget_calls`, without their arguments."""
    return [line.split()[0] for line in _lines(lib.sim_calls)]


def forget_calls():
    lib.sim_forget_calls()


def live(kind):
    """The number of live objects, after core has dropped all owners it can. Events that are kept for later exports are not counted."""
    probe.collect_and_wait()
    return lib.sim_live(c.c_int32(kind)) - (probe.spare_events(False) if kind == EVENTS else 0)


def reset(devices):
    # Events of the previous world do not exist in the new one.
    probe.spare_events(True)
    lib.sim_reset(c.c_int32(devices))


def fail(entry, code, nth=1):
    lib.sim_fail(entry.encode(), c.c_uint64(nth), c.c_int32(code))


def switch(what, on):
    lib.sim_switch(what.encode(), c.c_int32(on))


def current_context():
    lib.sim_current_context.restype = c.c_size_t
    return lib.sim_current_context()


def host(address, bytes, write=False):
    """Records an access of this thread to memory."""
    lib.sim_host(c.c_size_t(address), c.c_size_t(bytes), c.c_int32(write))


def hand_over():
    """Tells the simulator that all threads have synchronized: it cannot know Python's joins and locks."""
    lib.sim_hand_over()


class Failed(Exception):
    pass


class Held:
    """Holds the next wait of a driver, while another Python thread shows that it can run."""

    def __init__(self, work=lambda: None):
        self.work = work
        self.went_on = False
        self.over = False

    def __enter__(self):
        self.thread = threading.Thread(target=self._run)
        lib.sim_hold()
        self.thread.start()
        return self

    def _run(self):
        while not lib.sim_holding():
            if self.over:
                return
        # This needs the interpreter, while the wait is still held.
        self.work()
        self.went_on = bool(lib.sim_holding())
        lib.sim_release()

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        lib.sim_release()
        # Python has synchronized the threads.
        hand_over()


class Gpu:
    """One API, whose device 0 is current on this thread."""

    def __init__(self, name):
        self.name = name
        self.cuda = name == "cuda"
        self.number = 0 if self.cuda else 1
        self.device = (CUDA if self.cuda else ROCM, 0)
        self.pinned = (CUDA_HOST if self.cuda else ROCM_HOST, 0)
        self.default = 1 if self.cuda else 0
        if self.cuda:
            self.call("Init", 0)
            self.context = self.made("DevicePrimaryCtxRetain", c.c_int32(0))
            self.call("CtxSetCurrent", self.context)
        else:
            self.call("SetDevice", 0)

    def entry(self, name):
        return getattr(lib, ("cu" if self.cuda else "hip") + name)

    def call(self, name, *arguments):
        words = [c.c_size_t(word) if isinstance(word, int) else word for word in arguments]
        code = self.entry(name)(*words)
        if code:
            raise Failed(name, code)

    def made(self, name, *arguments):
        """The value that an entry point writes through its first argument."""
        out = c.c_size_t()
        self.call(name, c.byref(out), *arguments)
        return out.value

    def synchronize(self):
        self.call("CtxSynchronize" if self.cuda else "DeviceSynchronize")

    def stream(self, flags=NON_BLOCKING):
        return self.made("StreamCreate" if self.cuda else "StreamCreateWithFlags", flags)

    def kernel(self, stream, address, bytes, write=False):
        words = [c.c_int32(self.number), c.c_size_t(stream), c.c_size_t(address), c.c_size_t(bytes), c.c_int32(write)]
        code = lib.sim_kernel(*words)
        if code:
            raise Failed("kernel", code)

    def free_function(self, kind):
        names = {CUDA: "MemFreeAsync", CUDA_MANAGED: "MemFree_v2", CUDA_HOST: "MemFreeHost"}
        names |= {ROCM: "FreeAsync", ROCM_HOST: "HostFree"}
        return c.cast(self.entry(names[kind]), c.c_void_p).value

    def allocate(self, bytes, stream, kind=None):
        kind = kind or self.device[0]
        if kind == CUDA_MANAGED:
            return self.made("MemAllocManaged", bytes, 1)
        if kind in (CUDA_HOST, ROCM_HOST):
            return self.made("MemHostAlloc" if self.cuda else "HostMalloc", bytes, 0)
        return self.made("MemAllocAsync" if self.cuda else "MallocAsync", bytes, stream)

    def written(self, cls, stream, values=(1.0, 2.0, 3.0, 4.0), kind=None, **layout):
        """An object of `cls` over new memory, to which a kernel on the stream is writing the values."""
        kind = kind or self.device[0]
        address = self.allocate(4 * len(values), stream, kind)
        # A kernel of the simulator moves no bytes, so the values are written here.
        c.memmove(address, struct.pack(f"{len(values)}f", *values), 4 * len(values))
        self.kernel(stream, address, 4 * len(values), write=True)
        return cls(address, len(values), (kind, 0), stream, free=self.free_function(kind), **layout)

    def begin_capture(self, stream, mode=GLOBAL):
        self.call("StreamBeginCapture_v2" if self.cuda else "StreamBeginCapture", stream, c.c_int32(mode))

    def end_capture(self, stream):
        """The graph, instantiated for launches."""
        graph = c.c_size_t()
        self.call("StreamEndCapture", stream, c.byref(graph))
        if self.cuda:
            executable = self.made("GraphInstantiateWithFlags", graph.value, c.c_uint64(0))
        else:
            executable = self.made("GraphInstantiate", graph.value, 0, 0, 0)
        self.call("GraphDestroy", graph.value)
        return executable

    def launch(self, graph, stream):
        self.call("GraphLaunch", graph, stream)
