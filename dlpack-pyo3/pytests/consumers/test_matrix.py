"""The matrix must see what a library does wrong, or its table means nothing."""

import os
import sys

import pytest

import run

# What a fault in three axes spoils: most cases have fewer.
THREE_AXES = {"ndim 3", "permuted"}


def column(name):
    modules = os.environ["PYTHONPATH"]
    return run.Library(name, f"liars:{name}", sys.executable, modules).run()


def failed(library):
    return {name: cell for name, cell in library.cells.items() if not cell[2]}


def test_an_honest_library_has_no_failure_and_every_cell():
    library = column("honest")
    assert failed(library) == {}
    assert len(library.cells) == len(run.CASES) + len(run.EXITS)


def test_a_crash_is_one_cell_and_the_rest_is_run():
    library = column("crashes")
    assert {name: cell[0] for name, cell in failed(library).items()} == dict.fromkeys(THREE_AXES | {"zero size"}, "crash")
    assert "SIGABRT" in library.cells["ndim 3"][1]
    assert library.cells["ndim 4"] == ("zero", "", True)
    assert len(library.cells) == len(run.CASES) + len(run.EXITS)


@pytest.mark.parametrize(
    "name, words",
    [("leaks", "1 owners are left instead of 0"), ("misreads", "bytes"), ("refuses", "not today")],
)
def test_a_fault_is_seen_where_it_is(name, words):
    wrong = failed(column(name))
    assert THREE_AXES <= set(wrong) <= THREE_AXES | {"zero size"}
    assert words in wrong["ndim 3"][1]


def test_a_copy_is_no_match_for_the_memory_itself():
    wrong = failed(column("copies"))
    assert wrong["ndim 2"][0] == "copy"
    assert {"copy=False", "asked for (1, 0)", "dtype int8"} <= set(wrong)


def test_the_shape_is_compared():
    assert "instead of float32 (2, 3)" in failed(column("misshapes"))["writable"][1]


def test_a_write_to_read_only_memory_is_seen():
    wrong = failed(column("overwrites"))
    assert wrong == {"read-only": ("wrong", "wrote through READ_ONLY into the producer's memory", False)}


def test_a_death_at_exit_is_seen():
    wrong = failed(column("dies_at_exit"))
    assert set(wrong) == {"process", *(f"exit {how}" for how in run.EXITS)}


def test_a_library_that_does_not_load_is_skipped_with_its_reason():
    library = column("unloadable")
    assert "ImportError: no such library" in library.skipped
    assert "**Not run: unloadable: " in run.Table([library]).text()


def test_the_table_marks_failures_and_shares_notes():
    library = column("refuses")
    text = run.Table([library]).text()
    assert "| ndim 3 | **FAIL: them** 1 |" in text
    assert text.count("TypeError: not today") == 1
    assert "| ndim 2 | = |" in text
