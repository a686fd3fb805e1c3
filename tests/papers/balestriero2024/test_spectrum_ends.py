"""Which end of the spectrum: verdicts on data built so that the right one is known."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from firstk._base.rows import unit_rows
from firstk.data import load_digits
from firstk_papers.balestriero2024.axes import hold_out
from firstk_papers.balestriero2024.spectrum_ends import compare_ends, nearest_in

RNG = np.random.default_rng(0)


def planted(place, n=3000, p=10, strength=3.0):
    """Two classes that differ along one coordinate; coordinates have falling variance."""
    y = RNG.integers(0, 2, n)
    scale = 0.7 ** np.arange(p)
    X = RNG.standard_normal((n, p)) * scale
    X[:, place] += strength * scale[place] * y
    return X, y


def ahead(top, bottom):
    """Return by how many standard errors the top is ahead."""
    return (top.probe - bottom.probe) / np.hypot(top.probe_error, bottom.probe_error)


@pytest.mark.parametrize(("place", "sign"), [(0, 1), (9, -1)])
def test_ends_of_the_spectrum(place, sign):
    X, y = planted(place)
    found = compare_ends(hold_out(X, y))
    assert all(sign * ahead(*sides) > 2 for sides in zip(found.top, found.bottom, strict=True))
    assert found.top[0].directions + found.bottom[0].directions == 10
    assert found.top[0].variance + found.bottom[0].variance == pytest.approx(1)


def test_there_is_no_difference_for_random_labels():
    X, _ = planted(0)
    found = compare_ends(hold_out(X, RNG.integers(0, 2, 3000)))
    assert all(abs(ahead(*sides)) < 3 for sides in zip(found.top, found.bottom, strict=True))


def test_scores_are_those_of_held_out_rows():
    """The linear score by least squares, the 1-NN score by scikit-learn, on the rows that were held out."""
    digits = load_digits()
    evidence = hold_out(digits.X, digits.y)
    found, axes = compare_ends(evidence), evidence.axes
    held = {row.tobytes() for row in evidence.U.round(6)}
    fit = np.array([row.tobytes() not in held for row in axes.whitened(digits.X).round(6)])
    assert found.rows == (~fit).sum() == len(evidence.U)
    for side, P in ((found.top[1], axes.P), (found.bottom[1], axes.P[:, ::-1])):
        T = (digits.X - axes.mean) @ P[:, : side.directions]
        A = np.column_stack([np.ones(len(T)), T])
        W = np.linalg.lstsq(A[fit], np.eye(10)[digits.y[fit]], rcond=None)[0]
        linear = np.mean((A[~fit] @ W).argmax(1) == digits.y[~fit])
        assert side.probe == pytest.approx(linear, abs=1e-12)
        near = KNeighborsClassifier(1).fit(T[fit], digits.y[fit]).score(T[~fit], digits.y[~fit])
        assert side.neighbor == pytest.approx(near, abs=0.005)  # ties in float32


def test_nearest_by_cosine_and_distance():
    Z_ref, Z = RNG.standard_normal((50, 4)), RNG.standard_normal((20, 4))
    distance = ((Z[:, None] - Z_ref) ** 2).sum(axis=2)
    np.testing.assert_array_equal(nearest_in(Z_ref, Z), distance.argmin(axis=1))
    cosine = (Z @ Z_ref.T) / np.linalg.norm(Z_ref, axis=1)
    np.testing.assert_array_equal(nearest_in(unit_rows(Z_ref), unit_rows(Z)), cosine.argmax(axis=1))
