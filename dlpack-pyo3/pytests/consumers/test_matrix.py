"""The matrix notices libraries that do something wrong."""

import os
import sys

import pytest

import judge_states
import run

# The cases that a fault in three axes affects: most have fewer axes.
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


def states(name):
    found = judge_states.run(sys.executable, dict(os.environ), f"liars:{name}")
    return {state.name: state for state in found}


def test_states_that_are_right_have_no_fault():
    found = states("honest")
    assert list(found) == ["plain", "refused"]
    assert not any(state.faults() for state in found.values())
    assert found["plain"].answers["import"] == ("gives", [1.0, 1.0, 1.0])
    assert found["refused"].answers["__dlpack__"][0] == found["refused"].answers["import"][0] == "refuses"


def test_a_plain_array_must_be_read():
    assert list(states("refuses")["plain"].faults()) == ["import"]


def test_numbers_that_the_library_does_not_show_are_seen():
    wrong = states("misreads")["plain"].faults()
    assert list(wrong) == ["import", "copy", "argument", "Convert"]
    assert wrong["import"] == "gives [1.0, 1.0, 1.0] for [1.0, 1.0, 2.0]"


def test_what_the_library_refuses_must_be_refused():
    wrong = states("fickle")["fickle"].faults()
    # `copy` is asked only after a `copy=True` that was refused, too; the others find the second question.
    assert wrong and set(wrong.values()) == {"given, and the library refuses it"}


def test_a_process_that_ends_is_one_state_and_the_rest_is_asked():
    found = states("fatal")
    assert list(found) == ["by itself", "through us", "cannot be made", "plain"]
    assert found["by itself"].answers["__dlpack__"] == ("died", "-6")
    assert found["by itself"].answers["import"] == ("none", "not asked") and not found["by itself"].faults()
    assert "the process ends" in found["through us"].faults()["import"]
    assert "ZeroDivisionError" in found["cannot be made"].missing
    assert found["plain"].answers["import"][0] == "gives" and not found["plain"].faults()


def test_the_table_of_states_marks_failures():
    found = judge_states.run(sys.executable, dict(os.environ), "liars:fatal")
    rows = list(judge_states.rows("fatal", found, lambda words: "7"))
    assert "| fatal | by itself | ends the process | - |" in rows[0]
    assert "**FAIL: the process ends: -6**" in rows[1]
    assert "cannot be made 7" in rows[2]
    assert {row.count("|") for row in rows} == {judge_states.HEAD[-1].count("|")}
