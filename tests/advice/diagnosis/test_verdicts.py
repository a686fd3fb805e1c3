"""Which end of the spectrum: verdicts on data built so that the right one is known."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from firstk._base.rows import unit_rows
from firstk.advice.diagnosis import diagnose, gather
from firstk.advice.diagnosis.axes import principal_axes
from firstk.advice.diagnosis.subspaces import nearest_in
from firstk.data import load_digits

RNG = np.random.default_rng(0)


def planted(place, n=3000, p=10, strength=3.0):
    """Two classes that differ along one coordinate; coordinates have falling variance."""
    y = RNG.integers(0, 2, n)
    scale = 0.7 ** np.arange(p)
    X = RNG.standard_normal((n, p)) * scale
    X[:, place] += strength * scale[place] * y
    return X, y


@pytest.mark.parametrize(("place", "winner"), [(0, "the top serves better"), (9, "the bottom serves better")])
def test_ends_of_the_spectrum(place, winner):
    X, y = planted(place)
    found = diagnose(X, y, parts=["subspaces"]).subspaces
    assert all(winner in sentence for sentence in found.sentences())
    assert found.top[0].directions + found.bottom[0].directions == 10
    assert found.top[0].variance + found.bottom[0].variance == pytest.approx(1)


def test_no_difference_is_said_when_there_is_none():
    X, _ = planted(0)
    found = diagnose(X, RNG.integers(0, 2, 3000), parts=["subspaces"])
    assert all("no difference" in sentence for sentence in found.subspaces.sentences())


def test_scores_are_those_of_held_out_rows():
    """The linear score by least squares, the 1-NN score by scikit-learn, on the rows that were held out."""
    digits = load_digits()
    found = diagnose(digits.X, digits.y, parts=["subspaces"]).subspaces
    gathered = gather(digits.X, digits.y, "labels")
    axes = principal_axes(gathered.moments)
    held = {row.tobytes() for row in gathered.X_held}
    fit = np.array([row.tobytes() not in held for row in digits.X])
    assert found.rows == (~fit).sum() == len(gathered.X_held)
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
