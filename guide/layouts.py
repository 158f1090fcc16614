"""For each key, the memory as a strip of numbered cells, and the array that the key makes of it, with the same numbers."""

from svg import HUES, LINE, WHITE, Picture

CELL = 36


def layout(title, code, count, shape, strides, offset=0, group=0, unit="element"):
    """A strip of `count` cells, and the array of two axes whose cell (i, j) is cell `offset + i * s + j * t` of it."""
    # No wider than it must be, so that its letters stay large on a phone.
    cell = min(CELL, 528 / count)
    longest = max(Picture.long(words, 14, mono=True) for words in code)
    p = Picture(title, max(cell * count, longest, 300) + 32)
    for line, words in enumerate(code):
        p.text(16, 28 + 20 * line, words, 14, anchor="start", mono=True)
    y = 28 + 20 * len(code) + 6
    rows, columns = shape
    number = lambda i, j: offset + i * strides[0] + j * strides[1]
    used = {number(i, j): i for i in range(rows) for j in range(columns)}
    assert set(used) <= set(range(count)), "the picture reaches out of its memory"
    p.text(16, y, f"memory, one cell per {unit}", 13, anchor="start", fill=LINE)
    hues = [HUES[used[index] % len(HUES)] if index in used else WHITE for index in range(count)]
    p.cells(16, y + 8, range(count), cell, fills=hues, size=14 if cell > 30 else 12)
    y += 72
    p.text(
        16,
        y,
        f"array, shape ({rows}, {columns // group if group else columns}{f', {group}' if group else ''})",
        13,
        anchor="start",
        fill=LINE,
    )
    for i in range(rows):
        for j in range(columns):
            gap = 10 * (j // group) if group else 0
            p.cells(16 + CELL * j + gap, y + 8 + 38 * i, [number(i, j)], CELL, fills=[HUES[i % len(HUES)]])
    return p


def key_shape():
    return layout("shape: six elements as two rows of three", ["#[dlpack(shape = [2, 3])]"], 6, (2, 3), (3, 1))


def key_strides():
    return layout(
        "strides: rows of four elements, of which three are shown",
        ["#[dlpack(shape = [2, 3],", "         strides = [4, 1])]"],
        8,
        (2, 3),
        (4, 1),
    )


def key_byte_strides():
    return layout(
        "byte_strides: two rows of eight bytes, of which two pixels of three bytes are shown",
        ["#[dlpack(shape = [2, 2, 3],", "         byte_strides = [8, _, _])]"],
        16,
        (2, 6),
        (8, 1),
        group=3,
        unit="byte",
    )


def key_offset():
    return layout(
        "offset: two elements come before the first",
        ["#[dlpack(shape = [2, 3], offset = 2)]"],
        8,
        (2, 3),
        (3, 1),
        offset=2,
    )


def key_order():
    return layout(
        'order = "F": the first column comes first in memory',
        ['#[dlpack(shape = [2, 3], order = "F")]'],
        6,
        (2, 3),
        (1, 2),
    )


def key_tensor():
    """Several vectors of one struct, each an array of its own."""
    p = Picture("tensor: each marked field of a struct is an array of its own")
    code = [
        "#[dlpack(tensor(shape = [_, 2]))] observations: Vec<f32>,",
        "#[dlpack(tensor)]                 rewards: Vec<f32>,",
    ]
    for line, words in enumerate(code):
        p.text(16, 28 + 20 * line, words, 14, anchor="start", mono=True)
    p.text(16, 78, "batch.observations, shape (3, 2)", 13, anchor="start", fill=LINE)
    p.text(320, 78, "batch.rewards, shape (3,)", 13, anchor="start", fill=LINE)
    for row in range(3):
        p.cells(16, 86 + 38 * row, [2 * row, 2 * row + 1], CELL, fills=[HUES[row]] * 2)
    p.cells(320, 86, range(3), CELL, fills=[HUES[4]] * 3)
    return p


def key_columns():
    """Records in memory; each field is an array with the record's size as its stride."""
    p = Picture("columns: each field of a record is an array, whose stride is the size of the record")
    for line, words in enumerate(
        ["#[dlpack(columns)] trades: Vec<Trade>", "struct Trade { price: f64, size: u32, venue: u32 }"]
    ):
        p.text(16, 28 + 20 * line, words, 14, anchor="start", mono=True)
    p.text(16, 74, "memory, three records of 16 bytes", 13, anchor="start", fill=LINE)
    fields = [("price", 2, HUES[0]), ("size", 1, HUES[1]), ("venue", 1, HUES[2])]
    x, places = 16, {name: [] for name, _, _ in fields}
    for record in range(3):
        for name, cells, fill in fields:
            p.box(x, 82, 44 * cells, 34, fill, round=0)
            p.text(x + 22 * cells, 104, f"{name[0:5]}{record}" if cells > 1 else f"{name[:2]}{record}", 13, mono=True)
            places[name].append(x + 22 * cells)
            x += 44 * cells
    for index, (name, _, fill) in enumerate(fields):
        left = 16 + 180 * index
        p.text(left, 152, f"trades.{name}", 14, anchor="start", mono=True)
        p.cells(left, 162, [f"{name[:2]}{record}" for record in range(3)], 48, fills=[fill] * 3, size=13)
        p.text(left, 214, "strides (16,) bytes", 13, anchor="start", fill=LINE)
    return p


PICTURES = [key_shape, key_strides, key_byte_strides, key_offset, key_order, key_tensor, key_columns]
