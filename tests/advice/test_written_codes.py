"""Files of codes that are read back: the share of neighbors, by a slow reference."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder, transform_files
from firstk.advice.stored_codes import read_back
from firstk.data.files import open_vectors, write_vectors

X = np.random.default_rng(2).normal(size=(300, 12)).astype(np.float32) * np.arange(12, 0, -1, dtype=np.float32)


def neighbors(stored, asked):
    """Rows of the ten nearest by cosine, itself apart."""
    stored, asked = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (stored, asked))
    near = asked @ stored.T
    np.fill_diagonal(near, -np.inf)
    return [set(row) for row in np.argsort(-near, axis=1)[:, :10]]


@pytest.mark.parametrize("precision", ["float32", "int4"])
@pytest.mark.parametrize("fitted", [True, False])
def test_the_share_is_that_of_what_was_written(tmp_path, precision, fitted):
    encoder = PrefixEncoder(8).fit(X).encoder_ if fitted else None
    write_vectors(tmp_path / "in.npz", X)
    transform_files(encoder, tmp_path / "in.npz", tmp_path / "out.npz", k=5, precision=precision)
    asked = X[:, :5] if encoder is None else encoder.coordinates(X, 5)
    found = neighbors(open_vectors(tmp_path / "out.npz").read().vectors, asked)
    wanted = np.mean([len(a & b) / 10 for a, b in zip(found, neighbors(X, X), strict=True)])
    check = read_back(encoder, tmp_path / "in.npz", tmp_path / "out.npz")
    assert check.rows == 300
    assert check.kept == pytest.approx(wanted, abs=2e-3)  # ties in float32
    assert 0.2 < check.kept < 1


def test_rows_that_were_dropped_are_in_neither(tmp_path):
    holes = X.copy()
    holes[::7, 3] = np.nan
    write_vectors(tmp_path / "holes.npz", holes)
    write_vectors(tmp_path / "whole.npz", np.delete(X, np.s_[::7], axis=0))
    shares = []
    for name in ("holes", "whole"):
        transform_files(None, tmp_path / f"{name}.npz", tmp_path / f"{name}-short.npz", k=5, nan="drop")
        shares.append(read_back(None, tmp_path / f"{name}.npz", tmp_path / f"{name}-short.npz"))
    assert shares[0] == shares[1]


def test_a_few_rows_have_no_share(tmp_path):
    write_vectors(tmp_path / "in.npz", X[:20])
    transform_files(None, tmp_path / "in.npz", tmp_path / "out.npz", k=5)
    assert read_back(None, tmp_path / "in.npz", tmp_path / "out.npz") is None


def test_other_columns_that_could_be_vectors_are_not_taken(tmp_path):
    write_vectors(tmp_path / "in.npz", X, {"target": X[:, :2]}, name="X")
    transform_files(None, tmp_path / "in.npz", tmp_path / "out.npz", k=5, vectors="X", precision="int8")
    assert read_back(None, tmp_path / "in.npz", tmp_path / "out.npz", vectors="X").kept > 0.2
