"""Crates that are generated for a benchmark, and rebuilt repeatedly to measure their compile time.

The crates of a benchmark lie in a workspace of their own, in a cache folder outside the checkout, so that cargo
finds on the second run what it has fetched on the first. Their dependencies are built first; then every round
touches and rebuilds each crate alone, one after another, and counts the processor time that cargo and rustc spend
on it (user and system; a busy machine changes that less than the time on the clock). Incremental compilation is
off. A ratio compares the times of the same round.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dlpack-benches"

COMMANDS = {
    "check": ["check"],
    "build": ["build"],
    "release": ["build", "--release"],
}


def dependency(package):
    """A package of this workspace, as a dependency."""
    return f'{package} = {{ path = "{(ROOT / package).as_posix()}" }}'


def write(work, crates):
    """Writes the workspace; `crates` has the dependencies and the source of each crate."""
    for name, (manifest, source) in crates.items():
        crate = work / name
        (crate / "src").mkdir(parents=True, exist_ok=True)
        (crate / "Cargo.toml").write_text(
            f'[package]\nname = "measured-{name}"\nversion = "0.0.0"\nedition = "2024"\n\n{manifest}\n'
        )
        (crate / "src/lib.rs").write_text(source)
    members = ", ".join(f'"{name}"' for name in crates)
    (work / "Cargo.toml").write_text(f'[workspace]\nresolver = "3"\nmembers = [{members}]\n')


def cargo(work, words, target="target"):
    environment = dict(os.environ, CARGO_INCREMENTAL="0", CARGO_TARGET_DIR=str(work / target))
    # Settings of an outer cargo or a wrapper are not measured.
    for name in ["RUSTC_WRAPPER", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"]:
        environment.pop(name, None)
    done = subprocess.run(["cargo", *words, "--quiet"], cwd=work, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cargo {' '.join(words)} failed:\n{done.stderr}")


def spent(action):
    """CPU seconds, and elapsed seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    action()
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, end - start


def rebuild(work, name, command):
    (work / name / "src/lib.rs").touch()
    return spent(lambda: cargo(work, [*COMMANDS[command], "-p", f"measured-{name}"]))


def measure(work, names, command, rounds):
    """For each crate, the CPU seconds of every round and the median elapsed seconds."""
    names = list(names)
    for name in names:
        rebuild(work, name, command)
    processor = {name: [] for name in names}
    clock = {name: [] for name in names}
    for round in range(rounds):
        # Another crate goes first in each round.
        for name in names[round % len(names) :] + names[: round % len(names)]:
            used, waited = rebuild(work, name, command)
            processor[name].append(used)
            clock[name].append(waited)
    return processor, {name: statistics.median(times) for name, times in clock.items()}


def ratio(times, others):
    return statistics.median(time / other for time, other in zip(times, others))
