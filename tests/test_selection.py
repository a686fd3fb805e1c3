"""What "auto" chooses, and on what grounds."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

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


def slow_score(X, y, shrinkage):
    """Five-fold 1-NN accuracy at 2, 4 and 5 coordinates, weighted by how many prefixes each speaks for."""
    folds = []
    for f in range(5):
        kept, held = np.arange(len(X)) % 5 != f, np.arange(len(X)) % 5 == f
        enc = PrefixEncoder(objective=Fisher(shrinkage)).fit(X[kept], y[kept])
        Z, Q = enc.transform(X[kept]), enc.transform(X[held])
        judge = [
            KNeighborsClassifier(1, metric="cosine").fit(Z[:, :k], y[kept]).score(Q[:, :k], y[held]) for k in (2, 4, 5)
        ]
        folds.append(np.average(judge, weights=(2, 2, 1)))
    return np.mean(folds)


def test_rows_take_the_best_cross_validated_shrinkage():
    rng = np.random.default_rng(2)
    y = np.arange(6).repeat(10)
    X = (rng.normal(size=(6, 30)) * 0.5)[y] + rng.normal(size=(60, 30)) * np.geomspace(2, 0.3, 30)
    enc = PrefixEncoder(objective=Fisher(shrinkage="auto")).fit(X, y)
    sample = RowSample(1000).update({"X": X, "y": y})
    slow = {a: slow_score(sample["X"], sample["y"], a) for a in (0.1, 0.3, 0.5, 0.7, 0.9)}
    assert {trial["shrinkage"]: trial["score"] for trial in enc.encoder_.config["auto"]} == pytest.approx(slow)
    assert enc.objective_.shrinkage == max(slow, key=slow.get)
    assert len(set(slow.values())) > 1
