"""Forgery capsules and tables for our importers, and crafted prototypes for our allocator."""

import dlpack_probe as p
import report

STEP = 5_000


def in_steps(tally, play):
    seed = report.SEED
    while not tally.done:
        cases = min(STEP, tally.planned - tally.count)
        bad, note = play(seed, cases)
        seed += cases
        tally.good(cases - bad)
        if bad:
            tally.bad(note, bad)


def capsules(tally):
    # The first class makes a `Tensor`, the others make their own objects.
    tables = [cls.__c_dlpack_exchange_api__ for cls in (p.Probe, p.Tensor, p.Adopted)]
    in_steps(tally, lambda seed, cases: p.forge_capsules(seed, cases, tables))


def prototypes(tally):
    table = p.Probe.__c_dlpack_exchange_api__
    in_steps(tally, lambda seed, cases: p.forge_prototypes(seed, cases, table))


report.main(
    {
        "crafted capsules and tables": (capsules, 2_000_000, 5_000),
        "crafted prototypes": (prototypes, 1_000_000, 5_000),
    }
)
