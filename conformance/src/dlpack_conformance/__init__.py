"""Checks whether an object's `__dlpack__` follows the standard, and what its consumers rely on.

| file | what it does |
|---|---|
| `check` | `check_producer(obj)`: one object, every request, a report |
| `report` | the rules, and the report on one object |
| `answer` | `call_dlpack(obj, copy=True)`: the result of one call of `__dlpack__`, field by field |
| `rules` | each rule as a test of its own, in your tests |
| `plugin` | the tests for `pytest --dlpack-producer mylib:make_array` |
| `_find` | objects by name |
| `__main__` | the report, for `python -m dlpack_conformance mylib:make_array` |
| `_lifetime`, `_table` | release of tensors; the C exchange table |
| `_abi` | dlpack.h and CPython's capsules, by ctypes |
"""

from .answer import Answer, Tensor, call_dlpack
from .check import check_producer
from .report import RULES, Finding, Report

__all__ = ["RULES", "Answer", "Finding", "Report", "Tensor", "call_dlpack", "check_producer"]
__version__ = "0.1.0"
