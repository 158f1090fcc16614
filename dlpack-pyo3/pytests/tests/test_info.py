"""The draft's `__dlpack_info__` and `version=` (INF)."""

import inspect

import capi
import dlpack_probe as p
import pytest


def draft():
    return p.Draft([1.0, 2.0])


def test_the_answer():
    """INF-01, INF-02: an int on the draft's scale, so that consumers can use the smaller of two."""
    assert draft().__dlpack_info__() == 130
    assert type(draft().__dlpack_info__()) is int
    assert min(60, draft().__dlpack_info__()) == 60
    with pytest.raises(TypeError):
        draft().__dlpack_info__(1)


@pytest.mark.parametrize("version", [None, -(2**70), -1, 0, 1, 20, 60])
def test_the_old_abi(version):
    """INF-03: versions up to 0.6, and none, get the legacy capsule."""
    capsule = draft().__dlpack__(version=version)
    assert capi.capsule_name(capsule) == b"dltensor"


@pytest.mark.parametrize("version", [61, 70, 80, 99])
def test_the_struct_that_was_never_released(version):
    """INF-04, INF-08, INF-12, ABI-12: no released struct has these version numbers."""
    with pytest.raises(BufferError) as raised:
        draft().__dlpack__(version=version)
    assert str(version) in str(raised.value) or f"0.{version // 10}" in str(raised.value)


@pytest.mark.parametrize("version", [100, 110, 130, 139, 200, 1000])
def test_newer_versions(version):
    """INF-05, INF-12, NEG-04, NEG-05: newer versions get the released struct with its capsule name."""
    capsule = draft().__dlpack__(version=version)
    assert capi.capsule_name(capsule) == b"dltensor_versioned"
    assert capi.peek(capsule).version == (1, 3)


def test_absent():
    """INF-06, INF-09: the keyword has the default None, which has no effect."""
    parameters = inspect.signature(draft().__dlpack__).parameters
    assert parameters["version"].default is None
    assert parameters["version"].kind is inspect.Parameter.KEYWORD_ONLY
    assert capi.capsule_name(draft().__dlpack__()) == b"dltensor"
    assert capi.capsule_name(draft().__dlpack__(max_version=(1, 0))) == b"dltensor_versioned"
    assert capi.capsule_name(draft().__dlpack__(max_version=(1, 0), version=None)) == b"dltensor_versioned"


@pytest.mark.parametrize("version", [0, 60, 70, 130])
def test_both_versions(version):
    """INF-07, ERR-03: contradicting values of both keywords are a `ValueError`, not a `TypeError`."""
    with pytest.raises(ValueError):
        draft().__dlpack__(version=version, max_version=(1, 0))


@pytest.mark.parametrize("version", ["60", 1.0, (1, 0), object()], ids=repr)
def test_versions_of_a_wrong_type(version):
    """INF-06, ERR-03: a value that is not an int is a `TypeError`."""
    with pytest.raises(TypeError):
        draft().__dlpack__(version=version)


@pytest.mark.parametrize("cls", [p.Probe, p.WProbe, p.Mutable, p.Tensor, p.ByHand], ids=lambda cls: cls.__name__)
def test_only_on_request(cls):
    """INF-09: classes without the option have neither the method nor the keyword."""
    assert not hasattr(cls, "__dlpack_info__")
    assert "version" not in inspect.signature(cls.__dlpack__).parameters


def test_the_importer_does_not_ask():
    """INF-10, INF-11: the importer uses max_version; it does not look up `__dlpack_info__`."""

    class Producer(capi.Foreign):
        def __dlpack_info__(self):
            raise AssertionError("asked")

    producer = Producer()
    p.take(producer)
    assert all("version" not in request for request in producer.asked)
