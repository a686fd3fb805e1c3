"""The choice: the rule against loops, its interval against what is measured later, and what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from firstk import Choice, Evaluation, PrefixEncoder, Rows, evaluate
from firstk.data import load_digits
from firstk.data.precision import PRECISIONS
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import MeanScore, resampled_scores
from firstk.quality.choice import (
    KEEP,
    PRODUCT_QUANTIZER,
    RAW,
    Evidence,
    Limits,
    Offer,
    Point,
    _needed,
    _Rule,
    choose,
    evidence,
)
from firstk.quality.evaluation import Packed
from firstk.quality.paired import DRAWS
from firstk.words.choice import answer, explanation, headline, share_text

KS = (2, 4, 8, 16)


def table_of(hits: dict[Point, np.ndarray], raw: np.ndarray, **changes) -> Evaluation:
    """Return the table of points whose rows are right or wrong, and of raw vectors."""
    points = {**hits, Point(32, "float32", 128, 0.0, code=RAW): raw}
    scored = [(Point(o.k, o.precision, o.bytes, float(h.mean()), o.code), h) for o, h in points.items()]
    ordered = Evaluation(tuple(o for o, _ in scored), "accuracy").points
    rows = {(o.k, o.precision, o.code): h for o, h in scored}
    draws = [
        resampled_scores(MeanScore(rows[o.k, o.precision, o.code][:, None].astype(float)), resamples=DRAWS)[:, 0]
        for o in ordered
    ]
    values = {"input_score": float(raw.mean()), "input_bytes": 128, "n_evaluated": len(raw)} | changes
    return Evaluation(ordered, "accuracy", draws=Packed.of(draws), **values)


def right(n: int, share: float, seed: int = 0) -> np.ndarray:
    """Return rows of which the first are right; a few are shuffled, so that codes differ."""
    hits = np.arange(n) < share * n
    return np.random.default_rng(seed).permutation(hits) if seed else hits


def said(choice: Choice) -> list[str]:
    return [*answer(choice), *explanation(choice)]


def own(shares: dict[int, float], n: int = 2000, precision: str = "int8", code: str = "") -> dict:
    return {Point(k, precision, k, 0.0, code=code): right(n, share) for k, share in shares.items()}


def test_the_cheapest_that_keeps_the_share_from_there_on():
    table = table_of(own({2: 0.4, 4: 0.87, 8: 0.8, 16: 0.89}), right(2000, 0.9))
    assert choose(table, Limits(keep=0.95)).own.point.k == 16  # k = 4 keeps it, and k = 8 does not
    assert choose(table, Limits(keep=0.85)).own.point.k == 4
    assert table.choose().limits.keep == KEEP == 0.99


def test_coordinates_that_do_harm_are_left_out():
    table = table_of(own({2: 0.4, 4: 0.9, 8: 0.91, 16: 0.7}), right(2000, 0.9))
    found = choose(table, Limits(keep=0.99))
    assert found.own.point.k == 4
    assert found.get("most").point.k == 8


def test_precisions_and_baselines_are_searched_together():
    codes = own({8: 0.9}) | own({4: 0.89, 8: 0.9}, precision="int4")
    table = table_of(codes | own({2: 0.9}, code="PCA"), right(2000, 0.9))
    found = choose(table, Limits(keep=0.95))
    assert (found.own.point.precision, found.own.point.k) == ("int4", 4)
    assert (found.get("better").point.code, found.advised) == ("PCA", found.get("better"))
    assert headline(found).startswith("Use PCA, 2 coordinates as int8: 2 bytes per vector instead of 128.")
    alone = choose(table_of(own({8: 0.5}, precision="float32"), right(2000, 0.9)), Limits(keep=0.95))
    assert alone.own is None
    assert alone.get("better").point.code == RAW  # the raw vectors themselves
    assert headline(alone).startswith("Do not cut: store the raw vectors as float32")


def test_within_bytes_the_best_and_a_baseline_only_if_it_is_clearly_better():
    n = 2000
    ours, raw = right(n, 0.80), right(n, 0.9)
    worse = {Point(8, "int8", 8, 0.0, code="PCA"): right(n, 0.7)}
    better = {Point(8, "int8", 8, 0.0, code="PCA"): right(n, 0.85)}
    point = Point(8, "int8", 8, 0.0)
    assert choose(table_of({point: ours} | worse, raw), Limits(bytes_per_vector=8)).get("better") is None
    assert choose(table_of({point: ours} | better, raw), Limits(bytes_per_vector=8)).get("better").point.code == "PCA"
    same = choose(table_of({point: ours, Point(8, "int8", 8, 0.0, code="PCA"): ours}, raw), Limits(keep=0.8))
    assert same.get("better") is None
    assert same.advised == same.get("simpler")
    assert headline(same).startswith("Plain PCA is as good here: use PCA, 8 coordinates as int8: 8 bytes per vector")
    assert any(line.startswith("This model is not clearly better: 8 coordinates as int8") for line in said(same))


def behind(n: int, share: float, lost: int) -> np.ndarray:
    """Return rows of which the first are right, but for the first few of those."""
    return right(n, share) & (np.arange(n) >= lost)


@pytest.mark.parametrize(
    ("n", "lost", "size", "as_good"),
    [
        (2000, 1, 8, True),
        (2000, 1, 9, False),  # a byte more
        (2000, 16, 8, False),  # half a percent of 1,600, but for every draw
        (100, 2, 8, False),  # within the noise of so few rows, but more than half a percent
    ],
)
def test_as_good_is_not_clearly_behind_nor_by_half_a_percent(n, lost, size, as_good):
    ours, theirs, raw = right(n, 0.8), behind(n, 0.8, lost), right(n, 0.9)
    pca = Point(8, "int8", size, 0.0, code="PCA")
    found = choose(table_of({Point(8, "int8", 8, 0.0): ours, pca: theirs}, raw), Limits(keep=0.8))
    rng = np.random.default_rng(0)
    drawn = [rng.integers(n, size=n) for _ in range(DRAWS)]
    difference = [(ours[rows].mean() - theirs[rows].mean()) / raw[rows].mean() for rows in drawn]
    gap = lost / raw.sum()
    assert as_good == (size <= 8 and gap <= 0.005 and gap <= 1.96 * np.std(difference))
    assert (found.get("simpler") is not None, found.advised is found.get("simpler")) == (as_good, as_good)


@pytest.mark.parametrize(
    ("new", "over_all", "asked", "advised"),
    [
        (0.80, 0.90, Limits(keep=0.8), ""),  # as good on new documents, and behind over all queries
        (0.80, 0.95, Limits(keep=0.8), "PCA"),
        (0.801, 0.90, Limits(bytes_per_vector=8), ""),  # ahead on new documents by less than the noise
        (0.801, 0.95, Limits(bytes_per_vector=8), "PCA"),
        (0.85, 0.90, Limits(bytes_per_vector=8), "PCA"),  # clearly ahead on new documents
    ],
)
def test_a_baseline_that_is_behind_over_all_queries_must_be_clearly_ahead_on_new_documents(
    new, over_all, asked, advised
):
    ours, pca = Point(8, "int8", 8, 0.0), Point(8, "int8", 8, 0.0, code="PCA")
    everything = table_of({ours: right(2000, 0.95), pca: right(2000, over_all)}, right(2000, 0.9))
    beside = {"over_all": everything, "n_known": 500}
    rows = right(2000, new, seed=1)
    table = table_of({ours: right(2000, 0.8), pca: rows}, right(2000, 0.9), **beside)
    found = choose(table, asked)
    assert found.advised.point.code == advised
    assert found.advised.over_all == pytest.approx((over_all if advised else 0.95) / 0.9)
    other = found.own if advised else found.get("ahead", "behind")
    assert other.point.code == ("" if advised else "PCA")
    assert other.over_all == pytest.approx((0.95 if advised else over_all) / 0.9)


@pytest.mark.parametrize(("share", "heavy"), [(0.8, False), (0.5, True)])
def test_a_limit_that_costs_much_is_said_to(share, heavy):
    table = table_of(own({4: share, 8: share - 0.1}), right(2000, 0.9))
    told = said(choose(table, Limits(bytes_per_vector=8)))
    assert any(line.startswith("Less than 80% is a heavy loss. Allow more than 8 bytes") for line in told) == heavy
    assert any(line.startswith("Nothing that was evaluated in at most 8 bytes") for line in told) != heavy
    assert not any("Nothing that was evaluated" in line for line in said(choose(table, Limits(bytes_per_vector=4))))


@pytest.mark.parametrize(
    "limits",
    [
        Limits(k=4, bytes_per_vector=8),
        Limits(bytes_per_vector=8, precisions=("int8",)),
        Limits(0.5, bytes_per_vector=8),
    ],
    ids=["k", "precision", "share"],
)
def test_other_limits_than_bytes_are_not_blamed_on_them(limits):
    table = table_of(own({4: 0.5}) | own({8: 0.8}, precision="int4"), right(2000, 0.9))
    told = said(choose(table, limits))
    assert not any("Nothing that was evaluated" in line or "heavy loss" in line for line in told)


def test_where_a_share_is_asked_for_the_rival_takes_no_more_bytes():
    pca = {k: right(2000, share) for k, share in ((8, 0.5), (64, 0.95))}
    points = {Point(k, "int8", k, 0.0, code="PCA"): rows for k, rows in pca.items()}
    table = table_of(own({8: 0.85, 64: 0.89}) | points, right(2000, 0.9))
    found = choose(table, Limits(0.9, bytes_per_vector=64))
    assert (found.get("behind").point.bytes, found.get("ahead")) == (8, None)
    assert not any("but not clearly" in line for line in said(found))


def test_a_product_quantizer_is_no_simpler():
    ours, raw = right(2000, 0.8), right(2000, 0.9)
    codes = {
        Point(8, "int8", 8, 0.0): ours,
        Point(32, PRODUCT_QUANTIZER, 8, 0.0, code="faiss"): ours,
    }
    assert choose(table_of(codes, raw), Limits(keep=0.8)).get("simpler") is None


def test_of_equally_many_bytes_the_better_score_is_taken():
    raw = right(2000, 0.9)
    codes = {
        Point(8, "int8", 8, 0.0): right(2000, 0.86),
        Point(16, "int4", 8, 0.0): right(2000, 0.88),
    }
    assert choose(table_of(codes, raw), Limits(keep=0.9)).own.point.precision == "int4"
    other = {Point(8, "int8", 8, 0.0, code="PCA"): raw}
    found = choose(table_of(codes | other, raw), Limits(keep=0.9))
    assert (found.own.point.precision, found.get("better").point.code) == ("int4", "PCA")


def test_shares_and_draws_are_ratios_on_the_same_rows():
    n, raw = 300, right(300, 0.8, seed=1)
    hits = own({4: 0.5, 8: 0.7}, n)
    found, name, whole = evidence(table_of(hits, raw))
    assert (name, whole) == (RAW, pytest.approx(0.8))
    rng = np.random.default_rng(0)
    drawn = [rng.integers(n, size=n) for _ in range(DRAWS)]
    for place, h in zip((0, 1), hits.values(), strict=True):
        assert found.shares[place] == pytest.approx(h.mean() / raw.mean())
        slow = [h[rows].mean() / raw[rows].mean() for rows in drawn]
        np.testing.assert_allclose(found.draws[:, place], slow, atol=2e-4)  # sixteen bits a number


def test_what_the_choice_adds_to_the_score_is_taken_off():
    # Twenty codes that are equally good, but for luck: the luckiest is chosen.
    n = 400
    lucky = {Point(8, "int8", 8, 0.0, code=f"code {i}"): np.random.default_rng(i).random(n) < 0.7 for i in range(20)}
    table = table_of(own({8: 0.3}, n) | lucky, right(n, 0.9, seed=99))
    chosen = choose(table, Limits(bytes_per_vector=8)).get("better")
    measured = chosen.point.score / table.input_score
    assert chosen.share < measured - 0.01
    assert abs(chosen.share - 0.7 / 0.9) < abs(measured - 0.7 / 0.9)
    assert chosen.low < 0.7 / 0.9 < chosen.high


def test_few_rows_are_said_to_be_few():
    rng = np.random.default_rng(0)
    raw = rng.random(90) < 0.6
    codes = {
        Point(k, "int8", k, 0.0): np.where(rng.random(90) < keep, raw, ~raw)
        for k, keep in ((4, 0.5), (8, 0.995), (16, 1.0))
    }
    found = choose(table_of(codes, raw, unit="queries"), Limits(keep=0.98))
    text = "\n".join(said(found))
    assert f"{90} queries cannot tell 98 % from" in text
    assert found.needed is None  # less what choosing adds, they do not keep it
    assert 0.99 not in [offer.asked for offer in found.offers]  # finer than the noise
    many = choose(table_of({p: np.tile(h, 400) for p, h in codes.items()}, np.tile(raw, 400)), Limits(keep=0.98))
    assert "cannot tell" not in "\n".join(said(many))


def test_how_many_units_would_tell():
    """The interval shrinks with the root of the units: three times as narrow takes nine times as many."""
    point = Point(8, "int8", 8, 0.9)
    assert _needed(Offer(point, "cheapest", 0.985, 0.97, 1.0), 0.98, 90) == pytest.approx(9 * 90, abs=1)
    assert _needed(Offer(point, "cheapest", 0.975, 0.96, 0.99), 0.98, 90) is None
    assert _needed(Offer(point, "cheapest", 0.99, 0.985, 0.995), 0.98, 90) is None


def test_a_score_at_chance_is_called_a_mistake():
    rng = np.random.default_rng(0)
    guessed = {Point(k, "int8", k, 0.0): rng.random(500) < 0.1 for k in KS}
    found = choose(table_of(guessed, rng.random(500) < 0.1, chance=0.1), Limits(keep=0.9))
    assert (found.own, found.advised, found.chance) == (None, None, 0.1)
    assert said(found)[0].startswith("Check the inputs: neither the raw vectors")
    assert choose(table_of(own(dict.fromkeys(KS, 0.8)), right(2000, 0.9), chance=0.1), Limits()).chance is None


def test_out_of_reach_says_the_best_that_is_reached():
    table = table_of(own({4: 0.5, 8: 0.6}), right(2000, 0.9))
    found = choose(table, Limits(keep=0.99, precisions=("int8",)))
    assert found.get("better") is None
    assert headline(found).startswith(
        "No code of this model as int8 keeps 99 % of the raw vectors' accuracy (0.9000). The best"
    )
    most = found.get("most")
    assert f"The best is {100 * most.share:.1f} % ({share_text(most)}): 8 coordinates as int8" in headline(found)
    asked = choose(table, Limits(keep=0.99, k=4, bytes_per_vector=64))
    assert headline(asked).startswith("No code of this model with k = 4 in 64 bytes keeps 99 %")
    assert "4 coordinates as int8" in headline(asked)
    assert Choice.from_json(asked.to_json()) == asked


def test_where_no_share_is_asked_for_none_is_said_to_be_missed():
    table = table_of(own({4: 0.5, 8: 0.6}), right(2000, 0.9))
    asked = (({"k": 7}, "has no k = 7"), ({"bytes_per_vector": 1}, "No code fits in 1 bytes; the smallest takes 4"))
    for limits, message in asked:
        with pytest.raises(InvalidInputError, match=message):
            choose(table, Limits(**limits))


def test_a_table_without_draws_is_chosen_from_by_its_scores():
    points = tuple([Point(k, "int8", k, score) for k, score in zip(KS, (0.5, 0.8, 0.89, 0.9), strict=True)])
    found = choose(Evaluation(points, "accuracy", input_score=0.9), Limits(keep=0.98))
    assert (found.own.point.k, found.own.low, found.own.share) == (8, None, pytest.approx(0.89 / 0.9))


def test_raw_vectors_that_score_nothing_are_no_reference():
    points = tuple([Point(k, "int8", k, score) for k, score in zip(KS, (0.2, 0.5, 0.79, 0.8), strict=True)])
    table = Evaluation(points, "r2", input_score=-0.1)
    found = choose(table, Limits(keep=0.95))
    assert (found.own.point.k, found.own.share) == (8, pytest.approx(0.79 / 0.8))
    assert found.reference.startswith("the best prefix (16 coordinates as int8")
    assert choose(table, Limits(bytes_per_vector=4)).own.point.k == 4
    with pytest.raises(
        InvalidInputError, match=r"r2 of raw vectors means nothing here: it is -0.1.*relative_to='best'"
    ):
        choose(table, Limits(keep=0.95, relative_to="input"))
    useless = Evaluation((Point(2, "int8", 2, -0.3),), "r2", input_score=-0.1)
    with pytest.raises(InvalidInputError, match=r"best prefix.* it is -0.3.*bytes_per_vector=\.\.\."):
        choose(useless, Limits(keep=0.9))
    found = useless.choose(bytes_per_vector=4)
    assert (found.point.k, found.own.share) == (2, None)


def test_a_recommendation_reads_back():
    table = table_of(own({4: 0.87, 8: 0.9}) | own({2: 0.9}, code="PCA"), right(2000, 0.9))
    for limits in (Limits(keep=0.95), Limits(bytes_per_vector=4), Limits(keep=0.95, precisions=("int8",))):
        found = choose(table, limits)
        assert Choice.from_json(found.to_json()) == found
    assert Evaluation.from_json(table.to_json()).choose() == table.choose()
    with pytest.raises(InvalidInputError):
        Choice.from_json('{"format": "firstk.Choice/1"}')


def test_points_say_what_they_are():
    assert str(Point(64, "int8", 64, 0.5)) == "64 coordinates as int8"
    assert str(Point(1, "float32", 4, 0.5, code="PCA")) == "PCA, 1 coordinate as float32"
    assert str(Point(64, "binary", 8, 0.5, queries="binary")) == "64 coordinates as binary, binary queries"
    assert "product quantizer of the raw vectors" in str(Point(8, PRODUCT_QUANTIZER, 4, 0.5, code="faiss"))
    assert share_text(Offer(Point(8, "int8", 8, 0.5), "best", 0.974, 0.95, 0.998)) == "95 to 100 %"
    assert share_text(Offer(Point(8, "int8", 8, 0.5), "best", 0.974, 0.972, 0.976)) == "97.2 to 97.6 %"


def test_queries_may_be_rounded_too():
    digits = load_digits()
    encoder = PrefixEncoder(16).fit(digits.X_train).encoder_
    data = Rows(digits.X_test, digits.y_test, reference=Rows(digits.X_train, digits.y_train))
    table = evaluate(encoder, data, metric="1nn_accuracy", ks=[16], sizes=(), draws=20)
    both, floating = (
        next(o for o in table if not o.code and o.precision == "binary" and o.queries == queries)
        for queries in ("binary", "float32")
    )
    bits = encoder.coordinates(digits.X_train) > np.median(encoder.coordinates(digits.X_train), axis=0)
    assert both.score < floating.score
    assert bits.shape[1] == both.bytes * 8
    only = table.choose(bytes_per_vector=2, precision="binary", binary_queries=True)
    assert only.own.point == both
    assert not both.own


def test_rows_that_all_agree_are_not_certain():
    one = choose(table_of(own({4: 1.0, 8: 1.0}, 1), np.ones(1, dtype=bool)), Limits(keep=0.95))
    assert one.own.low < 0.5
    assert one.get("share") is None
    few = choose(table_of(own({4: 1.0, 8: 1.0}, 12), np.ones(12, dtype=bool)), Limits(keep=0.95))
    assert few.own.low == pytest.approx(1 - 3 / 12)
    assert any("cannot tell 95 %" in line for line in said(few))


def test_the_raw_vectors_keep_all_of_themselves():
    table = table_of(own({4: 0.5}), right(2000, 0.9))
    found = choose(table, Limits(keep=0.99, precisions=("int8", "float32")))
    assert (found.get("better").point.code, found.get("better").share, found.get("better").low) == (RAW, 1.0, None)


def test_columns_at_random_are_never_the_advice():
    luckiest = {Point(2, "int8", 2, 0.0, code="random dimensions"): right(2000, 0.9)}
    found = choose(table_of(own({8: 0.9}) | luckiest, right(2000, 0.9)), Limits(keep=0.95))
    assert (found.get("better"), found.own.point.k) == (None, 8)


def test_within_bytes_python_and_the_recommendation_agree():
    table = table_of(own({4: 0.86, 8: 0.90, 16: 0.85}), right(2000, 0.95))
    assert table.choose(bytes_per_vector=8) == choose(table, Limits(bytes_per_vector=8))
    assert table.choose(bytes_per_vector=16).point.k == 8


def test_raw_vectors_are_rounded_for_every_metric():
    digits = load_digits()
    encoder = PrefixEncoder(8).fit(digits.X_train).encoder_
    y, y_ref = digits.y_test.astype(float), digits.y_train.astype(float)
    data = Rows(digits.X_test, y, reference=Rows(digits.X_train, y_ref))
    table = evaluate(encoder, data, metric="r2", ks=[8], sizes=(), draws=20)
    raw = {point.precision: point.score for point in table if point.code == RAW}
    assert set(raw) == set(PRECISIONS) - {"embedded"}  # bits are of a code
    assert raw["int8"] == pytest.approx(raw["float32"], abs=0.01)


@pytest.mark.parametrize(("lost", "better"), [(1, False), (100, True)])
def test_in_as_many_bytes_a_baseline_must_be_clearly_ahead(lost, better):
    ours, theirs, raw = behind(2000, 0.88, lost), right(2000, 0.88), right(2000, 0.9)
    svd = Point(8, "int8", 8, 0.0, code="uncentred SVD")
    found = choose(table_of({Point(8, "int8", 8, 0.0): ours, svd: theirs}, raw), Limits(keep=0.9))
    assert found.own.point.bytes == 8
    assert (found.get("better") is not None) == better


@pytest.mark.parametrize("lost", [1, 100])
def test_pca_and_svd_do_not_send_users_to_each_other(lost):
    """Each is as simple as the other: in a limit of bytes, a new fit is worth it where it is clearly ahead."""
    worse, best, raw = behind(2000, 0.88, lost), right(2000, 0.88), right(2000, 0.9)
    sent = {}
    for label, other in (("reconstruction", "uncentred SVD"), ("similarity, dot_products", "PCA")):
        for name, (ours, theirs) in {"behind": (worse, best), "ahead": (best, worse)}.items():
            points = {Point(8, "int8", 8, 0.0): ours, Point(8, "int8", 8, 0.0, code=other): theirs}
            found = choose(table_of(points, raw, label=label), Limits(bytes_per_vector=8))
            sent[label, name] = found.get("better", "simpler") is not None
    clear = lost == 100
    assert sent == {(label, name): clear and name == "behind" for label, name in sent}


def test_nothing_keeps_more_of_neighbors_than_the_vectors_whose_they_are():
    found = choose(table_of(own({4: 0.8, 8: 0.98}, n=60), right(60, 1.0)), Limits(keep=0.9)).own
    other = choose(table_of(own({4: 0.8, 8: 0.98}, n=60), right(60, 0.97)), Limits(keep=0.9)).own
    assert found.point == other.point
    assert found.low < found.high == 1.0 < other.high


def test_the_safe_choice_is_what_its_bytes_alone_would_recommend():
    """Of codes with as many bytes, the one with the least noise is not the one that these bytes recommend."""
    rng = np.random.default_rng(0)
    raw = right(400, 0.9)
    codes = {
        Point(4, "int8", 4, 0.0): raw & (rng.random(400) > 0.02),
        Point(8, "int8", 8, 0.0): raw | (rng.random(400) > 0.96),
        Point(16, "int4", 8, 0.0): raw,
    }
    table = table_of(codes, raw)
    found = choose(table, Limits(keep=0.97))
    alone = choose(table, Limits(bytes_per_vector=8))
    assert found.own.point.bytes == 4
    safe = found.get("safe")
    assert replace(safe, reason="best") == alone.own
    sure = choose(table, Limits(keep=0.9))
    assert sure.get("safe") is None


def test_the_safe_choice_needs_no_longer_prefix_to_be_as_sure():
    rng = np.random.default_rng(0)
    raw = right(800, 0.87)

    def changed(lost, gained):
        return np.where(raw, rng.random(800) >= lost, rng.random(800) < gained)

    # The last coordinates do harm, though not clearly: their interval ends below the share.
    shares = {12: changed(0.02, 0.12), 16: changed(0.02, 0.35), 24: changed(0.12, 1.0)}
    found = choose(table_of({Point(k, "int8", k, 0.0): hits for k, hits in shares.items()}, raw), Limits(keep=0.99))
    assert found.own.point.k == 12
    assert found.unsure
    assert found.get("safe").point.k == 16


@pytest.mark.parametrize("other", [1.0, 1.0 - 1e-12, 1.0 + 1e-12])
def test_last_digits_do_not_choose_among_equal_points(other):
    points = (Point(32, "int8", 32, 0.9 * other), Point(16, "float16", 32, 0.9))
    raw = Point(64, "float32", 256, 1.0, code=RAW)
    for limits in (Limits(bytes_per_vector=99), Limits(keep=0.8)):
        found = _Rule(Evidence((*points, raw), np.array([0.9 * other, 0.9, 1.0]), np.empty((0, 3))), limits)
        own = np.array([True, True, False])
        assert found.choose(own) == 1  # the shorter
        assert found.highest(np.flatnonzero(own)) == 0  # the first
