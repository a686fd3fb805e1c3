"""Orthogonal Procrustes against scipy, against other rotations, and against its bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes, qr

from firstk import PrefixAlignment
from firstk.exceptions import AlignmentWarning
from firstk.upgrade.methods import Procrustes, ProcrustesRidge
from upgrade.pairs import centred, moments_of, pairs


def test_square_rotation_is_scipys():
    old, new = pairs(p=6, q=6)
    expected, _ = orthogonal_procrustes(*centred(old, new))
    np.testing.assert_allclose(Procrustes().translation(moments_of(old, new)), expected, atol=1e-10)


@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_no_other_rotation_agrees_more(p, q):
    old, new = pairs(p=p, q=q)
    A, B = centred(old, new)
    R = Procrustes().translation(moments_of(old, new))
    narrow = R @ R.T if p < q else R.T @ R
    np.testing.assert_allclose(narrow, np.eye(min(p, q)), atol=1e-12)
    rng = np.random.default_rng(1)
    for size in (3.0, 0.3, 0.03):
        for _ in range(20):
            other = R + size * rng.normal(size=R.shape)
            other = qr(other, mode="economic")[0] if p >= q else qr(other.T, mode="economic")[0].T
            other *= np.sign(np.vdot(other, R))
            assert np.vdot(A @ other, B) <= np.vdot(A @ R, B) + 1e-9
            if p < q:  # into the wider space it is the least-squares optimum too
                assert np.square(A @ R - B).sum() <= np.square(A @ other - B).sum() + 1e-9


def test_a_rotation_and_an_offset_are_found_exactly_and_undone():
    rng = np.random.default_rng(2)
    old = rng.normal(size=(50, 5)) + 3.0
    turn = qr(rng.normal(size=(8, 5)), mode="economic")[0]
    new = old @ turn.T - 2.0
    solution = Procrustes().solve(moments_of(old, new))
    np.testing.assert_allclose(solution.old_to_new(old, "test"), new, atol=1e-10)
    np.testing.assert_allclose(solution.new_to_old(new, "test"), old, atol=1e-10)


@pytest.mark.parametrize("size", [1e-3, 1e-1])
def test_nearly_equal_inner_products_mean_that_a_rotation_suffices(size):
    rng = np.random.default_rng(3)
    old = rng.normal(size=(40, 6))
    new = old @ qr(rng.normal(size=(6, 6)))[0] + size * rng.normal(size=(40, 6))
    A, B = centred(old, new)
    R = Procrustes().translation(moments_of(old, new))
    gap = np.linalg.norm(A @ A.T - B @ B.T, 2)
    # min over rotations of the squared error is at most the nuclear norm of the gap of the Gram matrices.
    assert np.square(A @ R - B).sum() <= np.linalg.norm(A @ A.T - B @ B.T, "nuc") + 1e-9
    assert np.square(A @ R - B).sum() <= 2 * 6 * gap + 1e-9


@pytest.mark.parametrize("method", [Procrustes(), ProcrustesRidge(0.9)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("why", ["few rows", "dead columns"])
def test_beyond_the_rank_of_the_pairs_nothing_depends_on_the_order_of_rows(method, dtype, why):
    old, new = (side.astype(dtype) for side in pairs(n=8 if why == "few rows" else 100, p=12, q=10))
    if why == "dead columns":
        old[:, 3:] = 0
    order = np.random.default_rng(0).permutation(len(old))
    with pytest.warns(AlignmentWarning, match=f"pairs determine {7 if why == 'few rows' else 3} of them"):
        first = PrefixAlignment(method=method).fit(old, new)
    with pytest.warns(AlignmentWarning):
        second = PrefixAlignment(method=method).fit(old[order], new[order])
    maps = [one.alignment_.solution.old_to_new.weight for one in (first, second)]
    np.testing.assert_allclose(*maps, atol=(1e-4 if dtype == np.float32 else 1e-9) * np.abs(maps[0]).max())
