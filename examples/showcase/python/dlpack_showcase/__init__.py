"""Rust structs as arrays of every library, without a copy, and a kit that checks any producer."""

from ._native import Batch, CartPole, Image, PointCloud, Recording, Samples, Tensor, Trace, brightness, inspect
from .check import Finding, Report, check_producer

__all__ = [
    "Batch",
    "CartPole",
    "Finding",
    "Image",
    "PointCloud",
    "Recording",
    "Report",
    "Samples",
    "Tensor",
    "Trace",
    "brightness",
    "check_producer",
    "inspect",
]
