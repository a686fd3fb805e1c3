"""The choice of method and settings: what it scores, what it records, what it holds out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from alignment.pairs import cosines, moments_of, pairs
from firstk import PrefixAlignment
from firstk.alignment.auto import AlignmentChoice, choose, held_out_folds
from firstk.alignment.methods import Procrustes, Ridge
from firstk.moments.paired import PairedStatistics


def rates(old, new, encode_old, encode_new):
    """Return mean reciprocal rank of the own row, and how often the nearest other row is the new model's, slowly."""
    found, truth = cosines(encode_new(new, "test"), encode_old(old, "test")), cosines(new, new)
    own, nearest = [], []
    for i in range(len(old)):
        own.append(1 / (1 + sum(found[i, j] > found[i, i] for j in range(len(old)))))
        others = [j for j in range(len(old)) if j != i]
        nearest.append(max(others, key=lambda j: found[i, j]) == max(others, key=lambda j: truth[i, j]))
    return own, nearest


def test_scores_are_those_of_refits_without_the_held_out_rows():
    old, new = pairs(n=120)
    statistics = PairedStatistics.of(old, new)
    methods = [Procrustes(), Ridge(0.3)]
    _, choice = choose(methods, statistics.moments, statistics.sample)
    a, b = statistics.sample["left"], statistics.sample["right"]
    for method in methods:
        own, nearest = [], []
        for fold in held_out_folds(statistics.sample):
            rest = np.setdiff1d(np.arange(120), fold)
            solution = method.solve(moments_of(a[rest], b[rest]))
            for part, more in zip(
                (own, nearest), rates(a[fold], b[fold], solution.encode_old, solution.encode_new), strict=True
            ):
                part.extend(more)
        (trial,) = [trial for trial in choice.tried if trial.method == method.name]
        assert trial.own == pytest.approx(np.mean(own), abs=1e-9)
        assert trial.nearest == pytest.approx(np.mean(nearest), abs=1e-9)
        floor = 3 / 120
        expected = sum(np.log((rate + floor) / (1 - rate + floor)) for rate in (np.mean(own), np.mean(nearest)))
        assert trial.score == pytest.approx(expected, abs=1e-9)


def test_the_record_says_what_was_tried_and_survives_json():
    alignment = PrefixAlignment().fit(*pairs(n=200))
    choice = alignment.choice_
    assert (choice.method, choice.settings["shrinkage"]) == (alignment.method_.name, alignment.method_.shrinkage)
    scores = [trial.score for trial in choice.tried]
    assert scores == sorted(scores, reverse=True)
    assert {trial.method for trial in choice.tried} == {"ridge", "procrustes_ridge", "cca"}
    assert choice.tried[0].behind == choice.tried[0].behind_error == 0
    assert all(trial.behind >= 0 and trial.error > 0 for trial in choice.tried)
    assert choice.held_out == 200
    assert not choice.at_chance
    assert AlignmentChoice.from_dict(json.loads(json.dumps(choice.to_dict()))) == choice
    assert PrefixAlignment(method=Ridge(0.1)).fit(*pairs(n=200)).choice_ is None


def test_a_rotation_with_few_pairs_and_a_stretch_with_many_are_told_apart():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    old = rng.normal(size=(3000, 30))
    rotated = old[:60] @ turn + 0.3 * rng.normal(size=(60, 30))
    assert PrefixAlignment().fit(old[:60], rotated).method_.shrinkage >= 0.5
    stretched = (old * np.geomspace(0.02, 3, 30)) @ turn + 0.3 * rng.normal(size=(3000, 30))
    assert PrefixAlignment().fit(old, stretched).method_.shrinkage <= 0.3


def test_the_error_of_a_difference_is_that_of_redrawn_rows():
    old, new = pairs(n=400, noise=1.5)
    statistics = PairedStatistics.of(old, new)
    _, choice = choose([Procrustes(), Ridge(0.3)], statistics.moments, statistics.sample)
    worse = choice.tried[1]
    assert 0 < worse.behind_error < np.hypot(worse.error, choice.tried[0].error)
