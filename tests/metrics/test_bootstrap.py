"""Intervals: every draw against the statistic of the rows it names, taken the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from firstk.exceptions import InvalidInputError
from firstk.metrics import (
    ExplainedShare,
    MeanScore,
    RankAgreement,
    bootstrap_interval,
    explained_variance,
    linear_probe_accuracy,
    linear_readout_r2,
    nearest_neighbor_accuracy,
    nearest_neighbors,
    neighbor_recall,
    pair_cosines,
    pair_spearman,
    positive_recall,
    readout_errors,
    reconstruction_errors,
)
from firstk.metrics import bootstrap as module
from firstk.metrics.ranking import midranks

N, K, B = 40, 5, 7


def drawn(seed=0):
    """Rows of B draws, and how often each row is in them."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(N, size=(B, N))
    return rows, np.stack([np.bincount(part, minlength=N) for part in rows], axis=1).astype(float)


def test_mean_of_redrawn_rows():
    hits = np.random.default_rng(1).random((N, K)) < 0.6
    rows, counts = drawn()
    np.testing.assert_allclose(MeanScore(hits).resampled(counts), [hits[part].mean(axis=0) for part in rows])
    np.testing.assert_array_equal(MeanScore(hits).score(), hits.mean(axis=0))
    tenths = np.random.default_rng(2).integers(0, 11, (N, K))
    expected = [tenths[part].mean(axis=0) / 10 for part in rows]
    np.testing.assert_allclose(MeanScore(tenths, out_of=10).resampled(counts), expected)


def test_weights_count_a_row_as_often_as_they_say():
    values, weights = np.random.default_rng(1).random((N, K)), np.random.default_rng(2).integers(1, 4, N)
    often = np.repeat(values, weights, axis=0)
    rows, counts = drawn()
    found = MeanScore(values, weights=weights.astype(float))
    assert found.n == N
    np.testing.assert_allclose(found.score(), often.mean(axis=0))
    expected = [np.repeat(values[part], weights[part], axis=0).mean(axis=0) for part in rows]
    np.testing.assert_allclose(found.resampled(counts), expected)
    alike = MeanScore(values, weights=np.full(N, 0.25))
    np.testing.assert_allclose(bootstrap_interval(alike), bootstrap_interval(MeanScore(values)))


def test_more_columns_than_a_block():
    hits = np.random.default_rng(1).random((N, 3 * module.BLOCK_COLUMNS + 1)) < 0.6
    rows, counts = drawn()
    np.testing.assert_allclose(MeanScore(hits).resampled(counts), [hits[part].mean(axis=0) for part in rows])


@pytest.mark.parametrize("centred", [True, False])
def test_share_of_redrawn_rows(centred):
    rng = np.random.default_rng(3)
    Y, errors = rng.standard_normal((N, 3)) + 2.0, rng.random((N, K))
    tally = ExplainedShare(errors, np.sum(Y**2, axis=1), Y if centred else None)
    rows, counts = drawn()
    for part, found in zip(rows, tally.resampled(counts), strict=True):
        about = Y[part].mean(axis=0) if centred else 0.0
        np.testing.assert_allclose(found, 1 - errors[part].sum(axis=0) / np.sum((Y[part] - about) ** 2))


@pytest.mark.parametrize("digits", [1, 9])
def test_spearman_of_redrawn_pairs(digits):
    """One digit makes ties among different pairs; repeated pairs tie anyway."""
    rng = np.random.default_rng(4)
    scores = rng.standard_normal(N).round(digits)
    values = (scores[:, None] + rng.standard_normal((N, K))).round(digits)
    tally = RankAgreement(values, scores)
    rows, counts = drawn()
    for part, found in zip(rows, tally.resampled(counts), strict=True):
        np.testing.assert_allclose(found, [spearmanr(values[part, k], scores[part])[0] for k in range(K)], atol=1e-12)
    np.testing.assert_allclose(tally.score(), [spearmanr(values[:, k], scores)[0] for k in range(K)], atol=1e-12)


def test_midranks_are_those_of_the_repeated_values():
    values = np.array([0.5, 0.1, 0.5, 0.9, 0.1])
    counts = np.array([[2], [1], [1], [3], [2]])
    repeated = np.repeat(np.arange(5), counts[:, 0])
    np.testing.assert_array_equal(midranks(values, counts)[repeated, 0], rankdata(values[repeated]))


def test_a_constant_column_has_correlation_0_in_every_draw():
    tally = RankAgreement(np.ones((N, 1)), np.arange(N, dtype=float))
    assert not tally.resampled(drawn()[1]).any()


def test_interval_is_the_quantiles_of_the_draws():
    """Against a loop that draws rows by the same generator, one draw at a time."""
    hits = np.random.default_rng(1).random((N, K)) < 0.6
    low, high = bootstrap_interval(MeanScore(hits), 0.9, resamples=50, random_state=3)
    rng = np.random.default_rng(3)
    means = [hits[rng.integers(N, size=N)].mean(axis=0) for _ in range(50)]
    np.testing.assert_allclose(low, np.quantile(means, 0.05, axis=0))
    np.testing.assert_allclose(high, np.quantile(means, 0.95, axis=0))


def test_blocks_of_draws_change_nothing(monkeypatch):
    hits = np.random.default_rng(1).random((N, K)) < 0.6
    whole = bootstrap_interval(MeanScore(hits), resamples=30)
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 7 * N)
    np.testing.assert_array_equal(bootstrap_interval(MeanScore(hits), resamples=30), whole)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = rng.random((100, 300)) < 0.7  # 300 columns: 300 samples of 100 rows, truth 0.7
    low, high = bootstrap_interval(MeanScore(hits), 0.9, resamples=400)
    assert 0.83 < np.mean((low <= 0.7) & (high >= 0.7)) < 0.96


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, "0.95", None, True, float("nan")])
def test_bad_confidence_is_a_sentence(confidence):
    with pytest.raises(InvalidInputError, match=r"'confidence'.*between 0 and 1"):
        bootstrap_interval(MeanScore(np.ones((3, 2))), confidence)


def test_bad_resamples_are_a_sentence():
    with pytest.raises(InvalidInputError, match="'resamples'"):
        bootstrap_interval(MeanScore(np.ones((3, 2))), resamples=0)


@pytest.fixture(scope="module")
def code():
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((2 * N, K)) * np.linspace(2, 0.5, K)
    return {
        "fit": Z[:N],
        "new": Z[N:],
        "y_fit": rng.integers(0, 3, N),
        "y": rng.integers(0, 3, N),
        "A": rng.random((6, K)),
    }


def test_hits_by_row_add_up_to_accuracies(code):
    parts = code["fit"], code["y_fit"], code["new"], code["y"]
    for metric in (nearest_neighbor_accuracy, linear_probe_accuracy):
        rows = metric(*parts, per_row=True)
        assert rows.shape == (N, K)
        assert rows.dtype == bool
        np.testing.assert_array_equal(rows.mean(axis=0), metric(*parts))
    one = [nearest_neighbor_accuracy(*parts[:2], parts[2][[i]], parts[3][[i]]) for i in range(5)]
    np.testing.assert_array_equal(nearest_neighbor_accuracy(*parts, per_row=True)[:5], one)


def test_counts_by_row_add_up_to_recalls(code):
    truth = nearest_neighbors(code["fit"], code["new"], 4)
    rows = neighbor_recall(code["fit"], code["new"], truth, per_row=True)
    np.testing.assert_allclose(rows.mean(axis=0) / 4, neighbor_recall(code["fit"], code["new"], truth))
    one = neighbor_recall(code["fit"], code["new"][[3]], truth[[3]])
    np.testing.assert_allclose(rows[3] / 4, one)
    pairs = positive_recall(code["fit"], code["new"], at=3, per_row=True)
    np.testing.assert_allclose(pairs.mean(axis=0), positive_recall(code["fit"], code["new"], at=3))


def test_errors_by_row_are_those_of_the_reconstruction(code):
    X = np.random.default_rng(6).standard_normal((N, 6))
    errors = reconstruction_errors(X, code["new"], code["A"])
    for k in range(1, K + 1):
        slow = np.sum((X - code["new"][:, :k] @ code["A"][:, :k].T) ** 2, axis=1)
        np.testing.assert_allclose(errors[:, k - 1], slow)
    share = explained_variance(X, code["new"], code["A"])
    np.testing.assert_allclose(1 - errors.sum(axis=0) / np.sum(X**2), share)


def test_errors_by_row_are_those_of_the_readout(code):
    from sklearn.linear_model import LinearRegression

    Y = np.random.default_rng(7).standard_normal((2 * N, 2))
    errors = readout_errors(code["fit"], Y[:N], code["new"], Y[N:])
    for k in range(1, K + 1):
        fitted = LinearRegression().fit(code["fit"][:, :k], Y[:N])
        slow = np.sum((Y[N:] - fitted.predict(code["new"][:, :k])) ** 2, axis=1)
        np.testing.assert_allclose(errors[:, k - 1], slow)
    share = 1 - errors.sum(axis=0) / np.sum((Y[N:] - Y[N:].mean(axis=0)) ** 2)
    np.testing.assert_allclose(linear_readout_r2(code["fit"], Y[:N], code["new"], Y[N:]), share)


def test_cosines_of_pairs(code):
    cosines = pair_cosines(code["fit"], code["new"], ks=[2, 5])
    for column, k in zip(cosines.T, (2, 5), strict=True):
        a, b = code["fit"][:, :k], code["new"][:, :k]
        slow = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(a, b, strict=True)]
        np.testing.assert_allclose(column, slow)
    scores = np.arange(N, dtype=float)
    np.testing.assert_allclose(
        [spearmanr(column, scores)[0] for column in cosines.T],
        pair_spearman(code["fit"], code["new"], scores, ks=[2, 5]),
    )
