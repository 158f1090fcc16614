"""README and guide say what is true: programs, what they print, links, pictures, commands, the texts of errors.

`cargo xtask guide` runs it. Fences say what is done with a block:

    ```rust                 a doctest; examples/quickstart runs it
    ```rust,ignore          compiled into `my_module`, which the Python blocks of the same page import (guide/code)
    ```rust,ignore,quote    stands in a source file of the repository as it is here; so do blocks of C
    ```python               runs; with `>>>`, what it prints is compared; type-checked by `test_types.py`
    ```toml                 the features that it names are there, and the version is ours
    ```text                 read by nobody, but for the commands of `cargo xtask`
"""

import doctest
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "guide/src").glob("*.md"))]
FENCES = {"rust", "rust,ignore", "rust,ignore,quote", "python", "c", "cpp", "text", "toml"}
# Too large to install for this. A block that needs one runs where it is.
OPTIONAL = {"torch", "cupy", "tensorflow", "tvm_ffi"}
# Where `cargo xtask consumers` has installed torch for this Python; behind all that is installed here.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dlpack-derive"
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
sys.path += [str(path) for path in CACHE.glob(f"venv-torch-*/lib/{PYTHON}/site-packages")]


def blocks(text):
    """The fence, the first line and the text of each block of code."""
    fence, begun = None, 0
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if fence is None and line.startswith("```"):
            fence, begun, lines = line[3:], number + 1, []
        elif line == "```":
            yield fence, begun, "\n".join(lines) + "\n"
            fence = None
        else:
            lines.append(line)
    assert fence is None, f"the block of line {begun} has no end"


def prose(text):
    """The text without its blocks and `code`: what may hold links."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(re.sub(r"`[^`]*`", "``", line))
    return "\n".join(lines)


def tracked(*patterns):
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    # A link is its file once more, and seen from elsewhere.
    return [path for name in names if (path := ROOT / name).is_file() and not path.is_symlink()]


def slug(heading):
    """The anchor that GitHub and mdBook give to a heading."""
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text):
    lines, inside = [], False
    for line in text.splitlines():
        inside ^= line.startswith("```")
        if not inside and re.match(r"#+ ", line):
            lines.append(slug(line.lstrip("#")))
    return set(lines)


def links(text):
    text = prose(text)
    yield from re.findall(r"\]\(([^)\s]+)\)", text)
    yield from re.findall(r"^\[[^]]+\]: (\S+)", text, re.M)
    yield from re.findall(r"<img[^>]* src=\"([^\"]+)\"", text)


def is_outside(link):
    return re.match(r"[a-z]+:", link) is not None


def broken(path, text):
    """The links of a file that lead nowhere."""
    for link in links(text):
        if is_outside(link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and anchor not in anchors(target.read_text()):
            yield f"{link}: no such heading"


def page_id(path):
    return path.stem


@pytest.mark.parametrize("path", tracked("*.md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = path.read_text()
    # What rustdoc reads links to items, which rustdoc checks.
    if "dlpack-derive/src/docs" in str(path) or path.name == "soundness.md":
        text = re.sub(r"\]\(crate::[^)]*\)", "]", text)
    assert list(broken(path, text)) == []


def test_every_page_is_in_the_contents():
    listed = set(links((ROOT / "guide/src/SUMMARY.md").read_text()))
    assert listed == {path.name for path in PAGES[1:]} - {"SUMMARY.md"}


def test_outside_links_are_listed(capsys):
    """Nobody fetches them: this is the list to look through."""
    found = {link for path in PAGES for link in links(path.read_text()) if is_outside(link)}
    assert all(link.startswith("https://") for link in found)
    with capsys.disabled():
        print("\n" + "\n".join(sorted(found)))


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_fences_are_known(path):
    assert {fence for fence, _, _ in blocks(path.read_text())} <= FENCES


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_doctests_are_run(path):
    has = any(fence == "rust" for fence, _, _ in blocks(path.read_text()))
    listed = f'"{path.relative_to(ROOT)}"' in (ROOT / "examples/quickstart/src/lib.rs").read_text()
    assert has == listed, "examples/quickstart/src/lib.rs lists the pages with doctests"


def manifest(folder):
    """The text of a manifest, and the features that it declares."""
    text = (ROOT / folder / "Cargo.toml").read_text()
    features = re.search(r"^\[features\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S)
    return text, set(re.findall(r"^(\S+) =", features[1], re.M)) if features else set()


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_manifests_name_what_there_is(path):
    version = re.search(r'^version = "(\d+\.\d+)', manifest(".")[0], re.M)[1]
    for fence, line, text in blocks(path.read_text()):
        if fence != "toml":
            continue
        for name, rest in re.findall(r"^(dlpack-\w+) = (.*)$", text, re.M):
            assert f'"{version}"' in rest, f"line {line}: {version} is ours"
            named = re.search(r"features = \[([^]]*)\]", rest)
            wanted = set(re.findall(r'"([^"]+)"', named[1])) if named else set()
            assert wanted <= manifest(name)[1], f"line {line}"
        for name, feature in re.findall(r'"(dlpack-\w+)/(\w+)"', text):
            assert feature in manifest(name)[1], f"line {line}"


def quotable():
    return [path.read_text() for path in tracked("*.rs", "*.c", "*.cpp", "*.py", ":!guide/tests")]


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_quotes_stand_in_a_source(path):
    quotes = [block for block in blocks(path.read_text()) if block[0] in {"rust,ignore,quote", "c", "cpp"}]
    sources = quotable() if quotes else []
    if path.name == "README.md":
        first = next(text for fence, _, text in blocks(path.read_text()) if fence == "rust,ignore")
        assert first in (ROOT / "examples/python-quickstart/src/lib.rs").read_text()
    for _, line, quote in quotes:
        assert any(quote in source for source in sources), f"line {line} stands in no source"


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_commands_exist(path):
    commands = re.findall(r"(?:commands|scripts)!\(([^)]+)\)", (ROOT / "xtask/src/main.rs").read_text())
    commands = {name for some in commands for name in re.findall(r"\w+", some)}
    assert {"demo", "valgrind"} <= commands
    for name in re.findall(r"cargo xtask (\w+)", path.read_text()):
        assert name in commands, name


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_python_prints_what_it_says(path, tmp_path, monkeypatch):
    run(path, tmp_path, monkeypatch)


def run(path, folder, monkeypatch):
    text = path.read_text()
    if any(fence == "rust,ignore" for fence, _, _ in blocks(text)):
        module = getattr(importlib.import_module("guide"), path.stem.lower().replace("-", "_"))
        for name in ["my_module", "quickstart"]:
            monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names, skipped = {"__name__": "__main__"}, set()
    for fence, line, code in blocks(text):
        if fence != "python":
            continue
        modules = set(re.findall(r"^(?:>>> )?(?:import|from) (\w+)", code, re.M)) & OPTIONAL
        missing = {module for module in modules if importlib.util.find_spec(module) is None}
        if missing:
            skipped |= missing
        elif code.startswith(">>>"):
            compare(code, names, path.name, line)
        else:
            exec(compile("\n" * (line - 1) + code, path, "exec"), names)
    for plot in folder.glob("*.png"):
        compare_plots(plot, ROOT / "guide/src/img" / plot.name)
    if skipped:
        pytest.skip(f"some of it needs {', '.join(sorted(skipped))}")


def compare_plots(plot, committed):
    """Another version of matplotlib may place its letters elsewhere, and draws the same otherwise."""
    from matplotlib.image import imread

    ours, theirs = imread(plot), imread(committed)
    assert ours.shape == theirs.shape
    assert abs(ours - theirs).mean() < 0.02, f"{plot} shows something else than {committed}"


def compare(code, names, name, line):
    if sys.version_info < (3, 11):
        # Exceptions had no notes, in which PyO3 names the argument.
        code = re.sub(r"^while processing .*\n", "", code, flags=re.M)
    test = doctest.DocTestParser().get_doctest(code, {}, name, name, line - 1)
    test.globs = names
    told = []
    flags = doctest.ELLIPSIS | doctest.REPORT_NDIFF
    failed, _ = doctest.DocTestRunner(optionflags=flags).run(test, out=told.append, clear_globs=False)
    assert not failed, "".join(told)


def test_what_is_shown_of_others_works_too():
    """The left sides of the page on porting are compiled: here they run."""
    import guide
    import numpy as np

    assert np.asarray(guide.before.Image().pixels).shape == (2, 2, 3)
    assert np.asarray(guide.before.Series()).tolist() == [1, 2]
    view = memoryview(guide.before.Packet())
    assert (bytes(view), view.format, view.readonly) == (b"abc", "B", True)
    del view


def part(name):
    """The headings of a part of the page of messages."""
    text = (ROOT / "guide/src/faq.md").read_text().split(f"\n## {name}\n")[1].split("\n## ")[0]
    return re.findall(r"^### (.*)$", text, re.M)


def literals():
    """The string literals of our sources."""
    for path in tracked("dlpack-core/src/*.rs", "dlpack-pyo3/src/*.rs"):
        text = re.sub(r"\\\n\s*", "", path.read_text())
        yield from re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)


def can_become(literal, heading):
    """Whether the heading is what a literal is shown as, or its begin; `{..}` in it stands for anything."""
    ends = {len(literal), *(found.end() for found in re.finditer(re.escape(heading[-8:]), literal))}
    for end in ends:
        fixed = re.split(r"\{[^}]*\}", literal[:end])
        if sum(map(len, fixed)) > 12 and re.fullmatch(".+".join(map(re.escape, fixed)), heading):
            return True
    return False


@pytest.mark.parametrize("heading", part("Messages in Python"))
def test_messages_are_in_the_sources(heading):
    assert any(can_become(literal, heading) for literal in literals())


@pytest.mark.parametrize("heading", part("Messages of the compiler"))
def test_messages_are_the_compilers(heading):
    assert any(heading in path.read_text() for path in tracked("ui-tests/*.stderr"))


def test_numbers_of_the_readme_are_those_of_the_benchmarks_page():
    sys.path.insert(0, str(ROOT / "guide"))
    import plots

    def row(name):
        line = re.search(rf"^\| {re.escape(name)} \|.*$", (ROOT / "README.md").read_text(), re.M)[0]
        return [cell.strip() for cell in line.split("|")[2:-1] if cell.strip() != "-"]

    def rank_1(sweep, *names):
        """Three digits, as on the page."""
        columns = plots.SWEEPS[sweep]["columns"]
        return [f"{float(f'{columns[name][0]:.3g}'):g}" for name in names]

    export = rank_1("export", "ours", "dlpark", "pyo3-dlpack", "nanobind")
    assert row("`__dlpack__()` of rank 1, ns") == export
    call = rank_1("call", "ours", "rust-numpy", "dlpark", "pyo3-dlpack", "nanobind")
    assert row("a call with a NumPy array of rank 1, ns") == call


def test_where_another_one_is_first_a_sentence_says_why(monkeypatch):
    sys.path.insert(0, str(ROOT / "guide"))
    import plots

    assert plots.unexplained() == []
    # Somebody is better at something; so this can fail.
    monkeypatch.setattr(plots, "WHY", {})
    assert plots.unexplained() == plots.behind() != []


def test_calls_of_the_driver_are_those_that_were_counted():
    head = "| written on | read on |"
    page, counted = (
        re.search(re.escape(head) + r"(.*\n(?:\|.*\n)+)", (ROOT / path).read_text())[1]
        for path in ["guide/src/gpus.md", "spec/stream-calls.md"]
    )
    assert page == counted


def test_pictures_are_what_the_program_writes():
    subprocess.run([sys.executable, ROOT / "guide/pictures.py", "--check"], check=True)
