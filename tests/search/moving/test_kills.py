"""Moves that are killed (SIGKILL) and resumed leave every row there once.

Once to a store and once to a file here; ``python -m benchmarks.moves`` and the test marked 'full' do it for all.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from benchmarks.moves import K, killed_moves, prepare, wrong_rows

from firstk import PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk.search.moving import Recode, move, targets
from firstk.search.stores import connect, push


def test_rows_are_in_a_store_once_after_a_kill(address, tmp_path):
    pytest.importorskip("sqlite_vec")
    prepare(tmp_path, 400)
    place = address("sqlite_vec")
    assert killed_moves(str(tmp_path / "rows.parquet"), place, tmp_path, 1) == 1
    assert wrong_rows(place, tmp_path) == []


def test_rows_of_a_file_are_in_another_once_after_kills(tmp_path):
    prepare(tmp_path, 700)
    out = str(tmp_path / "out.parquet")
    killed_moves(str(tmp_path / "rows.parquet"), out, tmp_path, 2)
    assert wrong_rows(out, tmp_path) == []
    assert not list(tmp_path.glob("out.parquet.*"))


@pytest.mark.full
@pytest.mark.parametrize("way", ["to", "from"])
def test_rows_of_every_store_are_there_once_after_twenty_kills(way, store, address, tmp_path):
    prepare(tmp_path, 1500)
    source, target = str(tmp_path / "rows.parquet"), address(store)
    if way == "from":
        move(source, target, Recode(PrefixEncoder.load(tmp_path / "model"), K))
        source, target = target, str(tmp_path / "out.parquet")
    # A move may be complete before the last kill, which comes at its very end.
    assert killed_moves(source, target, tmp_path, 20) >= 19
    assert wrong_rows(target, tmp_path) == []


@pytest.mark.full
@pytest.mark.parametrize("target", ["out.parquet", "out"])
def test_rows_of_a_file_are_in_another_once_after_twenty_kills(target, tmp_path):
    prepare(tmp_path, 24_000)  # of fewer a move is over before the kill
    target = str(tmp_path / target)
    assert killed_moves(str(tmp_path / "rows.parquet"), target, tmp_path, 20) >= 19
    assert wrong_rows(target, tmp_path) == []


def test_what_is_wrong_is_noticed(address, tmp_path):
    """The check itself can fail: a row that is missing, and one with the code of another."""
    pytest.importorskip("sqlite_vec")
    from benchmarks.stores import payload

    prepare(tmp_path, 200)
    place, encoder = address("sqlite_vec"), PrefixEncoder.load(tmp_path / "model")
    X = np.random.default_rng(0).normal(size=(1, 24)).astype(np.float32)
    move(tmp_path / "rows.parquet", place, Recode(encoder, K))
    with closing(connect(place)) as engine:
        push(encoder, X, engine, K, ids=[7], payloads=[payload(7)], verbose=False)
        engine.delete([11])
    assert wrong_rows(place, tmp_path) == ["row 7 differs", "row 11 is missing"]


def test_a_move_between_files_that_was_killed_while_comparing_is_resumed(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    prepare(tmp_path, 200)
    source, target = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    recode = Recode(PrefixEncoder.load(tmp_path / "model"), K, precision="int8")
    with monkeypatch.context() as killing:
        killing.setattr(targets.FileTarget, "read", _killed)
        with pytest.raises(KeyboardInterrupt):
            move(source, target, recode)
    held = target.read_bytes()
    moved = move(source, target, recode, resume=True)
    assert (moved.written, moved.there_before, moved.verified) == (0, 200, True)
    assert target.read_bytes() == held
    for other in (Recode(PrefixEncoder.load(tmp_path / "model"), K - 1), Recode(k=K)):
        with pytest.raises(InvalidInputError, match="does not hold"):
            move(source, target, other, resume=True)
    assert target.read_bytes() == held


def _killed(*_):
    raise KeyboardInterrupt
