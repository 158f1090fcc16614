"""Runs the call sequences of the ordering code on a CUDA driver, real or fake, and prints the return codes.

    python calibrate.py libcuda.so.1
    python calibrate.py target/debug/libdlpack_simulator.so

Each scenario is a list of calls with the return codes of CUDA's documentation, or of our reading of it. The
fake driver of the tests returns these; a real one decides. Needs only Python.
"""

import ctypes
import json
import sys
import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

INVALID_CONTEXT, INVALID_HANDLE = 201, 400
UNSUPPORTED, INVALIDATED, MERGE, UNJOINED, ISOLATION, IMPLICIT = 900, 901, 902, 904, 905, 906
CAPTURED_EVENT = 907
GLOBAL, THREAD, RELAXED = 0, 1, 2
LEGACY = c_void_p(1)

SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


class Driver:
    """Calls by name, with their return codes and the expected ones."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.rows = []
        self.scenario = ""
        context, device = c_void_p(), c_int()
        for code in (
            self.raw("cuInit", 0),
            self.raw("cuDeviceGet", byref(device), 0),
            self.raw("cuDevicePrimaryCtxRetain", byref(context), device),
        ):
            if code:
                raise RuntimeError(f"{path} finds no GPU: code {code}")
        self.device, self.primary = device, context

    def has(self, name):
        return hasattr(self.library, name)

    def raw(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def want(self, expected, name, *arguments):
        """The return code of the call should be one of these."""
        code = self.raw(name, *arguments)
        self.note(name, code, expected)
        return code

    def note(self, what, found, expected):
        allowed = expected if isinstance(expected, tuple) else (expected,)
        self.rows.append((self.scenario, what, found, list(allowed), found in allowed))

    def stream(self, flags=1):
        stream = c_void_p()
        self.want(0, "cuStreamCreate", byref(stream), c_uint(flags))
        return stream

    def event(self):
        event = c_void_p()
        self.want(0, "cuEventCreate", byref(event), c_uint(2))
        return event

    def begin(self, stream, mode=GLOBAL):
        self.want(0, "cuStreamBeginCapture_v2", stream, c_int(mode))

    def end(self, stream, expected=0):
        graph = c_void_p()
        code = self.want(expected, "cuStreamEndCapture", stream, byref(graph))
        if code == 0 and graph.value:
            self.want(0, "cuGraphDestroy", graph)

    def status(self, stream, expected, code=0):
        status = c_int(-1)
        self.want(code, "cuStreamIsCapturing", stream, byref(status))
        if code == 0:
            self.note("status of the capture", status.value, expected)

    def mode(self, mode):
        mode = c_int(mode)
        self.want(0, "cuThreadExchangeStreamCaptureMode", byref(mode))
        return mode.value

    def on_a_thread(self, function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    def current(self):
        context = c_void_p()
        self.want(0, "cuCtxGetCurrent", byref(context))
        return context.value

    def run(self):
        for function in SCENARIOS:
            self.scenario = " ".join(function.__name__.split("_"))
            # On a new thread, without a context or a capture mode.
            failure = []

            def body(function=function, failure=failure):
                try:
                    self.raw("cuCtxSetCurrent", self.primary)
                    function(self)
                except Exception as error:  # one row instead of the end of all
                    failure.append(error)

            self.on_a_thread(body)
            for error in failure:
                self.note(f"{type(error).__name__}: {error}", -1, 0)
        return self.rows


@scenario
def a_thread_without_a_context(driver):
    driver.raw("cuCtxSetCurrent", c_void_p())
    driver.note("no context is current", driver.current(), None)
    event = c_void_p()
    driver.want(INVALID_CONTEXT, "cuEventCreate", byref(event), c_uint(2))
    driver.want(INVALID_CONTEXT, "cuCtxSynchronize")
    status = c_int()
    driver.want(INVALID_CONTEXT, "cuStreamIsCapturing", LEGACY, byref(status))


@scenario
def an_event_orders_two_streams(driver):
    one, two, event = driver.stream(), driver.stream(), driver.event()
    driver.want(0, "cuEventRecord", event, one)
    driver.want(0, "cuStreamWaitEvent", two, event, c_uint(0))
    driver.want(0, "cuEventDestroy_v2", event)
    driver.want(0, "cuStreamSynchronize", two)
    driver.want(0, "cuStreamDestroy_v2", one)
    driver.want(0, "cuStreamDestroy_v2", two)


@scenario
def an_event_that_was_never_recorded(driver):
    stream, event = driver.stream(), driver.event()
    driver.want(0, "cuStreamWaitEvent", stream, event, c_uint(0))
    driver.want(0, "cuEventSynchronize", event)
    driver.want(0, "cuEventDestroy_v2", event)


@scenario
def two_contexts(driver):
    other = c_void_p()
    stream = driver.stream()
    driver.want(0, "cuCtxCreate_v2", byref(other), c_uint(0), driver.device)
    driver.note("a new context is current", driver.current() == other.value, True)
    event, own = driver.event(), driver.stream()
    # An event and the stream on which it is recorded share a context; a waiting stream may belong to another.
    driver.want(INVALID_HANDLE, "cuEventRecord", event, stream)
    driver.want(0, "cuEventRecord", event, own)
    driver.want(0, "cuStreamWaitEvent", stream, event, c_uint(0))
    if driver.has("cuStreamGetCtx"):
        context = c_void_p()
        driver.want(0, "cuStreamGetCtx", stream, byref(context))
        driver.note("a stream knows its context", context.value == driver.primary.value, True)
    driver.want(0, "cuCtxSetCurrent", driver.primary)
    driver.want(0, "cuStreamSynchronize", stream)
    driver.want(0, "cuEventDestroy_v2", event)


@scenario
def a_capture_and_its_number(driver):
    stream, other = driver.stream(), driver.stream()
    driver.begin(stream)
    driver.status(stream, 1)
    driver.status(other, 0)
    status, number = c_int(), c_uint64(0)
    driver.want(0, "cuStreamGetCaptureInfo", stream, byref(status), byref(number))
    driver.note("a capture has a number", number.value != 0, True)
    driver.end(stream)
    driver.status(stream, 0)


@scenario
def to_synchronize_a_stream_that_captures(driver):
    stream = driver.stream()
    driver.begin(stream, RELAXED)
    driver.want(UNSUPPORTED, "cuStreamSynchronize", stream)
    driver.status(stream, 2)
    driver.end(stream, INVALIDATED)


@scenario
def to_wait_in_a_capture_for_what_is_outside(driver):
    stream, outside, event = driver.stream(), driver.stream(), driver.event()
    driver.want(0, "cuEventRecord", event, outside)
    driver.begin(stream)
    driver.want(ISOLATION, "cuStreamWaitEvent", stream, event, c_uint(0))
    driver.end(stream, INVALIDATED)


@scenario
def to_wait_outside_for_what_is_captured(driver):
    stream, outside, event = driver.stream(), driver.stream(), driver.event()
    driver.begin(stream, RELAXED)
    driver.want(0, "cuEventRecord", event, stream)
    driver.want(0, "cuStreamWaitEvent", outside, event, c_uint(0))
    driver.status(outside, 1)
    # No work was queued there, so there may be nothing to join.
    driver.end(stream, (0, UNJOINED))


@scenario
def to_fork_and_join_in_a_capture(driver):
    stream, side = driver.stream(), driver.stream()
    fork, join = driver.event(), driver.event()
    driver.begin(stream)
    driver.want(0, "cuEventRecord", fork, stream)
    driver.want(0, "cuStreamWaitEvent", side, fork, c_uint(0))
    driver.want(0, "cuEventRecord", join, side)
    driver.want(0, "cuStreamWaitEvent", stream, join, c_uint(0))
    driver.want(0, "cuEventDestroy_v2", fork)
    driver.want(0, "cuEventDestroy_v2", join)
    driver.end(stream)


@scenario
def to_wait_in_one_capture_for_another(driver):
    one, two, event = driver.stream(), driver.stream(), driver.event()
    driver.begin(one, RELAXED)
    driver.begin(two, RELAXED)
    driver.want(0, "cuEventRecord", event, one)
    driver.want((MERGE, ISOLATION), "cuStreamWaitEvent", two, event, c_uint(0))
    driver.raw("cuStreamEndCapture", one, byref(c_void_p()))
    driver.raw("cuStreamEndCapture", two, byref(c_void_p()))


@scenario
def to_wait_on_the_host_for_what_is_captured(driver):
    stream, event = driver.stream(), driver.event()
    driver.begin(stream, RELAXED)
    driver.want(0, "cuEventRecord", event, stream)
    driver.want((CAPTURED_EVENT, UNSUPPORTED), "cuEventSynchronize", event)
    driver.end(stream, INVALIDATED)


@scenario
def the_legacy_stream_while_a_blocking_one_captures(driver):
    stream, event = driver.stream(0), driver.event()
    driver.begin(stream, RELAXED)
    driver.status(LEGACY, None, IMPLICIT)
    # The query broke nothing.
    driver.status(stream, 1)
    driver.want(IMPLICIT, "cuEventRecord", event, LEGACY)
    driver.end(stream, INVALIDATED)


@scenario
def the_legacy_stream_while_a_nonblocking_one_captures(driver):
    stream, event = driver.stream(), driver.event()
    driver.begin(stream)
    driver.status(LEGACY, 0)
    driver.want(0, "cuEventRecord", event, LEGACY)
    driver.end(stream)


@scenario
def to_synchronize_another_stream_under_a_global_capture(driver):
    stream, other = driver.stream(), driver.stream()
    driver.begin(stream, GLOBAL)
    driver.want(UNSUPPORTED, "cuStreamSynchronize", other)
    driver.end(stream, INVALIDATED)


@scenario
def the_same_by_a_thread_that_relaxed_its_mode(driver):
    stream, other = driver.stream(), driver.stream()
    driver.begin(stream, GLOBAL)
    driver.note("the mode before", driver.mode(RELAXED), GLOBAL)
    driver.want(0, "cuStreamSynchronize", other)
    driver.note("the mode after", driver.mode(GLOBAL), RELAXED)
    driver.end(stream)


@scenario
def to_ask_for_outside_work_by_a_thread_that_relaxed_its_mode(driver):
    stream, other, event = driver.stream(), driver.stream(), driver.event()
    driver.want(0, "cuEventRecord", event, other)
    for mode in (GLOBAL, THREAD, RELAXED):
        driver.begin(stream, mode)
        driver.mode(RELAXED)
        driver.want(0, "cuEventSynchronize", event)
        driver.want(0, "cuEventQuery", event)
        driver.want(0, "cuStreamSynchronize", other)
        driver.want(0, "cuStreamQuery", other)
        driver.mode(GLOBAL)
        driver.status(stream, 1)
        driver.end(stream)


@scenario
def the_same_on_another_thread_than_the_capture(driver):
    stream, other, event = driver.stream(), driver.stream(), driver.event()
    driver.want(0, "cuEventRecord", event, other)
    driver.begin(stream, GLOBAL)

    def body():
        driver.raw("cuCtxSetCurrent", driver.primary)
        driver.mode(RELAXED)
        driver.want(0, "cuEventSynchronize", event)
        driver.want(0, "cuStreamSynchronize", other)

    driver.on_a_thread(body)
    driver.status(stream, 1)
    driver.end(stream)


@scenario
def to_ask_for_outside_work_under_a_global_capture(driver):
    stream, other, event = driver.stream(), driver.stream(), driver.event()
    driver.want(0, "cuEventRecord", event, other)
    driver.begin(stream, GLOBAL)
    driver.want(UNSUPPORTED, "cuEventQuery", event)
    driver.end(stream, INVALIDATED)


@scenario
def to_allocate_under_a_global_capture(driver):
    stream, address = driver.stream(), c_uint64()
    driver.begin(stream, GLOBAL)
    driver.want(UNSUPPORTED, "cuMemAlloc_v2", byref(address), c_size_t(256))
    driver.end(stream, INVALIDATED)


@scenario
def to_allocate_and_free_under_a_relaxed_mode(driver):
    stream, address = driver.stream(), c_uint64()
    driver.begin(stream, GLOBAL)
    driver.mode(RELAXED)
    driver.want(0, "cuMemAlloc_v2", byref(address), c_size_t(256))
    driver.want(0, "cuMemFree_v2", address)
    driver.mode(GLOBAL)
    driver.end(stream)


@scenario
def to_allocate_on_another_thread(driver):
    def allocate(expected):
        def body():
            driver.raw("cuCtxSetCurrent", driver.primary)
            address = c_uint64()
            code = driver.want(expected, "cuMemAlloc_v2", byref(address), c_size_t(256))
            if code == 0:
                driver.raw("cuMemFree_v2", address)

        driver.on_a_thread(body)

    stream = driver.stream()
    driver.begin(stream, THREAD)
    allocate(0)
    driver.end(stream)
    driver.begin(stream, GLOBAL)
    allocate(UNSUPPORTED)
    driver.end(stream, INVALIDATED)


@scenario
def to_synchronize_a_context_in_which_a_stream_captures(driver):
    stream = driver.stream()
    driver.begin(stream, RELAXED)
    driver.want(UNSUPPORTED, "cuCtxSynchronize")
    driver.end(stream, INVALIDATED)


@scenario
def to_record_a_context_in_which_a_stream_captures(driver):
    if not driver.has("cuCtxRecordEvent"):
        return
    stream, event = driver.stream(), driver.event()
    driver.want(0, "cuCtxRecordEvent", driver.primary, event)
    driver.begin(stream, RELAXED)
    driver.want(UNSUPPORTED, "cuCtxRecordEvent", driver.primary, event)
    driver.end(stream, INVALIDATED)


@scenario
def what_codes_are_called(driver):
    for code, name in (
        (INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"),
        (UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
        (IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    ):
        text = ctypes.c_char_p()
        driver.want(0, "cuGetErrorName", c_int(code), byref(text))
        driver.note(f"the name of {code}", (text.value or b"").decode(), name)


def main():
    words = [word for word in sys.argv[1:] if word != "--json"]
    rows = Driver(words[0] if words else "libcuda.so.1").run()
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return
    wrong = [row for row in rows if not row[4]]
    for where, what, found, expected, _ in wrong:
        print(f"{where}: {what}: {found}, where {' or '.join(map(str, expected))} was expected")
    print(f"{len(rows) - len(wrong)} of {len(rows)} answers as expected, in {len(SCENARIOS)} scenarios")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
