"""The array API standard's requirements for `__dlpack__` and `__dlpack_device__` (NEG, DEV, CPY, DTY)."""

import enum
import inspect

import capi
import dlpack_probe as p
import pytest

KEYWORDS = ["stream", "max_version", "dl_device", "copy"]
OWNERS = [
    pytest.param(lambda: p.Probe([2, 3]), id="frozen"),
    pytest.param(lambda: p.WProbe([2, 3]), id="shared"),
    pytest.param(lambda: p.Mutable([1.0]), id="mutable"),
    pytest.param(lambda: p.ByHand([1.0]), id="by hand"),
    pytest.param(lambda: p.Draft([1.0]), id="info"),
    pytest.param(lambda: p.Audio.Float([1.0]), id="enum"),
    pytest.param(lambda: p.Floats([1.0], 1), id="newtype"),
    pytest.param(lambda: p.Doubled([1.0]), id="via"),
    pytest.param(lambda: p.take(p.Probe([2])), id="tensor"),
]


@pytest.mark.parametrize("make", OWNERS)
def test_the_signature(make):
    """NEG-01, NEG-19: four keyword-only parameters, all None by default; more only if the class requests it."""
    owner = make()
    parameters = dict(inspect.signature(owner.__dlpack__).parameters)
    extra = parameters.pop("version", None)
    assert (extra is not None) == isinstance(owner, p.Draft)
    assert list(parameters) == KEYWORDS
    for parameter in parameters.values():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is None
    for count in [1, 4]:
        with pytest.raises(TypeError):
            owner.__dlpack__(*[None] * count)
    # Beside keywords, which have a fast path.
    for others in [{"max_version": (1, 3)}, {"max_version": (1, 3), "copy": None}]:
        with pytest.raises(TypeError):
            owner.__dlpack__((1, 1), **others)
    assert owner.__dlpack__.__doc__
    assert owner.__dlpack_device__.__doc__


@pytest.mark.parametrize("make", OWNERS)
def test_all_keywords_as_none(make):
    """NEG-01, NEG-21: NumPy, dpnp and pyarrow always pass all keywords."""
    capsule = make().__dlpack__(stream=None, max_version=None, dl_device=None, copy=None)
    assert capi.capsule_name(capsule) == b"dltensor"


def test_keywords_made_at_run_time():
    """NEG-01: keyword names that are equal to the interned ones, but other objects."""
    for name in KEYWORDS:
        built = "".join(list(name))
        assert built is not name
        p.WProbe([2]).__dlpack__(**{built: None})
    capsule = p.WProbe([2]).__dlpack__(**{"".join(list("max_version")): (1, 0)})
    assert capi.capsule_name(capsule) == b"dltensor_versioned"


@pytest.mark.parametrize("bad", ["maxversion", "version", "device", "read_only", "", "stream ", "copy\0", "ström"])
def test_unknown_keywords(bad):
    """NEG-18: an unknown keyword is a `TypeError`, on which consumers fall back; also next to common keywords, which have a fast path."""
    for others in [{}, {"max_version": (1, 3)}, {"max_version": (1, 3), "stream": None}]:
        with pytest.raises(TypeError, match="keyword|argument"):
            p.WProbe([2]).__dlpack__(**others, **{bad: None})


def test_arguments_that_are_almost_of_the_type():
    """NEG-17, CPY-11: an object that Python accepts as an int, a pair or a bool is accepted here."""
    np = pytest.importorskip("numpy")

    class Index:
        def __index__(self):
            return 1

    class Kind(enum.IntEnum):
        CPU = 1

    owner = p.WProbe([2])
    for one in [Index(), Kind.CPU, np.int64(1), True]:
        capsule = owner.__dlpack__(max_version=(one, 0))
        assert capi.capsule_name(capsule) == b"dltensor_versioned"
        capsule = owner.__dlpack__(dl_device=(one, np.int32(0)))
        assert capi.peek(capsule).device == (1, 0)
    for true in [True, np.True_]:
        seen = capi.export(owner, copy=true)
        assert seen.flags == capi.IS_COPIED
        seen.release()


def test_arguments_that_only_look_like_the_type():
    """NEG-17, CPY-11: a NumPy integer is not accepted as `copy`, nor an instance of a foreign class of that name; an exception of
    `__index__` is passed on."""
    np = pytest.importorskip("numpy")
    owner = p.WProbe([2])
    foreign = type("bool", (), {"__bool__": lambda self: True})()
    for value in [1, np.int64(1), np.float32(1), foreign, "yes"]:
        with pytest.raises(TypeError, match="copy is True, False or None"):
            owner.__dlpack__(copy=value)

    class Bad:
        def __index__(self):
            raise RuntimeError("of its own")

    for request in [{"stream": Bad()}, {"max_version": (Bad(), 0)}, {"max_version": (1, Bad())}, {"dl_device": (1, Bad())}]:
        with pytest.raises(RuntimeError, match="of its own"):
            owner.__dlpack__(**request)


@pytest.mark.parametrize("make", OWNERS)
def test_the_device(make):
    """DEV-01, DEV-02, DEV-03: a pair of ints, equal to the device in the tensor."""
    owner = make()
    found = owner.__dlpack_device__()
    assert type(found) is tuple and list(map(type, found)) == [int, int]
    assert found == (1, 0)
    for request in [{}, {"max_version": (1, 0)}, {"dl_device": (1, 0)}, {"dl_device": found, "copy": True}]:
        seen = capi.consume(owner.__dlpack__(**request))
        assert seen.device == found
        seen.release()
    with pytest.raises(TypeError):
        owner.__dlpack_device__(1)
    with pytest.raises(TypeError):
        owner.__dlpack_device__(device=1)


@pytest.mark.parametrize("device", [(2, 0), (2, 3), (10, 1), (13, 0), (3, 0), (7, 0), (8, 0), (14, 1)])
def test_other_devices(device):
    """DEV-02, DEV-04, DEV-05, faults 80, 81: `__dlpack_device__` and the tensor have the same device."""
    owner = p.Elsewhere(*device)
    assert owner.__dlpack_device__() == device
    stream = -1 if device[0] in (2, 10, 13) else None
    for request in [{}, {"dl_device": device}]:
        seen = capi.export(owner, stream=stream, **request)
        assert seen.device == device
        assert seen.data == 0x1000
        assert seen.tensor.byte_offset == 0
        seen.release(gil=False)


def test_a_device_that_does_not_exist():
    """DEV-11, DEV-14, DEV-19: a device type that DLPack 1.3 does not have is neither exported nor imported."""
    # The message names devices of later headers.
    later = {19: "tpu:0", 20: "tpu_host:0", 21: "ascend:0"}
    for number in [0, 5, 6, 19, 20, 21, 99, -1]:
        name = later.get(number, f"device type {number}:0")
        owner, foreign = p.Elsewhere(number), capi.Foreign(device=(number, 0))
        for use in [
            owner.__dlpack_device__,
            owner.__dlpack__,
            lambda owner=owner: capi.export(owner, max_version=(1, 3)),
            lambda foreign=foreign: p.take(foreign),
        ]:
            with pytest.raises(BufferError, match=f"DLPack 1.3 has no {name}$"):
                use()
        assert foreign.deleted == 1


def test_the_index_of_host_memory_is_0():
    """DEV-03, DEV-05: memory that the host can read is one device of its kind, with the index 0, whatever the user names."""
    for kind in [1, 3, 11, 13]:
        owner = p.Elsewhere(kind, 5)
        assert owner.__dlpack_device__() == (kind, 0)
        stream = None if kind == 1 else -1
        for wanted in [None, (kind, 0), (kind, 5)]:
            seen = capi.export(owner, stream=stream, dl_device=wanted)
            assert seen.device == (kind, 0)
            seen.release(gil=False)


def test_a_query_of_the_device_has_no_effect():
    """DEV-20, DEV-11: a call of `__dlpack_device__` leaves nothing borrowed. If the object cannot be borrowed, it is a `BufferError`."""
    for owner in [p.Mutable([1.0]), p.Exclusive([1.0])]:
        held = capi.references(owner)
        assert owner.__dlpack_device__() == (1, 0)
        owner.push(1.0)
        assert owner.during_read(owner.__dlpack_device__) == (1, 0)
        try:
            found = owner.during_change(owner.__dlpack_device__)
        except BufferError:
            found = (1, 0)
        assert found == (1, 0)
        assert capi.references(owner) == held


def test_the_device_of_a_skipped_variant():
    """DEV-11, ERR-01: a variant without a tensor may have no device; the exception is a `BufferError`."""
    try:
        found = p.Audio.Silence().__dlpack_device__()
    except BufferError:
        found = (1, 0)
    assert found == (1, 0)


def test_device_memory_for_the_cpu():
    """DEV-06, DEV-07, DEV-08, ERR-02: memory of Metal, Vulkan and other devices without streams that core knows is not copied to
    the CPU."""
    for kind in [7, 8, 14]:
        for copy in [None, True, False]:
            with pytest.raises(BufferError):
                p.Elsewhere(kind).__dlpack__(dl_device=(1, 0), copy=copy, max_version=(1, 0), stream=None)


@pytest.mark.parametrize("version", [None, (0, 0), (0, 8), (1, 0), (1, 3), (1, 99), (2, 0), (99, 0)])
@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("device", [None, (1, 0)])
@pytest.mark.parametrize("cls", [p.Probe, p.WProbe], ids=["read-only", "writable"])
def test_the_grid(version, copy, device, cls):
    """NEG-02, NEG-03, NEG-04, NEG-05, NEG-06, NEG-21, CPY-01, CPY-02, CPY-03, CPY-04, CPY-05, CPY-07, CPY-09, FLG-04, faults 75, 77, 78, 79."""
    owner = cls([2, 3])
    read_only, legacy = cls is p.Probe, version is None or version[0] < 1
    request = dict(max_version=version, copy=copy, dl_device=device)
    if legacy and read_only and copy is False:
        with pytest.raises(BufferError):
            owner.__dlpack__(**request)
        return
    seen = capi.consume(owner.__dlpack__(**request))
    copied = copy is True or (legacy and read_only)
    assert seen.versioned == (not legacy)
    if not legacy:
        assert seen.version == (1, 3)
        assert seen.flags == (capi.IS_COPIED if copied else capi.READ_ONLY if read_only else 0)
    assert (seen.data == owner.data_ptr) == (not copied)
    if copied:
        assert seen.data % 256 == 0
    assert seen.tobytes() == owner.tobytes()
    assert (seen.shape, seen.dtype, seen.device) == ((2, 3), capi.FLOAT32, (1, 0))
    seen.release()


def test_a_copy_belongs_to_the_consumer():
    """CPY-06: writes to a copy do not change the original or another copy, and a copy does not keep the owner."""
    owner = p.WProbe([3])
    one, two = capi.export(owner, copy=True), capi.export(owner, copy=True)
    capi.c.memset(one.data, 255, 12)
    assert owner.tobytes() == two.tobytes() != one.tobytes()
    one.release()
    two.release()
    alive = p.alive()
    seen = capi.export(owner, copy=True)
    del owner
    assert p.alive() == alive - 1
    assert seen.floats() == [0.0, 1.0, 2.0]
    seen.release()


def test_copies_of_strided_data():
    """CPY-01, CPY-09, LAY-14, LAY-15: a copy of any layout has the elements in order."""
    for strides, offset in [([1, 2], 0), ([-3, -1], 5), ([0, 1], 0), ([6, 2], 1)]:
        owner = p.Probe([2, 3], strides=strides, offset=offset)
        for version in [None, (1, 0)]:
            seen = capi.consume(owner.__dlpack__(copy=True, max_version=version))
            assert seen.tobytes() == owner.tobytes()
            seen.release()


TYPES = {
    "bool": (6, 8), "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64), "int128": (0, 128),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "uint128": (1, 128),
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16),
    "complex32": (5, 32), "complex64": (5, 64), "complex128": (5, 128),
    "float8_e3m4": (7, 8), "float8_e4m3": (8, 8), "float8_e4m3b11fnuz": (9, 8), "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8), "float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8), "float8_e8m0fnu": (14, 8),
}  # fmt: skip
SMALL = {"float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6), "float4_e2m1fn": (17, 4)}


@pytest.mark.parametrize("name", TYPES)
def test_data_types(name):
    """DTY-01, DTY-02, DTY-03, DTY-04, DTY-05, DTY-18, NEG-10, faults 71, 73, 74: exported by every function, and imported again."""
    code, bits = TYPES[name]
    for cls in [p.Probe, p.WProbe]:
        owner = cls([2, 3], name)
        for version in [None, (1, 0), (1, 3)]:
            seen = capi.consume(owner.__dlpack__(max_version=version))
            assert seen.dtype == (code, bits, 1)
            assert seen.tobytes() == owner.tobytes()
            seen.release()
        tensor = p.take(owner)
        assert (tensor.dtype, tensor.nbytes) == (name, 6 * bits // 8)
        seen = capi.Exchange(cls).from_object(owner)
        assert (seen.dtype, seen.tobytes()) == ((code, bits, 1), owner.tobytes())
        seen.release()


@pytest.mark.parametrize("name", SMALL)
def test_small_data_types(name):
    """DTY-05, DTY-12, DTY-13, fault 73: one item a byte has the padding flag, packed items do not."""
    code, bits = SMALL[name]
    padded = p.Probe([3], name, padded=True)
    seen = capi.export(padded)
    assert seen.dtype == (code, bits, 1)
    assert seen.flags & capi.PADDED
    assert seen.tobytes() == bytes([0, 1, 2])
    seen.release()
    with pytest.raises(BufferError):
        padded.__dlpack__()
    packed = p.Probe([8], name)
    seen = capi.export(packed)
    assert not seen.flags & capi.PADDED
    expected = sum(i << (i * bits) for i in range(8)).to_bytes(bits, "little")
    assert capi.c.string_at(seen.data, bits) == expected
    seen.release()


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_lanes(lanes):
    """DTY-07: vector types."""
    seen = capi.export(p.Probe([3], lanes=lanes))
    assert seen.dtype == (2, 32, lanes)
    assert len(seen.tobytes()) == 12 * lanes
    seen.release()


def test_no_data_type_attribute():
    """DTY-19: a proposal for objects that stand for data types; our dtype is a str, which cannot carry it."""
    assert type(p.take(p.Probe([2])).dtype) is str


def test_the_importer_repeats_the_call_with_fewer_keywords():
    """NEG-14, NEG-15, NEG-11, NEG-16: the importer passes `max_version` first, and only after a `TypeError` repeats the call with
    fewer keywords."""
    polite = capi.Foreign()
    p.take(polite)
    assert polite.asked[0]["max_version"][0] == 1
    assert len(polite.asked) == 1

    class Old(capi.Foreign):
        def __dlpack__(self, stream=None):
            self.asked.append({"stream": stream})
            return self.capsule()

    for legacy in [True, False]:
        old = Old(legacy=legacy)
        assert p.take(old).shape == (2, 3)
        assert old.asked == [{"stream": None}]

    class Older(capi.Foreign):
        def __dlpack__(self):
            self.asked.append({})
            return self.capsule()

    older = Older(legacy=True)
    assert p.take(older).shape == (2, 3)

    class Refuses(capi.Foreign):
        def __dlpack__(self, **request):
            self.asked.append(request)
            raise BufferError("no")

    refuses = Refuses()
    with pytest.raises(BufferError, match="no"):
        p.take(refuses)
    assert len(refuses.asked) == 1


def test_a_type_error_of_the_producers_own():
    """NEG-15, ERR-07: a `TypeError` that each call raises is passed on."""

    class Broken(capi.Foreign):
        def __dlpack__(self, **request):
            self.asked.append(request)
            raise TypeError("the producer's own")

    broken = Broken()
    with pytest.raises(TypeError, match="the producer's own"):
        p.take(broken)
    assert 1 <= len(broken.asked) <= 3
