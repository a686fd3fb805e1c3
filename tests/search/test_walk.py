"""From vectors to a table of pgvector, by the commands that are printed: what fit promises is what a search finds."""

import re
import shlex

import numpy as np
import pytest

from command_line import firstk
from firstk.data import load_banking
from firstk.data.files import write_vectors


def test_the_promise_is_what_a_search_finds(tmp_path, postgres):
    pytest.importorskip("pgvector", reason="needs the extra 'stores'")
    X = np.random.default_rng(0).permutation(np.asarray(load_banking().X)[:, :96])
    write_vectors(tmp_path / "rows.npz", X[:1800], {"id": np.arange(1800)})
    write_vectors(tmp_path / "queries.npz", X[1800:2200], {"id": np.arange(400)})
    place = f"{postgres}#walk_{tmp_path.name[-30:].replace('-', '_')}"

    def ran(*words):
        done = firstk(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    advice = ran("fit", "rows.npz", "--store", "pgvector", "--bytes-per-vector", "20", "-o", "model")
    assert "as bit in pgvector: 20 bytes per vector instead of 384" in advice
    low, high = map(int, re.search(r"They keep (\d+) to (\d+) % of the raw vectors' recall@10", advice).groups())
    printed = [
        shlex.split(line) for line in advice.splitlines() if line.startswith(("  firstk move", "  firstk search"))
    ]
    here = {"QUERIES": "queries.npz"}
    move, search = ([place if "USER@HOST" in word else here.get(word, word) for word in words[1:]] for words in printed)
    ran(*move)
    told = ran(*search, "-o", "run.tsv")
    found = re.search(r"Found [\d.]+% of the raw vectors' 10 results \(([\d.]+)% to ([\d.]+)%\)", told)
    assert float(found[1]) <= high
    assert float(found[2]) >= low
    assert len((tmp_path / "run.tsv").read_text().splitlines()) == 4000
