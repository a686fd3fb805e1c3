"""The width of a code where none is asked for: a multiple of 8, unless that would cost something."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from firstk import ClosedForm, PrefixEncoder
from firstk.contracts import Conventions, Pencil
from firstk.exceptions import RankWarning
from firstk.objectives import ClosedFormObjective

RNG = np.random.default_rng(0)


def rows_of(variances):
    """Return rows with exactly these variances, along axes that are not the columns."""
    p = len(variances)
    scores = np.linalg.qr(RNG.standard_normal((4 * p, p + 1)) - 0.0)[0]
    scores = np.linalg.qr(scores - scores.mean(axis=0))[0][:, :p]
    axes = np.linalg.qr(RNG.standard_normal((p, p)))[0]
    return scores * np.sqrt(variances) @ axes


@pytest.mark.parametrize(
    ("rank", "tail", "width"),
    [
        (69, 1e-5, 64),  # five coordinates that hold next to nothing
        (69, 0.1, 69),  # five that hold 0.7 % of the variance
        (64, 1e-5, 64),
        (72, 1e-5, 72),
        (63, 1e-5, 63),  # short codes keep every coordinate
        (9, 1e-5, 9),
        (5, 1e-5, 5),
    ],
)
def test_default_widths(rank, tail, width):
    head = rank - rank % 8 or rank
    X = rows_of(np.r_[np.full(head, 1.0), np.full(rank - head, tail), np.zeros(3)])
    enc = PrefixEncoder(solver=ClosedForm("float64")).fit(X)
    assert enc.n_components_ == width
    longest = PrefixEncoder("rank", solver=ClosedForm("float64")).fit(X)
    assert longest.n_components_ == rank
    np.testing.assert_allclose(enc.components_, longest.components_[:width])
    assert PrefixEncoder(min(rank, 67)).fit(X).n_components_ == min(rank, 67)  # what is asked for is kept


def test_classes_keep_all_their_directions():
    """C - 1 = 76 directions of 77 classes are all kept: none of them is nearly empty."""
    means = 3 * RNG.standard_normal((77, 90))
    y = np.arange(77 * 6) % 77
    X = means[y] + RNG.standard_normal((len(y), 90))
    assert PrefixEncoder(objective="fisher").fit(X, y).n_components_ == 76


def test_the_rank_comes_back_from_disk(tmp_path):
    X = rows_of(np.r_[np.ones(64), np.full(3, 1e-6)])
    enc = PrefixEncoder("rank").fit(X)
    back = PrefixEncoder.load(enc.save(tmp_path / "model"))
    assert (back.n_components, back.n_components_) == ("rank", 67)


class Contrast(ClosedFormObjective):
    """Variance of the first two columns less that of the third: indefinite, and with N the identity."""

    name, supervision = "contrast", "rows"
    conventions = Conventions("orthonormal", "mean", False, "uniform", "readback_variance")

    def pencil(self, statistics):
        return Pencil(M=np.diag([2.0, 1.0, -1.0]))


def test_directions_that_lower_an_objective_are_not_called_the_rank_of_the_data():
    X = RNG.standard_normal((20, 3))
    with pytest.warns(RankWarning, match=r"only 2 directions raise the objective \(gamma > 0.*: 2 components are kept"):
        PrefixEncoder(3, objective=Contrast()).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PrefixEncoder(objective=Contrast()).fit(X).n_components_ == 2
