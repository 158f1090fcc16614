"""Array libraries as they are: what the kit says of each is known here, rule by rule."""

import numpy as np
import pytest

from dlpack_conformance import check_producer

# pyarrow says so at each legacy export, as it should.
pytestmark = pytest.mark.filterwarnings("ignore:Exporting an unversioned")


def ml_dtypes(name):
    return np.zeros((2, 3), getattr(pytest.importorskip("ml_dtypes"), name))


def jax(*words, **keys):
    return pytest.importorskip("jax").numpy.zeros(*words, **keys)


def strict(*words, **keys):
    return pytest.importorskip("array_api_strict").zeros(*words, **keys)


def torch(*words, **keys):
    return pytest.importorskip("torch").zeros(*words, **keys)


def tvm():
    return pytest.importorskip("tvm_ffi").from_dlpack(np.zeros(3))


def arrow():
    return pytest.importorskip("pyarrow").array([1, 2, 3])


# NumPy takes no stream, and names no error of its own for that; where its memory is aligned is chance.
NUMPY = {"ERR-06", "ERR-04", "STC-12", "DEV-06", "CPY-11", "LAY-02", "LAY-11", "CPY-14"}
# Legacy before 0.11, and versioned and read-only since.
JAX = {"ERR-04", "ERR-06", "STC-12", "CPY-11", "LAY-11", "CPY-14", "NEG-04", "NEG-05", "NEG-17", "FLG-04", "CPY-07"}
KNOWN = {
    "numpy": (lambda: np.arange(6.0), NUMPY),
    "numpy, rank 0": (lambda: np.array(3), NUMPY),
    "numpy, empty": (lambda: np.zeros((0, 3)), NUMPY | {"LAY-05", "LAY-18"}),
    "numpy, backwards": (lambda: np.arange(8)[::-2], NUMPY),
    "numpy, broadcast": (lambda: np.broadcast_to(np.arange(3), (2, 3)), NUMPY | {"LAY-16", "CPY-07"}),
    "ml_dtypes, bfloat16": (lambda: ml_dtypes("bfloat16"), {"NEG-04"}),
    "ml_dtypes, float8": (lambda: ml_dtypes("float8_e4m3fn"), {"NEG-04"}),
    "jax": (lambda: jax((2, 3)), JAX),
    "jax, bfloat16": (lambda: jax(3, dtype="bfloat16"), JAX),
    "array-api-strict": (lambda: strict((2, 3)), NUMPY | {"NEG-01", "NEG-18"}),
    "torch": (lambda: torch(2, 3), {"ERR-04", "ERR-06", "CPY-04", "NEG-17", "LAY-11", "CPY-14"}),
    "tvm-ffi": (tvm, {"NEG-06", "STC-12", "LAY-11", "NEG-17", "CPY-09", "CPY-10", "CPY-11"}),
    "pyarrow": (arrow, {"FLG-04", "ERR-06", "NEG-17", "CPY-09", "CPY-11", "ERR-04", "STC-12", "LAY-11", "CPY-14"}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_said_of_a_library_is_known(name):
    make, known = KNOWN[name]
    report = check_producer(make())
    assert {finding.rule for finding in report.faults + report.notes} <= known, str(report)
    assert len(report.findings) > 2


def test_two_faults_of_libraries_are_found_as_long_as_they_are_there():
    """An immutable array exported without its flag, and an internal error for an old version."""
    faults = {finding.rule for finding in check_producer(arrow()).faults}
    assert ("FLG-04" in faults) == ("dltensor" in repr(arrow().__dlpack__()))
    faults = {finding.rule for finding in check_producer(tvm()).faults}
    try:
        tvm().__dlpack__(max_version=(0, 8))
    except BufferError:
        assert "NEG-06" not in faults
    except Exception:
        assert "NEG-06" in faults
