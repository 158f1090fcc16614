"""Every library, every case: starts worker.py for each, reads its output, and writes the table.

    run.py --library TITLE ADAPTER PYTHON MODULES .. --skipped TITLE REASON .. [--table FILE]

`cargo xtask consumers` makes the environments and runs this. The exit status is 1 if a cell is neither
right nor known: see `known` in adapters.py.
"""

import argparse
import json
import os
import platform
import re
import selectors
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import judge_states
from cases import CASES, EXITS

HERE = Path(__file__).resolve().parent
# Seconds without a line from a worker. TensorFlow takes ten to load from a cold disk.
PATIENCE = 600
SIGNS = re.compile(r"Fatal Python error|panicked at|Traceback|Exception ignored|double free|corrupted|Segmentation")
MARKS = {"zero": "=", "copy": "copy", "them": "they", "us": "we", "bug": "bug"}


class Library:
    """One column: a library in one environment."""

    def __init__(self, title, adapter, python, modules):
        self.title, self.adapter, self.python = title, adapter, python
        self.environment = os.environ | {"PYTHONPATH": modules, "PYTHONFAULTHANDLER": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self.version = self.interpreter = self.skipped = None
        # Case name -> (outcome, text, expected or not).
        self.cells = {}
        self.stale = []
        self.states = []

    def command(self, *words):
        return [self.python, "-u", str(HERE / "worker.py"), self.adapter, *words]

    def run(self):
        start = 0
        while start < len(CASES) and self.skipped is None:
            start = self.go_on(start)
        for how in EXITS if self.skipped is None else []:
            self.cells[f"exit {how}"] = self.leave(how)
        if self.skipped is None:
            self.states = judge_states.run(self.python, self.environment, self.adapter)
        return self

    def go_on(self, start):
        """Runs a worker from a case on; returns the case after the one that crashed it."""
        process = subprocess.Popen(
            self.command("--from", str(start)),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.set_blocking(process.stdout.fileno(), False)
        os.set_blocking(process.stderr.fileno(), False)
        current, said, pending, heard = None, b"", b"", time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            selector.register(process.stderr, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(timeout=1):
                    chunk = key.fileobj.read()
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stderr:
                        said = (said + chunk)[-20_000:]
                    else:
                        heard = time.monotonic()
                        *lines, pending = (pending + chunk).split(b"\n")
                        for line in map(json.loads, lines):
                            current = self.note(line, current)
                if time.monotonic() - heard > PATIENCE:
                    process.kill()
        status = process.wait()
        if status == 0:
            return len(CASES)
        words = f"{ended(status)}: {last(said)}"
        if current is None:
            if self.version is None:
                self.skipped = f"does not load: {words}"
            else:
                # Between two cases, or after the last one.
                self.cells["process"] = ("crash", words, False)
            return len(CASES)
        name = CASES[current][0]
        self.cells[name] = ("crash", words, False)
        return current + 1

    def note(self, line, current):
        """Reads one line of a worker; returns the case that is running now."""
        if "version" in line:
            self.version = line["version"]
            self.interpreter = line["python"]
        elif "start" in line:
            return line["start"]
        elif "case" in line:
            self.cells[line["case"]] = (line["outcome"], line["words"], line["expected"])
            if line["stale"]:
                self.stale.append(f"{self.title}, {line['case']}: {line['stale']}")
            return None
        return current

    def leave(self, how):
        """Exits an interpreter while the library keeps a tensor, and checks its exit status."""
        try:
            done = subprocess.run(
                self.command("--exit", how),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return "crash", "the process did not end", False
        if done.returncode == 0 and not SIGNS.search(done.stderr.decode(errors="replace")):
            return "zero", "", True
        return "crash", f"{ended(done.returncode)}: {last(done.stderr)}", False


def ended(status):
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def last(text):
    """The most informative line of standard error."""
    lines = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if SIGNS.search(line) and not line.startswith("Traceback")]
    return (telling or lines or ["no word"])[-1][:160]


def tidy(words):
    """The text of an error without parts that differ from run to run or break a table."""
    words = re.sub(r"0x[0-9a-fA-F]+", "0x..", words.replace("|", "/"))
    words = re.sub(r"(/[\w.+-]+){2,}/", "", words)
    words = re.sub(r"with shape \([\d, ]*\)", "with that shape", words)
    words = re.sub(r": bytes \w+\.\. instead of \w+\.\.", "", words)
    # Equal refusals of a dozen data types become one note.
    words = re.sub(r"(?i)\b(types?|codes?:?|datatype|dtype)( \(?)\d+(, \d+)?", r"\1\2..", words)
    return words if len(words) <= 200 else words[:200].rstrip() + " .."


class Table:
    """The markdown table; equal texts share a note."""

    def __init__(self, libraries):
        self.libraries = [library for library in libraries if library.skipped is None]
        self.skipped = [library for library in libraries if library.skipped is not None]
        self.notes = {}

    def cell(self, library, name):
        if name not in library.cells:
            return "not run"
        outcome, words, expected = library.cells[name]
        mark = MARKS.get(outcome, outcome) if expected else f"**FAIL: {outcome}**"
        return f"{mark} {self.note(words)}" if words else mark

    def note(self, words):
        """The number of the note with this text."""
        return self.notes.setdefault(tidy(words), len(self.notes) + 1)

    def rows(self, names):
        yield "| | " + " | ".join(library.title for library in self.libraries) + " |"
        yield "|---" * (len(self.libraries) + 1) + "|"
        for name in names:
            cells = (self.cell(library, name) for library in self.libraries)
            yield f"| {name.removeprefix('dtype ')} | " + " | ".join(cells) + " |"

    def text(self):
        names = [name for name, _ in CASES]
        dtypes = [name for name in names if name.startswith("dtype ")]
        others = [name for name in names if name not in dtypes] + [f"exit {how}" for how in EXITS]
        if any("process" in library.cells for library in self.libraries):
            others.append("process")
        pythons = sorted({library.interpreter for library in self.libraries})
        versions = [
            f"- CPython {python}: "
            + ", ".join(f"{one.title} ({one.version})" for one in self.libraries if one.interpreter == python)
            for python in pythons
        ]
        lines = [
            "# What array libraries make of our tensors",
            "",
            "Written by `cargo xtask consumers` from its results; do not edit. The producer is `dlpack_probe` of",
            "dlpack-pyo3/pytests; the cases, and the known behaviour of each library, are in its folder consumers/.",
            "A cell passes only if the library sees the shape, dtype and bytes of the producer, in the same memory,",
            "the owner lives exactly as long as it must, and every process ends as it should.",
            "",
            "- `=` correct, in the producer's memory (an empty tensor has none; `copy=True` means other memory)",
            "- `copy` correct, in other memory; the note says why",
            "- `they` the library raises an exception, `we` our BufferError",
            "- `bug` a bug of the library that no producer can fix; `consumers N` and `faults N` are rows of",
            "  the project's notes of these names",
            "- **FAIL** anything else",
            "",
            f"On {platform.system()} {platform.machine()}, with these versions:",
            "",
            *versions,
            "",
        ]
        lines += [f"**Not run: {library.title}: {tidy(library.skipped)}**\n" for library in self.skipped]
        lines += ["## Layouts, access, versions and lifetimes", "", *self.rows(others), ""]
        lines += ["## Data types", "", *self.rows(dtypes), ""]
        lines += judge_states.HEAD
        for library in self.libraries:
            lines += judge_states.rows(library.title, library.states, self.note)
        lines += ["", "## Notes", "", *(f"{number}. {words}" for words, number in self.notes.items())]
        return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--library", nargs=4, action="append", default=[])
    arguments.add_argument("--skipped", nargs=2, action="append", default=[])
    arguments.add_argument("--table")
    options = arguments.parse_args()
    libraries = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for library in pool.map(Library.run, [Library(*words) for words in options.library]):
            count = lambda *kinds: sum(cell[0] in kinds and cell[2] for cell in library.cells.values())  # noqa: E731
            refused, bugs = count("them", "us"), count("bug")
            print(f"{library.title:20} {library.version or 'skipped: ' + library.skipped}", end="")
            if library.skipped is None:
                print(f": {count('zero', 'copy')} right, {refused} refused, {bugs} of their bugs", end="")
            print(flush=True)
            libraries.append(library)
    for title, reason in options.skipped:
        print(f"SKIPPED {title}: {reason}")
        libraries.append(Library(title, "", "", ""))
        libraries[-1].skipped = reason

    if options.table:
        text = Table(libraries).text()
        Path(options.table).write_text(text)
        print(text)
    # An installed library must load; only one that could not be installed may be missing.
    failed = sum(library.skipped is not None for library in libraries) - len(options.skipped)
    for library in libraries:
        for name, (outcome, words, expected) in library.cells.items():
            if not expected:
                failed += 1
                print(f"FAIL {library.title}, {name}: {outcome}: {words}")
        for state in library.states:
            for question, words in state.faults().items():
                failed += 1
                print(f"FAIL {library.title}, {state.name}, {question}: {words}")
        for line in library.stale:
            print(f"known otherwise: {line}")
        # Torch's DataLoader, with spawned and forked workers; and our answers for unusual states.
        for script in {"torch": ["carry.py", "torch_states.py"], "jax": ["jax_states.py"]}.get(library.title, []):
            if library.skipped is None:
                failed += subprocess.run([library.python, HERE.parent / "tests" / script], env=library.environment).returncode != 0
    for library in libraries:
        if library.skipped is not None:
            print(f"SKIPPED {library.title}: {library.skipped}")
    cells = sum(len(library.cells) for library in libraries)
    states = sum(len(library.states) for library in libraries)
    print(f"consumers: {cells} cells of {len(libraries)} libraries, {states} states of their arrays, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
