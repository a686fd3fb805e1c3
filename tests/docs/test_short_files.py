"""The commands of the page on short files write what its Python writes."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from command_line import firstk
from docs.test_docs import ROOT, blocks_of, run
from firstk.data.files import open_vectors

PAGE = ROOT / "docs" / "short-files.md"


def test_the_commands_and_the_python_of_the_page_agree(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="the extra 'tables' is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(PAGE.read_text("utf-8"))
    files, python = [block for block in blocks if block.language == "python"][:2]
    commands, in_bits = [block for block in blocks if block.language == "bash"]
    run(files, PAGE, namespace := {})
    written = {}
    for line in commands.text.splitlines():
        done = firstk(*shlex.split(line)[1:], cwd=tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        name = shlex.split(line)[-1]
        written[name] = open_vectors(name).read()
    assert len(written) == 6
    run(python, PAGE, namespace)
    for name, before in written.items():
        after = open_vectors(name).read()
        np.testing.assert_array_equal(after.vectors, before.vectors)
        assert list(after.columns) == list(before.columns)
    for line in in_bits.text.splitlines():
        done = firstk(*shlex.split(line, comments=True)[1:], cwd=tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
    whole, cut = (open_vectors(name).as_stored().read().vectors for name in ("short-bits.parquet", "shorter.parquet"))
    np.testing.assert_array_equal(cut, whole[:, :8])
