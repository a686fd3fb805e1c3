"""The script behind ``make test-kernels``: variants reach pytest, and a failure in one of them is a failure."""

import re
import sys

import pytest

from processors import kernels_matrix

pytestmark = pytest.mark.wings  # beside what it tests

TEST = """
import os

def test_arithmetic():
    assert os.environ.get("OPENBLAS_CORETYPE") != "Nehalem"
"""


@pytest.fixture
def matrix(monkeypatch, tmp_path, capsys):
    """Run the script on one small test, under two variants."""
    (tmp_path / "test_one.py").write_text(TEST)
    monkeypatch.setattr(kernels_matrix, "ROOT", tmp_path)
    monkeypatch.setattr(kernels_matrix, "NUMERIC", ("test_one.py",))
    monkeypatch.setattr(
        kernels_matrix, "VARIANTS", {name: kernels_matrix.VARIANTS[name] for name in ("native", "openblas-nehalem")}
    )
    monkeypatch.setattr(kernels_matrix, "missing", lambda settings: None)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")  # what the caller has chosen is not that of a variant

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["kernels_matrix.py", *arguments])
        return kernels_matrix.main(), capsys.readouterr().out

    return run


def test_one_line_a_variant_and_a_failure_fails(matrix):
    code, said = matrix()
    assert code == 1
    assert re.search(r"^native +\d+ s  passed: 1 passed$", said, re.MULTILINE)
    assert re.search(r"^openblas-nehalem +\d+ s  FAILED: 1 failed$", said, re.MULTILINE)
    assert "test_one.py::test_arithmetic" in said


def test_one_variant_alone(matrix):
    code, said = matrix("--only", "native")
    assert code == 0
    assert len(said.splitlines()) == 1


def test_what_this_processor_cannot_run_is_left_out_and_said(monkeypatch, capsys):
    monkeypatch.setattr(kernels_matrix, "NEEDED", {("OPENBLAS_CORETYPE", "Nehalem"): "NO_SUCH_FEATURE"})
    assert kernels_matrix.run("openblas-nehalem", ("no-such-test.py",), [])
    assert "left out: this processor has no NO_SUCH_FEATURE" in capsys.readouterr().out


def test_the_files_it_names_are_there():
    for name in kernels_matrix.NUMERIC + kernels_matrix.SHORT:
        assert (kernels_matrix.ROOT / name).exists(), name
