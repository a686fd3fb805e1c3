"""pandas, Polars and Arrow tables, as tables of vectors and as the input of an estimator."""

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.data.files import open_vectors
from firstk.exceptions import InvalidInputError

pd = pytest.importorskip("pandas", reason="needs pandas")
pl = pytest.importorskip("polars", reason="needs Polars")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)).astype(np.float32)
Y = np.arange(60) % 3
X[:, 0] += 2 * Y

LISTS = {
    "pandas": pd.DataFrame({"e": list(X), "label": Y}),
    "pandas lists": pd.DataFrame({"e": X.astype(float).tolist(), "label": Y}),
    "pandas arrow": pd.DataFrame({"e": pd.array(X.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float32()))), "label": Y}),
    "polars": pl.DataFrame({"e": X, "label": Y}),
    "polars lists": pl.DataFrame({"e": X.tolist(), "label": Y}),
    "arrow": pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 5), "label": Y}),
}
NAMES = [f"x{j}" for j in range(5)]
NUMBERS = {
    "pandas": pd.DataFrame(X, columns=NAMES),
    "polars": pl.DataFrame(X, schema=NAMES),
    "arrow": pa.table({name: X[:, j] for j, name in enumerate(NAMES)}),
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_column_of_lists(kind):
    table = open_vectors(LISTS[kind])
    assert (table.vectors, table.columns, table.rows, table.width) == ("e", ("label",), 60, 5)
    batches = list(table.batches(7, ("label",)))
    np.testing.assert_allclose(np.concatenate([batch.vectors for batch in batches]), X)
    np.testing.assert_array_equal(np.concatenate([batch.columns["label"] for batch in batches]), Y)


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_column_a_coordinate(kind):
    table = open_vectors(NUMBERS[kind])
    assert (table.vectors, table.members, table.dtype) == ("x", tuple(NAMES), np.float32)
    np.testing.assert_array_equal(table.read().vectors, X)


@pytest.mark.parametrize("kind", LISTS)
def test_an_estimator_finds_the_vectors(kind):
    expected = PrefixEncoder(2, objective="fisher").fit(X.astype(float), Y)
    found = PrefixEncoder(2, objective="fisher").fit(LISTS[kind], LISTS[kind]["label"])
    np.testing.assert_allclose(found.transform(LISTS[kind]), expected.transform(X.astype(float)), rtol=2e-4, atol=2e-4)
    assert found.n_features_in_ == 5


@pytest.mark.parametrize("kind", NUMBERS)
def test_an_estimator_knows_names_and_types(kind):
    frame = NUMBERS[kind]
    encoder = PrefixEncoder(2).fit(frame)
    assert list(encoder.feature_names_in_) == NAMES
    assert encoder.transform(frame).dtype == np.float32  # float32 in, float32 out
    expected = PrefixEncoder(2).fit(X)
    np.testing.assert_array_equal(encoder.transform(frame), expected.transform(X))
    assert encoder.curve(frame).full == expected.curve(X).full
    swapped = frame[NAMES[::-1]] if kind != "arrow" else frame.select(NAMES[::-1])
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform(swapped)


def test_pairs_of_frames():
    expected = PrefixEncoder(2, objective="similarity").fit_pairs(X, X[::-1])
    for left, right in [
        (NUMBERS["polars"], NUMBERS["polars"].reverse()),
        (LISTS["polars"][["e"]], LISTS["polars"][["e"]].reverse()),
        (NUMBERS["pandas"], NUMBERS["pandas"][::-1]),
    ]:
        found = PrefixEncoder(2, objective="similarity").fit_pairs(left, right)
        np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-5, atol=1e-6)


def test_labels_in_a_table_of_one_column():
    encoder = PrefixEncoder(2, objective="fisher").fit(X, Y)
    for y in (Y[:, None], pl.DataFrame({"y": Y}), pa.table({"y": Y}), pd.DataFrame({"y": Y})):
        assert encoder.score(X, y) == encoder.score(X, Y)


def test_what_is_no_table():
    with pytest.raises(InvalidInputError, match="collect a lazy frame first"):
        open_vectors(LISTS["polars"].lazy())
    with pytest.raises(InvalidInputError, match="collect it first"):
        PrefixEncoder(2).fit(LISTS["polars"].lazy())
    with pytest.raises(InvalidInputError, match="Got int"):
        open_vectors(3)
    ragged = pl.DataFrame({"e": [[1.0, 2.0], [3.0]]})
    with pytest.raises(InvalidInputError, match="row 1 has 1"):
        PrefixEncoder(1).fit(ragged)
