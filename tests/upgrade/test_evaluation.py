"""Options are scored as a slow search scores them, over the right rows, and differences are paired."""

from dataclasses import replace

import numpy as np
import pytest

from firstk import Rows, Search
from firstk.exceptions import InvalidInputError
from firstk.upgrade import UpgradeData, UpgradeReport, evaluate_upgrade
from firstk.upgrade.data import searches_in, split_pairs
from firstk.upgrade.evaluate import USUAL
from firstk.upgrade.records import HELD_OUT, MIX, QUERIES, RE_EMBED, STAY, STORE, TRANSLATE
from firstk.upgrade.words import notes
from fixtures.made_upgrade import Rotation, made_upgrade, rotation


def slow_ndcg(documents, queries, relevant):
    """NDCG@10 of one relevant document each, by a loop over queries."""
    D = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    values = []
    for query, row in zip(queries, relevant, strict=True):
        order = np.argsort(-(D @ query), kind="stable")[:10]
        rank = np.flatnonzero(order == row)
        values.append(1 / np.log2(rank[0] + 2) if len(rank) else 0.0)
    return np.array(values)


def slow_recall(documents, queries, wanted, own):
    D = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    values = []
    for i, query in enumerate(queries):
        scores = D @ query
        if own:
            scores[i] = -np.inf
        values.append(len(set(np.argsort(-scores)[:10]) & set(wanted[i])) / 10)
    return np.array(values)


def test_staying_and_translating_search_the_whole_store(part):
    data, result = part
    pool = result.report.pools[0]
    assert (pool.name, pool.rows, pool.queries, pool.pairs) == (STORE, 600, 150, 300)
    relevant = data.asked.relevance[:, 1]
    stay = slow_ndcg(data.old, data.queries_old, relevant)
    alignment = Rotation().fit(data.old[data.paired], data.new)
    shared = slow_ndcg(alignment.encode_old(data.old), alignment.encode_new(data.asked.queries), relevant)
    translated = slow_ndcg(alignment.old_to_new(data.old), data.asked.queries, relevant)
    back = slow_ndcg(data.old, alignment.new_to_old(data.asked.queries), relevant)
    assert pool.find(STAY).score.value == pytest.approx(stay.mean())
    assert pool.find(TRANSLATE).score.value == pytest.approx(shared.mean())
    assert pool.find(TRANSLATE).gain.value == pytest.approx((shared - stay).mean())
    into = next(one for one in pool.options if one.option.kind == TRANSLATE and one.option.k is None)
    assert into.score.value == pytest.approx(translated.mean())
    assert pool.find(QUERIES).score.value == pytest.approx(back.mean())


def test_re_embedding_is_scored_among_pairs_that_no_alignment_was_fitted_on(part):
    data, result = part
    pool = result.report.pool(HELD_OUT)
    kept, held = split_pairs(300, 0)
    assert (pool.rows, pool.pairs) == (len(held), len(kept)) == (100, 200)
    rows = data.paired[held]
    asked = np.flatnonzero(np.isin(data.asked.relevance[:, 1], rows))
    assert pool.queries == len(asked)
    relevant = np.searchsorted(rows, data.asked.relevance[asked, 1])
    everything = slow_ndcg(data.new[held], data.asked.queries[asked], relevant)
    assert pool.find(RE_EMBED).score.value == pytest.approx(everything.mean())
    alignment = Rotation().fit(data.old[data.paired[kept]], data.new[kept])
    shared = slow_ndcg(alignment.encode_old(data.old[rows]), alignment.encode_new(data.asked.queries[asked]), relevant)
    assert pool.find(TRANSLATE).score.value == pytest.approx(shared.mean())
    assert pool.find(RE_EMBED).over_translating.value == pytest.approx((everything - shared).mean())
    assert [one.option.share for one in pool.options if one.option.kind == MIX] == [0.05, 0.1, 0.2, 0.5]
    offset, scale = result.report.calibration
    assert abs(offset) < 0.3
    assert 0.7 < scale < 1.4


def test_gains_are_paired(part):
    """The interval of a difference on the same queries is narrower than that of unrelated ones."""
    pool = part[1].report.pools[0]
    stay, one = pool.find(STAY), pool.find(TRANSLATE)
    alone = np.hypot(stay.score.high - stay.score.low, one.score.high - one.score.low)
    assert one.gain.high - one.gain.low < 0.9 * alone
    assert one.gain.low < one.gain.value < one.gain.high


def test_complete_files_are_a_sample_of_a_store():
    result = evaluate_upgrade(made_upgrade(n=300), methods=("auto",), estimator=rotation)
    assert [pool.name for pool in result.report.pools] == [HELD_OUT]
    assert result.report.complete
    assert any("taken for a sample" in note for note in notes(result.report))


def test_without_judgements_the_new_models_neighbors_are_wanted(unjudged):
    data, result = unjudged
    report, pool = result.report, result.report.pools[0]
    assert (report.judged, report.metric, pool.queries) == (False, "neighbor_recall@10", 200)
    kept, held = split_pairs(len(data.new), 0)
    new, old = data.new[held], data.old[held]
    N = new / np.linalg.norm(new, axis=1, keepdims=True)
    scores = N @ N.T
    np.fill_diagonal(scores, -np.inf)
    wanted = np.argsort(-scores, axis=1)[:, :10]
    assert pool.find(RE_EMBED).score.value == 1.0
    assert pool.find(STAY).score.value == pytest.approx(slow_recall(old, old, wanted, own=True).mean())
    alignment = Rotation().fit(data.old[kept], data.new[kept])
    found = slow_recall(alignment.encode_old(old), alignment.encode_new(new), wanted, own=True)
    assert pool.find(TRANSLATE).score.value == pytest.approx(found.mean())


def test_the_learning_curve_ends_with_the_translation(part):
    report = part[1].report
    assert [point.pairs for point in report.learning] == [75, 150, 300]
    assert report.learning[-1].score == report.pools[0].find(TRANSLATE).score
    first, second = report.learning[:2]
    assert second.step.value == pytest.approx(second.score.value - first.score.value)


def test_less_can_be_asked_for(part):
    data, result = part
    short = evaluate_upgrade(data, methods=("auto",), estimator=rotation, re_embedding=False, learning=False).report
    assert short.pools == result.report.pools[:1]
    assert (short.learning, short.re_embedding, list(notes(short))) == ((), False, [])


def test_without_old_queries_staying_has_no_score():
    result = evaluate_upgrade(made_upgrade(n=300, m=60, queries_old=None), methods=("auto",), estimator=rotation)
    pool = result.report.pools[0]
    assert pool.find(STAY) is None
    assert all(one.gain is None for one in pool.options)


def test_weights_and_filters_reach_the_searches():
    data = made_upgrade(pairs=300)
    weight = np.arange(1.0, 151.0)
    weighted = made_upgrade(pairs=300, weight=weight)
    assert searches_in(weighted, np.arange(600)).weights == pytest.approx(weight)
    fields = {"query_field": np.arange(150) % 2, "document_field": np.arange(600) % 2}
    filtered = searches_in(made_upgrade(pairs=300, **fields), np.arange(600))
    plain = searches_in(data, np.arange(600))
    found, all_of_them = (one.scores(data.old, data.queries_old)[:, 0] for one in (filtered, plain))
    assert (found >= all_of_them - 1e-12).all()  # half of the rows, which hold the relevant one
    assert found.mean() > all_of_them.mean()
    even = np.flatnonzero(np.arange(600) % 2 == 0)
    asked = np.arange(0, 150, 2)
    slow = slow_ndcg(data.old[even], data.queries_old[asked], np.searchsorted(even, asked))
    assert found[asked] == pytest.approx(slow)


def test_the_record_survives_json(part):
    report = part[1].report
    assert UpgradeReport.from_json(report.to_json()) == report
    with pytest.raises(InvalidInputError, match=r"firstk\.Upgrade/1"):
        UpgradeReport.from_json("{}")


def test_inputs_are_not_changed(part):
    data = made_upgrade(pairs=300)
    parts = (data.old, data.new, data.queries_old, data.asked.queries, data.asked.relevance)
    before = [part.copy() for part in parts]
    evaluate_upgrade(data, methods=("auto",), estimator=rotation)
    for then, now in zip(before, parts, strict=True):
        np.testing.assert_array_equal(then, now)


def test_the_librarys_own_alignments_are_evaluated():
    data = made_upgrade(n=300, m=100, pairs=200)
    result = evaluate_upgrade(data, methods=("auto", "procrustes"), shares=(0.5,))
    methods = {one.option.method for one in result.report.pools[0].options} - {""}
    assert {"procrustes", result.report.method} <= methods
    assert result.report.reason
    assert USUAL[0] == "auto"
    assert set(USUAL) >= {"procrustes", "ridge", "procrustes_ridge", "whitened_ridge"}
    assert result.worth.shape == (300,)


def asked(n=5, *, width=3, store=200, **given):
    return Search(np.ones((n, width)), np.ones((store, 4)), **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"new": np.ones((99, 3)), "rows": np.arange(99)}, "99 pairs are too few"),
        ({"new": np.ones((150, 3))}, "'old' has 200 rows and 'new' 150"),
        ({"new": np.ones((150, 3)), "rows": np.zeros(150, dtype=int)}, "149 rows of 'old' are paired twice"),
        ({"new": np.ones((150, 3)), "rows": np.arange(150) + 100}, "'rows' are 150 ints from 0 to 199"),
        ({"new": np.full((200, 3), np.nan)}, "new"),
        ({"new": np.empty((200, 0))}, "new"),
        ({"queries_old": np.ones((5, 4))}, "need the new model's too: 'asked'"),
        ({"queries_old": np.ones((5, 4)), "asked": asked(6)}, "5 and 6"),
        ({"queries_old": np.ones((5, 9)), "asked": asked()}, "queries_old"),
        ({"asked": asked(width=4)}, "queries"),
        (
            {"asked": asked(store=100)},
            r"a Search among the 200 rows .* Got Search among rows of shape \(100, 4",
        ),
        ({"asked": np.ones((5, 3))}, "Got ndarray"),
        ({"asked": asked(relevance=np.array([[0, 200, 1]]))}, "200"),
        ({"asked": asked(weight=np.ones(4))}, "weight"),
        ({"asked": asked(document_field=np.zeros(200))}, "go together"),
        ({"asked": asked(query_field=np.zeros(5), document_field=np.zeros(5))}, "200 and 5"),
        ({"asked": Rows(np.ones((5, 3)), np.ones(5), reference=Rows(np.ones((200, 4))))}, "go together"),
        ({"asked": Rows(np.ones((5, 3)), np.ones(5), reference=Rows(np.ones((200, 4)), np.ones(9)))}, "200 and 9"),
    ],
)
def test_bad_input_is_refused(given, words):
    rng = np.random.default_rng(0)
    values = {"old": rng.normal(size=(200, 4)), "new": rng.normal(size=(200, 3))} | given
    with pytest.raises(InvalidInputError, match=words):
        UpgradeData(**values)


def test_judgements_of_no_row_are_refused():
    data = made_upgrade(n=300, m=60, relevance=np.array([[0, 1, 0]]))
    with pytest.raises(InvalidInputError, match="None of the 300 rows"):
        evaluate_upgrade(data, methods=("auto",), estimator=rotation)


class Scrambled(Rotation):
    """A rotation whose shared code and way back are spoiled: the way into the new space is better."""

    method_ = "scrambled"

    def encode_old(self, X, k=None):
        return np.random.default_rng(0).normal(size=(len(X), 16))[:, :k]

    def old_to_new(self, X):
        return Rotation.encode_old(self, X) @ self.V.T + self.means[1]

    def new_to_old(self, Q):
        return np.random.default_rng(1).normal(size=(len(Q), 16))


def scrambled_or_rotation(method):
    return Rotation() if method == "rotation" else Scrambled()


def test_a_form_that_judged_queries_clearly_prefer_is_recommended_saved_and_compared_with():
    data = made_upgrade(pairs=300)
    result = evaluate_upgrade(data, methods=("auto",), estimator=scrambled_or_rotation)
    report = result.report
    assert (report.translation.kind, report.translation.k, report.method) == (TRANSLATE, None, "scrambled")
    first, held = report.pools
    assert first.translation.option == report.translation == first.best_translation.option
    assert report.cross_fitted_gain is None  # both halves prefer the same
    everything = held.find(RE_EMBED)
    assert everything.over_translating.value == pytest.approx(
        everything.score.value - held.translation.score.value, abs=1e-12
    )
    assert report.learning[-1].score == first.translation.score
    assert "to what cross-validation chose (scrambled, k = 16)" in report.reason


def test_a_method_that_judged_queries_clearly_prefer_is_the_one_that_is_saved():
    class Noise(Scrambled):
        method_ = "noise"

        def old_to_new(self, X):
            return np.random.default_rng(0).normal(size=(len(X), 24))

    def estimator(method):
        return Rotation() if method == "rotation" else Noise()

    result = evaluate_upgrade(made_upgrade(pairs=300), methods=("auto", "rotation"), estimator=estimator)
    assert result.report.method == result.report.translation.method == "rotation"
    assert type(result.alignment) is Rotation
    assert {one.option.method for one in result.report.pools[1].options if one.option.translates} == {"rotation"}


def test_without_judgements_the_first_method_is_taken():
    data = made_upgrade(queries_old=None, asked=None)
    report = evaluate_upgrade(data, methods=("auto", "rotation"), estimator=scrambled_or_rotation).report
    assert report.translation == next(one.option for one in report.pools[0].options if one.option.translates)
    assert report.cross_fitted_gain is None


def test_at_least_one_method_is_scored(part):
    with pytest.raises(InvalidInputError, match="at least one method"):
        evaluate_upgrade(part[0], methods=(), estimator=rotation)


def by_label():
    """An upgrade whose rows have one of twelve labels: the direction in which a text is largest."""
    from fixtures.made_upgrade import made_texts

    texts, _ = made_texts(600, 0)
    data = made_upgrade(queries_old=None, asked=None)
    return data.old, data.new, np.argmax(texts, axis=1)


def test_labels_take_the_place_of_judgements():
    old, new, labels = by_label()
    data = UpgradeData.from_labels(old, new[:400], labels, np.arange(400))
    assert (data.metric, data.judged, data.asked.n, len(data.old), len(data.new)) == (
        "1nn_accuracy", True, 80, 520, 320,
    )  # fmt: skip
    np.testing.assert_array_equal(data.old, old[data.row_numbers])
    np.testing.assert_array_equal(
        old[data.row_numbers][data.paired], old[:400][np.isin(np.arange(400), data.row_numbers)]
    )
    report = evaluate_upgrade(data, methods=("auto",), estimator=rotation).report
    assert [pool.rows for pool in report.pools] == [520, 107]
    alignment = Rotation().fit(data.old[data.paired], data.new)
    D, Q = alignment.encode_old(data.old), alignment.encode_new(data.asked.X)
    D, Q = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (D, Q))
    labels = data.asked.reference.y
    right = [labels[np.argmax(D @ q)] == label for q, label in zip(Q, data.asked.y, strict=True)]
    assert report.pools[0].find(TRANSLATE).score.value == pytest.approx(np.mean(right))
    assert any(one.option.kind == MIX for one in report.pools[1].options)


def test_labels_that_no_row_has_are_refused():
    old, new, labels = by_label()
    asked, queries = Rows(new[:50], labels[:50], reference=Rows(old, labels)), old[:50]
    strangers = replace(asked, y=labels[:50] + 100)
    with pytest.raises(InvalidInputError, match="has the label of a query"):
        evaluate_upgrade(UpgradeData(old, new, asked=strangers, queries_old=queries), estimator=rotation)
    with pytest.raises(InvalidInputError, match="one for each of 600 rows"):
        UpgradeData.from_labels(old, new, labels[:10])
