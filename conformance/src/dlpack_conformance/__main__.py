"""`python -m dlpack_conformance MODULE:EXPRESSION ..`: a report for each object; fails if there is a fault."""

from __future__ import annotations

import argparse

from ._find import producer
from .check import check_producer
from .report import RULES


def main() -> int:
    parser = argparse.ArgumentParser("dlpack_conformance", description="Checks producers of DLPack tensors.")
    parser.add_argument("producer", nargs="*", help="such as mylib:make_array or numpy:arange(3)")
    parser.add_argument("--hostile", action="store_true", help="also call exchange tables with foreign objects")
    parser.add_argument("--all", action="store_true", help="also show the rules that were kept")
    parser.add_argument("--rules", action="store_true", help="list the rules")
    words = parser.parse_args()
    if not (words.producer or words.rules):
        parser.error("name a producer, or pass --rules")
    if words.rules:
        print("\n".join(f"{rule:<7} {level:<5} {asks}" for rule, (level, asks) in RULES.items()))
    faults = 0
    for name in words.producer:
        report = check_producer(producer(name), hostile=words.hostile)
        print(report.everything() if words.all else report)
        faults += len(report.faults)
    return min(faults, 1)


if __name__ == "__main__":
    raise SystemExit(main())
