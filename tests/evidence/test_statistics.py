"""Holm's adjustment, paired differences and V-measure, against slow references."""

import numpy as np
import pytest
from benchmarks.evidence.scores import Clustered
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


def test_v_measure_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, clusters = rng.integers(4, size=60), rng.integers(5, size=(60, 2))
    scores, counts = Clustered(clusters, labels), rng.integers(3, size=(60, 3)).astype(float)
    for j in (0, 1):
        assert scores.score()[j] == pytest.approx(v_measure_score(labels, clusters[:, j]))
        for b in range(3):
            rows = np.repeat(np.arange(60), counts[:, b].astype(int))
            assert scores.resampled(counts)[b, j] == pytest.approx(v_measure_score(labels[rows], clusters[rows, j]))
