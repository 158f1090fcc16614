"""What is made of benches/peers.json: a plot for each sweep, and the tables of the page of benchmarks."""

import json
import math
import re
from pathlib import Path

from svg import GREEN, INK, LINE, PALE, Picture

ROOT = Path(__file__).parent.parent
RESULTS = json.loads((ROOT / "benches/peers.json").read_text())
SWEEPS = RESULTS["sweeps"]

# Colour and corners of the mark of each; who is not here is one of ours. What has no corners is round.
LOOKS = {
    "ours": (GREEN, 0),
    "NumPy": ("#c2570c", 4),
    "rust-numpy": ("#6b3fa0", 3),
    "nanobind": ("#1864ab", 5),
    "dlpark": ("#c2255c", 4),
    "dlpack-rs": ("#868e96", 3),
    "pyo3-dlpack": ("#846358", 5),
    "memoryview": ("#0b7285", 3),
    "buffer by hand, in C": ("#0b7285", 4),
    "C": (INK, 0),
    "alone": (INK, 0),
}
VARIANTS = ["#74b816", "#099268", "#a3b18a", "#5c940d"]
# What is there to see how low it can go, and no peer.
FLOORS = {"C", "alone"}
# Less than this more is as much.
SAME = 1.05

# Why another crate is faster or smaller. Shown where the numbers say so.
WHY = {
    "export": "nanobind's capsules share one header, which is not allocated again for each export.",
    "table": "It does not check the shape.",
    "from-dlpack": "It makes fewer checks.",
    "asarray": "rust-numpy's class stores a NumPy array and returns it; NumPy owns the elements. Ours exports through the buffer "
    "protocol, which needs one more object until the last buffer is released.",
    "records": "Nearly all of the time NumPy parses the format, in Python.",
    "copy-out": "NumPy copies its own array, without a protocol in between. Large copies are bound by memory.",
    "call": "It makes fewer checks: ours also guards against two views of one memory, and accepts arrays of every library.",
    "call-any": "A view of any rank has space for six axes, and can have more on the heap; nanobind's array points to the lists of its capsule.",
    "call-ours": "It queries neither the device of the data nor its version.",
    "call-jax": "It makes fewer checks.",
    "call-torch": "dlpark reads the exchange table only. Ours also asks whether the tensor has the negative bit or requires grad, which the table ignores: "
    "the numbers would be wrong, or autograd would not see a change.",
    "call-buffer": "Ours holds the buffer in an export block, so that the array can be kept; nanobind has an object for that already.",
    "sum": "For few numbers this is the cost of a call. With a promise ours runs the same loop as rust-numpy.",
    "reduce-sum": "Other code may write to the memory, so ours loads 16 bytes at a time.",
    "reduce-max": "Other code may write to the memory, so ours loads 16 bytes at a time, NumPy up to 64.",
    "copy-in": "Other code may write to the memory, so ours loads 16 bytes at a time, `memcpy` 32 or more. Larger copies are bound by memory.",
    "copy-transposed": "For few numbers the cost is in reading shape and strides.",
    "setter": "Ours first compares the array with the shape that the class declares, and with the limits of memory.",
    "lists-in": "Each array is imported on its own: a view holds its shape, its owner and its guard inline, and is moved into the list.",
    "give": "Both call NumPy's C functions, and keep the `Vec` in one object. Ours first describes the value, which may be of any type.",
    "lists-out": "Same as for one array.",
    "frames": "NumPy does most of the work.",
    "jax": "JAX itself takes nearly all of the time.",
    "torch": "PyTorch does most of the work.",
    "like": "Same as for a `Vec` as a NumPy array.",
    "like-jax": "JAX itself takes nearly all of the time.",
    "like-torch": "PyTorch does most of the work.",
    "like-filled": "Measured before `Like::full`, which writes the memory once: ours wrote zeros first. PyTorch also uses several threads.",
    "loader": "Same as for one array.",
    "environments": "Each access of an attribute makes a new array over the memory; the other class stores its arrays and returns them.",
    "columns": "Same as for one array.",
    "index": "Both create one object: ours is an instance of a PyO3 class, which the garbage collector tracks, and the function is called through PyO3. "
    "To index often, use `np.asarray(tensor)`.",
    "slice": "Same as for an index.",
    "tolist": "For one item this is the call: ours is made through PyO3, checks that the CPU can read the memory, and copies the items before "
    "objects are made of them, since other threads may write.",
    "pickle": "Pickle looks up our function by name in the module; it knows NumPy's directly.",
    "threads-one": "Same as for one thread.",
    "threads-own": "Same as for one thread.",
    "threads-call": "Same as for one thread.",
    "threads-call-free": "Same as for one thread.",
    "threads-one-free": "nanobind's capsules share one header; ours is allocated for each export.",
    "threads-own-free": "nanobind's capsules share one header; ours is allocated for each export.",
    "memory-capsule": "nanobind's capsules share one header, which its array object has as long as it lives; ours is one allocation for each, with the "
    "address of a table more than NumPy's own.",
    "memory-array": "Same as for a capsule.",
    "memory-given": "Both hold the `Vec` through one Python object; ours is larger.",
    "class-seconds": "A class that holds NumPy arrays has no protocol methods to compile.",
    "class-bytes": "Most of it is shared by all classes of a module: NumPy's arrays, other libraries, buffers, pickle, `Tensor`, "
    "copies, streams. Each further class adds less than with dlpark.",
}

UNITS = {
    "ns": [(1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
    "bytes": [(1, "B"), (1e3, "KB"), (1e6, "MB")],
    # Of arrays whose lengths are powers of two.
    "size": [(1, "B"), (1 << 10, "KB"), (1 << 20, "MB")],
}


def said(number, unit):
    """A number with three digits, in the unit that makes it short."""
    if unit == "s":
        number, unit = number * 1e9, "ns"
    if unit in UNITS:
        factor, unit = max((some for some in UNITS[unit] if some[0] <= number), default=UNITS[unit][0])
        number /= factor
    return f"{number:.3g}".replace("e+03", "000") + f" {unit}"


def at(sweep, work):
    """As `rank 3`, `4 KB`, `1 thread`."""
    if sweep["axis"] == "bytes":
        return said(work, "size")
    if sweep["axis"] == "rank":
        return f"rank {work}"
    return f"{work:,} {sweep['axis'] if work != 1 else sweep['axis'].removesuffix('s')}"


def contests(sweep):
    """For each amount of work: what ours takes, and the best of the others with its name."""
    for index, work in enumerate(sweep["work"]):
        others = [
            (numbers[index], name)
            for name, numbers in sweep["columns"].items()
            if not name.startswith("ours") and name not in FLOORS and numbers[index]
        ]
        yield work, sweep["columns"]["ours"][index], *min(others)


def worst(sweep):
    return max(contests(sweep), key=lambda one: one[1] / one[2])


def behind():
    """The sweeps in which another one is first, at any amount of work."""
    return [name for name, sweep in SWEEPS.items() if worst(sweep)[1] / worst(sweep)[2] > SAME]


def unexplained():
    """Those of them of which nothing says why."""
    return [name for name in behind() if name not in WHY]


# --- Plots


def ticks(low, high, log):
    """Round numbers between the two, some five."""
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        firsts = [1] if len(decades) > 3 else [1, 2, 5]
        some = [first * 10.0**decade for decade in decades for first in firsts]
        return [number for number in some if low <= number <= high]
    step = 10 ** math.floor(math.log10(high))
    step = next(step / part for part in (1, 2, 5, 10) if high / (step / part) >= 4)
    return [step * count for count in range(int(high / step) + 1)]


def mark(p, x, y, colour, corners):
    if not corners:
        return p.dot(x, y, 4.5, colour, colour)
    turned = [math.tau * (corner / corners - 0.25 + (corners == 4) / 8) for corner in range(corners)]
    points = " ".join(f"{x + 5.5 * math.cos(turn):.1f},{y + 5.5 * math.sin(turn):.1f}" for turn in turned)
    p.add(y + 6, f'<polygon points="{points}" fill="{colour}"/>')


def look(name, variants):
    return LOOKS.get(name) or (VARIANTS[variants.index(name) % len(VARIANTS)], 0)


def plot(sweep):
    title = re.sub("`", "", sweep["title"])
    p = Picture(f"{title}: how it grows, for these crates and others")
    p.text(16, 24, title, 14 if len(title) < 70 else 12.5, anchor="start", bold=True)
    variants = [name for name in sweep["columns"] if name not in LOOKS]
    x, y = 24, 48
    for name in sweep["columns"]:
        wide = 38 + p.long(name, 13, False)
        if x + wide > p.width - 8:
            x, y = 24, y + 22
        mark(p, x, y - 4, *look(name, variants))
        p.text(x + 11, y, name, 13, anchor="start")
        x += wide
    left, right, top, low = 74, p.width - 26, y + 22, y + 242
    numbers = [number for column in sweep["columns"].values() for number in column if number]
    work = sweep["work"]
    wide_x, wide_y = work[-1] / work[0] > 8, max(numbers) / min(numbers) > 8
    least, most = (min(numbers) / 1.3, max(numbers) * 1.3) if wide_y else (0, max(numbers) * 1.1)

    def place(number, least, most, log, begin, end):
        if log:
            number, least, most = math.log(number), math.log(least), math.log(most)
        return begin + (end - begin) * (number - least) / ((most - least) or 1)

    for number in ticks(least, most, wide_y):
        height = place(number, least, most, wide_y, low, top)
        p.line([(left, height), (right, height)], PALE, 1)
        p.text(left - 8, height + 4, said(number, sweep["unit"]) if number else "0", 12, anchor="end")
    places = [place(some, work[0], work[-1], wide_x, left + 14, right - 14) for some in work]
    for some, across in zip(work, places):
        p.line([(across, top), (across, low)], PALE, 1)
        p.text(across, low + 20, at(sweep, some) if sweep["axis"] == "bytes" else f"{some:,}", 12)
    if sweep["axis"] != "bytes":
        p.text((left + right) / 2, low + 40, sweep["axis"], 13)
    p.line([(left, top), (left, low), (right, low)], LINE, 1)
    # Ours is drawn last, on top.
    for name, column in reversed(sweep["columns"].items()):
        colour, corners = look(name, variants)
        points = [(across, place(n, least, most, wide_y, low, top)) for across, n in zip(places, column) if n]
        p.line(points, colour, 3 if name == "ours" else 1.8, dash=name in FLOORS)
        for point in points:
            mark(p, *point, colour, corners)
    return p


def pictures():
    for name, sweep in SWEEPS.items():
        yield f"peers-{name}.svg", str(plot(sweep))


# --- The page


def block(names):
    """The plots of some sweeps, and what they say at both ends."""
    some = {name: SWEEPS[name] for name in names if name in SWEEPS}
    lines = [f"![{sweep['title'].replace('`', '')}](img/peers-{name}.svg)\n" for name, sweep in some.items()]
    lines += ["| | at | ours | best other | ratio | at | ours | best other | ratio |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for sweep in some.values():
        first, *_, last = contests(sweep)
        cells = [
            f"{at(sweep, work)} | {said(ours, sweep['unit'])} | {name}, {said(best, sweep['unit'])} | {ours / best:.2f}"
            for work, ours, best, name in (first, last)
        ]
        lines.append(f"| {sweep['title']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def not_first():
    """Which crate is better, by how much at most and at what amount of work, and why."""
    lines = ["| | better | ours, times as much | why |", "|---|---|---|---|"]
    for name in behind():
        sweep = SWEEPS[name]
        work, ours, best, who = worst(sweep)
        times = f"{ours / best:.2g}" if ours < 10 * best else f"{ours / best:.0f}"
        lines.append(f"| {sweep['title']} | {who} | up to {times} ({at(sweep, work)}) | {WHY.get(name, '')} |")
    return "\n".join(lines) + "\n"


def summary():
    """How often ours is first, and some rows that most readers look for."""
    lines = ["| | at | ours | best other |", "|---|---|---|---|"]
    for name in ANSWERS:
        work, ours, best, other = next(contests(SWEEPS[name]))
        unit = SWEEPS[name]["unit"]
        lines.append(f"| {SWEEPS[name]['title']} | {at(SWEEPS[name], work)} | {said(ours, unit)} | {said(best, unit)}, {other} |")
    first = [sweep["title"] for name, sweep in SWEEPS.items() if name not in behind()]
    lines += ["", f"Of {len(SWEEPS)} measurements ours is first, or within 5 percent, at every size in {len(first)}: {'; '.join(first)}."]
    return "\n".join(lines) + "\n"


# The rows that most readers look for.
ANSWERS = ["export", "from-dlpack", "asarray", "call", "call-ours", "give", "index", "class-bytes"]


def conditions():
    about, missing = RESULTS["about"], RESULTS["missing"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [f"Measured on {about['date']} at commit {about['commit']}, on {about['machine']}; {versions}.\n"]
    lines += [f"- Not measured: {what} ({reason})." for what, reason in missing.items()]
    return "\n".join(lines).rstrip() + "\n"


def page(text):
    """The page with its blocks made anew; what stands between them is written by hand."""

    def made(found):
        special = {"about": conditions, "behind": not_first, "summary": summary}.get(found[1])
        return f"<!-- peers: {found[1]} -->\n\n{special() if special else block(found[1].split())}\n<!-- end -->"

    return re.sub(r"<!-- peers: (.*?) -->\n.*?<!-- end -->", made, text, flags=re.S)
