"""True neighbors of sampled rows and their ranks by short prefixes, against a sort."""

import numpy as np
import pytest

from firstk.search.funnel import neighbor_ranks
from firstk.search.funnel.neighbor_ranks import calibration_sample, true_neighbors
from firstk.search.funnel.prefixes import FirstStage


def codes(n: int = 700, d: int = 40) -> np.ndarray:
    """Rows in two groups, one after the other: the first rows say little about the last."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, d)) * np.geomspace(1, 0.05, d)
    Z[n // 2 :, 0] += 6
    return Z.astype(np.float32)


def costs(Z: np.ndarray, asked: np.ndarray, euclidean: bool) -> np.ndarray:
    Q, X = Z[asked].astype(float), Z.astype(float)
    table = np.square(Q[:, None] - X).sum(axis=2) if euclidean else -Q @ X.T
    table[np.arange(len(asked)), asked] = np.inf
    return table


@pytest.fixture(params=[4096, 64, 60], ids=["one chunk", "many chunks", "chunks of another size"])
def chunks(request, monkeypatch):
    monkeypatch.setattr(neighbor_ranks, "_CHUNK", request.param)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("euclidean", [True, False])
def test_true_neighbors_are_those_of_a_sort(euclidean):
    Z, asked = codes(), np.arange(3, 700, 5)
    expected = np.argsort(costs(Z, asked, euclidean), axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(true_neighbors(Z, asked, euclidean, 7), expected)


@pytest.mark.usefixtures("chunks")
def test_ranks_count_the_rows_that_are_nearer_by_the_prefix():
    Z = codes()
    found = calibration_sample(Z, True, FirstStage("float32"), 5, np.random.default_rng(1))
    asked = np.sort(np.random.default_rng(1).choice(700, 350, replace=False))
    truth = np.argsort(costs(Z, asked, True), axis=1, kind="stable")[:, :5]
    for k, ranks in zip(found.ks, found.ranks, strict=True):
        table = costs(Z[:, :k], asked, True)
        own = np.take_along_axis(table, truth, axis=1)
        expected = (table[:, :, None] < own[:, None]).sum(axis=1)
        # float32 may swap rows that are equally far.
        assert np.abs(ranks - expected).max() <= 1
        assert np.mean(ranks == expected) > 0.99


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("euclidean", [True, False])
def test_rows_that_no_bound_excludes_are_those_of_a_loop(euclidean):
    Z = codes()
    found = calibration_sample(Z, euclidean, FirstStage("float32"), 5, np.random.default_rng(1))
    asked = np.sort(np.random.default_rng(1).choice(700, 350, replace=False))[:128]
    whole = costs(Z, asked, euclidean)
    worst = np.sort(whole, axis=1)[:, 4]
    Y = (Z - Z.mean(axis=0)).astype(float) if euclidean else Z.astype(float)
    for k, kept in zip(found.ks, found.kept, strict=True):
        rest = np.linalg.norm(Y[:, k:], axis=1)
        bounds = costs(Y[:, :k], asked, euclidean)
        bounds += (rest[asked, None] - rest) ** 2 if euclidean else -rest[asked, None] * rest
        assert kept == pytest.approx((bounds <= worst[:, None]).sum(axis=1).mean(), rel=0.002, abs=0.1)


def test_random_coordinates_rank_neighbors_behind_more_rows():
    found = calibration_sample(codes(), True, FirstStage("float32"), 5, np.random.default_rng(1))
    i = len(found.ks) // 2
    by_chance = found.random_ranks(i)
    assert by_chance.shape == (128, 5)
    assert by_chance.mean() > 2 * found.ranks[i, :128].mean()
