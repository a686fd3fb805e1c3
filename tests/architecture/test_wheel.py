"""Without any extra every closed form works: where their packages are hidden and, in full, where they are not there.

In full, the wheel is built and installed alone into a bare environment.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOB = """
import importlib.util, numpy as np
from firstk import Denoising, GaussianNoise, PrefixEncoder, Similarity
for name in ("torch", "numba", "matplotlib", "pyarrow", "pandas"):
    assert importlib.util.find_spec(name) is None, name
rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 12)) * np.arange(1, 13), np.arange(200) % 4
X[:, :3] += y[:, None]
for objective in ("reconstruction", "fisher", "regression", "mixture", "denoising", "similarity",
                  Similarity(keep="dot_products"), Denoising(GaussianNoise(1.0))):
    enc = PrefixEncoder(3, objective=objective).fit(X, y)
    enc.save("model")
    assert np.array_equal(PrefixEncoder.load("model").transform(X), enc.transform(X))
    assert 0 < enc.score(X, y.astype(float) if objective == "regression" else y) <= 1
pairs = PrefixEncoder(3, objective="similarity").fit_pairs(X, X + rng.normal(size=X.shape), rng.random(200))
assert pairs.encode_query(X, k=2).shape == (200, 2)
print("every closed form works")
"""


def run(*command, cwd):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    if str(command[0]) == sys.executable:
        environment["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# What Python runs first: no package of an extra is found, as if it was not installed.
HIDE = """
import sys
from importlib.machinery import PathFinder
EXTRAS = {"torch", "numba", "llvmlite", "matplotlib", "pyarrow", "pandas", "onnx", "faiss", "dask"}
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name in EXTRAS else find(name, *rest)
"""


def hidden(folder):
    """Return a command that is this Python without the packages of the extras."""
    program = folder / "python.py"
    program.write_text(
        HIDE + "import runpy\nsys.path[0] = ''\nsys.argv = sys.argv[1:]\n"
        "if sys.argv[0] == '-c': exec(sys.argv[1])\n"
        "else: sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n"
    )
    return sys.executable, program


def installed(folder):
    """Return the Python of an environment that holds the wheel and what it requires, nothing else."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    try:
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, cwd=folder)
        (wheel,) = folder.glob("firstk-*.whl")
        run(*pip, "install", "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    except AssertionError as error:
        if "No matching distribution" in str(error) or "Temporary failure" in str(error):
            pytest.skip("no package index can be reached from here")
        raise
    return (python,)


@pytest.fixture(scope="module", params=[hidden, pytest.param(installed, marks=pytest.mark.full)])
def bare(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("bare"))


def test_every_closed_form_works_without_extras(bare, tmp_path):
    assert "every closed form works" in run(*bare, "-c", JOB, cwd=tmp_path)


@pytest.mark.full  # tests/cli/test_demo.py runs it without torch
def test_demo_works_without_extras(bare, tmp_path):
    printed = run(*bare, "-m", "firstk", "demo", cwd=tmp_path)
    assert "What to store: " in printed
    assert "With torch" in printed
    assert (tmp_path / "firstk-demo" / "report.html").is_file()


def test_sample_comes_with_its_texts(bare, tmp_path):
    run(*bare, "-m", "firstk", "sample", "banking", "-o", "banking.csv", cwd=tmp_path)
    assert "Is there a way to know when my card will arrive?" in (tmp_path / "banking.csv").read_text("utf-8")


def test_a_missing_extra_is_named(bare, tmp_path):
    code = (
        "from firstk import PrefixCurve\n"
        "from firstk.advice.report import plot_curves\n"
        "try: plot_curves([PrefixCurve(k=(1, 2), score=(0.1, 0.2), metric='accuracy')])\n"
        "except ImportError as error: print(error)"
    )
    assert "firstk[report]" in run(*bare, "-c", code, cwd=tmp_path)
