"""The notebook runs as it is, and its picture shows something."""

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "notebook.py"


def test_the_notebook(tmp_path):
    for package in ["matplotlib", "pandas", "sklearn"]:
        pytest.importorskip(package)
    assert "from_dlpack" not in NOTEBOOK.read_text()
    subprocess.run([sys.executable, "-W", "error", NOTEBOOK, tmp_path], check=True)
    picture = __import__("matplotlib.image").image.imread(tmp_path / "notebook.png")
    assert picture.shape == (560, 720, 4)
    # Four panels, each with more colours than paper and ink.
    for rows in [slice(40, 240), slice(320, 520)]:
        for columns in [slice(60, 330), slice(420, 690)]:
            panel = picture[rows, columns, :3].reshape(-1, 3)
            assert panel.std() > 0.05, (rows, columns)
