"""Random steps over objects that share memory: exports, imports, views, copies, writes, and changes of the owner.

A model knows the elements of each object and where they are in memory. A write through one object must be seen through
every object that has an element at that address, and through no other. A view must share memory with its source; a copy
must not."""

import copy
import gc
import pickle
import random

import capi
import dlpack_probe as p
import numpy as np
import report

try:
    import tvm_ffi
except ImportError:
    tvm_ffi = None

NEWEST = {"max_version": (1, 3)}
# Whether a derived object shares memory with its source.
SHARED, COPIED, EITHER = "shared", "copied", "either"


class Item:
    """An object, its elements as the model knows them, and the name of the memory that it reads.

    An object without elements shares no memory, but may keep the owners of others alive: those in `may_keep`."""

    def __init__(self, obj, memory, kind, writable=True, may_keep=frozenset()):
        self.obj, self.memory, self.kind, self.may_keep = obj, memory, kind, may_keep
        self.read_elements()
        self.writable = writable and self.array().flags.writeable

    def array(self):
        return self.obj if isinstance(self.obj, np.ndarray) else np.from_dlpack(self.obj)

    def read_elements(self):
        self.elements = np.array(self.array(), copy=True)

    def has(self, elements):
        now = self.array()
        return now.dtype == elements.dtype and now.shape == elements.shape and now.tobytes() == elements.tobytes()


def numbers(dice):
    return [dice.random() for _ in range(dice.randint(1, 6))]


def side(dice):
    return dice.randint(1, 5)


PRODUCERS = {
    "Probe": lambda dice: p.Probe([side(dice), side(dice)]),
    "WProbe": lambda dice: p.WProbe([side(dice), side(dice)]),
    "Owned": lambda dice: p.Owned(numbers(dice)),
    "Mutable": lambda dice: p.Mutable(numbers(dice)),
    "Lent": lambda dice: p.Lent(side(dice), side(dice)),
    "Still": lambda dice: p.Still(numbers(dice)),
    "Picture": lambda dice: p.Picture(side(dice), side(dice)),
    "Canvas": lambda dice: p.Canvas(side(dice)),
    "Plate": lambda dice: p.Plate(side(dice)),
    "ByHand": lambda dice: p.ByHand(numbers(dice)),
    "ndarray": lambda dice: np.arange(side(dice), dtype=dice.choice(["f4", "i2", "u1", "f8"])),
    "Batch.rewards": lambda dice: p.Batch(side(dice)).rewards,
    "Batch.mask": lambda dice: p.Batch(side(dice)).mask,
    "Arena.scores": lambda dice: p.Arena(side(dice)).scores,
    "Simulation.reward": lambda dice: p.Simulation(side(dice)).reward,
}
DERIVED = {
    "from_dlpack": (np.from_dlpack, SHARED),
    "import": (p.take, SHARED),
    "import of a capsule": (lambda obj: p.take(obj.__dlpack__(**NEWEST)), SHARED),
    "import by the methods": (lambda obj: p.take(capi.Relay(obj)), SHARED),
    "import of a legacy capsule": (lambda obj: p.take(obj.__dlpack__()), EITHER),
    "memoryview": (lambda obj: np.asarray(memoryview(obj)), SHARED),
    "copy": (lambda obj: p.take(obj.__dlpack__(copy=True, **NEWEST)), COPIED),
    "adopt": (p.adopt, EITHER),
}
DERIVED_FROM_TENSOR = {
    "numpy": (lambda tensor: tensor.numpy(), SHARED),
    "deepcopy": (copy.deepcopy, COPIED),
    "pickle": (lambda tensor: pickle.loads(pickle.dumps(tensor)), COPIED),
}
if not hasattr(p, "hooks"):
    # With the stable ABI of Python 3.10, classes have no buffers.
    del DERIVED["memoryview"]
if tvm_ffi:
    DERIVED["tvm_ffi"] = (tvm_ffi.from_dlpack, SHARED)
# Libraries that import read-only memory and export it without the flag.
DROPS_FLAGS = ["tvm_ffi"]
SHORT = 5_000
STEPS = ["part", "kept capsule", "write", "replace", "change", "refused change"]


def addresses(array):
    """The address of each element."""
    found = np.full(array.shape, array.__array_interface__["data"][0], dtype="u8")
    for axis, stride in enumerate(array.strides):
        steps = np.arange(array.shape[axis]) * stride
        found += steps.astype("u8").reshape([-1] + [1] * (array.ndim - axis - 1))
    return found


def must_refuse(name, source):
    """Whether the source, or its consumer, has to raise `BufferError`."""
    array = source.array()
    if name == "adopt":
        return array.dtype != "f4" or not array.flags.c_contiguous
    # NumPy's own rule: the struct before DLPack 1.0 has no flag for read-only memory.
    before_flags = name in ("import of a legacy capsule", "tvm_ffi")
    return before_flags and isinstance(source.obj, np.ndarray) and not array.flags.writeable


class Walk:
    def __init__(self, dice):
        self.dice = dice
        self.items, self.memories = [], 0
        # The sources of capsules that are alive, as they were at the export.
        self.in_capsules = []
        self.done = dict.fromkeys([*PRODUCERS, *DERIVED, *DERIVED_FROM_TENSOR, *STEPS], 0)

    def new_memory(self):
        self.memories += 1
        return self.memories

    def add(self, item, name):
        self.done[name] += 1
        self.items.append(item)

    def step(self):
        """One random step; returns what is wrong."""
        roll = self.dice.random()
        if roll < 0.15 or not self.items:
            return self.produce()
        item = self.dice.choice(self.items)
        if roll < 0.3 or len(self.items) > 40:
            return self.drop(item)
        if roll < 0.45:
            return self.write(item)
        if roll < 0.55:
            owners = [item for item in self.items if isinstance(item.obj, (p.Owned, p.Mutable))]
            return self.change(self.dice.choice(owners)) if owners else ""
        if roll < 0.65:
            return self.view_part(item)
        return self.keep_capsule(item) if roll < 0.7 else self.derive(item)

    def produce(self):
        name = self.dice.choice(list(PRODUCERS))
        self.add(Item(PRODUCERS[name](self.dice), self.new_memory(), name), name)
        return ""

    def drop(self, item):
        self.items.remove(item)
        # The methods that call this one still have the item.
        item.obj = None
        if self.dice.random() < 0.05:
            gc.collect()
        return ""

    def derive(self, source):
        choices = DERIVED | (DERIVED_FROM_TENSOR if isinstance(source.obj, p.Tensor) else {})
        name = self.dice.choice(list(choices))
        if name in ("memoryview", "copy") and tvm_ffi and isinstance(source.obj, tvm_ffi.Tensor):
            # TVM has neither.
            return ""
        act, sharing = choices[name]
        refuses = must_refuse(name, source)
        try:
            obj = act(source.obj)
        except BufferError as error:
            return "" if refuses else f"{source.kind} > {name}: {error}"
        if refuses:
            return f"{source.kind} > {name}: not refused"
        return self.add_derived(source, obj, name, sharing, source.elements)

    def add_derived(self, source, obj, name, sharing, expected):
        """Adds what was made of `source`, and compares the two."""
        item = Item(obj, source.memory, f"{source.kind} > {name}", source.writable)
        self.add(item, name)
        shares = np.shares_memory(item.array(), source.array())
        if not shares:
            item.memory, item.writable = self.new_memory(), item.array().flags.writeable
            if not expected.size:
                item.may_keep = source.may_keep | {source.memory}
        if not item.has(expected):
            return f"{item.kind}: {item.elements} instead of {expected}"
        if expected.size and sharing not in (EITHER, SHARED if shares else COPIED):
            return f"{item.kind}: not {sharing}"
        if shares and name not in DROPS_FLAGS and item.array().flags.writeable and not source.array().flags.writeable:
            return f"{item.kind}: writable"
        return ""

    def view_part(self, source):
        if not isinstance(source.obj, (p.Tensor, np.ndarray)) or not source.elements.size:
            return ""
        size = source.elements.shape[0]
        first, second = sorted([self.dice.randint(0, size), self.dice.randint(0, size)])
        key = slice(first, second, self.dice.choice([1, 1, 2, 3]))
        if source.elements.ndim > 1 and self.dice.random() < 0.5:
            key = self.dice.randrange(-size, size)
        return self.add_derived(source, source.obj[key], "part", SHARED, source.elements[key])

    def keep_capsule(self, source):
        """A capsule lives longer than its source, or changes come between its export and its import."""
        elements, writes = source.elements.copy(), self.done["write"]
        capsule = source.obj.__dlpack__(**NEWEST)
        # As it is now, and without the object, which may be dropped before the capsule.
        exported = copy.copy(source)
        exported.obj = None
        self.in_capsules.append(exported)
        note = self.step()
        self.in_capsules.pop()
        if note or self.dice.random() < 0.3:
            return note
        item = Item(p.take(capsule), exported.memory, f"{source.kind} > kept capsule", exported.writable, exported.may_keep)
        self.add(item, "kept capsule")
        if self.done["write"] == writes and not item.has(elements):
            return f"{item.kind}: {item.elements} instead of {elements}"
        return ""

    def write(self, item):
        """Writes one element; the model changes where the address is the same, and `check` compares."""
        array = item.array()
        if not item.writable or not array.size:
            return ""
        place = tuple(self.dice.randrange(size) for size in array.shape)
        array[place] = self.dice.randrange(2 if array.dtype == bool else 100)
        address = addresses(array)[place]
        for other in self.items:
            seen = addresses(other.array()) == address
            if seen.any() and other.memory != item.memory:
                return f"{other.kind} shares memory with {item.kind}"
            other.elements[seen] = array[place]
        self.done["write"] += 1
        return ""

    def change(self, item):
        """Replaces the elements of an owner, whose earlier exports keep theirs; or borrows mutably a class that refuses this
        while exports of it are alive."""
        others = [other for other in self.items if other is not item] + self.in_capsules
        alive = [other.kind for other in others if other.memory == item.memory]
        may_refuse = alive or any(item.memory in other.may_keep for other in others)
        if isinstance(item.obj, p.Owned):
            item.obj.replace(numbers(self.dice))
            item.memory = self.new_memory()
            name, note = "replace", ""
        else:
            try:
                item.obj.during_change(lambda: None)
                name, note = "change", alive and f"{item.kind}: changed, while {alive[0]} shares its memory"
            except RuntimeError:
                name, note = "refused change", "" if may_refuse else f"{item.kind}: refused, although nothing shares its memory"
        self.done[name] += 1
        item.read_elements()
        return note

    def check(self):
        changed = [item for item in self.items if not item.has(item.elements)]
        return f"{changed[0].kind}: {changed[0].array()} instead of {changed[0].elements}" if changed else ""


def walk(tally):
    walker, alive = Walk(random.Random(report.SEED)), p.alive()
    while not tally.done:
        tally.judge(walker.step() or walker.check())
        if tally.wrong:
            return
    walker.items.clear()
    gc.collect()
    if p.alive() != alive:
        tally.bad(f"{p.alive() - alive} owners are left at the end")
    missing = [name for name, count in walker.done.items() if not count]
    # A few hundred steps need not contain each kind.
    if missing and tally.planned >= SHORT:
        tally.bad(f"never done: {', '.join(missing)}")


report.main({"walk": (walk, 500_000, SHORT)})
