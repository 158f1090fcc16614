"""What is made of the tables of spec/consumers.md and benches/README.md."""

import re
import sys
from pathlib import Path

from svg import HUES, PALE, Picture

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benches"))
import class_sources

CONSUMERS = (ROOT / "spec/consumers.md").read_text()
BENCHES = (ROOT / "benches/README.md").read_text()


def table(text, heading, nth=0):
    """The rows of a table of Markdown under a heading, as lists of words; the first is the head."""
    part = re.split(rf"^## {re.escape(heading)}$", text, flags=re.M)
    assert len(part) == 2, f"there is no heading {heading!r}"
    part = re.split(r"^## ", part[1], flags=re.M)[0]
    tables = re.findall(r"(?:^\|.*\n)+", part, re.M)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables[nth].splitlines()]
    return [rows[0], *rows[2:]]


# A column of the table for each library of the page: the newest that was tried.
LIBRARIES = {
    "NumPy": "numpy on 3.12",
    "NumPy 1.26": "numpy 1.26",
    "PyTorch": "torch",
    "JAX": "jax on 3.12",
    "TensorFlow": "tensorflow",
    "PyArrow": "pyarrow",
    "Paddle": "paddle",
    "MLX": "mlx",
    "ONNX Runtime": "onnxruntime",
    "Warp": "warp",
    "mpi4py": "mpi4py",
    "tvm-ffi": "tvm-ffi",
    "cuda.core": "cuda.core",
    "dpnp": "dpnp",
    "nanobind": "nanobind ro",
}
# The rows that a reader asks about, and how the page calls them.
ROWS = {
    "writable": "ndim 2",
    "column-major": "transposed",
    "`a[::2]`": "sliced",
    "`a[::-1]`": "reversed",
    "not aligned to 64 bytes": "offset by an element",
    "read-only": "read-only",
    "bool": "bool",
    "float16": "float16",
    "float64": "float64",
    "bfloat16": "bfloat16",
    "complex64": "complex64",
}
WORDS = {"=": "shared", "copy": "copy", "they": "refuses", "we": "refused", "bug": "wrong"}


def outcomes():
    """For each row of the page and each library: the word of the table, and its note."""
    found = {}
    for heading in ["Layouts, access, versions and lifetimes", "Data types"]:
        head, *rows = table(CONSUMERS, heading)
        for row in rows:
            for library, cell in zip(head[1:], row[1:]):
                word, _, note = cell.partition(" ")
                found[row[0], library] = word, note
    return found


def everyday_libraries():
    found = outcomes()
    notes = dict(re.findall(r"^(\d+)\. (.*)$", CONSUMERS, re.M))
    used = {}
    heads = [re.sub("`(.*?)`", r"<code>\1</code>", row) for row in ROWS]
    rows = ["<tr><th></th>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for name, column in LIBRARIES.items():
        cells = [f"<th>{name}</th>"]
        for row in ROWS.values():
            word, note = found[row, column]
            number = f" ({used.setdefault(note, len(used) + 1)})" if note else ""
            cells.append(f'<td class="{WORDS[word]}">{WORDS[word]}{number}</td>')
        rows.append("<tr>" + "".join(cells) + "</tr>")
    # A row of notes that is not in the repository is left out. What stands in angle brackets would be taken for HTML.
    texts = [re.sub(r" \((?:consumers|faults)[^)]*\)", "", notes[note]).replace("<", "&lt;") for note in used]
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))
    table = "\n".join(rows)
    return EVERYDAY.format(table=table, notes=numbered)


EVERYDAY = """<!-- Written by guide/pictures.py from spec/consumers.md; do not edit. -->
# Everyday libraries

This page shows how each library treats your arrays: whether it reads the memory in place, copies it, or refuses it. To check one yourself:

```python
import numpy as np

obj = np.arange(6.0)                 # or an object of your class
array = np.from_dlpack(obj)          # or torch.from_dlpack(obj).numpy(), ..
assert np.shares_memory(array, np.asarray(obj))
```

Every cell comes from running the library. [spec/consumers.md](../../spec/consumers.md) has the whole table, with all dtypes, versions, and when each library
releases the memory; `cargo xtask consumers` produces it.

- **shared**: reads your memory in place
- **copy**: correct, in other memory
- **refuses**: the library raises an exception; **refused**: these crates raise one
- **wrong**: a bug of the library that a producer cannot prevent

![How many of these kinds of arrays each library shares, copies and refuses](img/consumers.svg)

<div class="table-wrapper"><table class="libraries">
{table}
</table></div>

Notes:

{notes}

## What to do about it

- **PyTorch and Paddle write to read-only memory.** Give them a `SharedBuffer`, or call `.clone()` on their tensor before you write.
- **JAX copies data that is not aligned to 64 bytes.** A `SharedBuffer` is aligned, unless it was made from a `Vec` or an array; a `Vec` has no such guarantee. JAX before 0.12
  also copies read-only data.
- **NumPy before 2.1 copies read-only data**, because it requests the legacy struct. `numpy.asarray(obj)` uses the buffer protocol and
  copies in no version.
- **MLX always copies** on the CPU.
- **matplotlib, scikit-learn** and others call `numpy.asarray`, so they get what NumPy gets.
- **pandas** does so for columns (`DataFrame({{"price": trades.price}}, copy=False)`). A whole object needs a class that
  [declares `iterable`](faq.md#why-does-pandas-say-dataframe-constructor-not-properly-called); otherwise write `DataFrame(np.asarray(x), copy=False)`.
  Without `copy=False` pandas copies.
- **polars and PyArrow** columns: see [Tables](tables.md).
"""


def consumers():
    """A bar for each library: how many of the kinds above it shares, copies, refuses, gets wrong."""
    p = Picture("Of the kinds of arrays in the table, how many each library shares, copies and refuses")
    kinds = [
        ("shared", ["="], "#8fce8a"),
        ("copy", ["copy"], "#ffd8a8"),
        ("refused", ["they", "we"], PALE),
        ("wrong", ["bug"], "#ffa8a8"),
    ]
    found = outcomes()
    x = 130
    for name, _, fill in kinds:
        p.box(x, 10, 16, 16, fill)
        p.text(x + 22, 23, name, 13, anchor="start")
        x += 100
    for index, (name, column) in enumerate(LIBRARIES.items()):
        y = 38 + 26 * index
        p.text(120, y + 16, name, 14, anchor="end")
        x = 130
        for _, words, fill in kinds:
            count = sum(found[row, column][0] in words for row in ROWS.values())
            if count:
                wide = 410 * count / len(ROWS)
                p.box(x, y, wide, 22, fill, round=0)
                p.text(x + wide / 2, y + 16, str(count), 13)
                x += wide
    return p


def bars(title, rows, unit, first, wide=290):
    """A bar for each (name, number). `first` is the row that is ours, or several."""
    p = Picture(title)
    p.text(16, 24, title, 14, anchor="start", bold=True)
    most = max(number for _, number in rows)
    for index, (name, number) in enumerate(rows):
        y = 38 + 30 * index
        p.text(196, y + 17, name, 13, anchor="end")
        p.box(204, y, max(2, wide * number / most), 24, HUES[2] if name in first else HUES[0], round=2)
        p.text(210 + wide * number / most, y + 17, f"{number:g}{unit}", 13, anchor="start")
    return p


def column(heading, name, nth=0):
    """First cell and a number of each row that has one there."""
    head, *rows = table(BENCHES, heading, nth)
    at = head.index(name)
    for row in rows:
        words = re.match(r"[\d.]+", row[at].replace("*", ""))
        if words:
            yield row[0].replace("*", "").replace("`", ""), float(words[0])


def bench_copies():
    """Ratio of our time for a copy to NumPy's."""
    rows = [(name.replace("`", ""), number) for name, number in column("Copies", "4 MB")]
    return bars("copies of 4 MB: our time / NumPy's (below 1: faster)", rows, "", {name for name, _ in rows})


def lines():
    """Code of a module with one class, as benches/classes.py compiles them; the README says the same."""
    rows = []
    for name in ["ours", "dlpark", "dlpack-rs", "pyo3-dlpack"]:
        code = class_sources.source(*class_sources.ALL[name][1:], classes=1)
        rows.append((name, sum(1 for line in code.splitlines() if line.strip())))
    said = re.search(r"^\| lines of a module .*$", (ROOT / "README.md").read_text(), re.M)[0]
    for name, count in rows:
        assert (
            name == "dlpack-rs" or f"| {count}" in said
        ), f"README.md says something else than {count} lines for {name}"
    return bars("lines of a module with one class", rows, "", {"ours"})


PICTURES = [consumers, lines, bench_copies]
