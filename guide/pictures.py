"""Writes the pictures of README and guide, and the page of libraries, from code and from tables of the repository.

    python3 guide/pictures.py          writes guide/src/img/*.svg, guide/src/everyday-libraries.md, and
                                       the tables of guide/src/benchmarks.md
    python3 guide/pictures.py --check  fails where one of them is not what would be written

| file | draws |
|---|---|
| this one | what is shared by whom, timelines, streams |
| `layouts.py` | a grid of numbered cells for each key |
| `tables.py` | what comes from tables: the page of libraries, bars of benchmarks |
| `plots.py` | what comes from benches/peers.json: a plot for each sweep, and the tables of the page of benchmarks |
| `svg.py` | boxes, words and arrows |
"""

import sys
from pathlib import Path

import layouts
import plots
import tables
from svg import AMBER, GREEN, HUES, INK, LINE, PALE, RED, WHITE, Picture

SRC = Path(__file__).parent / "src"


def hero():
    """A struct, one block of memory, the arrays of four libraries over it."""
    p = Picture(
        "A Rust struct, its one block of memory, and the arrays of NumPy, PyTorch, JAX and matplotlib over it"
    )
    p.box(30, 12, 500, 122, "#f5f7fa")
    code = [
        "#[derive(DLPack)]",
        "struct Image {",
        "    #[dlpack(data)]  pixels: Vec<u8>,",
        "    #[dlpack(shape)] dims: [usize; 3],",
        "}",
    ]
    for line, words in enumerate(code):
        p.text(48, 36 + 22 * line, words, anchor="start", mono=True)
    p.arrow((280, 134), (280, 166))
    p.cells(28, 168, ["R", "G", "B"] * 4, width=42, height=36, fills=["#ffb3b3", "#b7e4b0", "#b3d1ff"] * 4)
    p.text(280, 226, "one block of memory: allocated once, never copied", bold=True)
    for index, (name, call) in enumerate(
        [("NumPy", "asarray(x)"), ("PyTorch", "from_dlpack(x)"), ("JAX", "from_dlpack(x)"), ("matplotlib", "imshow(x)")]
    ):
        x = 28 + 129 * index
        p.box(x, 262, 117, 52, HUES[index])
        p.text(x + 58, 284, name, bold=True)
        p.text(x + 58, 303, call, 12, mono=True)
        p.arrow((x + 58, 262), (x + 58, 236))
    return p


def owners():
    """Ownership: the array, the export, the object, the memory."""
    p = Picture(
        "An array keeps the export alive, the export keeps the object, the object keeps the memory; the deleter releases it once"
    )
    boxes = [
        ("array", "NumPy, torch, ..", HUES[0]),
        ("export", "shape, strides,|the deleter", HUES[1]),
        ("owner", "your object,|or an Arc of it", HUES[2]),
        ("memory", "a Vec, a map,|GPU memory", HUES[3]),
    ]
    for index, (name, more, fill) in enumerate(boxes):
        x = 12 + 138 * index
        p.box(x, 14, 118, 78, fill)
        p.text(x + 59, 38, name, 16, bold=True)
        for line, words in enumerate(more.split("|")):
            p.text(x + 59, 60 + 18 * line, words, 13)
        if index < 3:
            p.arrow((x + 118, 53), (x + 137, 53))
    p.text(209, 122, "keeps alive, from left to right", 14, fill=LINE)
    p.line([(71, 92), (71, 152), (347, 152)])
    p.arrow((347, 152), (347, 96))
    p.text(280, 172, "the array is dropped: the deleter runs, once, on any thread", 14)
    return p


def timeline(title, lanes, marks):
    """Lanes of bars over time. A lane is a name and bars (from, to, words, hue); times go from 0 to 100."""
    p = Picture(title)
    left, wide = 116, 432
    at = lambda time: left + time * wide / 100
    top = 14
    for index, (time, words) in enumerate(marks):
        y = top + 20 * (index % 2)
        p.text(min(max(at(time), left + 50), 470), y + 8, words, 13, mono=True)
    top += 20 * min(len(marks), 2) + 6
    low = top + 44 * len(lanes)
    for time, _ in marks:
        p.line([(at(time), top - 4), (at(time), low)], PALE, 2)
    for index, (name, bars) in enumerate(lanes):
        y = top + 44 * index
        p.text(106, y + 25, name, 14, anchor="end", bold=True)
        for begin, end, words, fill in bars:
            p.box(at(begin), y + 5, at(end) - at(begin), 32, fill)
            p.text((at(begin) + at(end)) / 2, y + 26, words, 13)
    p.arrow((left, low + 6), (left + wide, low + 6))
    p.text(left + wide, low + 24, "time", 13, anchor="end", fill=LINE)
    return p


def life_frozen():
    return timeline(
        "A frozen class: the array keeps the object alive, and all methods work",
        [
            ("image", [(4, 38, "a variable", HUES[2]), (38, 82, "kept by the array", PALE)]),
            ("array", [(18, 82, "np.asarray(image)", HUES[0])]),
            ("memory", [(4, 82, "the Vec, never moved", HUES[3])]),
        ],
        [(18, "np.asarray"), (38, "del image"), (82, "del array")],
    )


def life_borrowed():
    return timeline(
        "A class that is not frozen: while an array lives, methods with &mut self raise",
        [
            ("array", [(22, 70, "np.asarray(trace)", HUES[0])]),
            ("&self", [(4, 96, "len(trace) works", "#c3e6b5")]),
            (
                "&mut self",
                [
                    (4, 22, "push()", "#c3e6b5"),
                    (22, 70, "raises Already borrowed", "#ffc9c9"),
                    (70, 96, "push()", "#c3e6b5"),
                ],
            ),
        ],
        [(22, "np.asarray"), (70, "del array")],
    )


def life_owner():
    return timeline(
        "The key owner: the array holds a clone of the handle, and the object stays free",
        [
            ("array", [(22, 80, "holds the SharedBuffer", HUES[0])]),
            ("env", [(4, 60, "step() always works", "#c3e6b5")]),
            ("buffer", [(4, 80, "written by both sides", HUES[3])]),
        ],
        [(22, "np.asarray"), (60, "del env"), (80, "del array")],
    )


def streams_order():
    return timeline(
        "The export records an event on the producer's stream, and the consumer's stream waits for it; the host does not wait",
        [
            (
                "host",
                [
                    (4, 22, "launch", HUES[0]),
                    (22, 40, "export", HUES[1]),
                    (40, 58, "launch", HUES[0]),
                    (58, 96, "continues", PALE),
                ],
            ),
            ("producer", [(14, 66, "kernel writes", HUES[2])]),
            ("consumer", [(46, 66, "waits", PALE), (66, 96, "kernel reads", HUES[3])]),
        ],
        [(22, "record, wait"), (66, "event")],
    )


def streams_release():
    return timeline(
        "The deleter runs on the host while the consumer's kernel still reads; a thread drops the owner when that is done",
        [
            (
                "host",
                [
                    (4, 24, "launch", HUES[0]),
                    (24, 44, "deleter", HUES[1]),
                    (44, 96, "continues", PALE),
                ],
            ),
            ("consumer", [(14, 64, "kernel reads", HUES[3])]),
            ("collector", [(64, 78, "queries", PALE), (78, 96, "drop", HUES[4])]),
            ("memory", [(4, 78, "kept: the owner is in a list", HUES[2])]),
        ],
        [(24, "del array"), (64, "event")],
    )


def lights():
    """Who may write: a traffic light for each kind of memory."""
    p = Picture("Who may write: moved memory and SharedBuffer green, memory shared with Rust red, ignored flags amber")
    rows = [
        (GREEN, "moved: into_dlpack, Numpy<Vec<f32>>", "only the consumer has it: writable"),
        (GREEN, "SharedBuffer, *mut T, GPU memory", "both sides may write, even at the same time"),
        (RED, "a class: Vec, Arc, a memory map", "Rust may be reading it: READ_ONLY"),
        (RED, "bool, overlapping items", "READ_ONLY in every case"),
        (AMBER, "PyTorch and Paddle ignore READ_ONLY", "they write anyway: give them a copy"),
        (AMBER, "legacy consumers, before DLPack 1.0", "get a copy of read-only data, and may write to it"),
    ]
    for index, (light, what, means) in enumerate(rows):
        y = 12 + 58 * index
        p.box(12, y, 536, 50, "#f5f7fa", PALE)
        p.box(24, y + 7, 92, 36, INK, INK, 10)
        for place, colour in enumerate([RED, AMBER, GREEN]):
            p.dot(44 + 26 * place, y + 25, 9, colour if colour == light else "#3e4c59", INK)
        p.text(132, y + 21, what, 15, anchor="start", bold=True)
        p.text(132, y + 41, means, 14, anchor="start")
    return p


def structs():
    """What a tensor is in DLPack: six facts and a deleter."""
    p = Picture("DLTensor: a pointer, a shape, strides, a dtype, a device; and a deleter that releases it all")
    rows = [
        ("data", "where the memory is"),
        ("shape, ndim", "(2, 3): two rows of three"),
        ("strides", "(3, 1): how far to the next row, column"),
        ("dtype", "float, 32 bits, 1 lane"),
        ("device", "cpu, or cuda:0"),
        ("flags", "READ_ONLY, IS_COPIED"),
        ("deleter", "call it when you are done: releases it all"),
    ]
    for index, (name, means) in enumerate(rows):
        y = 12 + 36 * index
        p.box(12, y, 150, 36, HUES[4] if name == "deleter" else HUES[0], round=0)
        p.text(26, y + 23, name, 15, anchor="start", mono=True)
        p.box(162, y, 386, 36, WHITE, round=0)
        p.text(176, y + 23, means, 15, anchor="start")
    y = 12 + 36 * len(rows) + 44
    p.line([(12, 30), (4, 30), (4, y + 16)])
    p.arrow((4, y + 16), (28, y + 16))
    p.cells(30, y, ["0.0", "1.0", "2.0", "3.0", "4.0", "5.0"], width=56, fills=[HUES[0]] * 3 + [HUES[1]] * 3)
    p.text(398, y + 21, "row 0, then row 1", 14, anchor="start")
    return p


def arguments():
    """How an argument becomes a view."""
    p = Picture(
        "An argument is taken in place if dtype and rank fit; with Convert it goes through numpy.asarray; otherwise it is a TypeError"
    )
    p.box(12, 14, 160, 62, HUES[0])
    p.text(92, 38, "an array", 16, bold=True)
    p.text(92, 60, "of any library", 14)
    p.arrow((172, 45), (208, 45))
    p.box(210, 14, 150, 62, "#f5f7fa")
    p.text(285, 38, "dtype, rank,", 14)
    p.text(285, 58, "writable?", 14)
    p.arrow((360, 45), (396, 45))
    p.text(378, 36, "yes", 13, fill=GREEN, bold=True)
    p.box(398, 14, 150, 62, HUES[2])
    p.text(473, 38, "View<f32, 2>", 14, mono=True)
    p.text(473, 60, "in place", 14)
    p.arrow((285, 76), (285, 112))
    p.text(306, 98, "no", 13, fill=RED, bold=True)
    p.box(210, 114, 150, 62, HUES[4])
    p.text(285, 138, "TypeError", 14, mono=True)
    p.text(285, 160, "expected, found", 14)
    p.box(398, 114, 150, 62, HUES[1])
    p.text(473, 138, "Convert", 14, mono=True)
    p.text(473, 160, "numpy.asarray", 13, mono=True)
    p.arrow((330, 76), (408, 112), dash=True)
    p.arrow((473, 114), (473, 78), dash=True)
    p.text(105, 128, "dashed: only with", 14)
    p.text(105, 148, "the option Convert", 14)
    return p


def results():
    """A value becomes an array of the library that the result type names."""
    p = Picture("A Vec is moved into the array that Python gets: Numpy, Torch, Jax, Cupy or a Tensor")
    p.box(12, 62, 150, 66, HUES[2])
    p.text(87, 90, "Vec<f32>", 15, mono=True)
    p.text(87, 112, "any DLPack value", 13)
    rows = [
        ("Numpy<Vec<f32>>", "numpy.ndarray"),
        ("Torch<Vec<f32>>", "torch.Tensor"),
        ("Jax<Vec<f32>>", "jax.Array"),
        ("Exported<Vec<f32>>", "a Tensor"),
    ]
    for index, (rust, python) in enumerate(rows):
        y = 10 + 46 * index
        p.arrow((162, 95), (216, y + 18))
        p.box(218, y, 330, 37, HUES[index % 2])
        p.text(228, y + 24, rust, 14, anchor="start", mono=True)
        p.text(538, y + 24, python, 14, anchor="end")
    return p


def processes():
    """What of a tensor reaches another process."""
    p = Picture(
        "Another process gets a copy of a tensor; with pickle protocol 5 out of band, or after fork, it is the same memory"
    )
    rows = [
        ("pickle, multiprocessing, joblib", "a copy", HUES[1]),
        ("pickle 5 with buffer_callback", "the same memory", HUES[2]),
        ("fork, of existing objects", "shared, copy-on-write", HUES[2]),
        ("copy.copy, copy.deepcopy", "a copy", HUES[1]),
    ]
    for index, (how, what, fill) in enumerate(rows):
        y = 12 + 46 * index
        p.box(12, y, 270, 37, "#f5f7fa")
        p.text(24, y + 24, how, 14, anchor="start")
        p.arrow((282, y + 18), (326, y + 18))
        p.box(328, y, 220, 37, fill)
        p.text(438, y + 24, what, 14)
    return p


def languages():
    """One C struct between Rust and other languages."""
    p = Picture("Rust hands a DLManagedTensorVersioned to C, C++ or tvm-ffi, and takes one back")
    p.box(12, 40, 120, 60, HUES[1])
    p.text(72, 76, "Rust", 16, bold=True)
    p.box(206, 22, 170, 96, HUES[0])
    p.text(291, 48, "DLManaged-", 13, mono=True)
    p.text(291, 66, "TensorVersioned", 13, mono=True)
    p.text(291, 94, "a C struct", 14)
    p.arrow((132, 60), (204, 60))
    p.text(168, 52, "into_raw", 11, mono=True)
    p.arrow((206, 84), (134, 84))
    p.text(168, 102, "from_raw", 11, mono=True)
    for index, name in enumerate(["C", "C++", "tvm-ffi"]):
        y = 10 + 42 * index
        p.box(448, y, 100, 34, HUES[2 + index])
        p.text(498, y + 22, name, 14, bold=True)
        p.arrow((376, 70), (446, y + 17))
    return p


def loans():
    """Why an export is sound: the steps of an export, in order."""
    p = Picture(
        "The owner is boxed first, then lends its memory, then shape and strides are checked against the loan's length"
    )
    rows = [
        ("1", "the owner moves to its final address", "so its memory does not move any more"),
        ("2", "Buffer::lend returns a Loan", "address, bytes, dtype, who may write"),
        ("3", "shape, strides, offset are checked", "against those bytes, in checked arithmetic"),
        ("4", "the consumer gets the description", "exactly the one that was checked"),
        ("5", "the deleter drops the owner", "once, on any thread"),
    ]
    for index, (number, what, why) in enumerate(rows):
        y = 12 + 56 * index
        p.dot(34, y + 23, 17, HUES[index])
        p.text(34, y + 28, number, 15, bold=True)
        p.box(66, y, 482, 46, "#f5f7fa", PALE)
        p.text(80, y + 20, what, 15, anchor="start", bold=True)
        p.text(80, y + 39, why, 14, anchor="start")
        if index < 4:
            p.arrow((34, y + 40), (34, y + 60))
    return p


def files():
    """Each file that is written, and what it should hold."""
    pictures = [
        hero,
        owners,
        life_frozen,
        life_borrowed,
        life_owner,
        streams_order,
        streams_release,
        lights,
        structs,
        arguments,
        results,
        processes,
        languages,
        loans,
        *layouts.PICTURES,
        *tables.PICTURES,
    ]
    for draw in pictures:
        yield SRC / "img" / (draw.__name__.replace("_", "-") + ".svg"), str(draw())
    for name, text in plots.pictures():
        yield SRC / "img" / name, text
    yield SRC / "everyday-libraries.md", tables.everyday_libraries()
    page = SRC / "benchmarks.md"
    yield page, plots.page(page.read_text())


def main():
    wanted = dict(files())
    if "--check" in sys.argv:
        there = {path for path in (SRC / "img").glob("*.svg")} | {SRC / "everyday-libraries.md"}
        wrong = [path for path in wanted if not path.exists() or path.read_text() != wanted[path]]
        wrong += there - wanted.keys()
        sys.exit(
            f"python3 guide/pictures.py writes {', '.join(path.name for path in wrong)} differently" if wrong else 0
        )
    for path, text in wanted.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
