"""Times calls in loops that take turns."""

import random
import statistics
import time
from itertools import repeat

# A turn takes about this many nanoseconds, but at most this many calls.
TURN, MOST_CALLS = 1_000_000, 2000


def loop(body, made, **names):
    """A new function for each producer, because the interpreter specializes each function's code."""
    source = f"def f(n):\n    start = clock()\n    for _ in repeat(None, n):\n        {body}\n    return clock() - start"
    space = {"clock": time.thread_time_ns, "repeat": repeat, "obj": made, **names}
    # Callers of such a method usually have the object in a local variable.
    source = source.replace("f(n)", f"f(n, obj=obj{''.join(f', {name}={name}' for name in names)})")
    exec(source, space)
    return space["f"]


def medians(runs, rounds, calls=None):
    """Nanoseconds of a call of each, minus those of `None`, the empty loop. All take a turn in each round, in a new order."""
    for run in runs.values():
        # The first call may import a library. Counted below, it would shorten all turns of this loop, which makes each call
        # slower.
        run(3)
    some = {name: calls or max(1, min(MOST_CALLS, TURN * 3 // max(1, run(3)))) for name, run in runs.items()}
    for name, run in runs.items():
        run(some[name])
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.sample(list(runs), len(runs)):
            times[name].append(runs[name](some[name]) / some[name])
    found = {name: statistics.median(values) for name, values in times.items()}
    empty = found.pop(None)
    return {name: median - empty for name, median in found.items()}
