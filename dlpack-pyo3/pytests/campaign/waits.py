"""Threads that wait for a device, on a driver without a GPU: in exports and in deleters, attached or not, and in user code that we
call and that releases the GIL by itself.

No thread releases a GIL that it does not hold. Nothing is freed before its last use, and everything is freed."""

import os
import random
import threading

import dlpack_probe as p
import report

for variable in "DLPACK_LIBCUDA", "DLPACK_LIBAMDHIP64":
    os.environ[variable] = os.environ["DLPACK_SIMULATOR"]

import capi  # noqa: E402
import simulator as sim  # noqa: E402

NEWEST = {"max_version": (1, 3)}
CLASSES = [p.Patient, p.Queued, p.Handed]
THREADS, ROUND = 4, 25


def release_from(way, owner):
    """A function that releases a tensor in one of several ways."""
    if way.endswith("capsule"):
        return [owner.__dlpack__(stream=-1, **({} if way.startswith("legacy") else NEWEST))].clear
    seen = capi.export(owner, stream=-1)
    return {
        "deleter": seen.release,
        "deleter, not attached": lambda: seen.release(gil=False),
        "foreign thread": seen.release_on_foreign_thread,
    }[way]


WAYS = ["capsule", "legacy capsule", "deleter", "deleter, not attached", "foreign thread"]


def one_thread(seed, finished, notes):
    """Appends each case that ends without an exception to `finished`."""
    dice = random.Random(seed)
    what = "no device"
    try:
        gpu = sim.Gpu(dice.choice(["cuda", "hip"]))
        stream = gpu.stream()
        for _ in range(ROUND):
            kind = sim.CUDA_MANAGED if gpu.cuda else sim.ROCM_HOST
            cls, way = dice.choice(CLASSES), dice.choice(WAYS)
            what = f"{cls.__name__}, {way}"
            owner = gpu.written(cls, stream, kind=kind)
            release = release_from(way, owner)
            del owner
            release()
            finished.append(what)
    except BaseException as error:
        notes.append(f"{what}: {error!r}")


def waits(tally):
    dice = random.Random(report.SEED)
    alive = p.alive()
    while not tally.done:
        sim.reset(2)
        finished, notes = [], []
        threads = [threading.Thread(target=one_thread, args=(dice.random(), finished, notes)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sim.hand_over()
        allocations, owners = sim.live(sim.ALLOCATIONS), p.alive() - alive
        notes += sim.faults()
        if allocations or owners:
            notes.append(f"{allocations} allocations and {owners} owners are left")
        for note in notes:
            tally.bad(note)
        tally.good(len(finished))


report.main({"waits for a device": (waits, 100_000, 500)})
