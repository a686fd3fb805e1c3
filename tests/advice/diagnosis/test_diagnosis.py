"""A diagnosis as a whole: the same on any batching, a record that reads back, and a sentence for every odd input."""

import json
import warnings

import numpy as np
import pytest

from firstk.advice.diagnosis import (
    PARTS,
    Diagnosis,
    diagnose,
    diagnose_gathered,
    gather,
    gather_batches,
)
from firstk.data import load_digits
from firstk.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def found(digits):
    return diagnose(digits.X, digits.y, image_shape=(8, 8))


def test_every_part_is_there_sentences_first(found):
    assert all(getattr(found, part) is not None for part in PARTS)
    text = found.render()
    assert text.splitlines()[:2] == [found.ranking.why(), f"  {found.command}"]  # the answer before all else
    sentences = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(sentences) == len(found.sentences()) - 1
    assert text.index(sentences[-1]) < text.index("Which objective")
    assert text.endswith(found.command)
    assert all(sentence.endswith(".") for sentence in found.sentences())


def test_reads_back_equal(found):
    assert Diagnosis.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["sentences"] == found.sentences()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "firstk.Diagnosis/1"}', '{"format": "other"}'])
def test_foreign_text_raises_an_error(text):
    with pytest.raises(InvalidInputError):
        Diagnosis.from_json(text)


def test_a_damaged_record_raises_an_error(found):
    values = json.loads(found.to_json())
    values["vectors"]["rank"] = "sixty"
    with pytest.raises(InvalidInputError, match="parameter of"):
        Diagnosis.from_json(json.dumps(values))


def test_batches_and_their_order_do_not_matter(digits, found):
    order = np.random.default_rng(0).permutation(len(digits.X))
    X, y = digits.X[order], digits.y[order]
    cuts = [slice(0, 7), slice(7, 900), slice(900, 1797)]
    streamed = diagnose_gathered(gather_batches(((X[c], y[c]) for c in cuts), 1797, 64, "labels"), image_shape=(8, 8))
    assert streamed.held_out == found.held_out
    assert streamed.vectors.copies == found.vectors.copies
    assert streamed.ranking == found.ranking
    np.testing.assert_allclose(streamed.alignment.curves[0].score, found.alignment.curves[0].score, rtol=1e-9)
    assert streamed.label_noise.disagreement == found.label_noise.disagreement
    assert streamed.subspaces.top[2].probe == pytest.approx(found.subspaces.top[2].probe, abs=1e-12)


def named_otherwise(y):
    """The same classes under other names, in the same order of names."""
    yield "numbers further on", y + 1000
    yield "text", np.array([f"class {label}" for label in y])
    yield "long text", np.array([f"a longer name, {label}" for label in y], dtype=object)


def test_names_of_classes_change_nothing(digits, found):
    for how, y in named_otherwise(digits.y):
        again = diagnose(digits.X, y, image_shape=(8, 8))
        assert again == found, how


def test_facts_without_labels_are_those_of_all_rows(digits, found):
    alone, variance = diagnose(digits.X, parts=[]), digits.X.astype(float).var(axis=0)
    shares = np.cumsum(np.sort(np.linalg.eigvalsh(np.cov(digits.X.T)))[::-1])
    assert found.held_out
    assert found.vectors.effective_dimension == pytest.approx(alone.vectors.effective_dimension, rel=1e-9)
    assert found.vectors.largest_column_share == pytest.approx(variance.max() / variance.sum())
    np.testing.assert_allclose(found.spectrum.score, (shares / shares[-1])[:61], rtol=1e-9)
    assert found.vectors.variance_dims == alone.vectors.variance_dims


def test_copies_with_several_labels_stand_on_one_side():
    X = np.repeat(np.random.default_rng(1).standard_normal((40, 3)), 5, axis=0)
    gathered = gather(X, np.arange(200) % 2, "labels")
    held, fit = ({row.tobytes() for row in part} for part in (gathered.X_held, gathered.X_ref))
    assert held
    assert not held & fit


def test_two_vectors_that_would_both_be_held_out_are_not():
    """Whatever two vectors there are, some are left to fit on, and all that is said is finite."""
    for seed in range(60):
        X = np.repeat(np.random.default_rng(seed).standard_normal((2, 3)), 30, axis=0)
        found = diagnose(X, np.arange(60) % 2)
        assert found.held_out < 60
        assert found.vectors.rank == 1


def test_copies_never_stand_on_both_sides():
    X = np.repeat(np.random.default_rng(1).standard_normal((40, 3)), 5, axis=0)
    gathered = gather(X, np.repeat(np.arange(40) % 2, 5), "labels")
    held, fit = ({row.tobytes() for row in part} for part in (gathered.X_held, gathered.X_ref))
    assert held
    assert not held & fit


def test_input_is_not_changed(digits):
    X, y = digits.X[:200].copy(), digits.y[:200].copy()
    X.flags.writeable = y.flags.writeable = False
    diagnose(X, y, image_shape=(8, 8))
    np.testing.assert_array_equal(X, digits.X[:200])


def test_without_labels_the_label_free_parts_are_given(digits):
    found = diagnose(digits.X)
    assert found.denoising is not None
    assert found.alignment is None
    assert "it needs labels or targets" in found.sentences()[-1]


def odd_inputs():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 6))
    y = np.arange(80) % 3
    wide = rng.standard_normal((30, 90))
    constant = X.copy()
    constant[:, 2] = 7
    alone = y.copy()
    alone[11] = 9
    yield "one class", X, np.zeros(80, int)
    yield "a class of one", X, alone
    yield "classes of one", X[:6], np.arange(6)
    yield "constant column", constant, y
    yield "all constant", np.ones((50, 4)), np.arange(50) % 2
    yield "few rows", wide, np.arange(30) % 2
    yield "two rows", X[:2], y[:2]
    yield "one column", X[:, :1], y
    yield "text labels", X, np.array(["a", "b", "c"])[y]
    yield "objects", X, np.array(["a", "b", "c"], dtype=object)[y]
    yield "booleans", X, y == 1
    yield "targets", X, X[:, 0] + 1.0
    yield "two targets", X, X[:, :2]
    yield "one value", X, np.full(80, 2.5)
    yield "copies", np.repeat(X[:1], 60, axis=0), np.arange(60) % 2
    yield "float16", X.astype(np.float16), y
    yield "integers", (10 * X).astype(int), y
    yield "huge numbers", 1e150 * X, y
    yield "tiny numbers", 1e-90 * X, y


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in odd_inputs()])
def test_odd_input_gets_a_diagnosis_in_finite_numbers(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = diagnose(X, y)
    assert Diagnosis.from_json(found.to_json()) == found
    assert "nan" not in found.render().lower().split()
    for part in PARTS:
        assert (getattr(found, part) is None) == (part in found.left_out)


@pytest.mark.parametrize(("scale", "said"), [(1e150, "scale them down"), (1e-90, "scale them up")])
def test_numbers_out_of_single_precision_are_not_compared_in_it(scale, said):
    X = np.random.default_rng(8).standard_normal((400, 4))
    found = diagnose(scale * X, X[:, 0] > 0)
    assert found.ranking is None
    assert found.command == ""
    assert said in found.left_out["ranking"]


def test_one_class_raises_an_error():
    found = diagnose(np.random.default_rng(3).standard_normal((50, 4)), np.zeros(50, int))
    assert "all rows have one class" in found.sentences()[-1]


def test_numbers_too_small_to_square_are_not_called_constant():
    assert "vary too little for their precision" in diagnose(1e-200 * np.eye(4)).sentences()[-1]
    assert "do not vary" in diagnose(np.ones((5, 3))).sentences()[-1]


def test_fewer_rows_than_columns_match_full_coordinates():
    """In a basis of the rows, or in full width with zeros for the missing directions: the same."""
    rng = np.random.default_rng(4)
    inner = rng.standard_normal((90, 12)) * 0.8 ** np.arange(12)
    y = np.where(inner[:, 0] > 0, "a", "b")
    basis = np.linalg.qr(rng.standard_normal((150, 12)))[0]
    narrow, wide = diagnose(inner, y), diagnose(inner @ basis.T, y)
    assert wide.vectors.rank == narrow.vectors.rank == 12
    # Different hashes hold other rows out, so curves agree as samples do.
    assert wide.alignment.r2 == pytest.approx(narrow.alignment.r2, abs=0.1)
    assert wide.denoising is not None


@pytest.mark.parametrize(
    ("X", "y", "settings", "said"),
    [
        (np.ones(4), None, {}, "two-dimensional"),
        (np.ones((0, 4)), None, {}, "at least one row"),
        (np.ones((1, 4)), None, {}, "at least two rows"),
        ([[1.0, np.nan], [1.0, 2.0]], None, {}, "NaN or infinity in 1 of 2 rows"),
        ([["a", "b"], ["c", "d"]], None, {}, "takes numbers"),
        (np.eye(4), [0, 1], {}, "as many rows"),
        (np.eye(4), [0, 1, None, 1], {"kind": "labels"}, "1 of 4 have none: Input y contains NaN or None (row 2)"),
        (np.eye(4), [0.0, 1.0, np.nan, 1.0], {}, "in 1 rows (row 2)"),
        (np.eye(4), ["a", "b", "c", "d"], {"kind": "targets"}, "numbers as targets"),
        (np.eye(4), [[0, 1]] * 4, {"kind": "labels"}, "one label a row"),
        (np.eye(4), [0, 1, 0, 1], {"kind": "classes"}, "'kind' parameter"),
        (np.eye(4), None, {"image_shape": (2, 3)}, "whose product is 4"),
        (np.eye(4), None, {"parts": ["allignment"]}, "'parts' parameter"),
    ],
)
def test_bad_input_raises_an_error(X, y, settings, said):
    with pytest.raises(InvalidInputError) as caught:
        diagnose(X, y, **settings)
    assert said in str(caught.value)


def test_names_of_rows_are_not_classes():
    with pytest.raises(InvalidInputError, match="look like names of rows"):
        gather(np.random.default_rng(5).standard_normal((5000, 3)), np.arange(5000))


@pytest.mark.parametrize("width", [3, 300])
@pytest.mark.parametrize("repeated", [0, 5])
def test_names_of_few_rows_are_not_classes(width, repeated):
    X = np.random.default_rng(6).standard_normal((200, width))
    names = np.array([f"row {max(i, repeated)}" for i in range(200)])
    with pytest.raises(InvalidInputError, match=f"{199 - repeated if repeated else 200} of 200 labels occur once"):
        diagnose(X, names)


def test_small_classes_are_classes():
    X = np.random.default_rng(7).standard_normal((200, 3))
    assert diagnose(X, np.arange(200) // 2, parts=[]).kind == "labels"


def test_progress_names_every_part(digits):
    said = []
    found = diagnose(digits.X[:200], digits.y[:200], progress=said.append)
    tried = [f"objective {trial.name}" for trial in found.ranking.trials]
    assert [name for name in said if name not in tried] == ["spectrum", *(part.replace("_", " ") for part in PARTS)]
    assert set(tried) < set(said)
