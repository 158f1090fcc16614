"""Every max_version that consumers request, and other values (NEG)."""

import capi
import dlpack_probe as p
import pytest

MAJORS = [-(2**70), -1, 0, 1, 2, 3, 99, 2**31, 2**32, 2**64, 2**70]
MINORS = [-(2**70), -1, 0, 1, 2, 3, 4, 99, 2**32, 2**70]


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize("minor", MINORS)
def test_every_version(major, minor):
    """NEG-02, NEG-04, NEG-05, NEG-06, NEG-08, NEG-10, ERR-04, fault 78: below 1.0 the legacy struct, from 1.0 on ours, with version 1.3."""
    if major < 0 or minor < 0:
        # There is no such version, and a consumer that requests one must not be treated as the newest.
        with pytest.raises(ValueError):
            p.WProbe([2]).__dlpack__(max_version=(major, minor))
        return
    capsule = p.WProbe([2]).__dlpack__(max_version=(major, minor))
    seen = capi.peek(capsule)
    assert seen.versioned == (major >= 1)
    if seen.versioned:
        assert seen.version == (1, 3)


@pytest.mark.parametrize("version", [None, (0, 0), (0, 8)])
def test_read_only_data_for_old_consumers(version):
    """NEG-03, NEG-07, FLG-04, CPY-09, faults 75, 77: legacy consumers get a copy, or a refusal if the class or the request demands it."""
    probe = p.Probe([3])
    seen = capi.consume(probe.__dlpack__(max_version=version))
    assert not seen.versioned
    assert seen.data != probe.data_ptr
    assert seen.floats() == [0.0, 1.0, 2.0]
    seen.release()
    with pytest.raises(BufferError):
        probe.__dlpack__(max_version=version, copy=False)
    strict = p.Strict([1.0])
    for copy in [None, False]:
        with pytest.raises(BufferError):
            strict.__dlpack__(max_version=version, copy=copy)
    capi.consume(strict.__dlpack__(max_version=version, copy=True)).release()
    seen = capi.export(strict)
    assert seen.flags == capi.READ_ONLY
    seen.release()


@pytest.mark.parametrize("cls", [p.WProbe, p.Probe])
def test_strides_of_every_version(cls):
    """NEG-09, LAY-02, LAY-03, faults 54, 55: strides are never NULL if there are axes, for every version."""
    for shape in [[2, 3], [1], [0, 3], [2, 0]]:
        for version in [None, (1, 0), (1, 3)]:
            seen = capi.consume(cls(shape).__dlpack__(max_version=version))
            assert seen.tensor.strides and seen.tensor.shape
            assert len(seen.strides) == len(shape)
            assert all(stride >= 1 for stride in seen.strides)
            seen.release()
    seen = capi.export(cls([]))
    assert (seen.tensor.ndim, seen.tobytes()) == (0, cls([]).tobytes())
    seen.release()
