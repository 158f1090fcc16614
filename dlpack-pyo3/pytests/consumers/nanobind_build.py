"""Compiles nanobind_consumer.cpp for the Python that runs this, unless that was done: nanobind_build.py FOLDER"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import nanobind

folder = Path(sys.argv[1])
source = Path(__file__).with_name("nanobind_consumer.cpp")
made = folder / ("nanobind_consumer" + sysconfig.get_config_var("EXT_SUFFIX"))
newest = max(path.stat().st_mtime for path in (source, Path(nanobind.__file__)))
if not made.exists() or made.stat().st_mtime < newest:
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(nanobind.source_dir())
    version = nanobind.__version__
    includes = [nanobind.include_dir(), own.parent / "ext/robin_map/include", sysconfig.get_path("include")]
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing"]
    draft = f"{made}.{os.getpid()}"
    command = [os.environ.get("CXX", "c++"), *flags, f'-DNANOBIND_VERSION="{version}"', *(f"-I{path}" for path in includes)]
    subprocess.run([*command, str(source), str(own / "nb_combined.cpp"), "-o", draft], check=True)
    os.replace(draft, made)
