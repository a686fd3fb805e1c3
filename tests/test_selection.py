"""What "auto" chooses, and on what grounds."""

import numpy as np
import pytest

from firstk import Fisher, PrefixEncoder, selection
from firstk.objectives import Pairs
from firstk.sampling import RowSample


def plain_choice(unseen, seen, *, scores=None, monkeypatch):
    """Run `choose` on made-up held-out scores: `unseen` and `seen` by shrinkage."""
    rng = np.random.default_rng(0)
    right = rng.normal(size=(60, 3)).repeat(4, axis=0)  # every document has four queries
    columns = {"left": rng.normal(size=(240, 3)), "right": right, "scores": scores}
    sample = RowSample(1000).update(columns)
    calls = []

    def mean_scores(self, candidates, folds):
        calls.append(folds)
        return np.array([(unseen, seen)[len(calls) - 1][each.shrinkage] for each in candidates])

    monkeypatch.setattr(selection._Trial, "mean_scores", mean_scores)
    choice = selection.choose(Pairs("auto", 0.0), sample, None, None)
    return choice.objective.shrinkage, calls, sample


UNSEEN = {0.1: 0.50, 0.3: 0.585, 0.5: 0.595, 0.7: 0.60, 0.9: 0.57}
SEEN = {0.1: 0.99, 0.3: 0.90, 0.5: 0.80, 0.7: 0.70, 0.9: 0.95}


def test_positives_take_the_best_on_seen_documents_that_unseen_ones_can_bear(monkeypatch):
    chosen, _, _ = plain_choice(UNSEEN, SEEN, monkeypatch=monkeypatch)
    assert chosen == 0.3  # 0.1 and 0.9 lose more than 0.02 on unseen documents


def test_scored_pairs_take_the_best_on_unseen_documents(monkeypatch):
    chosen, calls, _ = plain_choice(UNSEEN, SEEN, scores=np.arange(240.0), monkeypatch=monkeypatch)
    assert (chosen, len(calls)) == (0.7, 1)


def test_folds_hold_documents_out_and_then_only_queries(monkeypatch):
    _, (by_document, again), sample = plain_choice(UNSEEN, SEEN, monkeypatch=monkeypatch)
    names = [row.tobytes() for row in sample["right"]]
    for kept, held in by_document:
        assert not {names[i] for i in kept} & {names[i] for i in held}
        assert len(kept) + len(held) == 240
    for kept, held in again:
        assert {names[i] for i in held} <= {names[i] for i in kept}
        assert not set(kept) & set(held)
    assert sorted(np.concatenate([held for _, held in by_document])) == list(range(240))


def test_score_of_a_candidate_weighs_each_octave_by_its_omega(monkeypatch):
    encoder = PrefixEncoder(8).fit(np.random.default_rng(1).normal(size=(40, 8))).encoder_
    curve = {2: 0.2, 4: 0.4, 8: 1.0}
    monkeypatch.setattr(selection, "prefix_scores", lambda enc, held, metric, ks: [curve[k] for k in ks])
    harmonic = 1 / np.arange(1, 9)
    weights = np.array([harmonic[:2].sum(), harmonic[2:4].sum(), harmonic[4:].sum()]) / harmonic.sum()
    assert selection._score(encoder, None, "harmonic") == pytest.approx(weights @ [0.2, 0.4, 1.0])


def test_few_rows_a_class_take_more_shrinkage_than_many():
    """Classes differ where rows vary little: with many rows Sw tells, with few it must be held back."""
    rng = np.random.default_rng(2)
    spread = np.geomspace(10, 0.3, 30)
    means = rng.normal(size=(6, 30)) * 0.3

    def settled(per_class):
        y = np.arange(6).repeat(per_class)
        X = means[y] + rng.normal(size=(len(y), 30)) * spread
        return PrefixEncoder(objective=Fisher(shrinkage="auto")).fit(X, y).objective_.shrinkage

    assert settled(7) > settled(600) == 0.1
