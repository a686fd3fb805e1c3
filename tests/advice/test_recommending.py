"""The recommendation: the rule against loops, its interval against what is measured later, and what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from firstk import Choice, Evaluation, PrefixEncoder, Rows, evaluate
from firstk.data import load_digits
from firstk.data.precision import PRECISIONS
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import MeanScore, resampled_scores
from firstk.quality.choose import KEEP, Evidence, Limits, _Rule, choose, evidence
from firstk.quality.packed import Packed
from firstk.quality.paired import DRAWS
from firstk.quality.point import PRODUCT_QUANTIZER, RAW, Point

KS = (2, 4, 8, 16)


def table_of(hits: dict[Point, np.ndarray], raw: np.ndarray, **changes) -> PrecisionTable:
    """Return the table of points whose rows are right or wrong, and of raw vectors."""
    points = {**hits, Point(32, "float32", 128, 0.0, code=RAW): raw}
    scored = [(Point(o.k, o.precision, o.bytes, float(h.mean()), None, o.code), h) for o, h in points.items()]
    ordered = Evaluation([o for o, _ in scored], "accuracy").points
    rows = {(o.k, o.precision, o.code): h for o, h in scored}
    draws = [
        resampled_scores(MeanScore(rows[o.k, o.precision, o.code][:, None].astype(float)), resamples=DRAWS)[:, 0]
        for o in ordered
    ]
    values = {"input_score": float(raw.mean()), "input_bytes": 128, "n_evaluated": len(raw)} | changes
    return Evaluation(ordered, "accuracy", resampled=Packed.of(draws), **values)


def right(n: int, share: float, seed: int = 0) -> np.ndarray:
    """Return rows of which the first are right; a few are shuffled, so that codes differ."""
    hits = np.arange(n) < share * n
    return np.random.default_rng(seed).permutation(hits) if seed else hits


def own(shares: dict[int, float], n: int = 2000, precision: str = "int8", code: str = "") -> dict:
    return {Point(k, precision, k, 0.0, code=code): right(n, share) for k, share in shares.items()}


def test_the_cheapest_that_keeps_the_share_from_there_on():
    table = table_of(own({2: 0.4, 4: 0.87, 8: 0.8, 16: 0.89}), right(2000, 0.9))
    assert choose(table, Limits(keep=0.95)).chosen.point.k == 16  # k = 4 keeps it, and k = 8 does not
    assert choose(table, Limits(keep=0.85)).chosen.point.k == 4
    assert choose(table).keep == KEEP == 0.99


def test_coordinates_that_do_harm_are_left_out():
    table = table_of(own({2: 0.4, 4: 0.9, 8: 0.91, 16: 0.7}), right(2000, 0.9))
    found = choose(table, Limits(keep=0.99))
    assert found.chosen.point.k == 4
    assert found.best.point.k == 8


def test_precisions_and_baselines_are_searched_together():
    codes = own({8: 0.9}) | own({4: 0.89, 8: 0.9}, precision="int4")
    table = table_of(codes | own({2: 0.9}, code="PCA"), right(2000, 0.9))
    found = choose(table, Limits(keep=0.95))
    assert (found.chosen.point.precision, found.chosen.point.k) == ("int4", 4)
    assert (found.better.point.code, found.advised) == ("PCA", found.better)
    assert found.headline().startswith("Use PCA, 2 coordinates as int8: 2 bytes a vector instead of 128.")
    alone = choose(table, Limits(keep=0.95, precisions=("float32",)))
    assert alone.chosen is None
    assert alone.better.point.code == RAW  # the raw vectors themselves
    assert alone.headline().startswith("Do not cut: store the raw vectors as float32")


def test_within_bytes_the_best_and_a_baseline_only_if_it_is_clearly_better():
    n = 2000
    ours, raw = right(n, 0.80), right(n, 0.9)
    worse = {Point(8, "int8", 8, 0.0, code="PCA"): right(n, 0.7)}
    better = {Point(8, "int8", 8, 0.0, code="PCA"): right(n, 0.85)}
    point = Point(8, "int8", 8, 0.0)
    assert choose(table_of({point: ours} | worse, raw), Limits(bytes_per_vector=8)).better is None
    assert choose(table_of({point: ours} | better, raw), Limits(bytes_per_vector=8)).better.point.code == "PCA"
    same = choose(table_of({point: ours, Point(8, "int8", 8, 0.0, code="PCA"): ours}, raw), Limits(keep=0.8))
    assert same.better is None
    assert same.advised == same.as_good
    assert same.headline().startswith("Plain PCA is as good here: use PCA, 8 coordinates as int8: 8 bytes a vector")
    assert any(line.startswith("This model is not clearly better: 8 coordinates as int8") for line in same.lines())


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
    assert (found.as_good is not None, found.advised is found.as_good) == (as_good, as_good)


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
    beside = {"everything": everything, "known": everything, "n_known": 500}
    rows = right(2000, new, seed=1)
    table = table_of({ours: right(2000, 0.8), pca: rows}, right(2000, 0.9), **beside)
    found = choose(table, asked)
    assert found.advised.point.code == advised
    assert found.everything.kept == pytest.approx((over_all if advised else 0.95) / 0.9)
    assert found.rival.point.code == ("" if advised else "PCA")
    assert found.rival_everything.kept == pytest.approx((0.95 if advised else over_all) / 0.9)
    told = " ".join(found.lines())
    # Why it is the other that is advised, in each case that a reader would ask it.
    why = "Over all queries it keeps 100 %, and this model 106 %: that is why this model is advised."
    assert (why in told) == (not advised and new > 0.8)
    take = "Over all queries it keeps 106 %, against 100 %: take it if few documents will be added."
    assert (take in told) == (advised == "PCA" and over_all == 0.9)


@pytest.mark.parametrize(("share", "heavy"), [(0.8, False), (0.5, True)])
def test_a_limit_that_costs_much_is_said_to(share, heavy):
    table = table_of(own({4: share, 8: share - 0.1}), right(2000, 0.9))
    told = choose(table, Limits(bytes_per_vector=8)).lines()
    assert NOTHING_BETTER in told
    assert any(line.startswith("Less than 80% is a heavy loss. Allow more than 8 bytes") for line in told) == heavy
    assert not any("nothing that was evaluated" in line for line in choose(table, Limits(bytes_per_vector=4)).lines())


NOTHING_BETTER = "Of this model, nothing that was evaluated in at most 8 bytes scored better."


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
    told = choose(table, limits).lines()
    assert not any("nothing that was evaluated" in line or "heavy loss" in line for line in told)


def test_a_simpler_code_that_is_as_good_is_not_said_to_be_the_best_of_its_kind():
    """It takes no more bytes than the code it is as good as: with all that are allowed it may do better."""
    chosen, equal = (Choice(Point(8, "int8", 8, 0.8, code=code), 0.89) for code in ("", "PCA"))
    found = Choice("accuracy", RAW, 0.9, chosen, bytes_per_vector=16, as_good=equal)
    assert found.advised is equal
    assert not any("nothing that was evaluated" in line for line in found.lines())
    assert any("nothing that was evaluated" in line for line in replace(found, as_good=None).lines())


def test_where_a_share_is_asked_for_the_rival_takes_no_more_bytes():
    pca = {k: right(2000, share) for k, share in ((8, 0.5), (64, 0.95))}
    points = {Point(k, "int8", k, 0.0, code="PCA"): rows for k, rows in pca.items()}
    table = table_of(own({8: 0.85, 64: 0.89}) | points, right(2000, 0.9))
    found = choose(table, Limits(0.9, bytes_per_vector=64))
    assert (found.rival.point.bytes, found.rival_ahead) == (8, False)
    assert not any("but not clearly" in line for line in found.lines())


def test_all_queries_are_no_reason_where_they_speak_for_the_other():
    """PCA and SVD are not sent to each other, whatever all queries say: that is not why."""
    ours, pca = Point(8, "int8", 8, 0.0), Point(8, "int8", 8, 0.0, code="PCA")
    everything = table_of({ours: right(2000, 0.9), pca: right(2000, 0.95)}, right(2000, 0.9))
    beside = {"everything": everything, "known": everything, "n_known": 500, "label": "similarity, dot_products"}
    hits = {ours: right(2000, 0.8), pca: right(2000, 0.805, seed=1)}
    found = choose(table_of(hits, right(2000, 0.9), **beside), Limits(bytes_per_vector=8))
    assert found.advised is found.chosen
    told = next(line for line in found.lines() if "but not clearly" in line)
    assert "advised" not in told


def test_a_product_quantizer_is_no_simpler():
    ours, raw = right(2000, 0.8), right(2000, 0.9)
    codes = {
        Point(8, "int8", 8, 0.0): ours,
        Point(32, PRODUCT_QUANTIZER, 8, 0.0, code="faiss"): ours,
    }
    assert choose(table_of(codes, raw), Limits(keep=0.8)).as_good is None


def test_of_equally_many_bytes_the_better_score_is_taken():
    raw = right(2000, 0.9)
    codes = {
        Point(8, "int8", 8, 0.0): right(2000, 0.86),
        Point(16, "int4", 8, 0.0): right(2000, 0.88),
    }
    assert choose(table_of(codes, raw), Limits(keep=0.9)).chosen.point.precision == "int4"
    other = {Point(8, "int8", 8, 0.0, code="PCA"): raw}
    found = choose(table_of(codes | other, raw), Limits(keep=0.9))
    assert (found.chosen.point.precision, found.better.point.code) == ("int4", "PCA")


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
    chosen = choose(table, Limits(bytes_per_vector=8)).better
    measured = chosen.point.score / table.input_score
    assert chosen.kept < measured - 0.01
    assert abs(chosen.kept - 0.7 / 0.9) < abs(measured - 0.7 / 0.9)
    assert chosen.low < 0.7 / 0.9 < chosen.high


def test_few_rows_are_said_to_be_few():
    rng = np.random.default_rng(0)
    raw = rng.random(90) < 0.6
    codes = {
        Point(k, "int8", k, 0.0): np.where(rng.random(90) < keep, raw, ~raw)
        for k, keep in ((4, 0.5), (8, 0.995), (16, 1.0))
    }
    found = choose(table_of(codes, raw, unit="queries"), Limits(keep=0.98))
    text = "\n".join(found.lines())
    assert f"{90} queries cannot tell 98 % from" in text
    assert found.needed is None or found.needed > 90
    assert 0.99 not in found.shares  # finer than the noise
    many = choose(table_of({p: np.tile(h, 400) for p, h in codes.items()}, np.tile(raw, 400)), Limits(keep=0.98))
    assert "cannot tell" not in "\n".join(many.lines())


def test_a_score_at_chance_is_called_a_mistake():
    rng = np.random.default_rng(0)
    guessed = {Point(k, "int8", k, 0.0): rng.random(500) < 0.1 for k in KS}
    found = choose(table_of(guessed, rng.random(500) < 0.1, chance=0.1), Limits(keep=0.9))
    assert (found.chosen, found.advised, found.chance) == (None, None, 0.1)
    assert found.lines()[0].startswith("Check the inputs: neither the raw vectors")
    assert choose(table_of(own(dict.fromkeys(KS, 0.8)), right(2000, 0.9), chance=0.1)).chance is None


def test_out_of_reach_says_the_best_that_is_reached():
    table = table_of(own({4: 0.5, 8: 0.6}), right(2000, 0.9))
    found = choose(table, Limits(keep=0.99, precisions=("int8",)))
    assert found.better is None
    assert found.headline().startswith(
        "No code of this model as int8 keeps 99 % of the raw vectors' accuracy (0.9000). The best"
    )
    assert f"The best is {100 * found.best.kept:.1f} % ({found.best.share}): 8 coordinates as int8" in found.headline()
    asked = choose(table, Limits(keep=0.99, k=4, bytes_per_vector=64))
    assert asked.headline().startswith("No code of this model with k = 4 in 64 bytes keeps 99 %")
    assert "4 coordinates as int8" in asked.headline()
    assert Choice.from_json(asked.to_json()) == asked


def test_where_no_share_is_asked_for_none_is_said_to_be_missed():
    table = table_of(own({4: 0.5, 8: 0.6}), right(2000, 0.9))
    for limits, said in (({"k": 7}, "with k = 7"), ({"bytes_per_vector": 1}, "in 1 byte")):
        assert choose(table, Limits(**limits)).headline().startswith(f"No code of this model {said} was evaluated.")


def test_a_table_without_draws_is_chosen_from_by_its_scores():
    points = [Point(k, "int8", k, score) for k, score in zip(KS, (0.5, 0.8, 0.89, 0.9), strict=True)]
    found = choose(Evaluation(points, "accuracy", input_score=0.9), Limits(keep=0.98))
    assert (found.chosen.point.k, found.chosen.low, found.chosen.kept) == (8, None, pytest.approx(0.89 / 0.9))


def test_raw_vectors_that_score_nothing_are_no_reference():
    points = [Point(k, "int8", k, score) for k, score in zip(KS, (0.2, 0.5, 0.79, 0.8), strict=True)]
    table = Evaluation(points, "r2", input_score=-0.1)
    found = choose(table, Limits(keep=0.95))
    assert (found.chosen.point.k, found.chosen.kept) == (8, pytest.approx(0.79 / 0.8))
    assert found.reference.startswith("the best prefix (16 coordinates as int8")
    assert choose(table, Limits(bytes_per_vector=4)).chosen.point.k == 4
    with pytest.raises(
        InvalidInputError, match=r"r2 of raw vectors means nothing here: it is -0.1.*relative_to='best'"
    ):
        choose(table, Limits(keep=0.95, relative_to="input"))
    useless = Evaluation([Point(2, "int8", 2, -0.3)], "r2", input_score=-0.1)
    with pytest.raises(InvalidInputError, match=r"best prefix.* it is -0.3.*choose\(bytes_per_vector="):
        choose(useless, Limits(bytes_per_vector=4))
    assert useless.choose(bytes_per_vector=4).k == 2


def test_a_share_of_a_loss_is_the_reference_over_the_loss():
    points = [Point(k, "int8", k, loss) for k, loss in zip(KS, (4.0, 2.0, 1.05, 0.0), strict=True)]
    table = Evaluation(points, "loss", input_score=1.0, higher_is_better=False)
    shares = evidence(table)[0].shares
    np.testing.assert_allclose(shares[:3], [1 / 4, 1 / 2, 1 / 1.05])
    assert np.isfinite(shares[3])
    assert shares[3] > 100
    assert choose(table, Limits(keep=0.95)).chosen.point.k == 8
    perfect = Evaluation(points[:3], "loss", input_score=0.0, higher_is_better=False)
    assert choose(perfect, Limits(keep=0.95)).reference.startswith("the best prefix (8")


def test_a_recommendation_reads_back():
    table = table_of(own({4: 0.87, 8: 0.9}) | own({2: 0.9}, code="PCA"), right(2000, 0.9))
    for limits in (Limits(keep=0.95), Limits(bytes_per_vector=4), Limits(keep=0.95, precisions=("float32",))):
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
    assert Choice(Point(8, "int8", 8, 0.5), 0.974, 0.95, 0.998).share == "95 to 100 %"
    assert Choice(Point(8, "int8", 8, 0.5), 0.974, 0.972, 0.976).share == "97.2 to 97.6 %"


def test_queries_may_be_rounded_too():
    digits = load_digits()
    encoder = PrefixEncoder(16).fit(digits.X_train).encoder_
    data = Rows(digits.X_test, digits.y_test, reference=Rows(digits.X_train, digits.y_train))
    table = evaluate(encoder, data, "1nn_accuracy", ks=[16])
    both, floating = (
        next(o for o in table if not o.code and o.precision == "binary" and o.queries == queries)
        for queries in ("binary", "float32")
    )
    bits = encoder.coordinates(digits.X_train) > np.median(encoder.coordinates(digits.X_train), axis=0)
    assert both.score < floating.score
    assert bits.shape[1] == both.bytes * 8
    only = table.choose(Limits(bytes_per_vector=2, precisions=("binary",), binary_queries=True))
    assert only.chosen.point == both
    assert not both.own


def test_rows_that_all_agree_are_not_certain():
    one = choose(table_of(own({4: 1.0, 8: 1.0}, 1), np.ones(1, dtype=bool)), Limits(keep=0.95))
    assert one.chosen.low < 0.5
    assert one.shares == ()
    few = choose(table_of(own({4: 1.0, 8: 1.0}, 12), np.ones(12, dtype=bool)), Limits(keep=0.95))
    assert few.chosen.low == pytest.approx(1 - 3 / 12)
    assert any("cannot tell 95 %" in line for line in few.lines())


def test_the_raw_vectors_keep_all_of_themselves():
    table = table_of(own({4: 0.5}), right(2000, 0.9))
    found = choose(table, Limits(keep=0.99, precisions=("int8", "float32")))
    assert (found.better.point.code, found.better.kept, found.better.low) == (RAW, 1.0, None)


def test_columns_at_random_are_never_the_advice():
    luckiest = {Point(2, "int8", 2, 0.0, code="random dimensions"): right(2000, 0.9)}
    found = choose(table_of(own({8: 0.9}) | luckiest, right(2000, 0.9)), Limits(keep=0.95))
    assert (found.better, found.chosen.point.k) == (None, 8)


def test_within_bytes_python_and_the_recommendation_agree():
    table = table_of(own({4: 0.86, 8: 0.90, 16: 0.85}), right(2000, 0.95))
    assert table.choose(bytes_per_vector=8) == choose(table, Limits(bytes_per_vector=8)).chosen.point
    assert table.choose(bytes_per_vector=16).k == 8


def test_raw_vectors_are_rounded_for_every_metric():
    digits = load_digits()
    encoder = PrefixEncoder(8).fit(digits.X_train).encoder_
    y, y_ref = digits.y_test.astype(float), digits.y_train.astype(float)
    data = Rows(digits.X_test, y, reference=Rows(digits.X_train, y_ref))
    table = evaluate(encoder, data, "r2", ks=[8])
    raw = {point.precision: point.score for point in table if point.code == RAW}
    assert set(raw) == set(PRECISIONS) - {"embedded"}  # bits are of a code
    assert raw["int8"] == pytest.approx(raw["float32"], abs=0.01)


@pytest.mark.parametrize(("lost", "better"), [(1, False), (100, True)])
def test_in_as_many_bytes_a_baseline_must_be_clearly_ahead(lost, better):
    ours, theirs, raw = behind(2000, 0.88, lost), right(2000, 0.88), right(2000, 0.9)
    svd = Point(8, "int8", 8, 0.0, code="uncentred SVD")
    found = choose(table_of({Point(8, "int8", 8, 0.0): ours, svd: theirs}, raw), Limits(keep=0.9))
    assert found.chosen.point.bytes == 8
    assert (found.better is not None) == better


@pytest.mark.parametrize("lost", [1, 100])
def test_pca_and_svd_do_not_send_users_to_each_other(lost):
    """Each is as simple as the other: in a limit of bytes, a new fit is worth it where it is clearly ahead."""
    worse, best, raw = behind(2000, 0.88, lost), right(2000, 0.88), right(2000, 0.9)
    sent = {}
    for label, other in (("reconstruction", "uncentred SVD"), ("similarity, dot_products", "PCA")):
        for name, (ours, theirs) in {"behind": (worse, best), "ahead": (best, worse)}.items():
            points = {Point(8, "int8", 8, 0.0): ours, Point(8, "int8", 8, 0.0, code=other): theirs}
            found = choose(table_of(points, raw, label=label), Limits(bytes_per_vector=8))
            sent[label, name] = (found.better or found.as_good) is not None
    clear = lost == 100
    assert sent == {(label, name): clear and name == "behind" for label, name in sent}


def test_nothing_keeps_more_of_neighbors_than_the_vectors_whose_they_are():
    found = choose(table_of(own({4: 0.8, 8: 0.98}, n=60), right(60, 1.0)), Limits(keep=0.9)).chosen
    other = choose(table_of(own({4: 0.8, 8: 0.98}, n=60), right(60, 0.97)), Limits(keep=0.9)).chosen
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
    assert found.chosen.point.bytes == 4
    assert found.safe == alone.chosen
    assert [remark for _, remark in found.to_store()] == ["", "to be safe"]
    sure = choose(table, Limits(keep=0.9))
    assert sure.safe is None or sure.chosen.low >= 0.9
    assert [remark for _, remark in sure.to_store()] == [""]


@pytest.mark.parametrize("other", [1.0, 1.0 - 1e-12, 1.0 + 1e-12])
def test_last_digits_do_not_choose_among_equal_points(other):
    points = [Point(32, "int8", 32, 0.9 * other), Point(16, "float16", 32, 0.9)]
    raw = Point(64, "float32", 256, 1.0, code=RAW)
    for keep in (None, 0.8):
        found = _Rule(Evidence((*points, raw), np.array([0.9 * other, 0.9, 1.0]), np.empty((0, 3))), Limits(keep=keep))
        own = np.array([True, True, False])
        assert found.choose(own) == 1  # the shorter
        assert found.best(own).point == points[0]  # the first
