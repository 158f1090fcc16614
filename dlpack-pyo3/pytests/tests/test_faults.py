"""Faults of other projects that no other file tests; the numbers are those of `spec/faults.md`."""

import gc
import sys

import capi
import dlpack_probe as p
import pytest


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 1), (1, 0)])
@pytest.mark.parametrize("cls", [p.Probe, p.WProbe])
@pytest.mark.parametrize("request_", [{}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}])
def test_empty_tensors(shape, cls, request_):
    """faults 6, 7, LAY-05, LAY-18: no elements, a NULL pointer, and an owner that is released nevertheless."""
    alive = p.alive()
    owner = cls(list(shape))
    seen = capi.consume(owner.__dlpack__(**request_))
    del owner
    assert seen.shape == shape
    assert seen.data is None
    assert seen.tobytes() == b""
    seen.release()
    assert p.alive() == alive


def test_failing_memory_in_python(script):
    """faults 8, 9, CAP-21: if Python cannot allocate the capsule or a tuple, everything made before is released."""
    pytest.importorskip("_testcapi")
    ended = script(
        """
import _testcapi, gc, sys
import dlpack_probe as p
import capi
owners = [p.Probe([4]), p.WProbe([4]), p.Mutable([1.0]), p.Exclusive([1.0]), p.Owned([1.0]), p.Batch(2), p.take(p.Probe([4]))]
acts = [
    lambda o: o.__dlpack__(max_version=(1, 0)),
    lambda o: o.__dlpack__(),
    lambda o: o.__dlpack__(copy=True),
    lambda o: o.__dlpack_device__(),
    lambda o: p.status_of_export(type(o).__c_dlpack_exchange_api__, o),
    lambda o: p.take(o),
    lambda o: o.rewards if isinstance(o, p.Batch) else None,
]
failed = 0
for owner in owners:
    for act in acts:
        act(owner)
        gc.collect()
        held, alive = sys.getrefcount(owner), p.alive()
        for k in range(60):
            _testcapi.set_nomemory(k, k + 1)
            try:
                result = act(owner)
            except MemoryError:
                failed += 1
            except BaseException as error:
                # Code of Python around the call may replace the exception.
                failed += 1
            finally:
                _testcapi.remove_mem_hooks()
            result = None
            gc.collect()
            assert sys.getrefcount(owner) == held, (owner, acts.index(act), k)
            assert p.alive() == alive, (owner, k)
        if isinstance(owner, (p.Mutable, p.Exclusive)):
            owner.push(1.0)
print("failed", failed)
""",
        # PyO3 panics if it cannot allocate a string, and prints that.
        noisy=True,
    )
    assert int(ended.out.split()[1]) > 20


def failing(whose):
    """The beginning of a script that lets allocations fail, those of Python or those of Rust."""
    return f"""
import _testcapi
import dlpack_probe as p
whose = {whose!r}
start = p.set_nomemory_in_rust if whose == "rust" else _testcapi.set_nomemory
stop = p.remove_nomemory_in_rust if whose == "rust" else _testcapi.remove_mem_hooks
"""


@pytest.mark.parametrize("whose", ["python", "rust"])
@pytest.mark.usefixtures("memory_can_fail")
def test_failing_memory_in_imports(script, whose):
    """Own faults 15: an import whose allocation fails, here or in Python, is a `MemoryError`; the tensor is released, or still
    belongs to the caller."""
    ended = script(
        failing(whose)
        + """
import gc, sys
import capi
sys.unraisablehook = lambda what: None

owner = p.WProbe([2, 3])

def capsule(shape):
    return capi.make_capsule(p.loose(shape), capi.VERSIONED, RELEASE)

def release(capsule):
    name = capi._raw_name(capsule)
    if name == capi.VERSIONED.value:
        capi.Seen(capi._raw_pointer(capsule, name), True).release()

release = capi._DESTRUCTOR(release)
RELEASE = capi._address(release)
made = [lambda: owner, lambda: capsule([2, 3]), lambda: p.Tensor.from_dlpack(owner)]
acts = [
    (make, act)
    for make in made
    for act in (p.take, p.adopt, p.take_points, p.first, lambda it: p.Tensor.from_dlpack(it, copy=True))
]
acts += [(lambda: capsule([6]), p.adopt)]
# The text of a refusal may fail to allocate, too.
acts += [(make, lambda it: p.Tensor.from_dlpack(it, device=(2, 0))) for make in made]
if whose == "python":
    # PyO3 adds a text before ours.
    acts.append((lambda: capsule([6]), p.take_points))
ways = [("nothing", "well"), ("buffer", "well"), ("tensor", "error"), ("nothing", "error")]

def outcome(act, thing):
    try:
        act(thing)
    except BaseException as error:
        return type(error)

# A new global name may make the module's dictionary grow, which may fail.
found = status = error = _ = None
failed = 0
for number, (make, act) in enumerate(acts):
    expected = outcome(act, make())
    gc.collect()
    alive, held = p.alive(), sys.getrefcount(owner)
    for k in range(100):
        thing = make()
        start(k, k + 1)
        try:
            found = outcome(act, thing)
        finally:
            stop()
        # PyO3 panics if it cannot allocate a string or a tuple.
        assert found in (expected, MemoryError) or whose == "python", (number, k, found)
        failed += found is not expected
        del thing
        gc.collect()
        assert (p.alive(), sys.getrefcount(owner)) == (alive, held), (number, k, found)
for cls in [p.Tensor, p.Points, p.Adopted, p.Greedy]:
    for how in ways:
        table, alive = cls.__c_dlpack_exchange_api__, p.alive()
        for k in range(30):
            p.Greedy.next(*how)
            tensor = p.loose([2, 3] if cls is not p.Greedy else [6])
            start(k, k + 1)
            try:
                status, _, error = p.status_of_import(table, tensor)
            except BaseException:
                # The tuple could not be allocated, so the earlier result is that of a call with memory.
                refused = cls is p.Greedy and how == ("nothing", "error")
                status, error = (-1, MemoryError()) if refused else (0, None)
            finally:
                stop()
            kept = len(p.Greedy.kept())
            assert (status == 0) == (error is None), (cls, how, k, error)
            assert type(error) in (type(None), MemoryError) or how[1] == "error", (cls, how, k, error)
            failed += status
            assert p.alive() == alive + (1 if status or kept else 0), (cls, how, k, status)
            if status:
                assert not kept
                capi.Seen(tensor, True).release()
            p.Greedy.let_go()
            error = None
            gc.collect()
            assert p.alive() == alive, (cls, how, k)
print(failed)
""",
        # PyO3 panics if it cannot allocate a string, and prints that.
        noisy=True,
    )
    assert int(ended.out) != 0


REFUSALS = """
import ctypes, gc, sys
import capi
import dlpack_probe as p

kept = []

def borrowed():
    kept.append(p.Exclusive([1.0]))
    kept.append(kept[0].__dlpack__(max_version=(1, 0)))
    return kept[0]

def panicking():
    owner = p.PanicInDescribe([1.0])
    owner.arm(True)
    return owner

new = {"max_version": (1, 0)}
owners = {
    "out of bounds": (p.Probe([9], items=3), new),
    "too large": (p.Probe([2**62, 2**62], strides=[0, 0], items=1), new),
    "skipped variant": (p.Audio.Silence(), new),
    "a bool that is none": (p.Raw([7], p.Kind.Bool), new),
    "no copy": (p.Probe([3]), {"copy": False}),
    "no such device": (p.Probe([3]), {"dl_device": (2, 0), **new}),
    "an odd device": (p.Probe([3]), {"dl_device": (2**40, 0)}),
    "an argument by place": (p.Probe([3]), (None,)),
    "an odd keyword": (p.Probe([3]), {"unknown": None}),
    "an odd version": (p.Probe([3]), {"max_version": (1,)}),
    "a version of no numbers": (p.Probe([3]), {"max_version": (object(), 1.0)}),
    "a version below 0": (p.Probe([3]), {"max_version": (-1, 2**200)}),
    "an odd copy": (p.Probe([3]), {"copy": 1}),
    "an odd stream": (p.Probe([3]), {"stream": "1"}),
    "a stream too large": (p.Probe([3]), {"stream": 2**200}),
    "a stream of the processor": (p.Probe([3]), {"stream": 1, **new}),
    "a version of the draft": (p.Draft([1.0]), {"version": 70}),
    "two versions": (p.Draft([1.0]), {"version": 100, **new}),
    "borrowed": (borrowed(), new),
    "a copy from a device": (p.Elsewhere(2), {"copy": False, "dl_device": (1, 0), **new}),
    "no driver": (p.Elsewhere(2), {"dl_device": (1, 0), **new}),
}
panics = {"a panic": (panicking(), new), "a panic again": (p.PanicByHand(), new)}

def ask(owner, request):
    return owner.__dlpack__(*request) if type(request) is tuple else owner.__dlpack__(**request)

def device(owner, _):
    return owner.__dlpack_device__()

def table(owner, _):
    tables[type(owner)](owner, out)

out = ctypes.byref(ctypes.c_void_p())
kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
classes = {type(owner) for owner, _ in [*owners.values(), *panics.values()]}
tables = {it: kind(capi.Exchange(it).table.managed_tensor_from_py_object_no_sync) for it in classes}

def outcome(act, owner, request):
    try:
        act(owner, request)
    except BaseException as error:
        return error

def kind_of(error):
    # Errors of CPython itself if it cannot allocate a frame of the traceback, and those of ctypes.
    other = str(error) == "error return without exception set" or type(error) is ctypes.ArgumentError
    return MemoryError if other else type(error)
"""


def test_refusals_leave_nothing_behind(script):
    """Own faults 12: objects of a refused call are released at once, and not by the next call of a PyO3 function."""
    ended = script(
        REFUSALS
        + """
acts = [(why, ask, *owner) for why, owner in {**owners, **panics}.items()]
acts += [(why, act, *owner) for why, owner in {**owners, **panics}.items() for act in (device, table)]
acts = [it for it in acts if outcome(*it[1:]) is not None]
for why, act, owner, request in acts:
    outcome(act, owner, request)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(300):
        outcome(act, owner, request)
    grown = sys.getallocatedblocks() - before
    assert grown < 100, (why, act.__name__, grown)
print(len(acts))
""",
        noisy=True,
        RUST_BACKTRACE="0",
        DLPACK_LIBCUDA="none",
    )
    assert int(ended.out) > 30


@pytest.mark.parametrize("whose", ["python", "rust"])
@pytest.mark.parametrize("fails", ["one", "all"])
@pytest.mark.usefixtures("memory_can_fail")
def test_failing_memory_in_refusals(script, whose, fails):
    """Own faults 9, 14: if an allocation fails during a refusal, in Rust or in Python, it is a `MemoryError`, and nothing is kept."""
    ended = script(
        REFUSALS
        + failing(whose)
        + f"fails = {fails!r}"
        + """
if whose == "python":
    # A Rust panic needs memory of Rust for its payload, so these are tested only with failures of Python.
    owners.update(panics)

def attempt(act, owner, request, first, end):
    try:
        start(first, end)
        return outcome(act, owner, request)
    except BaseException as error:
        return error

gc.freeze()
# A new global name may make the module's dictionary grow, which may fail.
found, failed = None, 0
for why, (owner, request) in owners.items():
    for act in ask, device, table:
        expected = kind_of(outcome(act, owner, request))
        if expected is type(None):
            continue
        gc.collect()
        held, alive = sys.getrefcount(owner), p.alive()
        k = well = 0
        # Some failed allocations have no effect, so the loop ends after several successes in a row.
        while well < 10:
            found = attempt(act, owner, request, k, k + 1 if fails == "one" else 0)
            stop()
            found = kind_of(found)
            assert found in (expected, MemoryError), (why, act, k, found)
            gc.collect()
            assert (sys.getrefcount(owner), p.alive()) == (held, alive), (why, act, k)
            failed += found is MemoryError
            well = 0 if found is MemoryError else well + 1
            k += 1
print(failed)
""",
        noisy=True,
        RUST_BACKTRACE="0",
        DLPACK_LIBCUDA="none",
    )
    assert int(ended.out) > 20


@pytest.mark.parametrize("whose", ["python", "rust"])
@pytest.mark.parametrize("fails", ["one", "all"])
def test_failing_memory_in_deleters(script, whose, fails):
    """Own faults 9, 14: a release needs no memory, also if the owner panics, and panics again."""
    pytest.importorskip("_testcapi")
    script(
        REFUSALS
        + failing(whose)
        + f"fails = {fails!r}"
        + """
import functools
makers = [lambda: p.Probe([4]), lambda: p.WProbe([4]), lambda: p.Mutable([1.0]), lambda: p.Exclusive([1.0])]
makers += [lambda: p.Owned([1.0]), lambda: p.Batch(2).rewards, lambda: p.take(p.Probe([4]))]
def panics_again():
    return p.PanicInOwner([1.0], again=True)

# The last of many tensors, each of which keeps the next.
makers.append(lambda: functools.reduce(lambda tensor, _: p.take(tensor), range(60), p.Probe([4])))
if whose == "python":
    # A Rust panic needs memory of Rust for its payload, so these are tested only with failures of Python.
    makers += [lambda: p.PanicInOwner([1.0]), panics_again]

def capsule(owner):
    return [owner.__dlpack__(**new)].clear

def legacy_capsule(owner):
    return [owner.__dlpack__(copy=True)].clear

def deleter(owner, kind=ctypes.PYFUNCTYPE):
    seen = capi.export(owner)
    seen.released = True
    release, address = kind(None, ctypes.c_void_p)(seen.struct.deleter), ctypes.c_void_p(seen.address)
    return lambda: release(address)

def deleter_not_attached(owner):
    return deleter(owner, ctypes.CFUNCTYPE)

def attempt(release, first, end):
    try:
        start(first, end)
        release()
    except (MemoryError, ctypes.ArgumentError) as error:
        return error

gc.freeze()
# A new global name may make the module's dictionary grow, which may fail.
without = None
for make in makers:
    for way in capsule, legacy_capsule, deleter, deleter_not_attached:
        if way == legacy_capsule and make == panics_again:
            # PyO3 drops the original of a copy, and a second panic there would abort the process.
            continue
        for k in range(12):
            alive = p.alive()
            release = way(make())
            without = attempt(release, k, k + 1 if fails == "one" else 0)
            stop()
            if p.alive() != alive:
                # Python could not allocate the call.
                assert without is not None, (way, k)
                release()
            release = without = None
            gc.collect()
            assert p.alive() == alive, (way, k)
""",
        noisy=True,
        RUST_BACKTRACE="0",
    )


def test_texts_without_memory(script):
    """Own faults 14: a text that cannot be allocated is a `MemoryError`."""
    script(
        """
import dlpack_probe as p
tensor = p.take(p.Probe([2, 3]))
for ask in repr, lambda it: it.dtype:
    failed = 0
    for k in range(20):
        for end in k + 1, 0:
            p.set_nomemory_in_rust(k, end)
            try:
                found = ask(tensor)
            except MemoryError:
                found = None
            p.remove_nomemory_in_rust()
            failed += found is None
            assert found == (ask(tensor) if found else None)
            assert found or k < 10
    assert failed

# PyO3 keeps the text of an exception in a box, whose allocation was tested just before.
raised = []
for first, end in [(0, 1), (0, 0), (1, 2), (1, 0), (3, 4)]:
    p.set_nomemory_in_rust(first, end)
    try:
        p.refuse()
    except Exception as error:
        raised.append(type(error))
    p.remove_nomemory_in_rust()
assert raised == 4 * [MemoryError] + [BufferError]
"""
    )


@pytest.mark.parametrize("whose", ["python", "rust"])
def test_failing_memory_in_buffers(script, whose):
    """Own faults 15: a buffer request whose allocation fails is a `MemoryError`, and releases the object."""
    pytest.importorskip("_testcapi")
    script(
        failing(whose)
        + """
import sys

class Plain:
    # The control, without our code: from 3.12 on CPython itself leaks the result of `__buffer__` if a later allocation fails.
    def __init__(self):
        self.bytes = bytearray(8)
    def __buffer__(self, flags):
        return memoryview(self.bytes)

def count(thing):
    return sys.getrefcount(thing.bytes if type(thing) is Plain else thing)

def attempt(make, all_of_them):
    make_view = memoryview
    make_view(make()).release()
    kept = failed = 0
    for k in range(12):
        thing = make()
        held = count(thing)
        start(k, 0 if all_of_them else k + 1)
        try:
            make_view(thing).release()
        except MemoryError:
            failed += 1
        stop()
        kept += count(thing) - held
        if type(thing) is p.Buffered and count(thing) == held:
            # `clear` fails while a buffer is alive.
            thing.clear()
    return kept, failed

for all_of_them in False, True:
    known = 0
    if sys.version_info >= (3, 12):
        known, _ = attempt(Plain, all_of_them)
    kept, failed = attempt(lambda: p.Buffered([0.0, 1.0]), all_of_them)
    assert known <= 1 and kept <= known, (kept, known)
    # Our code allocates nothing; Python allocates the lender and the memoryview.
    assert failed == 0 if whose == "rust" else failed > 1, failed
"""
    )


def test_failing_memory_in_the_allocator(script):
    """Own faults 14: the allocator of the table reports the error, or that its text could not be allocated."""
    script(
        """
import ctypes
import capi
import dlpack_probe as p
exchange, out = capi.Exchange(p.Probe), ctypes.c_void_p()
prototype = capi.DLTensor()
prototype.dtype, prototype.device = capi.DLDataType(99, 8, 1), capi.DLDevice(1, 0)
place = ctypes.create_string_buffer(128)
misaligned = capi.DLTensor.from_address(-(-ctypes.addressof(place) // 8) * 8 + 1)
for bad, where, kind, words in [
    (prototype, out, b"BufferError", b"no data type"),
    (misaligned, out, b"BufferError", b"no multiple of 8"),
    (prototype, None, b"ValueError", b"found NULL"),
]:
    texts = set()
    for k in range(40):
        for end in k + 1, 0:
            p.set_nomemory_in_rust(k, end)
            status, said = exchange.allocate(bad, where, True)
            p.remove_nomemory_in_rust()
            assert (status, said[0][1]) == (-1, kind)
            texts.add(said[0][2])
    assert any(words in text for text in texts), texts
    assert len(texts) == (1 if where is None else 2), texts
"""
    )


def test_the_module_is_gone(script):
    """fault 19: an export works, and is released, after the module was deleted."""
    script(
        """
import gc, sys
import capi
import dlpack_probe
probe = dlpack_probe.Probe([3])
seen = capi.export(probe)
capsule = probe.__dlpack__(max_version=(1, 0))
del probe, dlpack_probe, sys.modules["dlpack_probe"]
gc.collect()
assert seen.floats() == [0.0, 1.0, 2.0]
seen.release()
del capsule
gc.collect()
"""
    )


def test_the_producer_dies_first():
    """fault 26: all wrappers of the memory may be dropped before the tensor, in any order."""
    for order in [(0, 1, 2), (2, 1, 0), (1, 0, 2)]:
        probe = p.Probe([3])
        tensor = p.take(probe)
        things = [probe, tensor, p.take(tensor)]
        last = things[order[-1]]
        del probe, tensor
        for at in order[:-1]:
            things[at] = None
        gc.collect()
        seen = capi.export(last)
        things.clear()
        del last
        assert seen.floats() == [0.0, 1.0, 2.0]
        seen.release()


def test_sub_interpreters(script):
    """fault 41, CAP-25: if a module cannot be used in another interpreter, its import says so."""
    ended = script(
        """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit(0)
import dlpack_probe as p
interpreter = interpreters.create()
code = '''
try:
    import dlpack_probe
except ImportError as error:
    assert "interpreter" in str(error)
'''
done = getattr(interpreters, "run_string", None) or interpreters.exec
if sys.version_info >= (3, 12):
    done(interpreter, code)
interpreters.destroy(interpreter)
import capi
capi.export(p.Probe([2])).release()
print("well")
"""
    )
    assert ended.out.split() in ([], ["well"])


# Creates interpreters that share the lock of the main one, which may load modules of any kind.
SUB_INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit(0)
if hasattr(interpreters, "exec"):
    create, run = (lambda: interpreters.create("legacy")), interpreters.exec
else:
    create, run = (lambda: interpreters.create(isolated=False)), interpreters.run_string
"""


def test_a_module_that_two_interpreters_have(script):
    """fault 41, CAP-25: a module without submodules can be imported in a second interpreter, if that shares the lock of the main
    one. This one has submodules, so its object is passed by its address. Each use of an array is refused, also after the main
    interpreter has used arrays."""
    ended = script(
        SUB_INTERPRETERS
        + """
import array
import dlpack_probe as p
memoryview(p.Mutable([1.0])).release()
p.take(array.array("d", [1.0]))
interpreter = create()
uses = [
    "p.take(array.array('d', [1.0]))",
    "memoryview(p.Mutable([1.0]))",
    "p.Mutable([1.0]).__dlpack__()",
    "p.Mutable([1.0]).__dlpack__(max_version=(1, 0))",
    "p.Batch(2).rewards",
    "setattr(p.differential.Fields(1), 'adopted', array.array('d', [1.0]))",
    "p.views.total(array.array('d', [1.0]))",
    "p.on_records(p.record_layouts()[0], 'read', array.array('d', [1.0]))",
    "__import__('numpy'); p.views.total(__import__('numpy').ones(2))",
    "p.take(__import__('numpy').ones(2))",
]
for use in uses:
    failed = run(interpreter, '''
import array, ctypes
p = ctypes.cast(ADDRESS, ctypes.py_object).value
try:
    USE
except (ImportError, BufferError) as error:
    # In a free-threaded Python, NumPy itself refuses such an interpreter.
    assert "interpreter" in str(error), error
    print("refused")
'''.replace("USE", use).replace("ADDRESS", str(id(p))))
    assert failed is None, failed
print(len(uses), "uses")
interpreters.destroy(interpreter)
""",
        timeout=60,
        # NumPy warns about sub-interpreters.
        noisy=True,
    )
    assert ended.out.split("\n") in ([""], 10 * ["refused"] + ["10 uses", ""])


def test_a_module_that_a_sub_interpreter_has_alone(script):
    """fault 41, CAP-25: classes are refused in a sub-interpreter at once and with a text. Before Python 3.12 it is unknown there
    whether a thread is attached, so a `memoryview`, or the release of an import, would wait for the lock that its own thread
    holds. Later versions would release an object after its interpreter has ended."""
    ended = script(
        SUB_INTERPRETERS
        + """
interpreter = create()
code = '''
import array
try:
    import dlpack_probe as p
except (ImportError, RuntimeError) as error:
    while error.__cause__:
        error = error.__cause__
    assert isinstance(error, ImportError) and "interpreter" in str(error), error
    print("refused")
else:
    owner = p.Mutable([1.0])
    memoryview(owner).release()
    p.take(owner)
    p.take(array.array("d", [1.0]))
    print("used")
'''
failed = run(interpreter, code)
assert failed is None, failed
interpreters.destroy(interpreter)
# The main interpreter can use the module nevertheless.
exec(code)
""",
        timeout=30,
    )
    assert ended.out.split() in ([], ["refused", "used"])


def test_a_deleter_takes_no_lock_that_python_may_wait_for():
    """fault 42: exports made and released inside of a deleter, or during another export."""
    other = p.WProbe([2])
    held = capi.references(other)

    def again():
        capi.export(other).release()
        p.take(other)

    for _ in range(3):
        owner = p.Reentrant([1.0, 2.0], again, again)
        seen = capi.export(owner)
        del owner
        seen.release(gil=False)
    assert capi.references(other) == held


@pytest.mark.parametrize("strides", [[17, 1], [-3, 1], [0, 1], [2**62, 1]])
def test_strides_of_single_elements(strides):
    """faults 52, 53, 62, LAY-17: strides of axes of size 1 are arbitrary, and every element stays in bounds."""
    owner = p.Probe([1, 4], strides=strides, items=4)
    seen = capi.export(owner)
    assert seen.floats() == [0.0, 1.0, 2.0, 3.0]
    assert seen.strides[1] == 1
    seen.release()
    assert p.look(owner)["floats"] == [0.0, 1.0, 2.0, 3.0]


SHAPES = [
    (0,), (1,), (5,), (), (0, 0), (0, 1), (1, 0), (3, 0), (0, 3), (2, 3), (1, 1), (2, 0, 3), (0, 2, 3), (2, 3, 0),
    (1, 0, 1), (1, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_packed_strides(shape, version):
    """fault 56, LAY-18: sixteen shapes, each with the strides that an importer considers contiguous."""
    expected, size = [], 1
    for extent in reversed(shape):
        expected.insert(0, size)
        size *= max(1, extent)
    seen = capi.consume(p.WProbe(list(shape)).__dlpack__(max_version=version))
    assert list(seen.strides) == expected
    seen.release()


@pytest.mark.parametrize("rank", [*range(0, 10), 31, 32, 33, 63, 64])
def test_ranks(rank):
    """fault 57, LAY-20: 0 to 64 axes, in both structs, with and without a copy, exported and imported."""
    shape = [2 if axis in (0, rank - 1) else 1 for axis in range(rank)]
    owner = p.WProbe(shape, "uint8")
    for request in [{}, {"max_version": (1, 0)}, {"copy": True, "max_version": (1, 0)}]:
        seen = capi.consume(owner.__dlpack__(**request))
        assert seen.shape == tuple(shape)
        assert seen.tobytes() == owner.tobytes()
        seen.release()
    assert p.take(owner).ndim == rank
    assert p.look(owner)["bytes"] == owner.tobytes()


def test_the_id_of_the_processor():
    """fault 82, DEV-03: the ID of the CPU device is 0."""
    for owner in [p.Probe([1]), p.take(p.Probe([1])), p.Mutable([1.0])]:
        assert owner.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("count", [1, 3, 64, 1000])
def test_alignment(count):
    """faults 86, 87, CPY-14: memory that we allocate is aligned for the strictest consumers."""
    for name in ["uint8", "float32", "complex128"]:
        for owner, request in [
            (p.WProbe([count], name), {"max_version": (1, 0)}),
            (p.Probe([count], name), {"max_version": (1, 0), "copy": True}),
            (p.Probe([count], name), {}),
        ]:
            seen = capi.consume(owner.__dlpack__(**request))
            assert seen.data % 256 == 0
            seen.release()
        seen = capi.export(p.Probe([count], name))
        assert seen.data % 64 == 0
        seen.release()


@pytest.mark.parametrize("cls, read_only", [(p.Probe, True), (p.WProbe, False)])
def test_the_flags(cls, read_only):
    """faults 29, 75, 76, FLG-01, FLG-02, FLG-10: the flags read-only and copied are right, and no other bit is set."""
    owner = cls([3])
    for request, expected in [
        ({}, capi.READ_ONLY if read_only else 0),
        ({"copy": False}, capi.READ_ONLY if read_only else 0),
        ({"copy": True}, capi.IS_COPIED),
    ]:
        seen = capi.export(owner, **request)
        assert seen.flags == expected
        seen.release()
        assert p.take(owner).readonly == read_only


def test_a_returned_tensor_has_one_owner():
    """fault 10: a tensor that a function returns has one owner."""
    made = p.take(p.Probe([2]))
    before = p.alive()
    del made
    assert p.alive() == before - 1


def test_a_consumer_that_refuses(numpy):
    """faults 44, 45, 47, CAP-16, CAP-17, CAP-23: NumPy drops the capsule while its own error is pending, and that error is raised."""
    for make in [
        lambda: p.Probe([2], "float8_e4m3"),
        lambda: p.WProbe([2], lanes=2),
        lambda: p.take(p.Probe([2], "float8_e4m3")),
    ]:
        owner = make()
        held = capi.references(owner)
        with pytest.raises((BufferError, RuntimeError), match="(?i)dtype|lanes|type"):
            numpy.from_dlpack(owner)
        assert capi.references(owner) == held


def test_numpy_cannot_write(numpy):
    """faults 29, 76, 88: NumPy respects the read-only flag of our memory."""
    probe = p.Probe([3])
    array = numpy.from_dlpack(probe)
    assert array.ctypes.data == probe.data_ptr
    assert not array.flags.writeable
    with pytest.raises(ValueError):
        array[0] = 1
    shared = p.WProbe([3])
    array = numpy.from_dlpack(shared)
    array[0] = 7
    assert p.look(shared)["floats"] == [7.0, 1.0, 2.0]
    exclusive = p.Exclusive([1.0])
    array = numpy.from_dlpack(exclusive)
    array[0] = 5
    del array
    assert exclusive.get(0) == 5.0


def test_a_renamed_capsule_that_fails():
    """faults 3, 4: the importer renames the capsule before anything can fail, and releases the tensor on failure."""

    class Producer(capi.Foreign):
        def __dlpack__(self, **request):
            self.handed = self.capsule()
            return self.handed

    for bad in [dict(dtype=(99, 8, 1)), dict(shape=(-1, 3)), dict(data=None), dict(version=(3, 0))]:
        producer = Producer(**bad)
        with pytest.raises(BufferError):
            p.take(producer)
        name = capi.capsule_name(producer.handed)
        # Either the tensor was imported and released, or the capsule still owns it and releases it.
        assert (name == b"used_dltensor_versioned") == (producer.deleted == 1)
        del producer.handed
        gc.collect()
        assert producer.deleted == 1
