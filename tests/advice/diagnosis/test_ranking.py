"""The ranking of objectives: the right one on data built so, paired intervals, ties, and a call that can be made."""

from dataclasses import replace

import numpy as np
import pytest

import firstk
from firstk import PrefixEncoder, diagnose, prefix_curve
from firstk.advice.diagnosis import Diagnosis, compare
from firstk.advice.diagnosis.compare import balanced_weight, candidates_for, compare_objectives
from firstk.advice.diagnosis.folds import judged_trials, log_trials, row_trials
from firstk.data.task import Pairs, Search
from firstk.exceptions import InvalidInputError, MissingExtraError
from firstk.metrics.bootstrap import MeanScore, resampled_scores
from firstk.moments.moments import Moments
from firstk.objectives import Mixture
from firstk.objectives._common import one_hot_cross
from firstk.objectives.similarity import NEIGHBOR_WEIGHTS

RNG = np.random.default_rng(0)


def planted(n=600, p=24, place=20, classes=2, strength=6.0):
    """Classes that differ along one coordinate of little variance."""
    y = RNG.integers(0, classes, n)
    scale = 0.8 ** np.arange(p)
    X = RNG.standard_normal((n, p)) * scale
    X[:, place] += strength * scale[place] * y
    return X, y


def explained(found, choice):
    """Return the explanation of another choice."""
    return replace(found, ranking=replace(found.ranking, choice=choice)).explain()


@pytest.fixture(scope="module")
def found():
    return diagnose(*planted())


def test_labels_hidden_from_variance_want_a_supervised_objective(found):
    ranking = found.ranking
    assert ranking.chosen.objective in ("fisher", "mixture", "classification")
    ahead = {trial.name: trial.ahead for trial in ranking.trials}
    assert ahead["reconstruction"].high < 0
    assert ahead["reconstruction"].value < -0.1
    assert ranking.choice in str(found).splitlines()[0]


def test_codes_that_keep_what_labels_need_come_with_the_setting_for_other_classes(found):
    assert "objective.reconstruction=0.5" in explained(found, "fisher")
    assert "classes without labels" not in explained(found, "error_bound")


def test_targets_hidden_from_variance_want_regression():
    X = RNG.standard_normal((600, 24)) * 0.7 ** np.arange(24)
    ranking = diagnose(X, X[:, 20]).ranking
    assert ranking.choice == "regression"
    assert ranking.curves[0].metric == "r2"
    scores = {curve.label: curve.score for curve in ranking.curves}
    assert scores["regression"] == pytest.approx((1, 1), abs=1e-3)
    assert max(scores["reconstruction"]) < 0.1


def test_every_objective_of_the_labels_is_tried(found):
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    tried = {trial.objective for trial in found.ranking.trials}
    assert tried == {"reconstruction", "similarity", "fisher", "error_bound", "mixture", "classification"}
    assert found.ranking.left_out == {}
    assert all(trial.low <= trial.mean <= trial.high for trial in found.ranking.trials)


def test_without_torch_the_rest_is_ranked(monkeypatch):
    def missing(package, extra, purpose):
        raise MissingExtraError(package, extra, purpose)

    monkeypatch.setattr(compare, "require", missing)
    found = diagnose(*planted(300))
    assert "classification" not in {trial.name for trial in found.ranking.trials}
    assert "torch" in found.ranking.left_out["classification"]
    assert "- Not tried: classification (" in found.explain()


def test_the_call_can_be_made(found):
    X, y = planted()
    encoder = eval(found.command, {**vars(firstk.objectives), "PrefixEncoder": firstk.PrefixEncoder, "X": X, "y": y})
    assert encoder.n_components_ >= 1


def test_queries_of_a_log_rank_objectives_by_the_neighbors_that_they_find():
    X = RNG.standard_normal((400, 40)) * 0.9 ** np.arange(40)
    queries = X[:120] + 0.1 * RNG.standard_normal((120, 40))
    trials = log_trials(Search(queries, X))
    assert sum(fold.n for fold in trials.folds) == 120
    for fold in trials.folds:  # what is held out is not learned from
        assert not np.isin(fold.data.queries, fold.queries["X"]).any()
        assert len(fold.queries) + fold.n == 120
    found = diagnose(search=Search(queries, X))
    assert (found.ranking.task, found.ranking.curves[0].metric) == ("none", "recall@10")
    assert {trial.name for trial in found.ranking.trials} >= {"reconstruction", "similarity, variance"}
    with pytest.raises(InvalidInputError, match=r"40 queries, and there are 20"):
        log_trials(Search(queries[:20], X))


def test_without_labels_fidelity_is_ranked_and_named():
    X = RNG.standard_normal((400, 40)) * 0.9 ** np.arange(40)
    found = diagnose(X)
    assert found.ranking.curves[0].metric == "recall@10"
    assert {trial.name for trial in found.ranking.trials} == {
        "reconstruction",
        "similarity, dot_products",
        "similarity, variance",
        "similarity, neighbors",
    }
    assert "This is fidelity" in str(found)
    assert "Of the ten nearest neighbors" in found.explain()
    assert found.command.endswith(".fit(X)")
    assert "objective.keep=projections" in explained(found, "similarity, neighbors")  # a fit of one kind of vectors
    assert "objective.keep=projections" not in explained(found, "reconstruction")


def test_scored_pairs_want_pairs():
    """Scores depend on coordinates of little variance, which only objectives with pairs can know."""
    scale = np.where(np.arange(24) < 16, 1.0, 0.5)
    left, right = (RNG.standard_normal((500, 24)) * scale for _ in range(2))
    inner = [side[:, 16:] / scale[16:] for side in (left, right)]
    scores = np.sum(inner[0] * inner[1], axis=1) / np.prod([np.linalg.norm(side, axis=1) for side in inner], axis=0)
    found = diagnose(pairs=(left, right, scores))
    assert found.kind == "pairs"
    assert found.ranking.chosen.pairs
    assert found.command.endswith("fit_pairs(left, right, scores)")
    assert {trial.name for trial in found.ranking.trials if trial.ahead.high < 0} >= {
        "reconstruction",
        "similarity, variance",
        "similarity, neighbors",
    }


def judged(n=300, p=24):
    """Documents, and queries that agree with one of them along coordinates of little variance."""
    scale = np.where(np.arange(p) < 12, 1.0, 0.5)
    documents = RNG.standard_normal((n, p)) * scale
    queries = RNG.standard_normal((n, p)) * scale
    queries[:, 12:] = documents[:, 12:] + 0.1 * scale[12:] * RNG.standard_normal((n, p - 12))
    return documents, queries, np.column_stack([np.arange(n), np.arange(n), np.ones(n, int)])


def test_judgements_and_positives_want_pairs():
    documents, queries, relevance = judged()
    search = Search(queries=queries, documents=documents, relevance=relevance)
    by_judgements = diagnose(search=search)
    by_pairs = diagnose(pairs=(queries, documents))
    for found in (by_judgements, by_pairs):
        assert found.kind == "judgements"
        assert found.ranking.curves[0].metric == "ndcg@10"
        assert found.ranking.curves[0].n_evaluated == 300
        assert found.ranking.chosen.pairs
        assert Diagnosis.from_json(found.to_json()) == found
        assert Diagnosis.from_json(found.to_json()).ranking.chosen.seconds == found.ranking.chosen.seconds
        # "auto" could choose the weight 0 in a fit of all pairs, and that was ranked by itself.
        own = next(trial for trial in found.ranking.trials if trial.name == "similarity, pairs")
        assert own.settings["neighbor_weight"] in NEIGHBOR_WEIGHTS
        assert f"neighbor_weight={own.settings['neighbor_weight']!r}" in own.python


def test_a_setting_that_folds_choose_is_their_lower_median():
    pairs = next(one for one in candidates_for("judgements") if one.name == "similarity, pairs")
    assert pairs.settings == {}
    chosen = [{"neighbor_weight": weight, "shrinkage": 0.1} for weight in (0.5, 0.25, 0.0, 0.5)]
    assert pairs.settled(chosen).settings == {"neighbor_weight": 0.25}
    plain = next(one for one in candidates_for("judgements") if one.name == "similarity, pairs, neighbor_weight 0")
    assert plain.settled(chosen).settings == {"neighbor_weight": 0.0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs vectors"),
        ({"X": np.eye(4), "y": [0, 1, 0, 1], "pairs": (np.eye(4), np.eye(4))}, "not both"),
        ({"pairs": (np.eye(4),)}, "'pairs' parameter"),
        ({"pairs": (np.eye(4), np.eye(5)[:, :4])}, "as many rows"),
        ({"pairs": (np.eye(4), np.eye(4))}, "needs 40 judged queries"),
    ],
)
def test_bad_input_raises_an_error(given, said):
    with pytest.raises(InvalidInputError, match=said):
        diagnose(**given)


# -- numbers ---------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_full_fits_on_the_folds():
    X, y = planted(400)
    trials = row_trials(X, y, "labels")
    ranking = compare_objectives(trials)
    curve = next(curve for curve in ranking.curves if curve.label == "fisher")
    wanted = np.zeros(len(curve.k))
    for fold in trials.folds:
        encoder = firstk.PrefixEncoder(curve.k[-1], objective="fisher").fit(fold.rows.X, fold.rows.y)
        Z_ref, Z = encoder.transform(fold.rows.X), encoder.transform(fold.data.X)
        for i, k in enumerate(curve.k):
            a, b = (part[:, :k] / np.linalg.norm(part[:, :k], axis=1, keepdims=True) for part in (Z_ref, Z))
            wanted[i] += np.sum(fold.rows.y[np.argmax(b @ a.T, axis=1)] == fold.data.y)
    assert curve.score == pytest.approx(wanted / trials.n, abs=0.005)  # ties in float32
    assert curve.n_evaluated == trials.n == 400


def test_margins_are_paired_means(found):
    means = [np.mean(curve.score) for curve in found.ranking.curves]
    assert means == sorted(means, reverse=True)
    for trial, mean in zip(found.ranking.trials, means, strict=True):
        assert trial.ahead.value == pytest.approx(mean - means[0], abs=1e-12)
        assert trial.ahead.low <= trial.ahead.value <= trial.ahead.high
        behind = -trial.ahead.value
        assert trial.level == (behind <= 5e-4 or (behind <= 0.005 and trial.ahead.high >= -1e-6))


def scored(name, hits):
    """A candidate with scores of its own: `hits` of each row."""
    candidate = compare.Candidate(name, Mixture())
    rows = MeanScore(np.asarray(hits)[:, None])
    return compare._Scored(candidate, rows.score(), resampled_scores(rows, resamples=200), None, 0.0)


def ranked(*candidates_):
    known = 20 if candidates_[0].everything is not None else 0
    trials = replace(row_trials(RNG.standard_normal((60, 3)), None, "none"), known=known)
    assert trials.on_new == bool(known)
    return compare._ranked(list(candidates_), {}, trials, np.array([2]), (None, None))


def test_the_simpler_of_equals_is_chosen():
    many = np.arange(4000)
    best = many % 10 < 9
    slightly = np.roll(best, 3) & (many > 4)  # right and wrong about other rows, four fewer right
    clearly = best & (many % 20 > 0)
    assert ranked(scored("simple", slightly), scored("fancy", best)).choice == "simple"
    assert ranked(scored("simple", clearly), scored("fancy", best)).choice == "fancy"
    reasons = [ranked(scored("simple", hits), scored("fancy", best)).reason for hits in (slightly, clearly)]
    assert reasons == ["simpler", "best"]


def test_of_equals_on_new_documents_the_better_over_all_queries_is_chosen():
    many = np.arange(4000)
    best = many % 10 < 9
    slightly = np.roll(best, 3) & (many > 4)
    clearly = best & (many % 20 > 0)

    def both(name, new, everything):
        return replace(scored(name, new), everything=scored(name, everything))

    tied = both("simple", best, clearly), both("fancy", slightly, best)
    assert ranked(*tied).choice == "fancy"
    assert ranked(both("simple", best, slightly), both("fancy", slightly, best)).choice == "simple"
    # Clearly behind on new documents: no memory of others makes up for it.
    assert ranked(both("simple", best, clearly), both("fancy", clearly, best)).choice == "simple"
    found = ranked(*tied)
    assert (found.reason, found.level) == ("known", ("simple",))
    # Four hundred rows cannot tell a difference of 0.0075, which is allowed for the sake of known documents.
    few = np.arange(400)
    leads = few % 10 < 9
    noisy = both("simple", leads, leads & (few % 4 > 0)), both("fancy", np.roll(leads, 5) & (few > 2), leads)
    assert 0.005 < leads.mean() - (np.roll(leads, 5) & (few > 2)).mean() < 0.01
    assert ranked(*noisy).choice == "fancy"
    worse = np.roll(leads, 5) & (few > 6)  # 0.0175 is not
    assert ranked(both("simple", leads, leads & (few % 4 > 0)), both("fancy", worse, leads)).choice == "simple"
    found = ranked(*noisy)
    assert (found.leader, found.reason, found.level) == ("simple", "known", ("simple",))


def test_a_difference_that_matters_is_no_tie_where_rows_are_few():
    """Sixty rows cannot tell 0.80 from 0.90, but they do not make 0.80 as good."""
    few = np.arange(60)
    ranking = ranked(scored("simple", few % 10 < 8), scored("fancy", few % 10 >= 1))
    assert ranking.trials[1].ahead.high >= 0
    assert ranking.choice == "fancy"


def test_weight_at_which_both_terms_of_a_mixture_are_equal():
    X, y = planted(500)
    moments = Moments(precision="float64").update(X, y)
    cross, St = one_hot_cross(moments), moments.St
    lam = balanced_weight(cross, St)
    of_targets = np.linalg.eigvals(np.linalg.solve(St, cross @ cross.T)).real.max()
    assert lam * np.linalg.eigvalsh(St)[-1] == pytest.approx(of_targets)
    assert [c.objective.lam for c in candidates_for("labels", 2.0) if c.name.startswith("mixture")] == [0.2, 2.0, 20.0]


def test_pairs_of_ones_own_are_learned_from_in_every_fold():
    documents, queries, relevance = judged(80)
    pairs = Pairs(queries[:50], documents[:50])
    search = Search(queries=queries, documents=documents, relevance=relevance)
    assert all(fold.pairs is pairs for fold in judged_trials(search, pairs).folds)


def shared_documents(n_docs=60, p=16):
    """Queries of which every other one shares its document with other queries; the rest have one of their own."""
    documents = RNG.standard_normal((n_docs + 60, p))
    of = np.concatenate([np.repeat(np.arange(20), 6), np.arange(n_docs, n_docs + 60)])
    queries = documents[of] + 0.3 * RNG.standard_normal((len(of), p))
    relevance = np.column_stack([np.arange(len(of)), of, np.ones(len(of), int)])
    return Search(queries=queries, documents=documents, relevance=relevance)


def test_objectives_are_ranked_on_queries_for_documents_that_no_fit_has_seen():
    search = shared_documents()
    trials = judged_trials(search)
    assert trials.n - trials.known == 180  # every query is held out with all that share its documents
    assert 0 < trials.known < 60
    assert trials.known_share == pytest.approx(120 / 180)
    new, known = [], []
    for fold in trials.folds:
        learned = {row.tobytes() for row in fold.pairs.right}
        fitted = {row.tobytes() for row in fold.pairs.left}
        for query, seen in enumerate(fold.data.seen):
            own = fold.data.relevance[fold.data.relevance[:, 0] == query, 1]
            assert seen == any(fold.data.documents[i].tobytes() in learned for i in own)
            assert fold.data.queries[query].tobytes() not in fitted
            (known if seen else new).append(fold.data.queries[query].tobytes())
    assert sorted(new) == sorted(row.tobytes() for row in search.queries)
    assert len(known) == trials.known == len(set(known))
    ranking = compare_objectives(trials)
    assert ranking.curves[0].n_evaluated == 180
    assert [curve.label for curve in ranking.everything] == [curve.label for curve in ranking.curves]
    # By hand: one objective, fitted on each fold, and the queries of which nothing was learned, and the others.
    found = {False: [], True: []}
    for fold in trials.folds:
        encoder = PrefixEncoder(8).fit(fold.rows.X).encoder_
        for seen, scores in found.items():
            relevance = fold.data.relevance[(fold.data.seen == seen)[fold.data.relevance[:, 0]]]
            if len(relevance):
                part = replace(fold.data, relevance=relevance)
                count = len(np.unique(relevance[:, 0]))
                scores += [prefix_curve(encoder, part, "ndcg@10", [8]).score[0]] * count
    of_new, of_known = (np.mean(found[seen]) for seen in (False, True))
    for wanted, curves in ((of_new, ranking.curves), (of_new / 3 + of_known * 2 / 3, ranking.everything)):
        own = next(curve for curve in curves if curve.label == "reconstruction")
        assert own.at(8) == pytest.approx(wanted, abs=1e-6)
    found = diagnose(search=search)
    assert "180 held-out queries for new documents of 4 fits" in str(found)
    assert "67% of which ask for known documents" in found.explain()


def test_where_every_document_is_known_the_ranking_says_so():
    """One document belongs to all queries: none can be held out with all that share it."""
    documents = RNG.standard_normal((30, 8))
    of = np.repeat(np.arange(10), 12)
    queries = documents[of] + 0.3 * RNG.standard_normal((120, 8))
    relevance = np.column_stack([np.arange(120), of, np.ones(120, int)])
    relevance = np.concatenate([relevance, relevance * [1, 0, 1] + [0, 29, 0]])
    trials = judged_trials(Search(queries=queries, documents=documents, relevance=relevance))
    assert (trials.n, trials.known) == (120, 120)
    ranking = compare_objectives(trials)
    assert ranking.everything == ()
    assert ranking.known == 120


def test_shares_above_one_hundred_percent_are_explained(found):
    def explained_at(raw):
        trials = (replace(one, curve=replace(one.curve, input_score=raw)) for one in found.ranking.trials)
        return replace(found, ranking=replace(found.ranking, trials=tuple(trials))).explain()

    assert "More than 100 %" in explained_at(0.5)
    assert "More than 100 %" not in explained_at(1.0)
