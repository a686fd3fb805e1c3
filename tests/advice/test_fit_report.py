"""The report of a fit: its numbers are those of slower ways, and what it cannot say is left out with a note."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression

from firstk import Pairs, PrefixEncoder, Rows, SparsePrefix, evaluate
from firstk.advice.baselines import BASELINES, baselines_of
from firstk.advice.evaluate import Measured, Value, affordable, prefix_grid, rivals
from firstk.advice.fit_report import SAMPLES, report_on
from firstk.advice.inputs import VectorSource
from firstk.advice.read import open_task, read_for
from firstk.advice.records import Report
from firstk.data import load_digits
from firstk.data.files import write_vectors
from firstk.data.precision import PRECISIONS
from firstk.estimator.fit_files import draw
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import prefix_curve
from firstk.quality.choice import Limits, Point

SMALL = {"precisions": ["float32", "int8"], "draws": 20}


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def fit_on(tmp_path_factory):
    """Fit on a file of vectors with a fifth held out."""

    def fitted(objective, X, y=None, *, d=6):
        file = tmp_path_factory.mktemp("fit") / "rows.npz"
        write_vectors(file, X, {} if y is None else {"label": y}, name="vectors")
        task = open_task(VectorSource(file, label=None if y is None else "label"))
        return PrefixEncoder(d, objective=objective).fit(task.train), task

    return fitted


@pytest.fixture(scope="module")
def fisher(digits, fit_on):
    return fit_on("fisher", digits.X, digits.y)


@pytest.fixture(scope="module")
def found(fisher):
    report, refusal = report_on(*fisher, image_shape=(8, 8))
    assert refusal is None
    return report


def test_the_lead_curve_is_that_of_the_encoder_on_the_held_out_rows(fisher, found):
    encoder, data = fisher[0], fisher[1].held_out
    slow = encoder.curve(data.X, data.y, reference=(data.reference.X, data.reference.y))
    lead = found.lead.curve()
    assert (lead.metric, lead.k, lead.score) == (slow.metric, slow.k, slow.score)
    assert lead.confidence == 0.95
    assert all(low <= score <= high for low, score, high in zip(lead.low, lead.score, lead.high, strict=True))


def test_a_baseline_that_is_the_encoder_has_the_scores_of_a_sweep_of_its_own(digits, fit_on):
    encoder, task = fit_on("reconstruction", digits.X)
    data = task.held_out
    baselines = baselines_of(data.reference.X, encoder._statistics)
    assert baselines["PCA"].d > encoder.encoder_.d
    found = evaluate(encoder, data, metric="readback_variance", ks=[2, 4, 6], precisions=["float32"]).baselines
    assert [curve.label for curve in found] == sorted(BASELINES)
    for curve in found:
        slow = prefix_curve(baselines[curve.label], data, "readback_variance", [2, 4, 6])
        assert (curve.k, curve.n_evaluated) == (slow.k, slow.n_evaluated)
        assert np.allclose(curve.score, slow.score, rtol=0, atol=1e-9)


def test_all_four_baselines_stand_beside_it(found):
    assert [curve.label for curve in found.lead.baselines] == sorted(BASELINES)
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
    encoder = PrefixEncoder(8, objective=objective).fit(digits.X_train, digits.y_train).encoder_
    measured = [
        Measured(Point(k, "float32", 4 * k, score, code=code), (Value(score, np.empty(0), 1),))
        for code, values in {"": (0.3, 0.6, 0.7, 0.9), name: scores}.items()
        for k, score in zip(ks, values, strict=True)
    ]
    found = rivals(measured, encoder, {name: baselines_of(digits.X_train)[name]}, 1.0)
    assert found == ([name] if rival else [])


def test_a_fit_counts_neighbors_of_some_rows_only(digits, fit_on):
    encoder, task = fit_on("similarity", digits.X)
    data = task.held_out
    assert affordable(data, "recall@10", None) is data
    some = affordable(data, "recall@10", 100 * data.reference.n)
    assert some.n == len(np.unique(some.X, axis=0)) == 100
    assert affordable(data, "readback_variance", 100) is data
    settings = SMALL | {"most_pairs": 100 * data.reference.n}
    report, _ = report_on(encoder, task, settings=settings, details=False)
    assert report.notes[0].startswith("recall@10 is of 100 of the 359 held-out rows")
    assert report.lead.n_evaluated == 100
    again = encoder.curve(some.X, reference=data.reference.X, metric="recall@10", ks=[6])
    assert report.lead.curve().at(6) == again.at(6)


def test_baselines_from_moments_are_those_from_rows(fisher, digits):
    rest = np.setdiff1d(np.arange(1797), draw(1797, 0.2, 0).held)
    quick = baselines_of(fisher[1].held_out.reference.X, fisher[0]._statistics)
    for name, slow in baselines_of(digits.X[rest]).items():
        np.testing.assert_allclose(quick[name].components[:10], slow.components[:10], atol=1e-4)
        np.testing.assert_allclose(quick[name].mean, slow.mean, atol=1e-6)


def test_axis_statistics_are_those_of_the_codes(fisher, found):
    Z = fisher[0].transform(fisher[1].held_out.X).astype(float)
    np.testing.assert_allclose(found.axes.magnitude, np.abs(Z).mean(axis=0))
    np.testing.assert_allclose(found.axes.variance, Z.var(axis=0))
    np.testing.assert_allclose(found.axes.spectrum, fisher[0].spectrum_)
    assert found.axes.rank_correlation == pytest.approx(
        spearmanr(found.axes.magnitude, found.axes.usefulness).statistic
    )
    assert found.axes.chance == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_images_are_rebuilt_by_the_best_linear_decoder_of_each_prefix(fisher, found, k):
    """The slow way: a least-squares fit of the pixels to the first k coordinates, for this k alone."""
    encode, reference = fisher[0].transform, fisher[1].held_out.reference.X
    slow = LinearRegression().fit(encode(reference)[:, :k], reference)
    samples = found.images.originals.array().astype(np.float32)
    np.testing.assert_allclose(found.images.rebuilt(k), slow.predict(encode(samples)[:, :k]), atol=2e-3)


def test_images_show_one_of_each_class(found):
    assert found.images.names == tuple("0123456789")[:SAMPLES]
    assert found.images.shape == (8, 8)


def test_a_report_is_small_and_reads_back(found):
    text = found.to_json()
    assert len(text) < 120_000  # resampled scores are most of it
    assert Report.from_json(text) == found


def test_without_labels_their_parts_are_left_out_with_a_note(digits, fit_on):
    found, _ = report_on(*fit_on("reconstruction", digits.X), settings=SMALL)
    assert [each.metric for each in found.evaluations] == ["recall@10", "readback_variance"]
    assert found.axes.usefulness == ()
    assert found.axes.rank_correlation is None
    assert found.images is None
    assert sum(note.startswith("No labels given") for note in found.notes) == 1


def test_labels_evaluate_an_objective_that_does_not_take_them(digits, fit_on):
    found, _ = report_on(*fit_on("reconstruction", digits.X, digits.y), settings=SMALL)
    # What is given says what the codes are for.
    assert [each.metric for each in found.evaluations] == ["1nn_accuracy", "readback_variance"]


def test_targets_have_an_r2(digits, fit_on):
    y = digits.X.sum(axis=1).astype(float) + digits.y
    found, _ = report_on(*fit_on("regression", digits.X, y), settings=SMALL, image_shape=(8, 8))
    assert [each.metric for each in found.evaluations] == ["r2"]
    assert found.axes.measure.endswith("R²")
    assert not found.images.names[0].startswith("row ")


def test_pairs_say_how_many_documents_were_seen(digits, tmp_path):
    right = digits.X[digits.y.argsort(kind="stable")][:400][np.arange(400) % 150]  # documents repeat
    scores = np.random.default_rng(0).random(400)
    write_vectors(tmp_path / "pairs.npz", digits.X[:400], {"right": right, "s": scores}, name="left")
    task = open_task(VectorSource(tmp_path / "pairs.npz", pairs="left,right,s"))
    assert isinstance(task.train, Pairs)
    found, _ = report_on(PrefixEncoder(6, objective="similarity").fit(task.train), task, settings=SMALL)
    assert found.lead.metric == "spearman"
    assert any("right side that is in the training pairs" in note for note in found.notes)


def test_too_few_rows_for_a_metric_leave_it_out(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(13, 4)))
    task = open_task(VectorSource(tmp_path / "rows.npy"), 0.24)
    found, _ = report_on(PrefixEncoder(2, objective="similarity").fit(task.train), task, settings=SMALL)
    assert found.evaluations == ()
    assert any("recall@10" in note and "more than 10 rows" in note for note in found.notes)


def test_a_wrong_image_shape_raises(fisher):
    with pytest.raises(InvalidInputError, match="28x28 have 784 values, and the vectors have 64"):
        report_on(*fisher, image_shape=(28, 28))


def test_progress_is_told_as_it_is_made(fisher):
    told = []
    report_on(*fisher, settings=SMALL, progress=told.append)
    # The lead metric with its baselines, further metrics, and what each coordinate is worth by itself.
    assert told[:5] == [f"1nn_accuracy, {name}" for name in ("ours", *BASELINES)]
    assert "probe_accuracy, ours" in told
    assert told[-1] == "single coordinates"


def test_the_grid_has_every_short_prefix_and_the_full_width():
    grid = prefix_grid(384)
    assert set(range(1, 33)) <= set(grid)
    assert grid[-1] == 384
    assert np.diff(grid).max() / 384 < 0.1
    assert set(prefix_grid(33)) == set(range(1, 34))


def test_every_length_that_may_be_recommended_is_in_the_curve(fit_on):
    """Else a page cannot open at what it recommends: of a code of 200 coordinates, at 112 for one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 200)) * np.arange(1, 201) ** -0.3
    encoder, task = fit_on("reconstruction", X, d=None)
    found, _ = report_on(encoder, task, settings={"draws": 20, "baselines": False}, details=False)
    assert 112 not in prefix_grid(200)
    assert {point.k for point in found.lead.points if not point.code and point.is_prefix} <= set(found.lead.curve().k)


# -- saved encoders on files of their own ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for part, X, y in (("train", digits.X_train, digits.y_train), ("test", digits.X_test, digits.y_test)):
        write_vectors(folder / f"{part}.npz", X, {"label": y})
    return {"place": VectorSource(folder / "test.npz", label="label"), "reference": str(folder / "train.npz")}


@pytest.fixture(scope="module")
def listed(digits):
    return PrefixEncoder(16, ordering=SparsePrefix([3, 6, 12])).fit(digits.X_train)


def report_of(encoder, asked, limits=None, **settings):
    task = read_for(encoder.encoder_, **asked)
    return report_on(encoder.encoder_, task, limits, metric="1nn_accuracy", settings=settings, details=False)


def test_scores_are_those_of_the_estimator(digits, listed, asked):
    reference = digits.X_train, digits.y_train
    slow = listed.curve(digits.X_test, digits.y_test, reference=reference, metric="1nn_accuracy")
    found, refusal = report_of(listed, asked, **SMALL | {"baselines": baselines_of(digits.X_train)})
    assert refusal is None
    assert found.lead.curve().score == slow.score
    assert found.lead.supported == (3, 6, 12)
    assert [curve.label for curve in found.lead.baselines] == sorted(BASELINES)
    assert found.choice.get("most").point.k in (3, 6, 12)
    assert found.held_out == "Evaluated on 360 rows of test.npz, against 1,437 rows of train.npz."


def test_a_choice_is_made_among_supported_lengths(listed, asked):
    prefixes = tuple(name for name in PRECISIONS if name != "embedded")
    for limits in (
        Limits(keep=0.9, precisions=prefixes),
        Limits(keep=0.9, precisions=("int8",)),
        Limits(bytes_per_vector=44, precisions=prefixes),
    ):
        found, _ = report_of(listed, asked, limits, baselines=False, draws=20)
        assert found.lead.baselines == ()
        assert found.choice.point.k in (3, 6, 12)
        assert found.choice.point.score == pytest.approx(found.lead.curve().at(found.choice.point.k), abs=0.03)
    # Bits have no length, and are scored at the very bytes that are asked for.
    few = Limits(bytes_per_vector=7, precisions=("embedded",))
    found, _ = report_of(listed, asked, few, baselines=False, draws=20)
    assert found.choice.point.bytes <= 7
    assert 7 in [point.bytes for point in found.lead.embedded]
    # A length that is asked for may be any.
    found, _ = report_of(listed, asked, Limits(k=7), baselines=False, draws=20)
    assert found.choice.point.k == 7
    assert found.lead.choose(k=7).point.score == pytest.approx(found.lead.curve().at(7), abs=1e-12)


def test_limits_that_cannot_be_met_leave_the_scores(listed, asked):
    found, refusal = report_of(listed, asked, Limits(bytes_per_vector=1, precisions=("int8",)), baselines=False)
    assert found.choice is None
    assert isinstance(refusal, InvalidInputError)
    assert found.lead.curve().full > 0.8


def test_rows_and_their_reference_are_read_for_any_use(digits, listed, asked):
    given = read_for(listed.encoder_, **asked, metric="readback_variance")
    assert isinstance(given.held_out, Rows)
    np.testing.assert_array_equal(given.held_out.X, digits.X_test)
    np.testing.assert_array_equal(given.train.X, digits.X_train)
    assert (given.files.notes, given.files.store) == ([], asked["reference"])
