"""Measuring a profile: shares and moments against slow references, scores against the metric itself."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.metrics import nearest_neighbors, neighbor_recall
from firstk.metrics.profile import measure_profile, profile_lengths, variance_shares

rng = np.random.default_rng(0)
X = (rng.standard_normal((400, 7)) @ rng.standard_normal((7, 7)) + 3).astype(np.float32)
Y = np.arange(400) % 3


@pytest.mark.parametrize("objective", ["reconstruction", "fisher"])
def test_share_of_variance_is_that_of_the_projection_on_the_first_axes(objective):
    encoder = PrefixEncoder(objective=objective).fit(X + Y[:, None], Y).encoder_
    centred = X - X.mean(axis=0)
    S = centred.T.astype(float) @ centred / len(X)
    found = variance_shares(encoder, S)
    for k in range(1, encoder.d + 1):
        B = encoder.components[:k].T
        onto = B @ np.linalg.pinv(B)
        assert found[k - 1] == pytest.approx(np.trace(onto @ S) / np.trace(S), rel=1e-6)


def test_scores_are_those_of_groups_of_rows():
    encoder = PrefixEncoder().fit(X).encoder_
    table = measure_profile(encoder, X).scores["recall@10"]
    assert table.sizes.tolist() == [64, 256]
    slow = []
    for start in range(0, 64 * 6, 64):
        rows = X[start : start + 64]
        truth = nearest_neighbors(rows, rows, 10, exclude_self=True)
        Z = encoder.encode(rows)
        slow.append(neighbor_recall(Z, Z, truth, ks=table.k, exclude_self=True))
    np.testing.assert_allclose(table.score[0], np.mean(slow, axis=0), atol=0.005)


def test_labels_add_the_objectives_own_metric():
    encoder = PrefixEncoder(objective="fisher").fit(X, Y).encoder_
    assert set(measure_profile(encoder, X, Y).scores) == {"recall@10", encoder.record.metric}
    assert set(measure_profile(encoder, X).scores) == {"recall@10"}


def test_too_few_rows_and_equal_rows_have_no_profile():
    encoder = PrefixEncoder().fit(X).encoder_
    assert measure_profile(encoder, X[:63]) is None
    assert measure_profile(encoder, np.ones((100, 7), np.float32)) is None


def test_lengths_end_at_the_width():
    for d in (1, 2, 3, 7, 384):
        ks = profile_lengths(d)
        assert (ks[0], ks[-1]) == (1, d)
        assert (np.diff(ks) > 0).all()
