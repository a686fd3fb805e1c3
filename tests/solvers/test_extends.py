"""Encoders that extend an old one: its axes stay, and what is added is the best that can be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import minimize

from firstk import PrefixEncoder
from firstk.contracts import Pencil
from firstk.exceptions import FirstkError, RankWarning
from firstk.solvers import ClosedForm
from firstk.solvers.closed_form import extended_axes

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 7)) @ rng.standard_normal((7, 7)) + 2
OLD = PrefixEncoder(3).fit(X[:60])


def definite(seed):
    A = np.random.default_rng(seed).standard_normal((6, 6))
    return A @ A.T + 0.1 * np.eye(6)


@pytest.mark.parametrize("with_metric", [True, False])
def test_added_axes_are_the_best_by_search(with_metric):
    """The next axis by a search over all directions, N-orthogonal to the old ones: no pencil is solved here."""
    M, N = definite(1), definite(2) if with_metric else None
    metric = np.eye(6) if N is None else N
    old = np.random.default_rng(3).standard_normal((2, 6))
    found = extended_axes(Pencil(M=M, N=N), old, 4, 1e-16)
    np.testing.assert_array_equal(found.components[:2], old)
    added = found.components[2:]
    np.testing.assert_allclose(added @ metric @ old.T, 0, atol=1e-10)
    np.testing.assert_allclose(added @ metric @ added.T, np.eye(2), atol=1e-10)

    def against(fixed):
        def loss(v):
            v = v - fixed.T @ np.linalg.solve(fixed @ metric @ fixed.T, fixed @ metric @ v)
            return -(v @ M @ v) / (v @ metric @ v)

        starts = np.random.default_rng(4).standard_normal((5, 6))
        return -min(minimize(loss, start).fun for start in starts)

    assert found.spectrum[2] == pytest.approx(against(old), rel=1e-5)
    assert found.spectrum[3] == pytest.approx(against(np.vstack([old, added[:1]])), rel=1e-5)
    assert found.spectrum[0] == pytest.approx(old[0] @ M @ old[0] / (old[0] @ metric @ old[0]))


def test_old_axes_without_variance_leave_the_complement_of_the_others():
    """N of the first old axis is zero: what is added is still N-orthogonal to the second one."""
    N = definite(2)
    N[0] = N[:, 0] = 0
    old = np.eye(6)[:2]
    found = extended_axes(Pencil(M=definite(1), N=N), old, 5, 1e-16)
    np.testing.assert_allclose(found.components[2:] @ N @ old.T, 0, atol=1e-10)


def test_a_width_that_the_data_do_not_have_is_told_whole():
    with pytest.warns(RankWarning, match="n_components=6 was requested.* 2 directions to add to 3: 5 components"):
        new = PrefixEncoder(6, solver=ClosedForm(extends=OLD)).fit(X[:3])
    assert new.n_components_ == 5


def test_nothing_to_extend_is_the_free_solution():
    M, N = definite(1), definite(2)
    values, vectors = eigh(M, N)
    found = extended_axes(Pencil(M=M, N=N), vectors[:, ::-1][:, :2].T, 6, 1e-16)
    np.testing.assert_allclose(found.spectrum, values[::-1], rtol=1e-8)


@pytest.mark.parametrize("objective", ["reconstruction", "similarity"])
def test_stored_columns_stay(objective):
    old = PrefixEncoder(3, objective=objective).fit(X[:60])
    new = PrefixEncoder(6, objective=objective, solver=ClosedForm(extends=old)).fit(X)
    np.testing.assert_array_equal(new.encoder_.coordinates(X)[:, :3], old.encoder_.coordinates(X))
    assert new.n_components_ == 6


def test_a_row_poor_fit_keeps_them_too():
    wide = np.random.default_rng(5).standard_normal((12, 30))
    old = PrefixEncoder(3).fit(wide)
    new = PrefixEncoder(5, solver=ClosedForm(extends=old)).fit(wide[::-1] * 2)
    np.testing.assert_array_equal(new.components_[:3], old.components_)


def test_it_holds_more_than_the_old_and_no_more_than_a_free_fit():
    new, free = PrefixEncoder(5, solver=ClosedForm(extends=OLD)).fit(X), PrefixEncoder(5).fit(X)

    def lost(encoder, k):
        return np.square(X - encoder[:k].inverse_transform(encoder.transform(X, k))).sum()

    assert lost(free, 5) <= lost(new, 5) < lost(OLD, 3)


def test_it_is_saved_as_any_other(tmp_path):
    new = PrefixEncoder(5, solver=ClosedForm(extends=OLD)).fit(X)
    back = PrefixEncoder.load(new.save(tmp_path / "model"))
    np.testing.assert_array_equal(back.transform(X), new.transform(X))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PrefixEncoder(3, solver=ClosedForm(extends=OLD)).fit(X), "adds nothing"),
        (lambda: PrefixEncoder(5, solver=ClosedForm(extends=OLD)).fit(X[:, :6]), "7 columns"),
        (lambda: PrefixEncoder(5, solver=ClosedForm(extends="old")).fit(X), "'extends' parameter"),
        (
            lambda: PrefixEncoder(
                5, solver=ClosedForm(extends=PrefixEncoder(1, objective="fisher").fit(X, X[:, 0] > 2))
            ).fit(X),
            "an encoder of objective 'fisher'",
        ),
        (
            lambda: PrefixEncoder(5, objective="regression", solver=ClosedForm(extends=OLD)).fit(X, X[:, :5]),
            "extends",
        ),
        (lambda: PrefixEncoder(solver=ClosedForm(extends=PrefixEncoder().fit(X))).fit(X), "nothing to add"),
        (lambda: PrefixEncoder(5, objective="similarity", solver=ClosedForm(extends=OLD)).fit(X), "cannot be extended"),
    ],
)
def test_what_cannot_be_extended_is_told(make, message):
    with pytest.raises(FirstkError, match=message):
        make()
