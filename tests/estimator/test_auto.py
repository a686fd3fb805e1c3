"""What "auto" chooses, and on what grounds."""

import numpy as np
import pytest
import tqdm.auto
from benchmarks.exhaustive_choice import exhaustive_choice
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.neighbors import KNeighborsClassifier

from firstk import Fisher, PrefixEncoder, Regression, Rows
from firstk._base import progress
from firstk.estimator import auto as selection
from firstk.estimator.auto import Race
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import MeanScore
from firstk.moments.moments import Moments
from firstk.moments.statistics import RowSample, Statistics
from firstk.objectives import NeighborSimilarity, PairSimilarity


def statistics_of(columns):
    """Statistics that hold a sample and no moments."""
    sample = RowSample(10_000).update(columns)
    return Statistics(Moments(), sample, 1)


def plain_choice(unseen, seen, *, scores=None, monkeypatch):
    """Run `choose` on made-up held-out scores, the same ones for all rows: `unseen` and `seen` by shrinkage."""
    rng = np.random.default_rng(0)
    right = rng.normal(size=(60, 3)).repeat(4, axis=0)  # every document has four queries
    columns = {"left": rng.normal(size=(240, 3)), "right": right, "scores": scores}
    statistics = statistics_of(columns)
    names = np.array([hash(row.tobytes()) for row in statistics.sample["right"]])
    asked = {"unseen": [], "seen": []}

    def scores(self, candidates, fold):
        kept, held = fold
        kind = "seen" if np.isin(names[held], names[kept]).all() else "unseen"
        asked[kind].append(fold)
        means = np.array([{"unseen": unseen, "seen": seen}[kind][each.shrinkage] for each in candidates])
        return means, np.tile(means[:, None], 3)

    monkeypatch.setattr(selection._Trial, "scores", scores)
    choice = selection.choose(PairSimilarity("auto", 0.0), statistics, None, None, None)
    return choice.objective.shrinkage, asked, statistics.sample


UNSEEN = {0.1: 0.50, 0.3: 0.585, 0.5: 0.595, 0.7: 0.60, 0.9: 0.57}
SEEN = {0.1: 0.99, 0.3: 0.90, 0.5: 0.80, 0.7: 0.70, 0.9: 0.95}


def test_positives_take_the_best_on_seen_documents_that_unseen_ones_can_bear(monkeypatch):
    chosen, _, _ = plain_choice(UNSEEN, SEEN, monkeypatch=monkeypatch)
    assert chosen == 0.3  # 0.1 and 0.9 lose more than 0.02 on unseen documents


def test_scored_pairs_take_the_best_on_unseen_documents(monkeypatch):
    chosen, asked, _ = plain_choice(UNSEEN, SEEN, scores=np.arange(240.0), monkeypatch=monkeypatch)
    assert (chosen, len(asked["seen"])) == (0.7, 0)


def test_folds_hold_documents_out_and_then_only_queries():
    rng = np.random.default_rng(0)
    right = rng.normal(size=(60, 3)).repeat(4, axis=0)  # every document has four queries
    sample = RowSample(1000).update({"left": rng.normal(size=(240, 3)), "right": right})
    by_document, again = selection._pair_folds(sample, 240)
    names = [row.tobytes() for row in sample["right"]]
    for kept, held in by_document:
        assert not {names[i] for i in kept} & {names[i] for i in held}
        assert len(kept) + len(held) == 240
    for kept, held in again:
        assert {names[i] for i in held} <= {names[i] for i in kept}
        assert not set(kept) & set(held)
    assert sorted(np.concatenate([held for _, held in by_document])) == list(range(240))


def test_score_of_a_candidate_weighs_each_octave_by_its_omega(monkeypatch):
    X = np.random.default_rng(1).normal(size=(40, 8))
    encoder = PrefixEncoder(8).fit(X).encoder_
    curve = {2: 0.2, 4: 0.4, 8: 1.0}
    scored = lambda enc, held, metric, ks: MeanScore(np.tile([curve[k] for k in ks], (5, 1)))  # noqa: E731
    monkeypatch.setattr(selection, "per_row_scores", scored)
    harmonic = 1 / np.arange(1, 9)
    weights = np.array([harmonic[:2].sum(), harmonic[2:4].sum(), harmonic[4:].sum()]) / harmonic.sum()
    score, resampled = selection.weighted_score(encoder, Rows(X), "recall@10", "harmonic")
    assert score == pytest.approx(weights @ [0.2, 0.4, 1.0])
    np.testing.assert_allclose(resampled, np.full(len(resampled), score))


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
    return np.array(folds)


def test_rows_take_the_most_shrinkage_that_is_level_with_the_best():
    rng = np.random.default_rng(2)
    y = np.arange(6).repeat(10)
    X = (rng.normal(size=(6, 30)) * 0.5)[y] + rng.normal(size=(60, 30)) * np.geomspace(2, 0.3, 30)
    enc = PrefixEncoder(objective=Fisher(shrinkage="auto")).fit(X, y)
    sample = RowSample(1000).update({"X": X, "y": y})
    means = {a: slow_score(sample["X"], sample["y"], a).mean() for a in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)}
    assert {trial["shrinkage"]: trial["score"] for trial in enc.encoder_.record.auto} == pytest.approx(means)
    # Sixty rows cannot tell any of them apart: what decides is the tolerance.
    assert enc.objective_.shrinkage == max(a for a, mean in means.items() if mean >= max(means.values()) - 0.005)
    assert len(set(means.values())) > 1


def chosen(candidates, means, error):
    """Return the choice of a race on made-up scores: means by candidate, and the error of each by itself."""
    noise = np.random.default_rng(0).normal(size=(5, len(means), 200)) * error * 5**0.5
    coming = iter(noise)

    def score(some, fold):
        places = [candidates.index(each) for each in some]
        return np.array(means)[places], np.array(means)[places, None] + next(coming)[places]

    few = np.arange(10)  # rows too few for a candidate to drop out
    return Race(candidates, [(few, few)] * 5, score).won()


@pytest.mark.parametrize(
    ("means", "error", "expected"),
    [
        ((0.8, 0.8 + 1e-16, 0.8 - 1e-16), 0.0, 0.5),  # equal but for the last digit: the most shrinkage
        ((0.8, 0.8004, 0.7), 0.0, 0.3),
        ((0.8, 0.797, 0.7), 1e-4, 0.1),  # little, but clear
        ((0.8, 0.797, 0.7), 0.01, 0.3),
        ((0.8, 0.79, 0.7), 0.01, 0.1),  # not clear, but much
    ],
)
def test_ties_go_to_the_most_shrinkage(means, error, expected):
    candidates = [Fisher(a) for a in (0.1, 0.3, 0.5)]
    assert chosen(candidates, means, error).shrinkage == expected
    assert chosen(candidates[::-1], means[::-1], error).shrinkage == expected


def test_of_equal_shrinkage_the_better_weight_of_neighbors_wins_and_the_larger_of_equals():
    candidates = [PairSimilarity(a, w) for w in (0.0, 0.25, 0.5) for a in (0.1, 0.9)]
    assert chosen(candidates, [0.70, 0.70, 0.70, 0.704, 0.70, 0.704 - 1e-12], 0.01) == PairSimilarity(0.9, 0.5)


def test_copies_of_a_row_share_a_fold():
    """A held-out row whose copy is fitted on would be its own answer."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)).repeat(3, axis=0)
    sample = RowSample(1000).update({"X": X, "y": np.arange(120) % 2})
    rows = [row.tobytes() for row in sample["X"]]
    for kept, held in selection._row_folds(sample, 120):
        assert not {rows[i] for i in kept} & {rows[i] for i in held}


@pytest.mark.parametrize("case", ["four distinct rows", "one row many times"])
def test_few_distinct_rows_are_dealt_out_one_by_one(case):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 2
    if case == "four distinct rows":
        X = (X > 0).astype(float)
    else:
        X[:150], y = X[0], (np.arange(200) < 150).astype(int)
    enc = PrefixEncoder(1, objective=Fisher(shrinkage="auto")).fit(X, y)
    assert enc.objective_.shrinkage in (0.1, 0.3, 0.5, 0.7, 0.9)


def folds_of(objective, columns, monkeypatch):
    """Return the folds that `choose` asks scores for, of scores that never tell candidates apart."""
    asked, noise = [], np.random.default_rng(0)

    def scores(self, candidates, fold):
        asked.append(fold)
        return np.zeros(len(candidates)), noise.normal(size=(len(candidates), 9))

    monkeypatch.setattr(selection._Trial, "scores", scores)
    selection.choose(objective, statistics_of(columns), None, None, None)
    return asked


@pytest.mark.parametrize("n", [19, 20])
def test_a_choice_needs_four_rows_a_fold(monkeypatch, n):
    columns = {"X": np.random.default_rng(0).normal(size=(n, 2)), "y": np.arange(n) % 2}
    if n == 20:
        assert [len(held) for _, held in folds_of(Fisher("auto"), columns, monkeypatch)] == [4] * 5
    else:
        pairs = {"left": columns["X"], "right": columns["X"], "scores": np.arange(n) / n}
        with pytest.raises(InvalidInputError, match=r"PairSimilarity needs at least 20 rows or pairs\. Got 19"):
            folds_of(PairSimilarity("auto"), pairs, monkeypatch)


@pytest.mark.parametrize("p", [3, 40])
def test_few_rows_are_shrunk_by_the_formula_of_ledoit_and_wolf(p):
    rng = np.random.default_rng(p)
    X, y = rng.normal(size=(12, p)) * np.linspace(1, 3, p), np.arange(12) % 3
    centred = X - np.stack([X[y == c].mean(axis=0) for c in y])
    expected = ledoit_wolf_shrinkage(centred, assume_centered=True)
    enc = PrefixEncoder(objective=Fisher("auto")).fit(X, y)
    assert enc.objective_.shrinkage == pytest.approx(expected, rel=1e-9)
    centred = X - X.mean(axis=0)
    enc = PrefixEncoder(objective=Regression("auto")).fit(X, rng.normal(size=12))
    assert enc.objective_.shrinkage == pytest.approx(ledoit_wolf_shrinkage(centred, assume_centered=True), rel=1e-9)


def test_weights_of_few_rows_are_repeated_rows():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(9, 5)), np.arange(9) % 2, np.array([1, 2, 1, 1, 3, 1, 2, 1, 1])
    weighted = PrefixEncoder(objective=Fisher("auto")).fit(X, y, weight)
    repeated = PrefixEncoder(objective=Fisher("auto")).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.objective_.shrinkage == pytest.approx(repeated.objective_.shrinkage, rel=1e-12)


def test_a_choice_looks_at_4096_rows(monkeypatch):
    columns = {"X": np.random.default_rng(0).normal(size=(5000, 1)), "y": np.arange(5000) % 2}
    for kept, held in folds_of(Fisher("auto"), columns, monkeypatch):
        assert sorted([*kept, *held]) == list(range(4096))


@pytest.mark.parametrize(("n", "folds"), [(50, 10), (45, 5)])
def test_seen_documents_are_asked_about_where_every_fold_has_ten_queries(monkeypatch, n, folds):
    left, right = np.random.default_rng(0).normal(size=(n, 5)), np.eye(5)[np.arange(n) % 5]
    assert len(folds_of(PairSimilarity("auto", 0.0), {"left": left, "right": right}, monkeypatch)) == folds


def test_documents_are_held_out_where_there_is_one_a_fold():
    def sample(right):
        kept = RowSample(len(right))
        kept.priority, kept.columns = np.arange(len(right), dtype=np.uint64), {"right": right}
        return kept

    unseen, _ = selection._pair_folds(sample(np.eye(5)[[0, 1, 1, 2, 3, 4]]), 6)
    assert [held.tolist() for _, held in unseen] == [[0], [1, 2], [3], [4], [5]]
    with pytest.raises(InvalidInputError, match=r"at least 5 different right sides\. Got 4"):
        selection._pair_folds(sample(np.eye(4)[[0, 1, 1, 2, 3]]), 5)


@pytest.mark.parametrize("beside", ["scores", "y", None])
def test_evaluation_data_is_what_was_held_out(beside):
    """Pairs are evaluated by themselves; rows among those that were fitted."""
    names = ("left", "right", "scores") if beside == "scores" else ("X", "y") if beside else ("X",)
    kept, held = ({name: np.full((2, 2), number) for name in names} for number in (1, 2))
    found = selection._evaluation_data(kept, held)
    for name in names:
        np.testing.assert_array_equal(getattr(found, name), held[name])
    if beside == "scores":
        assert selection._evaluation_data({}, {"left": kept["left"], "right": held["right"]}).scores is None
    else:
        np.testing.assert_array_equal(found.reference.X, kept["X"])
        assert (found.reference.y is None) == (beside is None)


def correlated(rng, n, p):
    return rng.normal(size=(n, p)) @ (rng.normal(size=(p, p)) * np.geomspace(1.5, 0.1, p))


def columns_of(kind, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "labels":
        y = np.arange(600) % 8
        return Fisher("auto"), {"X": correlated(rng, 600, 20) + (0.6 * rng.normal(size=(8, 20)))[y], "y": y}
    if kind == "targets":
        X = correlated(rng, 400, 20)
        return Regression("auto"), {"X": X, "y": X @ rng.normal(size=(20, 3)) + 4 * rng.normal(size=(400, 3))}
    if kind == "rows":
        return NeighborSimilarity("auto"), {"X": correlated(rng, 500, 20)}
    documents = correlated(rng, 150 if kind == "seen" else 600, 16)
    right = documents[np.arange(600) % len(documents)]
    left = right + 0.7 * rng.normal(size=right.shape)
    if kind != "scored":
        return PairSimilarity(), {"left": left, "right": right}
    return PairSimilarity(), {
        "left": left,
        "right": right,
        "scores": -np.linalg.norm(left[:, :6] - right[:, :6], axis=1),
    }


@pytest.mark.parametrize("kind", ["labels", "targets", "rows", "unseen", "seen", "scored"])
def test_shared_work_and_early_stops_choose_what_all_fits_on_all_folds_do(kind):
    objective, columns = columns_of(kind)
    slow = exhaustive_choice(objective, columns)
    estimator = PrefixEncoder(objective=objective)
    if "X" in columns:
        estimator.fit(columns["X"], columns.get("y"))
    else:
        estimator.fit_pairs(columns["left"], columns["right"], columns.get("scores"))
    assert estimator.objective_ == slow.chosen
    table = slow.tables[0]
    folds_by_candidate = [np.cumsum(table[:, c]) / np.arange(1, 6) for c in range(table.shape[1])]
    for trial, running in zip(estimator.encoder_.record.auto, folds_by_candidate, strict=True):
        assert np.abs(running - trial["score"]).min() < 2e-3  # over the folds in which it took part


@pytest.mark.parametrize(("verbose", "terminal", "shown"), [
    ("auto", True, True), ("auto", False, False), (True, False, True), (False, True, False)
])  # fmt: skip
def test_progress_of_a_choice(monkeypatch, capsys, verbose, terminal, shown):
    """On a terminal by default, after two seconds; always or never where asked for."""
    monkeypatch.setattr(progress, "LONG", 0.0)
    monkeypatch.setattr(progress, "is_looked_at", lambda: terminal)
    beside = []
    monkeypatch.setattr(tqdm.auto.tqdm, "set_postfix", lambda bar, said, refresh: beside.append(said["fold"]))
    objective, columns = columns_of("labels")
    PrefixEncoder(objective=objective, verbose=verbose).fit(columns["X"], columns["y"])
    assert ("choosing settings" in capsys.readouterr().err) == shown
    assert beside[:1] == (["1 of 5"] if shown else [])


def test_work_that_is_short_shows_nothing_by_default(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LONG", 60.0)
    monkeypatch.setattr(progress, "is_looked_at", lambda: True)
    objective, columns = columns_of("labels")
    PrefixEncoder(objective=objective).fit(columns["X"], columns["y"])
    assert "choosing" not in capsys.readouterr().err


def test_other_words_for_verbose_raise():
    with pytest.raises(InvalidInputError, match="'verbose' parameter of PrefixEncoder must be one of 'auto'"):
        PrefixEncoder(verbose="yes").fit(np.eye(12))


def race(means, errors, folds=5, **settings):
    """Run a race of Fisher's shrinkages on made-up scores: means by candidate, and the error of a fold's scores."""
    rng, asked = np.random.default_rng(0), []
    candidates = [Fisher(a) for a in (0.1, 0.3, 0.5, 0.7, 0.9)[: len(means)]]

    def score(some, fold):
        places = [candidates.index(each) for each in some]
        asked.append(sorted(each.shrinkage for each in some))
        noise = np.array(errors)[:, None] * rng.normal(size=(len(means), 200))
        return np.array(means)[places], (np.array(means)[:, None] + noise)[places]

    rows = np.arange(200)
    return Race(candidates, [(rows, rows)] * folds, score, **settings).won().shrinkage, asked


def test_a_candidate_that_is_clearly_beaten_drops_out():
    won, asked = race([0.8, 0.7, 0.79], [0.001, 0.001, 0.05])
    assert won == 0.1
    assert asked[0] == [0.1, 0.3, 0.5]
    assert all(each == [0.1, 0.5] for each in asked[1:])
    assert len(asked) == 5  # 0.5 stays unclear to the end


def test_a_race_ends_when_one_is_left():
    assert race([0.8, 0.7, 0.75], [0.001] * 3) == (0.1, [[0.1, 0.3, 0.5]])


def test_what_may_be_lost_keeps_candidates_in_the_race():
    assert race([0.8, 0.79, 0.75], [1e-4] * 3, most=0.02)[1] == [[0.1, 0.3, 0.5]] + 4 * [[0.1, 0.3]]
