"""mypy and basedpyright understand the module of the guide: maturin writes its stubs, and the programs of the pages type-check.

A page is one program, `page_<name>.py`, in which each line has its number in the page. A statement that shows a traceback is left
out: what it passes is wrong on purpose. Libraries that have no types, or are not installed, are `Any`.
`cargo xtask guide` writes the stubs.
"""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_guide import PAGES, blocks

pytest.importorskip("mypy")
pytest.importorskip("basedpyright")

# The code that the page on porting replaces is not ours to annotate.
MYPY_INI = """
[mypy]
strict = True
ignore_missing_imports = True
[mypy-guide.before]
ignore_errors = True
"""

# The stubs as strict as the checker can be, the programs as it is by default.
PYRIGHT_CONFIG = """
{
    "typeCheckingMode": "standard",
    "strict": ["guide"],
    "ignore": ["guide/before.pyi"],
    "reportPrivateUsage": false,
    "reportMissingImports": false
}
"""

# PyTorch is too large to install for this. Its own stubs have this class, with these methods.
TORCH = """
from typing import Any

class Tensor:
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def unsqueeze(self, dim: int) -> Tensor: ...

def ones(*size: int) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
"""

USE = """
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from guide import Tensor, arguments, dtypes, records, results, shapes, start, tables
from typing_extensions import assert_type

def results_have_the_type_of_an_argument(array: npt.NDArray[np.float32], tensor: torch.Tensor, ours: Tensor) -> None:
    assert_type(results.doubled(array), npt.NDArray[np.float32])
    assert_type(results.doubled(tensor), torch.Tensor)
    assert_type(results.doubled(ours), Tensor)
    assert_type(results.outer(array, tensor), npt.NDArray[np.float32])
    assert_type(results.outer(tensor, array), torch.Tensor)

def results_name_a_library_and_a_dtype() -> None:
    assert_type(results.ramp(3), npt.NDArray[np.float32])
    assert_type(results.identity(2), npt.NDArray[np.float64])
    assert_type(results.heat(1, 3), npt.NDArray[np.float32])
    assert_type(results.samples(), Tensor)
    assert_type(records.bids(records_of_trades), npt.NDArray[Any])

def arguments_are_arrays_of_any_library(array: npt.NDArray[np.float64], tensor: torch.Tensor) -> None:
    sums = [arguments.row_sums(array), arguments.row_sums(tensor), arguments.row_sums(start.Grid(2, 3))]
    sums += [arguments.row_sums(results.samples()), arguments.row_sums(bytearray(3)), arguments.row_sums(memoryview(b"abc"))]
    assert_type(sums, list[npt.NDArray[np.float32]])
    arguments.average(array)
    arguments.average(array, weights=tensor)
    arguments.average(values=array, weights=None)
    assert_type(dtypes.level(array) + dtypes.total(array) + dtypes.total(2.0), float)
    assert_type(arguments.norm([3, 4]) + arguments.norm(array), float)

def objects_are_arrays(grid: start.Grid, recording: shapes.Recording) -> None:
    assert_type(np.asarray(grid), npt.NDArray[np.float32])
    assert_type(np.asarray(recording), npt.NDArray[Any])
    assert_type(memoryview(grid).tobytes() + memoryview(recording).tobytes(), bytes)
    np.from_dlpack(grid)

def attributes_are_arrays(batch: shapes.Batch, layer: shapes.Layer, ticks: shapes.Ticks, trades: shapes.Trades) -> None:
    columns: list[npt.NDArray[Any]] = [batch.rewards, layer.bias, ticks.price, ticks.size, tables.Quotes().bid]
    strided: list[Tensor] = [trades.price, trades.size, trades.venue]
    layer.bias = columns[0]
    memoryview(ticks), memoryview(trades), strided

records_of_trades = np.zeros(3, [("price", "f8"), ("size", "u4"), ("bid", "?")])
array = np.ones(2)
"""

# What mypy says of each.
MISTAKES = {
    "arguments.row_sums('abc')": 'incompatible type "str"',
    "arguments.row_sums([[1.0]])": 'incompatible type "list[list[float]]"',
    "arguments.row_sums(3)": 'incompatible type "int"',
    "results.outer(array, 'abc')": 'Argument 2 to "outer" has incompatible type "str"',
    "dtypes.level('abc')": 'incompatible type "str"',
    "dtypes.total('abc')": 'incompatible type "str"',
    "arguments.average('abc')": 'incompatible type "str"',
    "arguments.average(None)": 'incompatible type "None"',
    "arguments.average(array, weights='abc')": 'Argument "weights" to "average" has incompatible type "str"',
    "arguments.average(array, array)": "Too many positional arguments",
    "arguments.average(array, weight=array)": 'Unexpected keyword argument "weight"',
    "shapes.Layer().bias = 'abc'": 'expression has type "str"',
    "shapes.Batch().rewards = array": "read-only",
    "shapes.Ticks('ticks').prise": 'has no attribute "prise"',
    "results.doubled(array).unsqueeze(0)": 'has no attribute "unsqueeze"',
    "results.doubled(torch.ones(2)).astype('f4')": 'has no attribute "astype"',
    "memoryview(shapes.Batch())": 'incompatible type "Batch"',
    "assert_type(np.asarray(start.Grid(1, 1)), npt.NDArray[np.int8])": "Expression is of type",
}

# Pyright checks no argument of a setter whose `self` is positional, as PyO3 declares it.
UNNOTICED = ["shapes.Layer().bias = 'abc'"]


def module_name(path):
    """The module of a page, as guide/code/pages.rs names it."""
    return path.stem.lower().replace("-", "_")


def program(path):
    """The program of a page in Python; empty if it has none, or no module."""
    text = path.read_text()
    found = list(blocks(text))
    if not {"rust,ignore", "python"} <= {fence for fence, _, _ in found}:
        return ""
    lines = [""] * len(text.splitlines())
    for fence, begun, code in found:
        if fence != "python":
            continue
        statements = [(0, code)]
        if code.startswith(">>>"):
            examples = doctest.DocTestParser().get_examples(code)
            statements = [(example.lineno, example.source) for example in examples if example.exc_msg is None]
        for number, source in statements:
            for offset, line in enumerate(source.splitlines()):
                lines[begun - 1 + number + offset] = imports_from_guide(line, module_name(path))
    return "\n".join(lines) + "\n"


def imports_from_guide(line, name):
    """The line, with the page's module in place of the one that the page calls `my_module`."""
    if line.startswith("import "):
        return re.sub(r"\b(my_module|quickstart)\b", rf"guide.{name} as \1", line)
    return re.sub(r"^from (my_module|quickstart)\b", f"from guide.{name}", line)


PROGRAMS = {f"page_{module_name(path)}.py": program(path) for path in PAGES}
PROGRAMS = {name: text for name, text in PROGRAMS.items() if text}


# Added to a copy of each page's program, so that a page that no checker reads is noticed.
WRONG = "import guide\nguide.missing\n"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each checker finds in all programs and in the stubs, by file: the lines and texts of its errors.

    A checker runs once, because most of its time goes into the libraries that the programs import.
    """
    folder = tmp_path_factory.mktemp("types")
    (folder / "guide").symlink_to(Path(os.environ["GUIDE_STUBS"]) / "guide")
    (folder / "torch.pyi").write_text(TORCH)
    (folder / "mypy.ini").write_text(MYPY_INI)
    (folder / "pyrightconfig.json").write_text(PYRIGHT_CONFIG)
    (folder / "use.py").write_text(USE)
    (folder / "mistakes.py").write_text(USE + "\n".join(MISTAKES) + "\n")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
        (folder / f"wrong_{name}").write_text(text + WRONG)
    names = [*sorted(path.name for path in folder.glob("*.py")), "guide"]
    pyright = ["basedpyright", "--level", "error", "--pythonpath", sys.executable]
    return {words[0]: errors(folder, [*words, *names]) for words in [["mypy"], pyright]}


def errors(folder, words):
    command = [sys.executable, "-m", *words]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    assert run.returncode in {0, 1}, run.stdout + run.stderr
    by_file = {}
    for name, line, text in re.findall(r"([\w.]+\.pyi?):(\d+)(?::\d+)?\W+(error\b.*)", run.stdout):
        by_file.setdefault(name, []).append((int(line), text))
    assert by_file, run.stdout + run.stderr
    return by_file


@pytest.fixture(params=["mypy", "basedpyright"])
def by_file(request, found):
    return found[request.param]


def test_programs_type_check(by_file):
    wrong = {"mistakes.py", *(f"wrong_{name}" for name in PROGRAMS)}
    shown = [f"{name}:{line}: {told}" for name, all in by_file.items() if name not in wrong for line, told in all]
    assert not shown, "\n".join(shown)


def test_each_page_is_checked(by_file):
    for name, text in PROGRAMS.items():
        line, told = by_file[f"wrong_{name}"][-1]
        assert line == len(text.splitlines()) + 2 and "missing" in told, name


def test_mistakes_are_found(found):
    first = len(USE.splitlines()) + 1
    of_mypy, of_pyright = (found[checker]["mistakes.py"] for checker in ["mypy", "basedpyright"])
    assert [line for line, _ in of_mypy] == list(range(first, first + len(MISTAKES)))
    for (_, told), expected in zip(of_mypy, MISTAKES.values(), strict=True):
        assert expected in told
    unnoticed = {first + list(MISTAKES).index(mistake) for mistake in UNNOTICED}
    assert {line for line, _ in of_mypy} - unnoticed == {line for line, _ in of_pyright}
