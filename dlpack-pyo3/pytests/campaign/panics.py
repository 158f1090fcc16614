"""Panics in every user-defined hook, with payloads that panic again when they are dropped: they become exceptions.

Panics in functions that PyO3 itself calls are excluded: they raise `PanicException`, and abort if the payload panics again.
`blow_up` shows it without our code."""

import gc

import dlpack_probe as p
import report

try:
    import numpy
except ImportError:
    numpy = None

NEWEST = {"max_version": (1, 3)}
CLASSES = ["Hooked", "HookedAlone", "HookedType", "HookedOwner", "HookedVia", "HookedQueue", "HookedByHand", "HookedWayBack"]


def operations(owner):
    cls = type(owner)
    table = cls.__c_dlpack_exchange_api__

    def back():
        """An object of this class, made of a foreign tensor."""
        import capi

        seen = capi.export(p.WProbe([3]))
        status, _, exception = p.status_of_import(table, seen.address)
        if status != 0:
            seen.release()
            raise exception

    found = {
        "__dlpack__": lambda: owner.__dlpack__(**NEWEST),
        "legacy": lambda: owner.__dlpack__(),
        "copy": lambda: owner.__dlpack__(copy=True, **NEWEST),
        "device": lambda: owner.__dlpack_device__(),
        "table": lambda: raise_(p.status_of_export(table, owner)[2]),
        "object of a tensor": back,
        "take": lambda: p.take(owner),
        "look": lambda: p.look(owner),
        "inspect": lambda: p.inspect(owner),
        "values": lambda: p.take_points(owner),
        "way back": lambda: p.way_back(owner),
        "way back, of another": lambda: p.way_back(p.WProbe([3])),
    }
    if hasattr(owner, "other"):
        found["attribute"] = lambda: owner.other
    found |= {
        "buffer": lambda: memoryview(owner),
        "view": lambda: p.make_view(owner, "ViewDyn"),
        "view, kept in Rust": lambda: (p.keep_view(owner, "ViewDyn"), p.release_views(thread=True)),
        "pickle, copy": lambda: p.Tensor.from_dlpack(owner).__reduce_ex__(5),
        "copy of a tensor": lambda: p.Tensor.from_dlpack(owner, copy=True),
        "part": lambda: p.Tensor.from_dlpack(owner)[1:],
    }
    if cls is p.HookedAlone:
        found["view, written"] = lambda: p.make_view(owner, "ViewMutDyn")
        found["update"] = lambda: p.panic_in_update(owner)
    if numpy:
        found["numpy"] = lambda: numpy.from_dlpack(owner)
        found["asarray"] = lambda: numpy.asarray(owner)
        found["Numpy<Managed>"] = lambda: p.to_numpy(owner)
    return found


def raise_(exception):
    if exception is not None:
        raise exception


def play(name, chosen, hook, payload):
    """Runs these operations with an object whose hook panics. Returns what is wrong, and how often it panicked."""
    owner = getattr(p, name)()
    alive, before = p.alive(), p.thrown()
    wrong = ""
    for operation, act in operations(owner).items():
        if chosen is not None and operation != chosen:
            continue
        if hook == "from_dlpack" and operation.startswith("way back"):
            # A panic in an argument of a user's function is handled by PyO3.
            continue
        p.arm(hook, payload)
        try:
            act()
        except Exception:
            pass
        except BaseException as error:
            wrong = wrong or f"{operation}: {type(error).__name__}"
            error = None
        p.arm("none", "")
        gc.collect()
        if p.alive() != alive:
            wrong = wrong or f"{operation}: owners are left"
            alive = p.alive()
        try:
            act()
        except Exception as error:
            if isinstance(owner, (p.HookedQueue, p.HookedType)) or isinstance(error, (BufferError, ValueError)):
                continue
            wrong = wrong or f"{operation}, afterwards: {error!r}"
    return wrong, p.thrown() - before


def panics(tally):
    hooks, payloads = p.hooks()
    # Excludes existing objects from later collections.
    gc.collect()
    gc.freeze()
    if tally.planned < 1000:
        payloads = ["bombs"]
    if "SIGABRT" not in report.apart(lambda: (p.blow_up(), None))[0]:
        tally.bad("PyO3 contains such panics now: what is left out above can be tried")
    while not tally.done:
        count = tally.count
        for hook in hooks:
            thrown_here = 0
            for payload in payloads:
                for name in CLASSES:
                    wrong, thrown = report.apart(lambda: play(name, None, hook, payload))
                    if thrown is None:
                        # The process crashed, so each operation is repeated alone to find which one.
                        for operation in operations(getattr(p, name)()):
                            wrong, one = report.apart(lambda: play(name, operation, hook, payload))
                            thrown = (thrown or 0) + (one or 1)
                            if wrong:
                                tally.bad(f"{name}, {hook}, {payload}, {operation}: {wrong}")
                                thrown -= 1
                    elif wrong:
                        tally.bad(f"{name}, {hook}, {payload}: {wrong}")
                    tally.good(thrown)
                    thrown_here += thrown
            if not thrown_here:
                tally.bad(f"nothing asks the hook `{hook}`")
        if tally.count == count or tally.planned < 1000:
            return


report.main({"panics in hooks": (panics, 2_500, 500)})
