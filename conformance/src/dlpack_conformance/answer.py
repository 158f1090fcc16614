"""The result of one call of `__dlpack__`: a capsule, read but not consumed, or an exception."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from . import _abi

VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"
# Limits for reading a shape that may be invalid, and data that may be large.
MOST_AXES, MOST_ELEMENTS = 1024, 4096


@dataclass(frozen=True)
class Tensor:
    """The fields of a tensor, copied out of the C struct."""

    managed: int
    versioned: bool
    version: tuple[int, int]
    flags: int
    deleter: int
    data: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]
    ndim: int
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    byte_offset: int

    @classmethod
    def of_versioned(cls, address: int) -> Tensor:
        managed = _abi.DLManagedTensorVersioned.from_address(address)
        version = (managed.version.major, managed.version.minor)
        if version[0] != 1:
            # dlpack.h, DLPackVersion: the fields behind the deleter may be other ones.
            return cls(address, True, version, 0, managed.deleter or 0, 0, (0, 0), (0, 0, 0), 0, (), (), 0)
        return cls._of(address, True, version, managed.flags, managed.deleter or 0, managed.dl_tensor)

    @classmethod
    def of_legacy(cls, address: int) -> Tensor:
        managed = _abi.DLManagedTensor.from_address(address)
        return cls._of(address, False, (0, 0), 0, managed.deleter or 0, managed.dl_tensor)

    @classmethod
    def _of(
        cls, address: int, versioned: bool, version: tuple[int, int], flags: int, deleter: int, t: _abi.DLTensor
    ) -> Tensor:
        axes = t.ndim if 0 <= t.ndim <= MOST_AXES else 0
        return cls(
            managed=address,
            versioned=versioned,
            version=version,
            flags=flags,
            deleter=deleter,
            data=t.data or 0,
            device=(t.device.device_type, t.device.device_id),
            dtype=(t.dtype.code, t.dtype.bits, t.dtype.lanes),
            ndim=t.ndim,
            shape=tuple(t.shape[:axes]) if t.shape or not axes else None,
            strides=tuple(t.strides[:axes]) if t.strides or not axes else None,
            byte_offset=t.byte_offset,
        )

    def release(self) -> None:
        """Calls the deleter, as the consumer that owns the tensor."""
        if self.deleter:
            _abi.Deleter(self.deleter)(self.managed)

    @property
    def read_only(self) -> bool:
        return bool(self.flags & _abi.READ_ONLY)

    @property
    def copied(self) -> bool:
        return bool(self.flags & _abi.IS_COPIED)

    @property
    def sane(self) -> bool:
        """Whether shape and rank are valid."""
        return (
            self.ndim >= 0
            and self.shape is not None
            and len(self.shape) == self.ndim
            and all(n >= 0 for n in self.shape)
        )

    @property
    def elements(self) -> int:
        return prod(self.shape or ())

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes; 0 if it is not a whole number."""
        bits = self.dtype[1] * self.dtype[2]
        return bits // 8 if bits % 8 == 0 else 0

    @property
    def row_major(self) -> tuple[int, ...]:
        strides: list[int] = []
        step = 1
        for extent in reversed(self.shape or ()):
            strides.insert(0, step)
            step *= max(extent, 1)
        return tuple(strides)

    @property
    def what(self) -> tuple[object, ...]:
        """The fields that must be equal for every request."""
        return (self.shape, self.dtype)

    @property
    def first(self) -> int:
        return self.data + self.byte_offset

    @property
    def span(self) -> range:
        """The lowest address of an element, and the end of the highest one."""
        if self.elements == 0:
            return range(0)
        reach = [(n - 1) * step * self.itemsize for n, step in zip(self.shape or (), self.strides or self.row_major)]
        low = self.first + sum(far for far in reach if far < 0)
        return range(low, self.first + sum(far for far in reach if far > 0) + max(self.itemsize, 1))

    def shares_with(self, other: Tensor) -> bool:
        return max(self.span.start, other.span.start) < min(self.span.stop, other.span.stop)

    @property
    def readable(self) -> bool:
        # CUDA's managed memory is left alone: a kernel may be writing it.
        return self.device[0] in (_abi.CPU, _abi.CUDA_HOST, _abi.ROCM_HOST) and self.itemsize > 0 and self.data != 0

    def some(self) -> list[bytes]:
        """The first elements, in row-major order."""
        strides = self.strides or self.row_major
        return [
            ctypes.string_at(self.first + sum(map(int.__mul__, at, strides)) * self.itemsize, self.itemsize)
            for at in self._places()
        ]

    def _places(self) -> Iterator[tuple[int, ...]]:
        for index in range(min(self.elements, MOST_ELEMENTS)):
            at: list[int] = []
            for extent in reversed(self.shape or ()):
                index, place = divmod(index, extent)
                at.insert(0, place)
            yield tuple(at)


@dataclass
class Answer:
    """The result of one call; it holds the capsule."""

    call: str
    capsule: object = None
    name: bytes | None = None
    tensor: Tensor | None = None
    error: BaseException | None = None

    @property
    def said(self) -> str:
        """The call and its result, as text."""
        if self.error is not None:
            text = str(self.error).splitlines()
            return f"{self.call} raised {type(self.error).__name__}{': ' + text[0] if text else ''}"
        if self.tensor is None:
            return f"{self.call} returned {type(self.capsule).__name__}{f' named {self.name!r}' if self.name else ''}"
        return f"{self.call} returned a {'versioned' if self.tensor.versioned else 'legacy'} tensor"

    @property
    def versioned(self) -> bool:
        return self.tensor is not None and self.tensor.versioned

    @property
    def legacy(self) -> bool:
        return self.tensor is not None and not self.tensor.versioned

    def refused(self, *kinds: type[BaseException]) -> bool:
        return isinstance(self.error, kinds)


def call_dlpack(obj: object, *args: object, **keywords: object) -> Answer:
    """Calls `obj.__dlpack__` and reads the result."""
    words = [repr(word) for word in args] + [f"{key}={word!r}" for key, word in keywords.items()]
    answer = Answer(f"__dlpack__({', '.join(words)})")
    try:
        answer.capsule = obj.__dlpack__(*args, **keywords)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is not an Exception
        answer.error = error.with_traceback(None)
        return answer
    if isinstance(answer.capsule, _abi.CapsuleType):
        answer.name = _abi.capsule_name(answer.capsule)
        if answer.name in _abi.USED:
            try:
                address = _abi.capsule_pointer(answer.capsule, answer.name)
            except ValueError:  # a name that changes by itself lies in memory that is gone
                return answer
            answer.tensor = Tensor.of_versioned(address) if answer.name == VERSIONED else Tensor.of_legacy(address)
    return answer
