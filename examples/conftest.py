"""Builds the examples for their tests as `maturin develop` would, and installs nothing: `pytest examples/candles` will do."""

import functools
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or Path(__file__).parents[1] / "target").absolute()
MODULES = TARGET / "examples"
# Python remembers of a folder on its path that it is not there.
MODULES.mkdir(parents=True, exist_ok=True)
# For the tests, and for the programs that they start.
sys.path.insert(0, str(MODULES))
os.environ["PYTHONPATH"] = os.pathsep.join([str(MODULES), os.environ.get("PYTHONPATH", "")])


@functools.cache
def build(workspace):
    """All of a workspace that have tests, in one go: so what they need is built once."""
    names = sorted({test.parent.name for test in workspace.glob("*/test_*.py")})
    # Debug information would be most of what is linked.
    environment = {"PYO3_PYTHON": sys.executable} | os.environ | {"CARGO_TARGET_DIR": str(TARGET), "CARGO_PROFILE_DEV_DEBUG": "0"}
    command = ["cargo", "build", "--quiet", "--manifest-path", workspace / names[0] / "Cargo.toml"]
    subprocess.run([*command, *(word for name in names for word in ["-p", name])], env=environment, check=True)
    before, after = {"win32": ("", ".dll"), "darwin": ("lib", ".dylib")}.get(sys.platform, ("lib", ".so"))
    for name in (name.replace("-", "_") for name in names):
        # Replaced and not written over: another process may have it open.
        draft = MODULES / f"{name}.{os.getpid()}"
        shutil.copy(TARGET / "debug" / f"{before}{name}{after}", draft)
        draft.replace(MODULES / f"{name}{'.pyd' if sys.platform == 'win32' else '.so'}")
    importlib.invalidate_caches()


def pytest_pycollect_makemodule(module_path):
    """Before a test is imported, which imports the module."""
    if (module_path.parent / "Cargo.toml").exists():
        build(module_path.parents[1])
