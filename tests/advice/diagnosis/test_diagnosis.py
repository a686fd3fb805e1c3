"""A diagnosis as a whole: the same on any batching, a record that reads back, and an answer to every odd input."""

import json
import warnings

import numpy as np
import pytest

from firstk.advice.diagnosis import Diagnosis, diagnose, diagnose_gathered, gather, gather_batches, row_trials, rows
from firstk.data import load_digits
from firstk.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def found(digits):
    return diagnose(digits.X, digits.y)


def test_the_answer_is_short_and_ends_with_the_call(found):
    lines = str(found).splitlines()
    assert len(lines) <= 20
    assert lines[0].startswith(f"Objective {found.ranking.choice} ")
    assert lines[-3:] == ["", "Next:", f"  {found.command}"]
    assert all(name in str(found) + found.explain() for name in (trial.name for trial in found.ranking.trials))
    assert "firstk_papers.balestriero2024" in found.explain()


def test_reads_back_equal(found):
    assert Diagnosis.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["problems"] == list(found.vectors.problems) == ["lossless", "constant"]


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
    streamed = diagnose_gathered(gather_batches(((X[c], y[c]) for c in cuts), 1797, 64, "labels"))
    assert streamed.vectors.copies == found.vectors.copies
    assert streamed.ranking == found.ranking


def named_otherwise(y):
    """The same classes under other names, in the same order of names."""
    yield "numbers further on", y + 1000
    yield "text", np.array([f"class {label}" for label in y])
    yield "long text", np.array([f"a longer name, {label}" for label in y], dtype=object)


def test_names_of_classes_change_nothing(digits, found):
    for how, y in named_otherwise(digits.y):
        again = diagnose(digits.X, y)
        assert again == found, how


def test_facts_without_labels_are_those_of_all_rows(digits, found):
    alone, variance = diagnose(digits.X, compare=False), digits.X.astype(float).var(axis=0)
    shares = np.cumsum(np.sort(np.linalg.eigvalsh(np.cov(digits.X.T)))[::-1])
    assert found.vectors.effective_dimension == pytest.approx(alone.vectors.effective_dimension, rel=1e-9)
    assert found.vectors.largest_column_share == pytest.approx(variance.max() / variance.sum())
    np.testing.assert_allclose(found.spectrum.score, (shares / shares[-1])[:61], rtol=1e-9)
    assert found.vectors.variance_dims == alone.vectors.variance_dims


@pytest.mark.parametrize(
    "y", [np.arange(200) % 2, np.repeat(np.arange(40) % 2, 5)], ids=["several labels", "one label"]
)
def test_copies_never_stand_on_both_sides(y):
    X = np.repeat(np.random.default_rng(1).standard_normal((40, 3)), 5, axis=0)
    sample = gather(X, y, "labels").sample
    for fold in row_trials(sample["X"], sample["y"], "labels").folds:
        held, fit = ({row.tobytes() for row in part} for part in (fold.data.X, fold.rows.X))
        assert held
        assert not held & fit


def test_a_sample_is_the_same_in_any_order(monkeypatch):
    monkeypatch.setattr(rows, "MOST_ROWS", 300)
    X = np.random.default_rng(3).standard_normal((1000, 4))
    order = np.random.default_rng(4).permutation(1000)
    one, other = (gather(part, kind="none").sample["X"] for part in (X, X[order]))
    assert len(one) == 300
    np.testing.assert_array_equal(one, other)


def test_two_vectors_of_many_copies_are_two_vectors():
    for seed in range(20):
        X = np.repeat(np.random.default_rng(seed).standard_normal((2, 3)), 30, axis=0)
        assert diagnose(X, np.arange(60) % 2).vectors.rank == 1


def test_input_is_not_changed(digits):
    X, y = digits.X[:200].copy(), digits.y[:200].copy()
    X.flags.writeable = y.flags.writeable = False
    diagnose(X, y)
    np.testing.assert_array_equal(X, digits.X[:200])


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
    assert "nan" not in f"{found} {found.explain()}".lower().split()
    assert (found.ranking is None) == bool(found.unranked)
    assert len(str(found).splitlines()) <= 20


@pytest.mark.parametrize(("scale", "said"), [(1e150, "scale them down"), (1e-90, "scale them up")])
def test_numbers_out_of_single_precision_are_not_compared_in_it(scale, said):
    X = np.random.default_rng(8).standard_normal((400, 4))
    found = diagnose(scale * X, X[:, 0] > 0)
    assert found.ranking is None
    assert found.command == ""
    assert said in found.unranked


def test_one_class_is_nothing_to_compare_by():
    found = diagnose(np.random.default_rng(3).standard_normal((50, 4)), np.zeros(50, int))
    assert "all rows have one class" in found.unranked
    assert found.unranked in str(found)


def test_numbers_too_small_to_square_are_not_called_constant():
    assert "vary too little for their precision" in diagnose(1e-200 * np.eye(4)).unranked
    assert "do not vary" in diagnose(np.ones((5, 3))).unranked


def test_fewer_rows_than_columns_match_full_coordinates():
    """In a basis of the rows, or in full width with zeros for the missing directions: the same."""
    rng = np.random.default_rng(4)
    inner = rng.standard_normal((90, 12)) * 0.8 ** np.arange(12)
    y = np.where(inner[:, 0] > 0, "a", "b")
    basis = np.linalg.qr(rng.standard_normal((150, 12)))[0]
    narrow, wide = diagnose(inner, y), diagnose(inner @ basis.T, y)
    assert wide.vectors.rank == narrow.vectors.rank == 12
    np.testing.assert_allclose(wide.spectrum.score, narrow.spectrum.score, rtol=1e-9)


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
    assert diagnose(X, np.arange(200) // 2, compare=False).kind == "labels"


def test_progress_names_every_objective(digits):
    said = []
    found = diagnose(digits.X[:200], digits.y[:200], progress=said.append)
    tried = [f"objective {trial.name}" for trial in found.ranking.trials]
    assert said[:2] == ["spectrum", "ranking"]
    assert set(said[2:]) == set(tried)
