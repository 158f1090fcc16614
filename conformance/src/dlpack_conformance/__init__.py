"""Does an object's `__dlpack__` do what the standard, and the libraries that read it, ask for?

| file | what it does |
|---|---|
| `check` | `check_producer(obj)`: one object, every way of asking, a report |
| `report` | the rules, and the report of how an object kept them |
| `answer` | `ask(obj, copy=True)`: what a producer answers to one call, field by field |
| `rules` | each rule as a test of its own, in your tests |
| `plugin` | the same for `pytest --dlpack-producer mylib:make_array` |
| `_find` | objects by name |
| `__main__` | the report, for `python -m dlpack_conformance mylib:make_array` |
| `_lifetime`, `_table` | giving back; the C exchange table |
| `_abi` | dlpack.h and CPython's capsules, by ctypes |
"""

from .answer import Answer, Tensor, ask
from .check import check_producer
from .report import RULES, Finding, Report

__all__ = ["RULES", "Answer", "Finding", "Report", "Tensor", "ask", "check_producer"]
__version__ = "0.1.0"
