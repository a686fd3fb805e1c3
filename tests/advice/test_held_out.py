"""Evaluation of a fit: its numbers are those of slower ways, and what it cannot say is left out with a note."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression

from firstk import PrefixEncoder
from firstk.advice import held_out
from firstk.advice.baselines import BASELINES, baselines_of
from firstk.advice.evaluate import affordable, prefix_grid, rivals
from firstk.advice.records import Comparison, Report
from firstk.data import load_digits
from firstk.estimator.fit_files import draw, fit_stream
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import prefix_curve
from firstk.quality.curve import PrefixCurve

SOURCE = Provenance({"file": "digits.npz"}, 1797, 4, "Evaluated on some rows.", (8, 8))


def fitted(objective, **columns):
    n = len(next(iter(columns.values())))
    return fit_stream(PrefixEncoder(6, objective=objective), [columns], draw(n, 0.2, 0))


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def fisher(digits):
    return fitted("fisher", X=digits.X, y=digits.y)


@pytest.fixture(scope="module")
def found(fisher):
    return evaluate_fit(fisher, SOURCE)


def test_the_lead_curve_is_that_of_the_encoder_on_the_held_out_rows(fisher, found):
    slow = fisher.encoder.curve(
        fisher.held["X"], fisher.held["y"], reference=(fisher.reference["X"], fisher.reference["y"])
    )
    lead = found.lead.ours
    assert (lead.metric, lead.k, lead.score) == (slow.metric, slow.k, slow.score)
    assert lead.confidence == 0.95
    assert all(low <= score <= high for low, score, high in zip(lead.low, lead.score, lead.high, strict=True))


def test_a_baseline_that_is_the_encoder_has_the_scores_of_a_sweep_of_its_own(digits):
    fit = fitted("reconstruction", X=digits.X)
    baselines = baselines_of(fit.reference["X"], fit.statistics)
    ks, few = [1, 2, 3, 4, 5, 6], [2, 4, 6]
    encoder, data = fit.encoder.encoder_, fit.data
    assert baselines["PCA"].d > encoder.d
    found = held_out.compare(
        encoder, data, "readback_variance", baselines, ks, baseline_ks=few, confidence=0.95
    ).baselines
    assert [curve.label for curve in found] == list(BASELINES)
    for curve in found:
        raw = curve.input_score
        slow = prefix_curve(baselines[curve.label], data, "readback_variance", few, confidence=0.95, input_score=raw)
        assert (curve.k, curve.n_evaluated) == (slow.k, slow.n_evaluated)
        assert np.allclose([curve.score, curve.low, curve.high], [slow.score, slow.low, slow.high], rtol=0, atol=1e-9)


def test_an_encoder_of_another_mean_is_no_baseline(digits):
    fit = fitted("reconstruction", X=digits.X)
    pca, encoder = baselines_of(fit.reference["X"], fit.statistics)["PCA"], fit.encoder.encoder_
    assert held_out._begins_with(pca, encoder)
    for other in (replace(pca, mean=pca.mean + 1), replace(pca, components=-pca.components), pca[:3]):
        assert not held_out._begins_with(other, encoder)


def test_all_four_baselines_stand_beside_it(found):
    assert [curve.label for curve in found.lead.baselines] == list(BASELINES)
    assert {curve.metric for curve in found.lead.baselines} == {"1nn_accuracy"}
    assert all(curve.k[-1] == 6 for curve in found.lead.baselines)


@pytest.mark.parametrize(
    ("objective", "name", "scores", "rival"),
    [
        ("fisher", "PCA", (0.1, 0.5, 0.8, 0.9), True),  # ahead at k = 8
        ("fisher", "PCA", (0.1, 0.5, 0.698, 0.8), True),  # as good at k = 8
        ("reconstruction", "uncentred SVD", (0.1, 0.5, 0.698, 0.8), False),  # as good, and no simpler
        ("reconstruction", "plain truncation", (0.1, 0.5, 0.698, 0.8), True),
        ("fisher", "PCA", (0.1, 0.5, 0.6, 0.898), False),  # as good beyond half of the columns alone
        ("fisher", "PCA", (0.4, 0.4, 0.6, 0.8), False),  # ahead where next to nothing is kept
        ("fisher", "PCA", (0.3, 0.6, 0.7, 0.9), False),  # the same code
        ("fisher", "random dimensions", (0.9, 0.9, 0.9, 0.9), False),
    ],
)
def test_baselines_that_may_be_the_advice(digits, objective, name, scores, rival):
    ks = (2, 4, 8, 48)  # of 64 columns
    ours = PrefixCurve(ks, (0.3, 0.6, 0.7, 0.9), "accuracy", input_score=1.0, label=objective)
    other = PrefixCurve(ks, scores, "accuracy", label=name)
    baselines = baselines_of(digits.X_train)
    assert rivals(Comparison(ours, (other,)), baselines) == ({name: baselines[name]} if rival else {})


def test_a_fit_counts_neighbors_of_some_rows_only(digits, monkeypatch):
    fit = fitted("similarity", X=digits.X)
    data = fit.data
    assert affordable(data, "recall@10") is data
    monkeypatch.setattr(held_out, "MOST_PAIRS", 100 * len(fit.reference["X"]))
    notes: list[str] = []
    some = affordable(data, "recall@10", notes)
    assert len(some.X) == 100
    assert len(np.unique(some.X, axis=0)) == 100
    assert notes[0].startswith("recall@10 is of 100 of the 359 held-out rows")
    assert affordable(data, "readback_variance") is data
    report = evaluate_fit(fit, SOURCE)
    assert report.lead.ours.n_evaluated == report.precisions.n_evaluated == 100
    again = fit.encoder.curve(some.X, reference=some.X_ref, metric="recall@10", ks=[6])
    assert report.lead.ours.at(6) == again.at(6)


def test_baselines_from_moments_are_those_from_rows(fisher, digits):
    rest = np.setdiff1d(np.arange(1797), draw(1797, 0.2, 0).held)
    quick = baselines_of(fisher.reference["X"], fisher.statistics)
    for name, make in BASELINES.items():
        slow = make(digits.X[rest])
        np.testing.assert_allclose(quick[name].components[:10], slow.components[:10], atol=1e-4)
        np.testing.assert_allclose(quick[name].mean, slow.mean, atol=1e-6)


def test_axis_statistics_are_those_of_the_codes(fisher, found):
    Z = fisher.encoder.transform(fisher.held["X"]).astype(float)
    np.testing.assert_allclose(found.axes.magnitude, np.abs(Z).mean(axis=0))
    np.testing.assert_allclose(found.axes.variance, Z.var(axis=0))
    np.testing.assert_allclose(found.axes.spectrum, fisher.encoder.spectrum_)
    assert found.axes.rank_correlation == pytest.approx(
        spearmanr(found.axes.magnitude, found.axes.usefulness).statistic
    )
    assert found.axes.chance == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_images_are_rebuilt_by_the_best_linear_decoder_of_each_prefix(fisher, found, k):
    """The slow way: a least-squares fit of the pixels to the first k coordinates, for this k alone."""
    encode = fisher.encoder.transform
    slow = LinearRegression().fit(encode(fisher.reference["X"])[:, :k], fisher.reference["X"])
    samples = found.images.originals.array().astype(np.float32)
    np.testing.assert_allclose(found.images.rebuilt(k), slow.predict(encode(samples)[:, :k]), atol=2e-3)


def test_images_show_one_of_each_class(found):
    assert found.images.names == tuple("0123456789")[:SAMPLES]
    assert found.images.shape == (8, 8)


def test_a_report_is_small_and_reads_back(found):
    text = found.to_json()
    assert len(text) < 120_000  # resampled scores are most of it
    assert Report.from_json(text) == found


def test_precisions_are_scored_by_the_same_metric(found):
    assert found.precisions.metric == found.lead.ours.metric
    whole = found.precisions.choose(k=6, precision="float32")
    assert whole.score == pytest.approx(found.lead.ours.at(6), abs=1e-6)


def test_without_labels_their_parts_are_left_out_with_a_note(digits):
    found = evaluate_fit(fitted("reconstruction", X=digits.X), Provenance({}, 1797, 4, "Evaluated."))
    assert [c.ours.metric for c in found.comparisons] == ["readback_variance"]
    assert found.axes.usefulness == ()
    assert found.axes.rank_correlation is None
    assert found.images is None
    assert sum(note.startswith("No labels given") for note in found.notes) == 1


def test_labels_evaluate_an_objective_that_does_not_take_them(digits):
    found = evaluate_fit(fitted("reconstruction", X=digits.X, y=digits.y), SOURCE)
    # What is given says what the codes are for.
    assert [c.ours.metric for c in found.comparisons] == ["1nn_accuracy", "readback_variance"]


def test_targets_have_an_r2(digits):
    y = digits.X.sum(axis=1).astype(float) + digits.y
    found = evaluate_fit(fitted("regression", X=digits.X, y=y), SOURCE)
    assert [c.ours.metric for c in found.comparisons] == ["r2"]
    assert found.axes.measure.endswith("R²")
    assert found.images.names[0].startswith("row ") is False


def test_pairs_say_how_many_documents_were_seen(digits):
    left, right = digits.X[:400], digits.X[digits.y.argsort(kind="stable")][:400]
    right = right[np.arange(400) % 150]  # documents repeat
    scores = np.random.default_rng(0).random(400)
    found = evaluate_fit(
        fitted("similarity", left=left, right=right, scores=scores), Provenance({}, 400, 4, "Evaluated.")
    )
    assert found.lead.ours.metric == "spearman"
    assert any("right side that is in the training pairs" in note for note in found.notes)


def test_too_few_rows_for_a_metric_leave_it_out():
    X = np.random.default_rng(0).normal(size=(13, 4))
    done = fit_stream(PrefixEncoder(2, objective="similarity"), [{"X": X}], draw(13, 0.24))
    found = evaluate_fit(done, Provenance({}, 13, 10, "Evaluated."))
    assert found.comparisons == ()
    assert any("recall@10" in note and "more than 10 rows" in note for note in found.notes)


def test_a_wrong_image_shape_raises(fisher):
    with pytest.raises(InvalidInputError, match="28x28 have 784 values, and the vectors have 64"):
        evaluate_fit(fisher, Provenance({}, 1797, 4, "Evaluated.", (28, 28)))


def test_progress_is_told_as_often_as_promised(fisher):
    told = []
    evaluate_fit(fisher, SOURCE, told.append)
    baselines = [what for what in told if what.split(",")[0] in BASELINES]  # those that are ahead add to it
    assert len(told) - len(baselines) <= steps_of(fisher) <= len(told) + 1
    assert len(metrics_for(fisher.encoder.encoder_, fisher.data)) == 2


def test_the_grid_has_every_short_prefix_and_the_full_width():
    grid = prefix_grid(384)
    assert set(range(1, 33)) <= set(grid.tolist())
    assert grid[-1] == 384
    assert np.diff(grid).max() / 384 < 0.1
    assert set(prefix_grid(33)) == set(range(1, 34))


def test_every_length_that_may_be_recommended_is_in_the_curve():
    """Else a page cannot open at what it recommends: of a code of 200 coordinates, at 112 for one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 200)) * np.arange(1, 201) ** -0.3
    done = fit_stream(PrefixEncoder(), [{"X": X}], draw(600, 0.2, 0))
    found = evaluate_fit(done, replace(SOURCE, image_shape=None))
    assert 112 not in prefix_grid(200)
    assert {point.k for point in found.precisions.points if not point.code and point.is_prefix} <= set(
        found.comparisons[0].ours.k
    )
