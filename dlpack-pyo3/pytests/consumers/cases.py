"""The cases for each library: (name, case), in the order of the table's rows.

A case has an action of worker.py and tensors for it, `variants`; its cell is the worst of their results.
Tensors are writable by default, because libraries that request the legacy capsule get a copy of read-only ones.
"""

from capsule import DTYPES


def case(name, *variants, action="read", **common):
    return name, {"action": action, "variants": [{"shape": (2, 3), **common, **variant} for variant in variants or [{}]]}


def asked(version, **common):
    return {"forced": {"max_version": version}, **common}


CASES = [
    *(case(f"ndim {ndim}", {"shape": (3, 2, 2, 2, 2, 1, 3, 2)[:ndim]}) for ndim in range(9)),
    case("zero size", *({"shape": shape} for shape in [(0,), (0, 3), (3, 0), (2, 0, 3)])),
    case("transposed", {"shape": (3, 4), "strides": (1, 3)}),
    case("permuted", {"shape": (2, 3, 4), "strides": (4, 8, 1)}, {"shape": (2, 3, 4), "strides": (1, 8, 2)}),
    case("sliced", {"strides": (8, 1)}, {"strides": (8, 2)}, {"shape": (3,), "strides": (2,)}, offset=16),
    case("offset by an element", offset=1),
    case("offset by 64 bytes", offset=16),
    case("reversed", {"shape": (6,), "strides": (-1,), "offset": 5}, {"strides": (-3, 1), "offset": 3}),
    case("broadcast", {"shape": (3, 4), "strides": (0, 1)}, {"shape": (3, 4), "strides": (0, 0)}),
    case("axes of one", {"shape": (1, 3), "strides": (999, 1)}, {"shape": (3, 1), "strides": (1, 7)}),
    case("writable", write=True),
    case("read-only", readonly=True, write=True),
    case("copy=True", copy=True, write=True),
    case("copy=False", copy=False),
    case("read-only, copy=True", readonly=True, copy=True),
    case("read-only, copy=False", readonly=True, copy=False),
    case("asked for legacy", asked(None)),
    *(case(f"asked for {version}", asked(version)) for version in [(0, 8), (1, 0), (1, 99), (2, 0)]),
    case("legacy, read-only", asked(None, readonly=True)),
    case("as an argument", {}, {"shape": (0, 3)}, action="argument", dtype="int32"),
    case("many exports", action="many", count=1000),
    case("deleters counted", action="counted"),
    case("unused capsules", {}, {"readonly": True}, action="unused"),
    case("dropped on a thread", {}, action="thread"),
    case("dropped in a cycle", {}, action="cycle"),
    *(case(f"dtype {dtype}", {"dtype": dtype}) for dtype in DTYPES),
    *(case(f"dtype {dtype} padded", {"dtype": dtype, "padded": True}) for dtype in ("float6_e2m3fn", "float4_e2m1fn")),
]

# Each in its own process, which must exit normally.
EXITS = ["in a global", "in a cycle", "on a daemon thread", "while it is used"]
