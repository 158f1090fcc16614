"""One capsule for many consumers: exactly one gets it, in whatever order or at once."""

import gc
import random
import sys
import threading

import dlpack_probe as p
import report

try:
    from numpy import from_dlpack
except ImportError:
    from_dlpack = p.take

THREADS = 4
OURS = [p.take, p.first, p.look, p.adopt, lambda repeats: p.take(repeats.capsule)]
CONSUMERS = [*OURS, from_dlpack]
# Without the GIL, two threads in `np.from_dlpack` can both take one capsule, also one of NumPy (2.4.6, 27 of 20,000 rounds).
AT_ONCE = CONSUMERS if getattr(sys, "_is_gil_enabled", lambda: True)() else OURS


class Repeats:
    """Returns the same capsule for each call."""

    def __init__(self):
        self.capsule = p.Probe([3]).__dlpack__(max_version=(1, 0))

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **request):
        return self.capsule


def consume(repeats, rng, consumers=CONSUMERS):
    """Whether the tensor was taken. A `SharedBuffer` may take it and then refuse it, which consumes it, too."""
    try:
        rng.choice(consumers)(repeats)
    except (BufferError, ValueError, TypeError, RuntimeError) as error:
        return "not fit" in str(error) or "read-only" in str(error)
    return True


def judge(tally, won):
    tally.judge("" if won == 1 else f"{won} consumers got it")


def in_turn(tally):
    rng = random.Random(report.SEED)
    alive = p.alive()
    while not tally.done:
        repeats = Repeats()
        judge(tally, sum(consume(repeats, rng) for _ in range(rng.randrange(1, 5))))
    gc.collect()
    tally.judge("" if p.alive() == alive else f"{p.alive() - alive} owners are left")


def at_once(tally):
    alive = p.alive()
    begin, end = threading.Barrier(THREADS + 1), threading.Barrier(THREADS + 1)
    now, won = [None], [0] * THREADS

    def compete(at):
        rng = random.Random(report.SEED + at)
        while True:
            begin.wait()
            if now[0] is None:
                return
            won[at] = consume(now[0], rng, AT_ONCE)
            end.wait()

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=compete, args=[at]) for at in range(THREADS)]
    for thread in threads:
        thread.start()
    while not tally.done:
        now[0] = Repeats()
        begin.wait()
        end.wait()
        judge(tally, sum(won))
    now[0] = None
    begin.wait()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(5e-3)
    gc.collect()
    tally.judge("" if p.alive() == alive else f"{p.alive() - alive} owners are left")


report.main(
    {
        "one capsule for many, in turn": (in_turn, 200_000, 2_000),
        "one capsule for many, at once": (at_once, 20_000, 300),
    }
)
