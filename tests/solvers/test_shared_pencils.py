"""Pencils that differ in their shrinkage and share eigenvectors: the same axes as when each is solved by itself."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from firstk.contracts import Pencil, ShrunkScatter
from firstk.exceptions import RankWarning
from firstk.moments.moments import Moments
from firstk.moments.statistics import RowSample, Statistics
from firstk.solvers import closed_form
from firstk.solvers.closed_form import solve_pencil
from slow_reference import EPS, correlated, scatter

P = 9


def pencil_of(M, S, a, *, factor=False):
    parts = ShrunkScatter(S, 1 - a, a * np.trace(S) / len(S))
    return Pencil(M=None if factor else M, factor=M if factor else None, N=parts.formed(), shrunk=parts)


@pytest.fixture
def statistics():
    return Statistics(Moments(), RowSample(0), P)


@pytest.fixture
def matrices():
    rng = np.random.default_rng(0)
    X = correlated(rng, 200, P) * np.geomspace(1, 1e-3, P)
    X[:, 4] = 2.0  # a column that does not vary
    indefinite = rng.normal(size=(P, P))
    return scatter(X), indefinite + indefinite.T, rng.normal(size=(P, 3))


@pytest.mark.parametrize("factor", [False, True])
@pytest.mark.parametrize("width", [None, 2, P])
def test_axes_are_those_of_each_pencil_alone(statistics, matrices, factor, width):
    S, M, F = matrices
    with statistics.sharing():
        for a in (0.1, 0.5, 0.9):
            pencil = pencil_of(F if factor else M, S, a, factor=factor)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RankWarning)  # later coordinates lower an indefinite objective
                alone, shared = (solve_pencil(pencil, width, EPS, each) for each in (None, statistics.shared))
            assert shared.pinned == alone.pinned
            np.testing.assert_allclose(shared.spectrum, alone.spectrum, atol=1e-9 * np.abs(alone.spectrum).max())
            np.testing.assert_allclose(shared.components, alone.components, atol=1e-7 * np.abs(alone.components).max())


def test_scatters_and_signals_are_worked_on_once(statistics, matrices, monkeypatch):
    S, M, _ = matrices
    solved, real = [], closed_form.ordered_eigh
    monkeypatch.setattr(closed_form, "ordered_eigh", lambda A: solved.append(A is S) or real(A))
    with statistics.sharing():
        for a in (0.1, 0.3, 0.5):
            solve_pencil(pencil_of(M, S, a), 3, EPS, statistics.shared)
    assert solved.count(True) == 1
    assert len(solved) == 4


def test_parts_that_are_not_those_of_N_are_not_used(statistics, matrices):
    """An objective may take the pencil of another and change its N."""
    S, M, _ = matrices
    changed = replace(pencil_of(M, S, 0.5), N=np.diag(np.arange(1.0, P + 1)))
    with statistics.sharing():
        shared = solve_pencil(changed, 3, EPS, statistics.shared)
    np.testing.assert_array_equal(shared.components, solve_pencil(changed, 3, EPS).components)


def test_hardly_shrunk_scatters_keep_to_the_rank_rule(statistics, matrices):
    S, M, _ = matrices
    pencil = pencil_of(M, S, 1e-14)
    with statistics.sharing():
        shared = solve_pencil(pencil, "rank", EPS, statistics.shared)
    np.testing.assert_array_equal(shared.components, solve_pencil(pencil, "rank", EPS).components)


def test_nothing_is_kept_after_sharing(statistics):
    with statistics.sharing():
        assert [statistics.shared("x", lambda: [1]) is statistics.shared("x", lambda: [2])] == [True]
        assert statistics.shares
    assert statistics.shared("x", lambda: [3]) == [3]
    assert not statistics.shares


def test_pencils_of_single_precision_share_axes_to_its_rounding(statistics):
    rng = np.random.default_rng(1)
    S = scatter(correlated(rng, 200, P))
    M = rng.normal(size=(P, P))
    M = M @ M.T
    eps = float(np.finfo(np.float32).eps)
    with statistics.sharing():
        for a in (0.1, 0.9):
            alone, shared = (solve_pencil(pencil_of(M, S, a), None, eps, each) for each in (None, statistics.shared))
            assert shared.pinned == alone.pinned
            np.testing.assert_allclose(shared.spectrum, alone.spectrum, atol=1e-5 * alone.spectrum[0])
            np.testing.assert_allclose(shared.components, alone.components, atol=1e-3 * np.abs(alone.components).max())
