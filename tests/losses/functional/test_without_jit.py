"""NUMBA_DISABLE_JIT=1, as set to debug: "auto" takes the path without numba, "compiled" says why it cannot."""

import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="without numba there is nothing to switch off")

CODE = """
import numpy as np, torch
from firstk import CodeIndex, PrefixEncoder
from firstk.losses.functional.cross_entropy import cross_entropy
from firstk.losses.functional.contrastive import info_nce
from firstk.search.codes import index

torch.manual_seed(0)
z, weight, labels = torch.randn(8, 4), torch.randn(3, 4), torch.arange(8) % 3
assert torch.equal(cross_entropy(z, weight, labels), cross_entropy(z, weight, labels, backend="torch"))
assert torch.equal(info_nce(z, 2 * z), info_nce(z, 2 * z, backend="torch"))
index._LARGE = 100  # rows from which "auto" would compile
rows = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
encoder = PrefixEncoder().fit(rows)
made = {name: CodeIndex.fit(rows, encoder=encoder, bytes=4, engine=name) for name in ("auto", "numpy", "compiled")}
found, plain = (made[engine].search(rows[:3], 5).ids for engine in ("auto", "numpy"))
assert (found == plain).all()
for call in (
    lambda: cross_entropy(z, weight, labels, backend="compiled"),
    lambda: made["compiled"].search(rows[:3], 5),
):
    try:
        call()
    except ValueError as error:
        print(error)
"""


def test_without_jit_auto_takes_the_other_path_and_compiled_is_an_error(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 2
    for line, way_out in zip(said, ("backend='torch'", "engine='numpy'"), strict=True):
        assert "NUMBA_DISABLE_JIT" in line
        assert way_out in line
