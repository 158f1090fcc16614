"""Builds our module, those of the peers and those in C, for the Python that runs this."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# (cargo profile, features of our crate)
BUILDS = {"thin": ("thin", []), "release": ("release", []), "abi3": ("thin", ["abi3"])}
# For `trace.py`, which measures no time.
UNOPTIMISED = {"dev": ("dev", [])}
CRATES = {
    "dlpark": "peer_dlpark",
    "dlpack-rs": "peer_dlpack_rs",
    "pyo3-dlpack": "peer_pyo3_dlpack",
    "rust-numpy": "peer_rust_numpy",
}


# A free-threaded Python has its own tag.
ABI = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag


def target():
    folder = os.environ.get("CARGO_TARGET_DIR")
    return (ROOT / folder if folder else ROOT / "target") / "python-bench"


def run(words, **options):
    """Runs a command, and returns the reason if it failed."""
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode == 0:
        return done.stdout, None
    lines = [line for line in done.stderr.splitlines() if re.search(r"\berror\b", line)] or done.stderr.splitlines()
    return None, f"`{shlex.join(map(str, words[:3]))} ..`: " + " / ".join(lines[:3])


def build_crate(folder, module, build, place):
    profile, features = (BUILDS | UNOPTIMISED)[build]
    words = ["cargo", "build", "--profile", profile, "--message-format=json-render-diagnostics"]
    if features and module == "bench_ours":
        words += ["--features", ",".join(features)]
    env = os.environ | {"CARGO_TARGET_DIR": str(target() / f"cargo-{ABI}"), "PYO3_PYTHON": sys.executable}
    # Set by a `cargo xtask` that runs this, for another package.
    env.pop("CARGO_MANIFEST_DIR", None)
    out, problem = run(words, cwd=folder, env=env)
    if problem:
        return problem
    for line in out.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == module:
            file = next(file for file in message["filenames"] if Path(file).suffix in (".so", ".dylib"))
            # Another run may have loaded the old file.
            draft = shutil.copy(file, place / f"{module}.{os.getpid()}")
            os.replace(draft, place / f"{module}.so")
    return None


def flags():
    """The flags of a module in C or C++."""
    darwin = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    return ["-DNDEBUG", "-fPIC", "-shared", f"-I{sysconfig.get_path('include')}", *darwin]


def nanobind():
    """The command that compiles a module with nanobind, and nanobind's own source; `None` if it is missing."""
    spec = importlib.util.find_spec("nanobind")
    if spec is None:
        return None
    folder = Path(spec.origin).parent
    words = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++17", "-O3", "-fvisibility=hidden", "-fno-strict-aliasing"]
    words += [*flags(), f"-I{folder}/include", f"-I{folder}/ext/robin_map/include"]
    words += ["-DNB_FREE_THREADED"] if sysconfig.get_config_var("Py_GIL_DISABLED") else []
    return words, folder / "src/nb_combined.cpp"


def build_c(place, peers):
    c = shlex.split(os.environ.get("CC", "cc"))
    _, problem = run([*c, "-O2", *flags(), HERE / "c/bench_c.c", "-o", place / "bench_c.so"])
    if problem:
        sys.exit(f"run: {problem}")
    problems = {}
    if sys.platform == "linux":
        _, problem = run([*c, "-O2", "-fPIC", "-shared", HERE / "c/count_malloc.c", "-o", place / "count_malloc.so"])
        if problem:
            problems["counting allocations"] = problem
    found = nanobind() if peers else None
    if found is None:
        problems["nanobind"] = "no Python package `nanobind` in this environment"
        return problems
    words, library = found
    made, source = place / "peer_nanobind.so", HERE / "peers/nanobind/image.cpp"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        _, problem = run([*words, library, source, "-o", made])
        if problem:
            problems["nanobind"] = problem
    return problems


def build(names, peers=True):
    """Builds our module, C and, unless `peers` is false, the peers. Returns a folder to import from for each build, and the failures."""
    common = target() / f"c-{ABI}"
    common.mkdir(parents=True, exist_ok=True)
    print("building C and C++ ..", flush=True)
    problems = build_c(common, peers)
    folders = {}
    for name in names:
        place = target() / f"{name}-{ABI}"
        place.mkdir(parents=True, exist_ok=True)
        print(f"building the crates, {name} ..", flush=True)
        problem = build_crate(HERE / "ours", "bench_ours", name, place)
        if problem:
            sys.exit(f"run: our own class does not build: {problem}")
        if peers and name != "abi3":
            for crate, module in CRATES.items():
                problem = build_crate(HERE / "peers" / crate, module, name, place)
                if problem:
                    problems[f"{crate}, {name}"] = problem
        folders[name] = [str(place), str(common)]
    return folders, problems


def build_unoptimised():
    """Builds our module alone, with the profile of `cargo build`. Returns the folder to import it from."""
    (name,) = UNOPTIMISED
    place = target() / f"{name}-{ABI}"
    place.mkdir(parents=True, exist_ok=True)
    print("building our crate without optimisations ..", flush=True)
    problem = build_crate(HERE / "ours", "bench_ours", name, place)
    if problem:
        sys.exit(f"trace: our own class does not build: {problem}")
    return place
