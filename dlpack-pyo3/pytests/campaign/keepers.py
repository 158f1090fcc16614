"""User code that gets a tensor by the exchange table, may keep it, and ends well, with an error, with a panic, or with a panic
whose payload panics when it is dropped.

The tensor is either its caller's again, unreleased, or belongs to the code that keeps it until the last reference is dropped: never
both. Many are kept at a time, and the references and the objects are dropped in any order."""

import random
import sys

import capi
import dlpack_probe as p
import report

VALUES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
# A tensor in a payload that panics again is never released.
ENDS = [(keep, end) for keep in ["nothing", "tensor", "buffer"] for end in ["well", "error", "panic", "bomb"]]
ENDS += [("payload", "panic"), ("payload", "bomb"), ("hidden", "panic")]


def keepers(tally):
    dice = random.Random(report.SEED)
    exchange = capi.Exchange(p.Greedy)
    sys.unraisablehook = lambda what: None
    alive = p.alive()
    made, kept = [], 0
    while not tally.done:
        keep, end = dice.choice(ENDS)
        keeps = keep in ("tensor", "buffer")
        seen = capi.export(p.WProbe([6]))
        p.Greedy.next(keep, end)
        try:
            thing, given_back = exchange.to_object(seen), False
        except BufferError:
            thing, given_back = None, True
        note = ""
        if given_back != (end != "well" and not keeps):
            note = "given back" if given_back else "not given back"
        elif given_back:
            note = "" if seen.floats() == VALUES else "what is given back is another tensor"
            seen.release()
        else:
            seen.released = True
            made.append(thing)
            kept += keeps
        if dice.random() < 0.2:
            dice.shuffle(made)
            del made[: dice.randrange(len(made) + 1)]
        if p.Greedy.kept() != [VALUES] * kept:
            note = note or "what is kept is another tensor"
        if kept > 8 or dice.random() < 0.1:
            p.Greedy.let_go()
            kept = 0
        seen = thing = None
        if not (made or kept) and p.alive() != alive:
            note, alive = note or "owners are left", p.alive()
        tally.judge(note and f"{keep}, {end}: {note}")
    made.clear()
    p.Greedy.let_go()
    if p.alive() != alive:
        tally.bad("owners are left at the end")


report.main({"tensors that are kept": (keepers, 200_000, 2_000)})
