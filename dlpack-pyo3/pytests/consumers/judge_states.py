"""Runs ask_states.py for one library, and judges its output."""

import json
import math
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The library's own exports, and our imports; the last of ours uses NumPy.
OWN = ["__dlpack__", "copy=True", "__array__"]
OURS = ["import", "copy", "argument", "ViewMut", "Convert"]
# A question that crashes the library itself is not asked through us.
ASKS = {"__dlpack__": ["copy=True", *OURS], "copy=True": ["copy"], "__array__": ["Convert"]}
PATIENCE = 300
# NumPy 1 refuses a read-only array because its capsule has no such flag; our import reads the array directly. `ViewMut` refuses
# it.
READ_ONLY = "read-only"
HEAD = [
    "## States of their arrays",
    "",
    "The other direction: what a library itself exports of an array in an unusual state, and what we make of it. `__dlpack__`,",
    "`copy=True` (of the same method) and `__array__` are the library's own answers. Ours are an import, one with a copy, an",
    "argument of a function, one that the function writes (`ViewMut`), and one that NumPy may convert first (`Convert`).",
    "",
    "- `gives` of an answer of ours: the numbers are those that the library shows",
    "- `refuses` an exception, with the number of its note; `ends the process` a crash by the library's own doing, after which",
    "  what would ask it the same is not asked (`-`, as where there is no such method)",
    "- **FAIL** we give what the library refuses, or other numbers than it shows, or end the process",
    "",
    "| library | state | " + " | ".join(f"`{one}`" for one in OWN) + " | " + " | ".join(OURS) + " |",
    "|---" * (2 + len(OWN) + len(OURS)) + "|",
]


class State:
    """One row: an answer to each question, as (kind, text)."""

    def __init__(self, name, index, numbers):
        self.name, self.index, self.numbers = name, index, numbers
        self.missing = None
        self.answers = {}
        self.asked = None

    def faults(self):
        """What is wrong with our answers, by question."""
        if self.missing:
            return {}
        own, copy, array = (self.answers.get(one, ("none", ""))[0] for one in OWN)
        # If the library refuses its memory, it may return a copy, and NumPy may convert its items.
        gives = {"copy": copy == "gives", "Convert": array not in ("refuses", "died")}
        wrong = {}
        for question in OURS:
            kind, words = self.answers.get(question, ("none", ""))
            may = own != "refuses" or gives.get(question, False) or self.name == READ_ONLY
            if kind == "died":
                wrong[question] = f"the process ends: {words}"
            elif kind == "gives" and question == "ViewMut" and self.name == READ_ONLY:
                wrong[question] = "written, and it is read-only"
            elif kind == "gives" and not may:
                wrong[question] = "given, and the library refuses it"
            elif kind == "gives" and words is not None and not self.same(words, question):
                wrong[question] = f"gives {words} for {self.numbers}"
            elif self.name == "plain" and kind != "gives" and question == "import":
                wrong[question] = f"refuses a plain array: {words}"
        return wrong

    def same(self, found, question):
        if self.numbers is None:
            return True
        if question == "Convert" and any(isinstance(one, str) for one in self.numbers):
            # NumPy converts complex numbers to their real parts, with a warning.
            return True
        return same(found, self.numbers)


def same(found, expected):
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    # NumPy represents a missing value by NaN.
    return found == expected or (expected is None and isinstance(found, float) and math.isnan(found))


def run(python, environment, adapter):
    """All states of a library."""
    states, start, without = [], 0, []
    while True:
        words = [word for question in without for word in ("--without", question)]
        command = [python, "-u", str(HERE / "ask_states.py"), adapter, "--from", str(start), *words]
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
            status, out, said = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as ended:
            status, out, said = "it did not end", ended.stdout or b"", b""
        for line in map(json.loads, out.splitlines()):
            take(states, line)
        if status == 0:
            return states
        if not states or states[-1].index < start:
            last = said.decode(errors="replace").strip().splitlines() or ["no word"]
            raise RuntimeError(f"{adapter}: the states cannot be asked: {last[-1]}")
        state = states[-1]
        if state.asked is None:
            # It crashed while the array was made or dropped.
            state.missing = f"the process ended: {status}"
            start, without = state.index + 1, []
            continue
        state.answers[state.asked] = ("died", str(status))
        if state.asked in ASKS:
            state.answers |= dict.fromkeys(ASKS[state.asked], ("none", "not asked"))
        start, without = state.index, list(state.answers)
        if state.asked not in OWN:
            start, without = state.index + 1, []


def take(states, line):
    if "state" in line:
        # A restarted state continues.
        if not states or states[-1].index != line["index"]:
            states.append(State(line["state"], line["index"], line["numbers"]))
        states[-1].asked = None
        return
    state = states[-1]
    if "missing" in line:
        state.missing = line["missing"]
    elif "question" in line:
        state.asked = line["question"]
    else:
        state.answers[state.asked] = (line["kind"], line["words"])


def rows(title, states, note):
    """The rows of a table; `note` returns the number of a refusal's text."""
    marks = {"gives": "gives", "refuses": "refuses", "died": "ends the process", "none": "-"}
    for state in states:
        if state.missing:
            yield f"| {title} | {state.name} | cannot be made {note(state.missing)} |" + " |" * 7
            continue
        wrong, cells = state.faults(), []
        for question in OWN + OURS:
            kind, words = state.answers.get(question, ("none", ""))
            mark = f"**FAIL: {wrong[question]}**" if question in wrong else marks[kind]
            cells.append(f"{mark} {note(words)}" if kind == "refuses" else mark)
        yield f"| {title} | {state.name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    import os

    for found in run(sys.executable, os.environ, sys.argv[1]):
        print(found.name, found.missing or found.answers, "FAIL" if found.faults() else "", found.faults() or "")
