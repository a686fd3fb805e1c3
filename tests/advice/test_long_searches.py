"""Searches of many queries and documents: fewer lengths, bounded memory, and how long it will take said before."""

from dataclasses import replace

import numpy as np
import pytest

from command_line import firstk
from firstk import PrefixEncoder, Search, evaluate
from firstk.advice import stored_codes
from firstk.data.files import write_vectors
from firstk.data.precision import PRECISIONS
from firstk.metrics import _sweep

LONG = __import__("importlib").import_module("firstk.advice.evaluate")


@pytest.fixture(scope="module")
def searched():
    draw = np.random.default_rng(0)
    documents = (draw.standard_normal((400, 48)) / np.arange(1, 49) ** 0.5).astype(np.float32)
    queries = documents[:60] + 0.3 * draw.standard_normal((60, 48)).astype(np.float32)
    return Search(queries, documents, np.column_stack([np.arange(60), np.arange(60), np.ones(60, dtype=int)]))


def test_long_searches_are_scored_at_two_lengths_an_octave_and_no_otherwise(searched, monkeypatch):
    encoder = PrefixEncoder().fit(searched.documents)
    every = evaluate(encoder, searched, sizes=(8, 16))
    monkeypatch.setattr(LONG, "MOST_PRODUCTS", 60 * 400 * 48 - 1)
    few = evaluate(encoder, searched, sizes=(8, 16))
    scores = {replace(point, score=0.0): point.score for point in every.points}
    assert all(scores[replace(point, score=0.0)] == point.score for point in few.points)
    own = {
        name: {p.k for p in table.prefixes if p.own and p.precision == name} for table in (few,) for name in PRECISIONS
    }
    assert own["float32"] == set(LONG.ladder(encoder.encoder_.d))
    assert own["int8"] == set(LONG.ladder(encoder.encoder_.d))
    assert len(few.points) < len(every.points)
    rounded = [point for point in few.points if point.code not in ("", "raw vectors") and point.precision != "float32"]
    assert len({point.code for point in rounded}) == 1
    assert "embedded" not in {point.precision for point in rounded}
    assert "embedded" in {point.precision for point in every.points if point.code == rounded[0].code}


@pytest.mark.parametrize(
    ("name", "signs"), [("float16", False), ("int8", False), ("int4", False), ("binary", False), ("binary", True)]
)
def test_rounding_by_blocks_is_rounding(searched, monkeypatch, name, signs):
    monkeypatch.setattr(stored_codes, "_BLOCK", 37)
    once = stored_codes.EncodedOnce(PrefixEncoder().fit(searched.documents).encoder_, searched)
    Z = once.coordinates(searched.documents)
    fitted = PRECISIONS[name].fit(Z)
    ((_, storage),) = stored_codes.rounded_storages(once, PRECISIONS[name], Z, [Z.shape[1]], signs=signs, ask=False)
    expected = fitted.restore(fitted.quantise(Z))
    if signs:
        expected = np.where(fitted.mean < Z, 1.0, -1.0)
    np.testing.assert_array_equal(storage.store(Z), expected)


def test_scales_are_fitted_on_rows_evenly_spaced(searched, monkeypatch):
    monkeypatch.setattr(stored_codes, "FITTED_ROWS", 150)
    once = stored_codes.EncodedOnce(PrefixEncoder().fit(searched.documents).encoder_, searched)
    Z = once.coordinates(searched.documents)
    fitted = PRECISIONS["int4"].fit(Z[::3])
    ((_, storage),) = stored_codes.rounded_storages(once, PRECISIONS["int4"], Z, [Z.shape[1]], signs=False, ask=False)
    np.testing.assert_array_equal(storage.store(Z), fitted.restore(fitted.quantise(Z)))


def test_references_are_laid_out_in_blocks_as_at_once():
    compiled = pytest.importorskip("firstk.metrics._sweep_compiled")
    draw = np.random.default_rng(0)
    Z = draw.standard_normal((64 * compiled.LANES + 5, 9)) * 10.0 ** draw.integers(
        -30, 30, (64 * compiled.LANES + 5, 1)
    )
    lengths = np.array([2, 5, 9])
    tiles, scales = compiled._laid_out(Z, lengths)
    rows = tiles.transpose(0, 2, 1).reshape(-1, 9)[: len(Z)]
    np.testing.assert_array_equal(rows, _sweep.balanced(Z))
    norms = np.stack([np.linalg.norm(rows[:, :k], axis=1) for k in lengths], axis=1)
    np.testing.assert_allclose(scales.transpose(0, 2, 1).reshape(-1, 3)[: len(Z)], 1 / norms, rtol=1e-12)


def test_how_long_it_takes_is_said_before(searched, tmp_path, monkeypatch):
    write_vectors(tmp_path / "store.npz", searched.documents, {})
    write_vectors(tmp_path / "asked.npz", searched.queries, {})
    lines = [f"{q},{d},{g}" for q, d, g in searched.relevance]
    (tmp_path / "judged.csv").write_text("\n".join(["query,document,grade", *lines]))
    words = ("fit", "store.npz", "--queries", "asked.npz", "--relevance", "judged.csv", "--id", ":row", "-o", "model")
    monkeypatch.setattr(LONG, "SECONDS_A_NUMBER", 1.0)
    monkeypatch.setattr(LONG, "cores", lambda: 1)
    done = firstk(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "firstk: evaluating takes about 19200 seconds.\n"  # 400 rows of 48 numbers
    assert firstk(*words, "--quiet", "--force", cwd=tmp_path).stderr == ""
