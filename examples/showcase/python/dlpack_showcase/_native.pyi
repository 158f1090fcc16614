import sys
from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Protocol, SupportsIndex, final

import numpy as np
from typing_extensions import CapsuleType, disjoint_base

class _Producer(Protocol):
    """Whatever has the two methods of DLPack: an array of any library."""

    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

__all__ = [
    "Batch",
    "CartPole",
    "Image",
    "PointCloud",
    "Recording",
    "Samples",
    "Tensor",
    "Trace",
    "brightness",
    "inspect",
]

@final
class Tensor:
    """A tensor: what attributes of the other classes are."""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[int]
    def __dlpack__(
        self,
        *,
        stream: SupportsIndex | None = None,
        max_version: tuple[SupportsIndex, SupportsIndex] | None = None,
        dl_device: tuple[SupportsIndex, SupportsIndex] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    @staticmethod
    def from_dlpack(
        obj: _Producer, /, *, device: tuple[int, int] | None = None, copy: bool | None = None
    ) -> Tensor: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> tuple[int, int]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def readonly(self) -> bool: ...
    def numpy(self) -> np.ndarray[Any, Any]: ...
    def __len__(self) -> int: ...

@final
class Image:
    """A picture of `height` rows, `width` columns and three colours."""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[int]
    def __dlpack__(
        self,
        *,
        stream: SupportsIndex | None = None,
        max_version: tuple[SupportsIndex, SupportsIndex] | None = None,
        dl_device: tuple[SupportsIndex, SupportsIndex] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    def __new__(cls, height: int, width: int) -> Image: ...
    @staticmethod
    def from_array(array: _Producer) -> Image: ...

def brightness(image: _Producer) -> float: ...
def inspect(obj: object) -> str: ...

@final
class PointCloud:
    """Points on a hilly ground and the trees on it."""

    __dlpack_tensors__: ClassVar[tuple[str, ...]]
    def __new__(cls, rings: int, steps: int) -> PointCloud: ...
    def __len__(self) -> int: ...
    @property
    def time(self) -> Tensor: ...
    @property
    def x(self) -> Tensor: ...
    @property
    def y(self) -> Tensor: ...
    @property
    def z(self) -> Tensor: ...
    @property
    def intensity(self) -> Tensor: ...
    @property
    def ring(self) -> Tensor: ...
    @property
    def ground(self) -> Tensor: ...

@final
class Batch:
    """Steps in an environment."""

    __dlpack_tensors__: ClassVar[tuple[str, ...]]
    def __len__(self) -> int: ...
    @property
    def observations(self) -> Tensor: ...
    @property
    def actions(self) -> Tensor: ...
    @property
    def rewards(self) -> Tensor: ...
    @property
    def fallen(self) -> Tensor: ...

@disjoint_base
class Samples:
    """Sound, in the numbers that it came in."""

    @final
    class F32(Samples):
        __match_args__: ClassVar[tuple[str, ...]]
        def __new__(cls, values: Sequence[float]) -> Samples.F32: ...
        @property
        def values(self) -> list[float]: ...

    @final
    class I16(Samples):
        __match_args__: ClassVar[tuple[str, ...]]
        def __new__(cls, values: Sequence[int]) -> Samples.I16: ...
        @property
        def values(self) -> list[int]: ...

    @final
    class U8(Samples):
        __match_args__: ClassVar[tuple[str, ...]]
        def __new__(cls, values: Sequence[int]) -> Samples.U8: ...
        @property
        def values(self) -> list[int]: ...

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[int]
    def __dlpack__(
        self,
        *,
        stream: SupportsIndex | None = None,
        max_version: tuple[SupportsIndex, SupportsIndex] | None = None,
        dl_device: tuple[SupportsIndex, SupportsIndex] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    @staticmethod
    def chord(count: int, dtype: str) -> Samples: ...

@final
class Recording:
    """Frames of channels, in whatever numbers the file holds."""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[int]
    def __dlpack__(
        self,
        *,
        stream: SupportsIndex | None = None,
        max_version: tuple[SupportsIndex, SupportsIndex] | None = None,
        dl_device: tuple[SupportsIndex, SupportsIndex] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    def __new__(cls, path: str | PathLike[str]) -> Recording: ...

@final
class CartPole:
    """A pole on a cart. `numpy.from_dlpack(env)`, once, is the observation from then on."""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[int]
    def __dlpack__(
        self,
        *,
        stream: SupportsIndex | None = None,
        max_version: tuple[SupportsIndex, SupportsIndex] | None = None,
        dl_device: tuple[SupportsIndex, SupportsIndex] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    def __new__(cls) -> CartPole: ...
    def reset(self) -> None: ...
    def step(self, right: bool) -> tuple[float, bool]: ...
    def play(self, steps: int) -> Batch: ...

@final
class Trace:
    """Measurements, one after another."""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[int]
    def __dlpack__(
        self,
        *,
        stream: SupportsIndex | None = None,
        max_version: tuple[SupportsIndex, SupportsIndex] | None = None,
        dl_device: tuple[SupportsIndex, SupportsIndex] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    def __new__(cls) -> Trace: ...
    def push(self, value: float) -> None: ...
    def extend(self, values: Sequence[float]) -> None: ...
    def __len__(self) -> int: ...
