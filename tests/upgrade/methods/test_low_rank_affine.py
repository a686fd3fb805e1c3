"""The trained low-rank affine map: it comes near the closed form that is its optimum."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.contracts import AlignmentRows
from firstk.upgrade.methods import LowRankAffine, ReducedRank
from upgrade.pairs import moments_of, pairs

pytest.importorskip("torch")


def error(to_new, old, new):
    return np.square(to_new(old, "test") - new).sum() / np.square(new - new.mean(axis=0)).sum()


@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_its_error_on_fresh_rows_is_that_of_reduced_rank_regression(p, q):
    old, new = pairs(n=1200, p=p, q=q)
    train, test = slice(1000), slice(1000, None)
    moments = moments_of(old[train], new[train])
    trained = LowRankAffine(rank=3).solve(moments, AlignmentRows(old[train], new[train]))
    closed = ReducedRank(3, 0.0).solve(moments)
    assert np.linalg.matrix_rank(trained.old_to_new.weight, tol=1e-6) == 3
    ours, best = (error(solution.old_to_new, old[test], new[test]) for solution in (trained, closed))
    assert best < 0.2  # the closed form explains most of it, so the comparison means something
    assert ours == pytest.approx(best, abs=0.02)


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not():
    old, new = pairs(n=200)
    moments = moments_of(old, new)
    maps = [LowRankAffine(rank=2, epochs=3).comparing(moments, AlignmentRows(old, new, seed=s))[0] for s in (1, 1, 2)]
    assert maps[0].weight.tobytes() == maps[1].weight.tobytes()
    assert not np.array_equal(maps[0].weight, maps[2].weight)
