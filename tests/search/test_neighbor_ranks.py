"""True neighbors of sampled rows and their ranks by short prefixes, against a sort."""

import numpy as np
import pytest

from firstk.search.funnel import prefixes
from firstk.search.funnel.block_search import centre_of
from firstk.search.funnel.schedule_choice import _FEW, QuerySample


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
    monkeypatch.setattr(prefixes, "CHUNK", request.param)


def calibration(euclidean: bool) -> tuple[np.ndarray, QuerySample]:
    Z = codes()
    return Z, QuerySample(Z, centre_of(Z, euclidean), euclidean, 5, np.random.default_rng(1))


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("euclidean", [True, False])
def test_true_neighbors_are_those_of_a_sort(euclidean):
    Z, found = calibration(euclidean)
    expected = np.argsort(costs(Z, found.asked, euclidean), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(found.truth, expected)


@pytest.mark.usefixtures("chunks")
def test_ranks_count_the_rows_that_are_nearer_by_the_prefix():
    Z, found = calibration(True)
    for k in (2, 8, 16):
        ranks = found.ranks(k).ranks
        table = costs(Z[:, :k], found.asked, True)
        own = np.take_along_axis(table, found.truth, axis=1)
        expected = (table[:, :, None] < own[:, None]).sum(axis=1)
        # float32 may swap rows that are equally far.
        assert np.abs(ranks - expected).max() <= 1
        assert np.mean(ranks == expected) > 0.99


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("euclidean", [True, False])
def test_rows_that_no_bound_excludes_are_those_of_a_loop(euclidean):
    Z, found = calibration(euclidean)
    asked = found.asked[:_FEW]
    whole = costs(Z, asked, euclidean)
    worst = np.sort(whole, axis=1)[:, 4]
    Y = (Z - Z.mean(axis=0)).astype(float) if euclidean else Z.astype(float)
    for k in (2, 8, 16):
        rest = np.linalg.norm(Y[:, k:], axis=1)
        bounds = costs(Y[:, :k], asked, euclidean)
        bounds += (rest[asked, None] - rest) ** 2 if euclidean else -rest[asked, None] * rest
        own = np.zeros(len(asked)) if euclidean else -np.square(Y[asked]).sum(axis=1)  # the row itself counts, too
        expected = (bounds <= worst[:, None]).sum(axis=1).mean() + (own <= worst).mean()
        assert found.ranks(k).bounded == pytest.approx(expected, rel=0.002, abs=0.1)


@pytest.mark.parametrize("euclidean", [True, False])
@pytest.mark.parametrize("size", [3, 40, 200])
def test_the_nearest_are_those_of_a_sort_for_any_size(euclidean, size):
    Z = codes(900, 12)
    Y = Z - centre_of(Z, euclidean)
    table = prefixes.columns_of(Y, 5, euclidean)[:, :6]
    queries = prefixes.asked_for(Y[:40], 5, euclidean)
    expected = np.argsort(-(queries @ table.T), axis=1, kind="stable")[:, :size]
    found = prefixes.nearest(table.__getitem__, len(table), queries, size)
    assert np.mean(np.sort(found) == np.sort(expected)) > 0.999


def test_random_coordinates_rank_neighbors_behind_more_rows():
    _, found = calibration(True)
    by_chance = found.ranks(8, order=found.order).ranks
    assert by_chance.shape == (_FEW, 5)
    assert by_chance.mean() > 2 * found.ranks(8).ranks[:_FEW].mean()
