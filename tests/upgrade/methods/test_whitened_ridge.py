"""Ridge regression to whitened new vectors, against least squares on rows that were whitened one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from firstk.upgrade.methods import ProcrustesRidge, WhitenedRidge
from upgrade.pairs import moments_of, pairs


def slow(old, new, a, w):
    """Whiten the new rows, and solve least squares with rows of a penalty below those of the pairs."""
    n, S = len(old), new.T @ new / len(new)
    D = w * S + (1 - w) * np.trace(S) / len(S) * np.eye(len(S))
    whitened = new @ np.linalg.inv(np.real(sqrtm(D)))
    p = old.shape[1]
    c = np.square(old).sum() / n / p
    rows = np.vstack([np.sqrt((1 - a) / n) * old, np.sqrt(a * c) * np.eye(p)])
    targets = np.vstack([np.sqrt((1 - a) / n) * whitened, np.zeros((p, new.shape[1]))])
    return old @ np.linalg.lstsq(rows, targets, rcond=None)[0], whitened


@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
@pytest.mark.parametrize(("a", "w"), [(0.0, 1.0), (0.1, 0.6), (0.5, 0.3), (0.2, 0.0)])
def test_cosines_are_those_of_least_squares_on_whitened_rows(a, w, p, q):
    old, new = pairs(p=p, q=q)
    predicted, whitened = slow(old, new, a, w)
    method, moments = WhitenedRidge(a, w), moments_of(old, new)
    expected = predicted @ whitened.T / np.linalg.norm(predicted, axis=1)[:, None]
    solution = method.solve(moments)
    for maps in (method.comparing(moments), (solution.encode_old, solution.encode_new)):
        X, Q = (side(rows, "test") for side, rows in zip(maps, (old, new), strict=True))
        np.testing.assert_allclose(X @ Q.T / np.linalg.norm(X, axis=1)[:, None], expected, atol=1e-9)
    assert (np.diff(solution.spectrum) <= 0).all()


def test_the_first_coordinates_agree_most():
    """The agreement of k orthonormal directions of the whitened space is largest for the first k."""
    old, new = pairs(p=6, q=5)
    predicted, whitened = slow(old, new, 0.1, 0.6)
    agreement = predicted.T @ whitened / len(old)
    values = np.linalg.eigvalsh((agreement + agreement.T) / 2)[::-1]
    solution = WhitenedRidge(0.1, 0.6).solve(moments_of(old, new))
    codes = solution.encode_old(old, "test"), solution.encode_new(new, "test")
    found = np.einsum("ij,ij->j", *codes) / len(old)
    np.testing.assert_allclose(found, values, atol=1e-9)


def test_translations_are_those_of_ridge_towards_the_rotation():
    old, new = pairs()
    solution = WhitenedRidge(0.1, 0.3).solve(moments_of(old, new))
    expected = ProcrustesRidge(0.1).solve(moments_of(old, new)).old_to_new(old, "test")
    np.testing.assert_allclose(solution.old_to_new(old, "test"), expected, atol=1e-9)
    back = WhitenedRidge(0.1, 0.3).solve(moments_of(new, old)).old_to_new(new, "test")
    np.testing.assert_allclose(solution.new_to_old(new, "test"), back, atol=1e-9)
