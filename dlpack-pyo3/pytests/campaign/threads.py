"""Eight threads that export, import, view, change and drop the same objects, with a tiny switch interval.

A debug build of CPython aborts if a reference count is changed without the GIL.
"""

import collections
import gc
import random
import sys
import threading

import capi
import dlpack_probe as p
import report
import uses

try:
    from numpy import from_dlpack
except ImportError:
    from_dlpack = p.take

THREADS = 8
BATCH = 500
NEWEST = (1, 3)


class Objects:
    def __init__(self):
        self.steady = [p.Probe([3]), p.WProbe([3]), p.Owned([0.0, 1.0, 2.0]), p.Lent(3, 1), p.Open([0.0, 1.0, 2.0])]
        self.steady += [p.take(p.Probe([3])), p.Batch(3)]
        self.changing_shared = [p.WProbe([64]), p.WProbe([3])]
        self.changing = [p.Mutable([1.0] * 3), p.Exclusive([1.0] * 3)]
        self.handed = collections.deque(maxlen=50)
        found, users = uses.uses()
        self.uses = [use for name, use in found.items() if "alone" not in name and "a result" not in name]
        self.steady_users = users

    def held(self):
        gc.collect()
        return [sys.getrefcount(thing) for thing in self.steady + self.changing + self.steady_users]


def acts(objects, rng):
    steady, handed = objects.steady, objects.handed

    def refused(act, *errors):
        try:
            act()
        except errors:
            return
        raise AssertionError("not refused")

    def values():
        assert p.look(rng.choice(steady))["floats"] == [0.0, 1.0, 2.0]

    def table():
        thing = rng.choice(steady)
        status = p.status_of_export(type(thing).__c_dlpack_exchange_api__, thing)
        assert status == (0, True, None), status

    def change():
        thing = rng.choice(objects.changing)
        try:
            thing.push(1.0)
            if len(thing) > 100:
                thing.clear()
        except RuntimeError:
            pass

    def while_it_changes():
        thing = rng.choice(objects.changing)
        try:
            floats = p.look(thing)["floats"]
        except (BufferError, RuntimeError):
            return
        assert floats is not None and set(floats) <= {1.0}

    def hand_over():
        handed.append(rng.choice(steady).__dlpack__(max_version=NEWEST))

    def hand_over_array():
        handed.append(from_dlpack(rng.choice(steady)))

    def hand_over_use():
        handed.append(rng.choice(objects.uses)())

    def let_go():
        try:
            handed.popleft()
        except IndexError:
            pass

    def released_somewhere():
        seen = capi.export(rng.choice(steady))
        if rng.random() < 0.05:
            seen.release_on_foreign_thread()
        else:
            seen.release(gil=False)

    def promised():
        """Views with a promise, of which only one at a time may write."""
        thing = rng.choice(objects.changing_shared)
        try:
            p.make_view(thing, rng.choice(["View, promised", "ViewMut, promised"]))
        except (BufferError, TypeError, RuntimeError) as error:
            assert "view" in str(error) or "borrow" in str(error), error

    return [
        lambda: rng.choice(steady).__dlpack__(max_version=NEWEST),
        lambda: rng.choice(steady).__dlpack__(max_version=NEWEST, stream=None),
        lambda: rng.choice(steady).__dlpack__(),
        lambda: rng.choice(steady).__dlpack__(copy=True, max_version=NEWEST),
        lambda: rng.choice(steady).__dlpack_device__(),
        lambda: refused(lambda: steady[0].__dlpack__(stream=7), ValueError),
        lambda: refused(lambda: steady[0].__dlpack__(dl_device=(2, 0)), BufferError),
        lambda: refused(lambda: steady[0].__dlpack__(no=7), TypeError),
        lambda: p.take(rng.choice(steady)),
        lambda: p.take(p.take(p.WProbe([2]))),
        lambda: from_dlpack(rng.choice(steady)),
        lambda: p.Probe([2]).__dlpack__(max_version=NEWEST),
        lambda: steady[-1].rewards,
        values,
        table,
        change,
        while_it_changes,
        hand_over,
        hand_over_array,
        hand_over_use,
        released_somewhere,
        promised,
        let_go,
        let_go,
    ]


def threads(tally):
    alive = p.alive()
    objects, raised = Objects(), []
    # Makes what each class makes once, before anything is counted.
    for act in acts(objects, random.Random(1)) * 3:
        act()
    objects.handed.clear()
    held = objects.held()
    counts = [0] * THREADS

    def work(at):
        rng = random.Random(report.SEED + at)
        choices = acts(objects, rng)
        try:
            while counts[at] < -(-tally.planned // THREADS) and not raised:
                for act in rng.choices(choices, k=BATCH):
                    act()
                counts[at] += BATCH
        except BaseException as error:
            raised.append(repr(error))

    sys.setswitchinterval(1e-6)
    workers = [threading.Thread(target=work, args=[at]) for at in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        while worker.is_alive():
            worker.join(5)
            tally.good(sum(counts) - tally.count)
    sys.setswitchinterval(5e-3)
    tally.good(sum(counts) - tally.count)
    for note in raised:
        tally.bad(note)
    objects.handed.clear()
    if objects.held() != held:
        tally.bad(f"references: {held} before, {objects.held()} after")
    del objects
    gc.collect()
    if p.alive() != alive:
        tally.bad(f"{p.alive() - alive} owners are left")


report.main({"eight threads": (threads, 10_000_000, 40_000)})
