"""Holm's adjustment, paired differences and V-measure, against slow references."""

import numpy as np
import pytest
from benchmarks.evidence.scores import Clustered, few_rows
from benchmarks.evidence.statistics import difference, draws, holm, verdict
from sklearn.metrics import v_measure_score

from firstk.metrics.bootstrap import MeanScore


def test_holm_rejects_what_its_steps_reject():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.random(8) ** 3
        adjusted, left = holm(p), True
        for step, i in enumerate(np.argsort(p)):
            left = left and p[i] <= 0.05 / (8 - step)  # stop at the first that is not rejected
            assert (adjusted[i] <= 0.05) == left


def test_the_interval_of_a_difference_is_paired():
    rng = np.random.default_rng(0)
    hard = rng.random(400) < 0.5  # rows that both get wrong: they cancel in a paired difference
    better, worse = hard & (rng.random(400) < 0.99), hard & (rng.random(400) < 0.9)
    runs = [MeanScore(hits[:, None]) for hits in (better, worse)]
    found = difference(better.mean(), worse.mean(), *(draws([run])[:, 0] for run in runs))
    assert 0 < found.low < found.value < found.high
    assert found.high - found.low < 0.07
    assert verdict(found.value, found.p) == "ahead"
    assert verdict(-found.value, found.p) == "behind"
    same = difference(0.5, 0.5, draws([runs[0]])[:, 0], draws([runs[0]])[:, 0])
    assert verdict(same.value, same.p) == "level"


def test_draws_of_several_seeds_are_means_over_seeds():
    rng = np.random.default_rng(0)
    seeds = [MeanScore(rng.random((50, 2)) < share) for share in (0.3, 0.5, 0.9)]
    wanted = np.mean([draws([one], resamples=20) for one in seeds], axis=0)
    np.testing.assert_allclose(draws(seeds, resamples=20), wanted, rtol=1e-12)


def test_few_rows_are_the_draws_of_mteb():
    """Written out as mteb's sampling is: one list, shuffled again for each draw, and a counter for each label."""
    labels = np.random.default_rng(0).integers(5, size=90)
    rows = list(range(90))
    for found in few_rows(labels):
        np.random.RandomState(42).shuffle(rows)
        counted, wanted = dict.fromkeys(range(5), 0), []
        for i in rows:
            if counted[labels[i]] < 8:
                wanted.append(i)
                counted[labels[i]] += 1
        assert found.tolist() == wanted


def test_v_measure_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, clusters = rng.integers(4, size=60), rng.integers(5, size=(60, 2))
    scores, counts = Clustered(clusters, labels), rng.integers(3, size=(60, 3)).astype(float)
    for j in (0, 1):
        assert scores.score()[j] == pytest.approx(v_measure_score(labels, clusters[:, j]))
        for b in range(3):
            rows = np.repeat(np.arange(60), counts[:, b].astype(int))
            assert scores.resampled(counts)[b, j] == pytest.approx(v_measure_score(labels[rows], clusters[rows, j]))
