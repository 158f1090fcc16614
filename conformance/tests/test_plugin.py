"""Each rule is a test of its own: on the command line, in a class of tests, and by `python -m`."""

import builtins
import re
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import broken
from broken import PLANTED
from dlpack_conformance import RULES, check_producer
from dlpack_conformance.rules import Advice, judge

HERE = Path(__file__).parent
# One planted mistake for each class of rules, and what must be red for it.
CLASSES = {
    "CAP": "NoDestructor",
    "DEV": "SaysPinned",
    "NEG": "VersionedUnasked",
    "CPY": "NeverCopies",
    "STC": "TakesAnyStream",
    "ERR": "AssertsNoStream",
    "DTY": "no_lanes",
    "FLG": "padded_floats",
    "LAY": "negative_extent",
    "XAP": "Tabled",
    "KIT": "CopiesZeros",
}


def rules_of(findings):
    return {finding.rule for finding in findings}


def planted(name):
    """The last producer of this name, and the rules that it breaks."""
    return next((kind, set(rules)) for rules, kind, make in reversed(PLANTED) if kind.__name__ == name)


@pytest.fixture
def run(pytester, monkeypatch):
    """pytest in a folder of its own, with the planted producers and the plugin, which may be installed or not."""
    installed = any(point.name == "dlpack_conformance" for point in entry_points(group="pytest11"))
    monkeypatch.syspath_prepend(HERE)
    words = ["-p", "no:cacheprovider", *([] if installed else ["-p", "dlpack_conformance.plugin"])]
    return lambda *more: pytester.runpytest_inprocess(*words, *more)


def outcomes(result, outcome):
    """The rules that ended so, of `-rA`."""
    ids = [line.split()[1] for line in result.outlines if line.startswith(outcome + " ") and "[" in line]
    return {re.search(r"[A-Z]{3}-\d+", name).group() for name in ids}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", CLASSES.values(), ids=CLASSES)
def test_a_planted_mistake_fails_the_tests_of_its_rules_and_no_other(run, name):
    broken.chosen, rules = planted(name)
    result = run("-rA", "--dlpack-producer", "broken:good(chosen)")
    red = outcomes(result, "FAILED")
    assert red == rules_of(check_producer(broken.good(broken.chosen)).faults) and red <= rules
    assert sum(result.parseoutcomes().get(key, 0) for key in ("passed", "failed", "skipped")) == len(RULES)


def test_a_planted_mistake_is_there_for_each_class_of_rules():
    assert set(CLASSES) == {rule[:3] for rule in RULES}
    for prefix, name in CLASSES.items():
        report = check_producer(broken.good(planted(name)[0]))
        assert any(rule.startswith(prefix) for rule in rules_of(report.faults or report.notes)), name


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("rules", "kind", "make"), PLANTED, ids=[f"{kind.__name__}-{'-'.join(rules)}" for rules, kind, make in PLANTED]
)
def test_each_rule_is_judged_by_itself(rules, kind, make):
    report = check_producer(make(kind))
    red = set()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for rule in RULES:
            try:
                judge(report, rule)
            except pytest.skip.Exception:
                pass
            except pytest.fail.Exception:
                red.add(rule)
    assert red == rules_of(report.faults)
    advice = {str(warning.message).split(":")[0] for warning in told if warning.category is Advice}
    assert advice | red == set(rules)


def test_a_good_producer_passes_beside_other_tests(run, pytester):
    pytester.makepyfile("def test_mine(): pass")
    run("-W", "error", "--dlpack-producer", "broken:good").assert_outcomes(passed=53, skipped=20)


def test_a_name_that_means_nothing_says_how_it_is_written(run):
    result = run("--dlpack-producer", "numpy", "-k", "CAP-01")
    result.assert_outcomes(failed=1, deselected=len(RULES) - 1)
    result.stdout.fnmatch_lines(["*`numpy` is not MODULE:EXPRESSION, such as numpy:arange(3)*"])


CLASS = """
import pytest
import broken
from dlpack_conformance.rules import Conformance

class TestMine(Conformance):
    known = {}

    @pytest.fixture(scope="class", params=["Good", "NeverCopies", "CopiesAnywhere"])
    def producer(self, request):
        return broken.good(getattr(broken, request.param))
"""


def test_a_class_of_tests_takes_parameters_and_knows_what_is_known(run, pytester):
    pytester.makepyfile(CLASS)
    result = run("-rA")
    ids = [line.split()[1] for line in result.outlines if line.startswith("FAILED ")]
    named = {name.split("::")[-1] for name in ids}
    assert named == {f"test_rule[NeverCopies-{rule}]" for rule in ("CPY-01", "CPY-04", "CPY-06")}
    result.stdout.fnmatch_lines(["*Advice: CPY-14: *"])

    # What is known has to fail, advice too: here each is known of all three, and true of one.
    pytester.makepyfile(CLASS.replace("{}", '{"CPY-01": "issue 1", "CPY-14": "issue 2"}'))
    result = run("-rA")
    assert outcomes(result, "XFAIL") == {"CPY-01", "CPY-14"}
    counts = result.parseoutcomes()
    assert (counts["xfailed"], counts["failed"]) == (2, 4 + len({"CPY-04", "CPY-06"}))


def test_advice_is_an_error_to_whoever_wants_that(run):
    words = ["--dlpack-producer", "broken:good(CopiesAnywhere)", "-k", "CPY-14"]
    run(*words).assert_outcomes(passed=1, warnings=1, deselected=len(RULES) - 1)
    run(*words, "-W", "error::dlpack_conformance.rules.Advice").assert_outcomes(failed=1, deselected=len(RULES) - 1)


def test_foreign_objects_meet_the_table_only_when_told_to(run):
    broken.chosen = broken.table(managed_tensor_from_py_object_no_sync=broken.another)
    words = ["--dlpack-producer", "broken:good(chosen)", "-k", "XAP-12"]
    run(*words).assert_outcomes(skipped=1, deselected=len(RULES) - 1)
    run(*words, "--dlpack-hostile").assert_outcomes(failed=1, deselected=len(RULES) - 1)


def test_the_command_prints_a_report_and_fails_with_a_fault():
    def command(*words):
        run = [sys.executable, "-m", "dlpack_conformance", *words]
        return subprocess.run(run, check=False, capture_output=True, text=True, cwd=HERE)

    assert command("broken:good").stdout.endswith("0 notes, 0 faults\n") and command("broken:good").returncode == 0
    wrong = command("broken:good", "broken:good(NeverCopies)", "--all")
    assert wrong.returncode == 1 and "fault CPY-01" in wrong.stdout and "ok    CAP-01" in wrong.stdout
    assert len(command("--rules").stdout.splitlines()) == len(RULES)


def test_the_readme_shows_what_works(run, pytester, monkeypatch):
    readme = (HERE.parent / "README.md").read_text()
    assert f"{len(RULES)} rules" in readme
    of_tests, of_programs = (block.split("```")[0] for block in readme.split("```python\n")[1:])
    pytester.makepyfile(of_tests)
    mylib = SimpleNamespace(zeros=lambda shape, dtype: broken.good(broken.AssertsNoStream, np.zeros(shape, dtype)))
    monkeypatch.setattr(builtins, "mylib", mylib, raising=False)
    counts = run().parseoutcomes()
    assert counts["xfailed"] == 2 and "failed" not in counts
    names = {"obj": broken.good()}
    exec(of_programs, names)
    assert names["report"].faults == [] and names["tensor"].copied
