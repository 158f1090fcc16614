"""Runs the cases for one library: worker.py NAME [--from CASE] [--exit HOW]

Prints a line of JSON when it starts a case and one when the case is over, so that the last line
tells which case crashed the process. Nothing else is printed to standard output.
"""

import argparse
import ctypes
import gc
import json
import os
import platform
import struct
import sys
import threading
import time
from fnmatch import fnmatchcase

import capsule
from adapters import KNOWN_OF_ALL, adapter
from capsule import DTYPES, NAMES, bits_of
from cases import CASES
from dlpack_probe import Probe, WProbe, views

# Libraries print to stdout, so the lines for the reader use a duplicate of its descriptor.
lines = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def tell(**fields):
    print(json.dumps(fields), file=lines, flush=True)


class Wrong(Exception):
    """The library shows other contents than it got, or the owner did not live as long as it must."""


class Asked:
    """Forwards the protocol to a tensor of ours, with some of the keywords replaced."""

    def __init__(self, tensor, watch=None, **forced):
        self.tensor, self.watch, self.forced = tensor, watch, forced
        self.error = None

    def __dlpack__(self, **keywords):
        try:
            made = self.tensor.__dlpack__(**keywords | self.forced)
        except BaseException as error:
            self.error = error
            raise
        return self.watch(made) if self.watch else made

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def settle(expected, what, patience=3.0):
    """Waits until this many owners are left: some libraries release on their own thread."""
    end = time.monotonic() + patience
    while True:
        gc.collect()
        left = Probe.alive()
        if left == expected:
            return
        if time.monotonic() > end:
            raise Wrong(f"{what}: {left} owners are left instead of {expected}")
        time.sleep(0.01)


def make(case):
    kind = Probe if case.get("readonly") else WProbe
    code, bits, lanes = DTYPES[case.get("dtype", "float32")]
    keywords = {"dtype": NAMES[code, bits, 1], "lanes": lanes, "padded": case.get("padded", False)}
    return kind(case["shape"], strides=case.get("strides"), offset=case.get("offset", 0), **keywords)


def expected(tensor, case, raw=False):
    """The contents that a library must show, read from the memory of the tensor."""
    dtype = case.get("dtype", "float32")
    pointer = tensor.data_ptr + case.get("offset", 0) * bits_of(dtype) // 8
    # A padded type has one byte for each element, like uint8.
    seen = capsule.seen(pointer, case["shape"], case.get("strides"), "uint8" if case.get("padded") else dtype)
    seen = seen._replace(dtype=dtype)
    if bits_of(dtype) >= 8 and seen.data != tensor.tobytes():
        raise Wrong("our `tobytes` says something else than our memory")
    if raw:
        # Contiguous memory in any order, because such a library accepts nothing else.
        return seen._replace(shape=None, dtype=None, data=ctypes.string_at(pointer, len(seen.data)))
    return seen


def read(library, case):
    """Imports one tensor, compares every part of it, writes through it, drops it; returns "zero" or "copy"."""
    before = Probe.alive()
    tensor = make(case)
    want = expected(tensor, case, library.raw)
    keywords, forced = {}, dict(case.get("forced", {}))
    if "copy" in case:
        (keywords if library.copy else forced)["copy"] = case["copy"]
    taken = library.take(Asked(tensor, **forced) if forced else tensor, **keywords)
    seen = library.look(taken)

    if (seen.shape, seen.dtype) != (want.shape, want.dtype):
        raise Wrong(f"seen as {seen.dtype} {seen.shape} instead of {want.dtype} {want.shape}")
    if seen.data != want.data:
        raise Wrong(f"bytes {seen.data[:12].hex()}.. instead of {want.data[:12].hex()}..")
    shared = bool(want.data) and seen.pointer == want.pointer
    copied = bool(want.data) and not shared
    if case.get("copy") is True:
        if shared:
            raise Wrong("shares memory though a copy was asked for")
        copied = False  # as it should be
    elif case.get("copy") is False and copied:
        raise Wrong("copied though `copy=False` was asked for")
    # Tensors with overlapping elements are exported read-only.
    readonly = case.get("readonly", False) or 0 in (case.get("strides") or ())
    # A legacy capsule has no read-only flag, so a library may treat it as read-only.
    if shared and library.poke and not forced and seen.readonly not in (None, readonly):
        raise Wrong(f"says read-only: {seen.readonly}, instead of {readonly}")
    if library.poke and case.get("write"):
        written(library, taken, tensor, want.data, shared, readonly)
    after = library.look(taken).data
    del tensor
    if shared:
        gc.collect()
        if Probe.alive() != before + 1:
            raise Wrong(f"{Probe.alive() - before} owners while the library has the tensor")
    if library.look(taken).data != after:
        raise Wrong("the data changed when the producer's object was dropped")
    del taken, seen
    settle(before, "after the drop")
    return "copy" if copied else "zero"


def written(library, taken, tensor, data, shared, readonly):
    """Writes through the library's tensor, and checks which memory changed."""
    try:
        library.poke(taken)
    except Exception as error:
        if readonly:
            return
        raise Wrong(f"cannot write to writable data: {type(error).__name__}: {error}") from None
    changed = tensor.tobytes() != data
    if changed and readonly:
        raise Wrong("wrote through READ_ONLY into the producer's memory")
    if changed != shared:
        raise Wrong("a write did not arrive" if shared else "a write to a copy arrived")


def argument(library, case):
    """Passes the library's own array to a function of ours that takes a typed view."""
    before = Probe.alive()
    tensor = make(case)
    want = expected(tensor, case).data
    taken = library.take(tensor)
    elements = views.elements(taken)
    if struct.pack(f"{len(elements)}i", *elements) != want:
        raise Wrong(f"read as {elements[:6]}..")
    del tensor, taken
    settle(before, "after the call")


def many(library, case):
    """Keeps many imports of one object, and drops them in another order, and then the object."""
    before = Probe.alive()
    tensor = make(case)
    data = tensor.tobytes()
    held = [library.take(tensor) for _ in range(case["count"])]
    for taken in held[::7]:
        if library.look(taken).data != data:
            raise Wrong("one of them reads something else")
    taken = None
    while held:
        del held[len(held) // 2]
    del tensor
    settle(before, "after all drops")


def counted(library, case):
    """Puts a counter in front of each deleter; three imports, the middle one dropped first."""
    before = Probe.alive()
    tensor, deleters = make(case), capsule.Deleters()
    held = [library.take(Asked(tensor, watch=deleters.watch)) for _ in range(3)]
    del tensor
    held[1] = None
    gc.collect()
    held.clear()
    settle(before, "after the drops")
    # No call is right, too, if the capsule was dropped unconsumed: then its destructor released the owner.
    if any(calls > 1 for calls in deleters.calls):
        raise Wrong(f"deleters were called {deleters.calls} times")


def unused(library, case):
    """Unconsumed capsules of both kinds, while the library is loaded."""
    before = Probe.alive()
    tensor = make(case)
    for version in (None, (0, 8), (1, 0), (1, 99), (2, 0)):
        tensor.__dlpack__(max_version=version)
        one = tensor.__dlpack__(max_version=version, copy=True)
        if Probe.alive() < before + 1:
            raise Wrong("the owner died")
        del one
    del tensor
    settle(before, "after the drops")


def thread(library, case):
    """Drops on a Python thread, and on the library's own thread if it has one."""
    before = Probe.alive()
    held = [library.take(make(case))]
    dropping = threading.Thread(target=held.clear)
    dropping.start()
    dropping.join()
    settle(before, "after a drop on a thread")
    if library.busy:
        tensor = make(dict(case, shape=(300, 300)))
        taken = library.take(tensor)
        del tensor
        result = library.busy(taken)
        del taken
        result.block_until_ready()
        del result
        settle(before, "after a drop by a thread of the library")


def cycle(library, case):
    """Leaves the tensor to the cycle collector."""
    before = Probe.alive()
    held = [library.take(make(case))]
    held.append(held)
    del held
    settle(before, "after the collection")


def at_exit(library, how):
    """Exits the interpreter while the library keeps a tensor."""
    case = {"shape": (300, 300)}
    taken = library.take(make(case))
    if how == "in a global":
        globals()["kept"] = taken
    elif how == "on a daemon thread":
        # The thread does not call the library: JAX aborts then, with any producer.
        running = threading.Event()

        def hold(taken, tensor):
            running.set()
            while True:
                tensor.__dlpack__(max_version=(1, 0))
                tensor.__dlpack__(copy=True)

        threading.Thread(target=hold, args=(taken, make(case)), daemon=True).start()
        running.wait()
    elif how == "in a cycle":
        # Collected during finalization, because no other code frees the list.
        kept = [taken]
        kept.append(kept)
        gc.disable()
    elif how == "while it is used":
        if library.busy:
            library.busy(taken)
    else:
        sys.exit(f"no such exit: {how}")


ACTIONS = {"read": read, "argument": argument, "many": many, "counted": counted, "unused": unused, "thread": thread, "cycle": cycle}


def refuser(library, case, words):
    """Which side refuses: repeats the call with a recorder between us and the library."""
    keywords, forced = {}, dict(case.get("forced", {}))
    if "copy" in case:
        (keywords if library.copy else forced)["copy"] = case["copy"]
    witness = Asked(make(case), **forced)
    try:
        library.take(witness, **keywords)
    except Exception:
        pass
    if library.exchange and str(witness.error) not in words:
        # It used the exchange table, where no recorder can be put in between.
        return "them"
    return "us" if witness.error else "them"


def outcome(library, case):
    """The result of a case, as (outcome, text)."""
    gc.collect()
    before = Probe.alive()
    try:
        return ACTIONS[case["action"]](library, case) or "zero", ""
    except Wrong as wrong:
        return "wrong", str(wrong)
    except Exception as error:
        first = str(error).strip().splitlines()
        words = f"{type(error).__name__}: {first[0] if first else ''}"
        # The traceback keeps the tensor.
        error.__traceback__ = None
    side = refuser(library, case, words)
    try:
        settle(before, f"after `{words}`")
    except Wrong as wrong:
        return "wrong", str(wrong)
    return side, words


def judge(library, name, found):
    """Compares a result with the library's known deviations: (outcome, text, expected or not, stale entries)."""
    known, why = "zero", ""
    for pattern, told in (KNOWN_OF_ALL | library.known).items():
        if fnmatchcase(name, pattern):
            known, why = told
    kind, words = found
    if kind == "wrong" and known == "bug":
        return "bug", f"{why}: {words}", True, ""
    if kind == known:
        if name.startswith("dtype "):
            # A dozen libraries refuse two dozen types, each with another text.
            words = f"{why}: {words.split(':')[0]}" if words else ""
        return kind, words or why, True, ""
    stale = f"{kind} {words}".strip() + f" where {known} is known: {why}" if why else ""
    # A result that is better than the known one is no failure, but is reported.
    return kind, words, kind == "zero", stale


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("name")
    arguments.add_argument("--from", dest="start", type=int, default=0)
    arguments.add_argument("--exit", dest="how")
    options = arguments.parse_args()
    tell(loading=options.name)
    library = adapter(options.name)
    if options.how:
        tell(version=library.version)
        return at_exit(library, options.how)
    tell(version=library.version, python=platform.python_version())
    for index, (name, case) in enumerate(CASES):
        if index < options.start:
            continue
        tell(start=index)
        found = ("zero", "")
        for variant in case["variants"]:
            this = outcome(library, case | variant)
            # The worst of the variants is the cell.
            found = max(found, this, key=lambda pair: ("zero", "copy", "us", "them", "wrong").index(pair[0]))
        kind, words, right, stale = judge(library, name, found)
        tell(case=name, outcome=kind, words=words, expected=right, stale=stale)


main()
