"""Rust structs as arrays of every library, without a copy."""

from ._native import (
    Batch,
    CartPole,
    Image,
    PointCloud,
    Recording,
    Samples,
    Tensor,
    Trace,
    brightness,
    inspect,
    mirrored,
)

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
    "mirrored",
]
