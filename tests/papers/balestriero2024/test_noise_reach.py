"""What a noise could move at most: against all directions, and against regressions on targets."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from firstk_papers.balestriero2024 import noise_reach
from firstk_papers.balestriero2024.axes import principal_axes
from firstk_papers.balestriero2024.noise_reach import measure, random_changes, worst_change
from fixtures.small_task import CELL, small_task


@pytest.fixture
def Q():
    return np.linalg.qr(np.random.default_rng(0).standard_normal((9, 3)))[0]


def test_worst_change_is_the_largest_eigenvalue_of_the_difference_of_projections(Q):
    E = np.eye(9)[:, :3]
    assert worst_change(Q) == pytest.approx(np.linalg.eigvalsh(Q @ Q.T - E @ E.T).max())
    assert worst_change(E) == pytest.approx(0, abs=1e-12)


def test_random_changes_are_differences_of_r2():
    """Each target is a noiseless readout of whitened coordinates."""
    rows = small_task()
    axes = principal_axes(rows.moments())
    U = axes.whitened(rows.X)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((axes.rank, 4)))[0]
    targets = np.random.default_rng(2).standard_normal((axes.rank, 5))
    found = random_changes(Q, 5, np.random.default_rng(2))
    for target, change in zip(targets.T, found, strict=True):
        t = U @ target
        r2 = [LinearRegression().fit(Z, t).score(Z, t) for Z in (U @ Q, U[:, :4])]
        assert change == pytest.approx(r2[0] - r2[1], abs=1e-9)


def test_gaussian_noise_cannot_help_and_masking_can(monkeypatch):
    rows = small_task()
    monkeypatch.setattr(noise_reach, "task", lambda cell: rows)
    found = measure({**CELL, "noises": [{"sigma": 1.0}, {"patch": 2, "dropped": 0.5}], "targets": 50})["lines"]
    assert [line["can_help"] for line in found] == [False, True]
    for line in found:
        np.testing.assert_allclose(line["worst"], line["could_move"], atol=1e-6)
        assert np.all(np.abs(line["labels"]) <= np.array(line["could_move"]) + 1e-9)
