"""Interpreter exit, and forks (CAP-14); each in its own process.

`DLPACK_ROUNDS` is the number of repetitions of tests that depend on timing.
"""

import concurrent.futures
import os
import signal
import subprocess
import sys

import capi
import pytest
import uses

ROUNDS = int(os.environ.get("DLPACK_ROUNDS", "3"))

MAKE = """
import sys, os, atexit, threading, time
import capi
import dlpack_probe as p
makers = {
    "frozen": lambda: p.Probe([4]),
    "mutable": lambda: p.Mutable([1.0] * 4),
    "writable": lambda: p.Exclusive([1.0] * 4),
    "owner": lambda: p.Owned([1.0] * 4),
    "tensor": lambda: p.take(p.Probe([4])),
    "attribute": lambda: p.Batch(4).rewards,
}
make = makers[sys.argv[-1] if sys.argv[-1] in makers else os.environ["KIND"]]
"""
KINDS = ["frozen", "mutable", "writable", "owner", "tensor", "attribute"]

USES = """
import sys, os, atexit, threading, time
import dlpack_probe as p
import uses
found, users = uses.uses()
chosen = uses.group(found, os.environ["GROUP"])
assert len(chosen) > 3
def use(): return [act() for act in chosen]
# The uses that several threads may make at once.
common = uses.group(found, os.environ["GROUP"], alone=False)
def use_together(): return [act() for act in common]
"""


# The C library calls the callback on threads of its own, which take the GIL each time.
ATTACHING_THREADS = """
import ctypes, time
libc = ctypes.CDLL(None)
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda value: None)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int)]
    _fields_ += [("function", ctypes.c_void_p), ("rest", ctypes.c_char * 72)]
event = Event(notify=2, function=ctypes.cast(callback, ctypes.c_void_p).value)  # SIGEV_THREAD
timer, times = ctypes.c_void_p(), (ctypes.c_long * 4)(0, 20_000, 0, 20_000)
assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, times, None) == 0
time.sleep(0.02)
"""
# When the interpreter has ended, the main thread waits for input, until a signal ends the process. Meanwhile the others wake up.
WAITING_THREADS = """
import ctypes, os, signal, sys, threading
os.dup2(os.pipe()[0], 0)
signal.setitimer(signal.ITIMER_REAL, 3)
ctypes.pythonapi.Py_AtExit(ctypes.CDLL(None).getchar)
sys.setswitchinterval(0.01)
def forever():
    while True:
        pass
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
"""
# How often a test with daemon threads may crash by what `test_threads_that_wait` shows.
DAEMON_ATTEMPTS = 3 if sys.version_info < (3, 11) else 1


def end_among_threads(script, code, **env):
    """Runs a script whose threads attach to the interpreter while it ends.

    CPython may crash in them, on a busy machine more often: `test_threads_that_attach` shows it without our code.
    """
    script(code, attempts=3, **env)


def crashes_at_some_time(script, code):
    """Whether one of many processes crashes as `is_crash_of_python` says. Several at a time keep each other from running."""
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for _ in range(20):
            runs = [pool.submit(script, code, status=None) for _ in range(12)]
            if any(run.result().is_crash_of_python() for run in runs):
                return True
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("crash, runs", [("faulthandler.disable()", 3), ("", 1)])
def test_only_crashes_like_those_of_python_are_repeated(script, tmp_path, crash, runs):
    ended = script(
        f"""
import faulthandler, os, signal
with open({str(tmp_path / "runs")!r}, "a") as file:
    file.write("x")
{crash}
os.kill(os.getpid(), signal.SIGSEGV)
""",
        attempts=3,
        status=None,
    )
    assert ended.status == -signal.SIGSEGV
    assert (tmp_path / "runs").read_text() == "x" * runs


@pytest.mark.skipif(sys.platform != "linux" or not capi.GIL, reason="the threads are those of a timer of Linux, and wait for a GIL")
def test_threads_that_attach(script):
    """The control of `end_among_threads`, without our code."""
    assert crashes_at_some_time(script, ATTACHING_THREADS)


@pytest.mark.skipif(sys.version_info >= (3, 11) or sys.platform != "linux", reason="it is CPython 3.10 that crashes")
def test_threads_that_wait(script):
    """The control of `DAEMON_ATTEMPTS`, without our code: `take_gil` reads the interpreter of a thread, which was freed."""
    assert crashes_at_some_time(script, WAITING_THREADS)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=uses.GROUPS)
def group(request):
    return request.param


def test_a_capsule_in_a_global(script, kind):
    """CAP-14, faults 34, 37: a capsule in a global variable is dropped while the interpreter exits."""
    script(MAKE + "kept = [make().__dlpack__(max_version=(1, 0)) for _ in range(50)]", KIND=kind)


def test_a_tensor_that_is_never_released(script, kind):
    """CAP-14: a tensor that is never released leaks, without other effects."""
    script(MAKE + "kept = [capi.export(make()) for _ in range(50)]", KIND=kind)


def test_an_array_in_a_global(script, kind, numpy):
    """CAP-14, faults 37, 38: NumPy calls the deleter while modules are cleared."""
    script(
        MAKE
        + """
import numpy
kept = [numpy.from_dlpack(make()) for _ in range(50)]
sys.kept = [numpy.from_dlpack(make()) for _ in range(50)]
threading.kept = kept[:25]
cycle = [kept]; cycle.append(cycle)
""",
        KIND=kind,
    )


@pytest.mark.skipif(not capi.CALLS_AT_EXIT, reason="the C library calls nothing with an argument")
def test_a_deleter_after_the_end(script, kind):
    """CAP-14, faults 34, 36, 37: the C library calls the deleter after the interpreter is gone; the object leaks."""
    ended = script(
        MAKE
        + """
import ctypes
text = ctypes.create_string_buffer(b"called before the deleters, or after them")
puts = ctypes.cast(capi.libc.puts, ctypes.c_void_p)
capi.at_exit(puts, ctypes.addressof(text))
for _ in range(20):
    seen = capi.export(make())
    capi.at_exit(seen.struct.deleter, seen.address)
capi.at_exit(puts, ctypes.addressof(text))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))
""",
        KIND=kind,
    )
    assert len(ended.out.splitlines()) == 2


def test_a_deleter_in_atexit(script, kind):
    """CAP-14: in Python's `atexit` the interpreter still works."""
    ended = script(
        MAKE
        + """
seen = [capi.export(make()) for _ in range(20)]
def at_exit():
    for s in seen[::2]: s.release()
    for s in seen[1::2]: s.release(gil=False)
    print("released", p.alive())
atexit.register(at_exit)
""",
        KIND=kind,
    )
    assert ended.out.split() == ["released", "0"]


def test_rust_holds_a_tensor(script, kind):
    """CAP-14: a Rust static is never dropped."""
    script(MAKE + "[p.keep(make()) for _ in range(20)]", KIND=kind)


@pytest.mark.parametrize("first", [0, 200, 1000, 5000])
def test_a_thread_releases_while_the_interpreter_ends(script, kind, first):
    """CAP-13, CAP-14, faults 34, 37: a Rust thread releases tensors before, during and after the exit of the interpreter."""
    for _ in range(ROUNDS):
        end_among_threads(
            script,
            MAKE
            + f"""
for _ in range(300):
    p.keep(make())
p.let_go_later({first}, 20)
""",
            KIND=kind,
        )


@pytest.mark.parametrize("code", ["sys.exit(3)", "os._exit(3)", "raise SystemExit(3)"])
def test_ways_to_end(script, kind, code):
    """CAP-14: the exit status is the one that the program chose."""
    script(
        MAKE
        + f"""
held = [make().__dlpack__(max_version=(1, 0)) for _ in range(10)]
for _ in range(100):
    p.keep(make())
p.let_go_later(0, 20)
{code}
""",
        KIND=kind,
        status=3,
    )


def test_daemon_threads(script, kind):
    """CAP-13, CAP-14: daemon threads export and release until the interpreter is gone."""
    for _ in range(ROUNDS):
        script(
            MAKE
            + """
rounds = [0] * 3
def forever(index):
    while True:
        for seen in [capi.export(make()) for _ in range(4)]:
            seen.release(gil=False)
        rounds[index] += 1
for index in range(3):
    threading.Thread(target=forever, args=[index], daemon=True).start()
while min(rounds) < 5:
    time.sleep(0.001)
""",
            attempts=DAEMON_ATTEMPTS,
            KIND=kind,
        )


def test_daemon_threads_in_code_of_python(script):
    """CAP-14, own faults 17: a thread that is in Python code called from ours when the interpreter exits is halted there."""
    for _ in range(ROUNDS):
        script(
            """
import sys, threading, time
import dlpack_probe as p
sys.setswitchinterval(1e-6)
class One:
    def __index__(self):
        return len([i for i in range(9) if i == 1])
owner = p.Probe([3])
rounds = [0] * 3
def forever(index):
    while True:
        try:
            owner.__dlpack__(max_version=(One(), One()), stream=One())
        except ValueError:
            rounds[index] += 1
for index in range(3):
    threading.Thread(target=forever, args=[index], daemon=True).start()
while min(rounds) < 5:
    time.sleep(0.001)
""",
            attempts=DAEMON_ATTEMPTS,
        )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_forks(script, kind):
    """CAP-13, CAP-18: a child has copies of the exports, and releases them."""
    ended = script(
        MAKE
        + """
import warnings
warnings.simplefilter("ignore")
owners = [make() for _ in range(3)]
seen = [capi.export(make()) for _ in range(4)]
capsules = [make().__dlpack__(max_version=(1, 0)) for _ in range(4)]
bad = 0
for _ in range(int(os.environ.get("DLPACK_FORKS", "10"))):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert all(s.tobytes() for s in seen)
            seen[0].release()
            seen[1].release(gil=False)
            seen[2].release_on_foreign_thread()
            capsules.clear()
            capi.export(make()).release()
            status = 0
        finally:
            if status == 0 and os.environ.get("KIND") in ("frozen", "owner"):
                sys.exit(0)
            os._exit(status)
    bad += os.waitpid(child, 0)[1] != 0
for s in seen:
    s.release()
print(bad)
""",
        KIND=kind,
    )
    assert ended.out.split() == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without the GIL the child may wait for an object's own lock, such as ctypes takes, that a thread it lacks holds",
)
def test_forks_among_threads(script, kind):
    """CAP-13: children of a process whose other threads export and release continuously."""
    ended = script(
        MAKE
        + """
import warnings
warnings.simplefilter("ignore")
stop = False
def busy():
    while not stop:
        capi.export(make()).release(gil=False)
threads = [threading.Thread(target=busy) for _ in range(4)]
[t.start() for t in threads]
bad = 0
for _ in range(int(os.environ.get("DLPACK_FORKS", "10"))):
    child = os.fork()
    if child == 0:
        try:
            seen = capi.export(make())
            assert seen.tobytes()
            seen.release(gil=False)
        except BaseException:
            os._exit(1)
        os._exit(0)
    bad += os.waitpid(child, 0)[1] != 0
stop = True
[t.join() for t in threads]
print(bad)
""",
        KIND=kind,
    )
    assert ended.out.split() == ["0"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("signal", ["SIGTERM", "SIGKILL"])
def test_signals(script, kind, signal):
    """CAP-14: a process that is killed by a signal ends by that signal."""
    import signal as signals

    ended = script(
        MAKE
        + f"""
import signal
kept = [make().__dlpack__(max_version=(1, 0)) for _ in range(10)]
for _ in range(100):
    p.keep(make())
p.let_go_later(0, 20)
os.kill(os.getpid(), signal.{signal})
while True:
    signal.pause()
""",
        KIND=kind,
        status=None,
    )
    assert ended.status == -getattr(signals, signal)


# -- views, arrays, buffers, pickles, parts and fields ----------------------------------------------


def test_results_of_uses_in_globals(script, group):
    """CAP-14, faults 34, 37: results in global variables are dropped while modules are cleared, or later."""
    script(
        USES
        + """
kept = [use() for _ in range(10)]
sys.kept = use()
threading.kept = kept[:5]
cycle = [kept, use]; cycle.append(cycle)
""",
        GROUP=group,
    )


def test_uses_in_atexit(script, group):
    """CAP-14: in Python's `atexit` the interpreter still works."""
    ended = script(
        USES
        + """
kept = use()
def at_exit():
    use()
    kept.clear()
    print("used")
atexit.register(at_exit)
""",
        GROUP=group,
    )
    assert ended.out.split() == ["used"]


# `TestDaemonThreadsOf313t` shows it without our code.
NO_DAEMON_THREADS = pytest.mark.skipif(capi.FREE_THREADED_313, reason="3.13t hangs if a daemon thread looks up a module during exit")


@NO_DAEMON_THREADS
@pytest.mark.parametrize("code", ["sys.exit(3)", "os._exit(3)", "raise SystemExit(3)"])
def test_ways_to_end_among_uses(script, group, code):
    """CAP-14: the exit status is the one that the program chose, while other threads use the library."""
    script(
        USES
        + f"""
kept = [use() for _ in range(3)]
def forever():
    while True:
        kept[0] = use_together()
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.02)
{code}
""",
        GROUP=group,
        status=3,
        attempts=DAEMON_ATTEMPTS,
    )


KEPT_VIEWS = """
import sys, os, threading, time
import dlpack_probe as p
owners = [p.WProbe([4]) for _ in range(200)]
kinds = [kind for kind in p.kinds_of_views() if kind != "View, Convert"]
for place, owner in enumerate(owners):
    p.keep_view(owner, kinds[place % len(kinds)])
"""


@pytest.mark.parametrize("code", ["", "del owners", "os._exit(0)", "owners.append(owners)"])
def test_rust_holds_views(script, code):
    """CAP-14: a Rust static is never dropped."""
    script(KEPT_VIEWS + code)


@pytest.mark.parametrize("first", [0, 200, 1000, 5000])
@pytest.mark.parametrize("code", ["", "del owners"])
def test_a_thread_drops_views_while_the_interpreter_ends(script, first, code):
    """CAP-13, CAP-14, faults 34, 37: a Rust thread drops views before, during and after the exit of the interpreter."""
    for _ in range(ROUNDS):
        end_among_threads(script, KEPT_VIEWS + f"p.release_views_later({first}, 20)\n{code}")


@NO_DAEMON_THREADS
def test_daemon_threads_in_uses(script, group):
    """CAP-13, CAP-14: daemon threads use everything until the interpreter is gone."""
    for _ in range(ROUNDS):
        script(
            USES
            + """
sys.setswitchinterval(1e-5)
def forever():
    while True:
        use_together()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
""",
            attempts=DAEMON_ATTEMPTS,
            GROUP=group,
        )


STOPPING_THREADS = """
import gc, sys, threading, time
sys.setswitchinterval(1e-5)
def forever():
    while True:
        gc.get_referents([])
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
"""


LOOKING_UP_A_MODULE = """
import sys, threading, time, types
for number in range(2000):
    sys.modules[f"m{number}"] = types.ModuleType(f"m{number}")
sys.setswitchinterval(1e-5)
def forever():
    while True:
        sys.modules.get("".join(["num", "py"]))
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
"""


def run_until_it_hangs(code):
    with pytest.raises(subprocess.TimeoutExpired):
        for _ in range(50):
            subprocess.run([sys.executable, "-c", code], timeout=10, check=True)


@pytest.mark.skipif(not capi.FREE_THREADED_313, reason="it is 3.13t that hangs")
class TestDaemonThreadsOf313t:
    """Controls without our code: the interpreter does not exit."""

    def test_that_stop_all_others(self):
        """The control of `uses.HANGING`."""
        run_until_it_hangs(STOPPING_THREADS)

    def test_that_look_up_a_module(self):
        """The control of `NO_DAEMON_THREADS`."""
        run_until_it_hangs(LOOKING_UP_A_MODULE)


ATTACHING_THREAD = """
import ctypes, threading, time
numbers, compare = (ctypes.c_int * 64)(), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: 0)
sort = ctypes.CDLL(None).qsort
def forever():
    while True:
        sort(numbers, 64, 4, compare)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.02)
"""


@pytest.mark.skipif(not capi.DEBUG_BUILD or sys.version_info >= (3, 14), reason="it is a debug build before 3.14 that crashes")
def test_daemon_threads_that_attach():
    """The control of `uses.CRASHING`, without our code: `PyGILState_Ensure` reads a thread state that was freed."""
    # How often depends on what else the machine does: beside busy processes, 30 runs were too few.
    runs = (subprocess.run([sys.executable, "-c", ATTACHING_THREAD], timeout=60) for _ in range(500))
    assert any(run.returncode == -signal.SIGSEGV for run in runs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_forks_with_uses(script, group):
    """CAP-13, CAP-18: a child has all objects that were made before, releases them, and makes more."""
    ended = script(
        USES
        + """
import warnings
warnings.simplefilter("ignore")
kept, bad = use(), 0
p.keep_view(p.WProbe([4]), "ViewMut, promised")
for _ in range(int(os.environ.get("DLPACK_FORKS", "10"))):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            use()
            kept.clear()
            p.release_views(thread=True)
            use()
            status = 0
        finally:
            os._exit(status)
    bad += os.waitpid(child, 0)[1] != 0
print(bad)
""",
        GROUP=group,
    )
    assert ended.out.split() == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.skipif(not capi.GIL, reason="without the GIL the child may wait for a lock that a thread it lacks holds")
def test_forks_among_threads_with_uses(script, group):
    """CAP-13: children of a process whose other threads use everything continuously."""
    ended = script(
        USES
        + """
import warnings
warnings.simplefilter("ignore")
stop = False
def busy():
    while not stop:
        use_together()
def leases():
    while not stop:
        p.keep_view(mine, "ViewMut, promised")
        p.release_views()
mine = p.WProbe([4])
# The first use of each kind fills once-cells of PyO3 and imports modules. A child that is forked during that would wait for a
# thread that it does not have, or find a partial module.
use_together()
p.make_view(mine, "ViewMut, promised")
threads = [threading.Thread(target=busy) for _ in range(3)] + [threading.Thread(target=leases)]
[t.start() for t in threads]
bad = 0
for _ in range(int(os.environ.get("DLPACK_FORKS", "10"))):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            use_together()
            p.make_view(p.WProbe([4]), "ViewMut, promised")
            status = 0
        finally:
            os._exit(status)
    bad += os.waitpid(child, 0)[1] != 0
stop = True
[t.join() for t in threads]
print(bad)
""",
        GROUP=group,
    )
    assert ended.out.split() == ["0"]
