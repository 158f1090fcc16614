"""Many threads that use the same objects; `DLPACK_SECONDS` sets the duration."""

import os
import random
import sys
import threading
import time

import capi
import dlpack_probe as p
import pytest

SECONDS = float(os.environ.get("DLPACK_SECONDS", "0.5"))
THREADS = 8


def together(*works):
    """Runs each function on its own thread until the time is over; returns the exceptions."""
    raised, barrier = [], threading.Barrier(len(works))

    def run(work):
        barrier.wait()
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                work()
        except BaseException as error:
            raised.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=run, args=[work]) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if raised:
        raise raised[0]


def export_somehow(owner):
    way = random.randrange(5)
    if way == 0:
        seen = capi.export(owner)
    elif way == 1:
        seen = capi.consume(owner.__dlpack__())
    elif way == 2:
        seen = capi.Exchange(type(owner)).from_object(owner)
    elif way == 3:
        seen = capi.export(owner, copy=True)
    else:
        return owner.__dlpack__(max_version=(1, 0)) and None
    assert seen.tobytes()
    release_somehow(seen)


def release_somehow(seen):
    way = random.randrange(10)
    if way == 0:
        seen.release_on_foreign_thread()
    else:
        seen.release(gil=way % 2 == 0)


@pytest.mark.parametrize(
    "make",
    [lambda: p.Probe([3]), lambda: p.WProbe([3]), lambda: p.Owned([1.0]), lambda: p.take(p.Probe([3])), lambda: p.Batch(3)],
    ids=["frozen", "shared", "owner", "tensor", "several"],
)
def test_exports_of_one_object(make):
    """CAP-13, CAP-12, faults 27, 32, 33: eight threads export and release one object."""
    owner = make()
    held = capi.references(owner)
    together(*[lambda: export_somehow(owner)] * THREADS)
    assert capi.references(owner) == held


def test_objects_released_on_another_thread():
    """CAP-13, CAP-18, CAP-28: objects whose last reference is an export on another thread."""
    alive = p.alive()
    handed, lock = [], threading.Lock()

    def give():
        owner = random.choice([p.Probe, p.WProbe])([3])
        seen = capi.export(owner)
        del owner
        with lock:
            handed.append(seen)

    def take():
        with lock:
            seen = handed.pop() if handed else None
        if seen:
            assert seen.floats() == [0.0, 1.0, 2.0]
            release_somehow(seen)

    together(*[give] * 3, *[take] * 5)
    for seen in handed:
        seen.release()
    assert p.alive() == alive


@pytest.mark.parametrize("cls", [p.Mutable, p.Exclusive])
def test_changes_against_exports(cls):
    """CAP-18, FLG-05: a change either happens while no export lives, or is refused; no export ever dangles."""
    owner = cls([1.0] * 4)
    changed, refused, exported = [0], [0], [0]

    def change():
        try:
            owner.clear()
            for _ in range(4):
                owner.push(1.0)
            changed[0] += 1
        except RuntimeError:
            refused[0] += 1

    def export():
        try:
            seen = random.choice([capi.export, capi.Exchange(cls).from_object])(owner)
        except BufferError:
            return
        exported[0] += 1
        values = seen.floats()
        assert set(values) <= {1.0} and len(values) <= 10_000
        assert seen.floats() == values
        release_somehow(seen)

    def write():
        capsule = None
        try:
            capsule = owner.__dlpack__(max_version=(1, 0))
        except BufferError:
            pass
        del capsule

    together(*[change] * 3, *[export] * 4, write)
    # The scheduler determines how often each ran. Now that nothing keeps the object, both must succeed.
    changes, exports = changed[0], exported[0]
    change()
    export()
    assert (changed[0], exported[0]) == (changes + 1, exports + 1)
    owner.clear()


def test_imports():
    """CAP-13, fault 31: all threads import and drop tensors."""
    probe = p.Probe([3])
    held = capi.references(probe)

    def work():
        tensor = p.take(probe)
        assert p.take(tensor).data_ptr == tensor.data_ptr
        assert p.look(tensor)["floats"] == [0.0, 1.0, 2.0]

    together(*[work] * THREADS)
    assert capi.references(probe) == held


def test_one_capsule_for_many_threads():
    """CAP-24, CAP-22, fault 40: of all threads that import one capsule, exactly one succeeds."""
    winners, alive = [], p.alive()
    state = {}

    class Repeats:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **request):
            return state["capsule"]

    def round_():
        state["capsule"] = p.Probe([3]).__dlpack__(max_version=(1, 0))
        got, barrier = [], threading.Barrier(4)

        def grab():
            barrier.wait()
            try:
                got.append(p.take(Repeats()))
            except (BufferError, ValueError):
                pass

        threads = [threading.Thread(target=grab) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners.append(len(got))

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        round_()
    assert set(winners) == {1}, winners
    state.clear()
    assert p.alive() == alive


def test_one_object_imported_by_many_at_first_use(script):
    """fault 39, CAP-13: eight threads use a class for the first time."""
    for name in ["Probe([3])", "Owned([1.0])", "Audio.Float([1.0])", "ByHand([1.0])"]:
        script(
            f"""
import threading
import dlpack_probe as p, capi
barrier = threading.Barrier(8)
failed = []
def work():
    barrier.wait()
    try:
        owner = p.{name}
        owner.__dlpack_device__()
        capi.export(owner).release()
        capi.Exchange(type(owner)).from_object(owner).release()
        p.take(owner)
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failed, failed
"""
        )
