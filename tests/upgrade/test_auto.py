"""The choice of method and settings: what it scores, what it records, what it holds out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import log_softmax

from firstk import PrefixAlignment
from firstk._base.json_records import from_plain, to_plain
from firstk.moments.cross import CrossMoments
from firstk.quality import Difference
from firstk.upgrade.auto import AlignmentChoice, choose, held_out_folds, own_log_probabilities
from firstk.upgrade.methods import Procrustes, Ridge
from upgrade.pairs import cosines, moments_of, pairs


def rank_and_probability(old, new, encode_old, encode_new):
    """Return the reciprocal rank of each own row, and its log-probability by temperature, row by row."""
    found = cosines(encode_new(new, "test"), encode_old(old, "test"))
    own, likely = [], []
    for i, row in enumerate(found):
        own.append(1 / (1 + sum(other > row[i] for other in row)))
        likely.append([log_softmax(row / t)[i] for t in np.geomspace(0.01, 0.5, 9)])
    return own, likely


def test_scores_are_those_of_refits_without_the_held_out_rows():
    old, new = pairs(n=120)
    statistics = CrossMoments.sampled(old, new)
    methods = [Procrustes(), Ridge(0.3)]
    _, choice = choose(methods, statistics, statistics.sample)
    a, b = statistics.sample["left"], statistics.sample["right"]
    for method in methods:
        own, likely = [], []
        for fold in held_out_folds(statistics.sample):
            rest = np.setdiff1d(np.arange(120), fold)
            solution = method.solve(moments_of(a[rest], b[rest]))
            more = rank_and_probability(a[fold], b[fold], solution.encode_old, solution.encode_new)
            own.extend(more[0])
            likely.extend(more[1])
        (trial,) = [trial for trial in choice.tried if trial.method == method.name]
        assert trial.own == pytest.approx(np.mean(own), abs=1e-9)
        best = np.mean(likely, axis=0).argmax()
        values = np.array(likely)[:, best]
        assert trial.score == pytest.approx(values.mean(), abs=1e-5)  # exponentials are summed in float32


def test_no_temperature_overflows():
    cosines = np.array([[1.0, -1.0], [1.0, -1.0]])
    found = own_log_probabilities(cosines)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 0], [0.0, -200.0], atol=1e-5)


def test_the_record_says_what_was_tried_and_survives_json():
    alignment = PrefixAlignment().fit(*pairs(n=200))
    choice = alignment.choice_
    assert (choice.method, choice.settings["shrinkage"]) == (alignment.method_.name, alignment.method_.shrinkage)
    scores = [trial.score for trial in choice.tried]
    assert scores == sorted(scores, reverse=True)
    assert {trial.method for trial in choice.tried} == {"ridge", "procrustes_ridge", "whitened_ridge"}
    assert choice.tried[0].ahead == Difference(0.0, 0.0, 0.0)
    assert all(trial.ahead.value <= 0 <= trial.ahead.high - trial.ahead.value for trial in choice.tried)
    assert choice.held_out == 200
    assert not choice.at_chance
    assert from_plain(AlignmentChoice, json.loads(json.dumps(to_plain(choice)))) == choice
    assert PrefixAlignment(method=Ridge(0.1)).fit(*pairs(n=200)).choice_ is None


def test_a_rotation_with_few_pairs_and_a_stretch_with_many_are_told_apart():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    old = rng.normal(size=(3000, 30))
    rotated = old[:60] @ turn + 0.3 * rng.normal(size=(60, 30))
    assert PrefixAlignment().fit(old[:60], rotated).method_.shrinkage >= 0.5
    stretched = (old * np.geomspace(0.02, 3, 30)) @ turn + 0.3 * rng.normal(size=(3000, 30))
    assert PrefixAlignment().fit(old, stretched).method_.shrinkage <= 0.3


@pytest.mark.parametrize("method", ["auto", "cca"])
def test_a_weight_of_three_is_a_pair_three_times_where_settings_are_chosen(method):
    old, new = pairs(n=150, noise=1.0)
    weight = np.random.default_rng(0).integers(1, 4, 150)
    weighted = PrefixAlignment(method=method).fit(old, new, weight)
    repeated = PrefixAlignment(method=method).fit(np.repeat(old, weight, axis=0), np.repeat(new, weight, axis=0))
    ours, theirs = weighted.choice_, repeated.choice_
    assert (ours.method, ours.settings, ours.held_out) == (theirs.method, theirs.settings, theirs.held_out)
    for one, other in zip(ours.tried, theirs.tried, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
    np.testing.assert_allclose(weighted.old_to_new(old), repeated.old_to_new(old), atol=1e-9)
