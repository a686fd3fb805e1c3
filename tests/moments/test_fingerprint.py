"""The fingerprint of rows: blind to batching, partition and order, and to nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from firstk import PrefixEncoder
from firstk.moments.fingerprint import Fingerprint, _odd_numbers

RNG = np.random.default_rng(5)
X = RNG.standard_normal((9000, 7))  # more rows than a block
Y = np.array(["cat", "elephant", "ox"])[np.arange(9000) % 3]
MASK = 2**64 - 1


def slow(columns):
    """The definition, in Python's integers, a row at a time."""
    seeds = {"X": 1, "y": 2, "weight": 3}
    total = 0
    for i in range(len(columns["X"])):
        h = 1
        for name, part in columns.items():
            row = part[i]
            row = [float(ord(sign)) for sign in row] if isinstance(row, str) else np.atleast_1d(row)
            row = np.asarray(row)
            if row.dtype == np.float32 and len(row) % 2:
                row = np.append(row, np.float32(0))
            words = np.frombuffer(row.tobytes(), np.uint64).tolist()
            odd = (2 * np.random.default_rng(seeds[name]).integers(0, 2**63, len(words), dtype=np.uint64) + 1).tolist()
            h = (h + sum(a * b for a, b in zip(words, odd, strict=True))) & MASK
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            h = ((h ^ (h >> shift)) * factor) & MASK
        total = (total + (h ^ (h >> 31))) & MASK
    return Fingerprint(len(columns["X"]), total)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_is_what_its_definition_says(dtype):
    columns = {"X": X[:50].astype(dtype), "y": Y[:50], "weight": np.abs(X[:50, 0])}
    assert Fingerprint.of(columns) == slow(columns)


def test_any_order_and_any_partition_give_the_same():
    whole = Fingerprint.of({"X": X, "y": Y})
    order = RNG.permutation(len(X))
    assert Fingerprint.of({"X": X[order], "y": Y[order]}) == whole
    parts = np.split(order, [1, 2, 500, 5000])
    total = Fingerprint()
    for part in parts:
        total += Fingerprint.of({"X": X[part], "y": Y[part].tolist()})  # labels of other lengths in each part
    assert total == whole


def test_every_way_of_writing_the_rows_gives_the_same():
    whole = Fingerprint.of({"X": X})
    thin = np.where(np.abs(X) > 1, X, 0.0)
    assert Fingerprint.of({"X": np.asfortranarray(X)}) == whole
    assert Fingerprint.of({"X": np.hstack([X, X])[:, :7]}) == whole
    assert Fingerprint.of({"X": X, "y": None}) == whole
    assert Fingerprint.of({"X": sparse.csr_matrix(thin)}) == Fingerprint.of({"X": thin})


def changed(at, value):
    spoiled = X.copy()
    spoiled[at] = value
    return spoiled


@pytest.mark.parametrize(
    "columns",
    [
        {"X": changed((8999, 6), 1.0)},
        {"X": changed((0, 0), np.nextafter(X[0, 0], 2))},
        {"X": X[:-1]},
        {"X": np.vstack([X, X[:1]])},
        {"X": np.vstack([X, np.zeros((1, 7))])},
        {"X": X[:, ::-1]},
        {"X": np.column_stack([X[:, :-1], np.roll(X[:, -1], 1)])},  # the same columns, joined in other rows
        {"X": X, "weight": np.ones(9000)},
        {"left": X, "right": X},
    ],
    ids=["a number", "the last bit", "a row less", "a row twice", "zeros", "columns", "joined", "weights", "pairs"],
)
def test_any_change_changes_it(columns):
    assert Fingerprint.of(columns) != Fingerprint.of({"X": X})


def test_labels_belong_to_their_rows():
    assert Fingerprint.of({"X": X, "y": np.roll(Y, 1)}) != Fingerprint.of({"X": X, "y": Y})


def test_multipliers_do_not_depend_on_the_width():
    assert _odd_numbers(0, 9)[:4].tolist() == _odd_numbers(0, 4).tolist()
    assert (_odd_numbers(0, 9) % 2 == 1).all()


def fingerprint(enc):
    return enc.encoder_.record.data_fingerprint


def test_streams_and_merges_have_the_fingerprint_of_the_whole():
    rows, labels = X[:300], Y[:300]
    whole = PrefixEncoder(objective="fisher").fit(rows, labels)
    streamed = PrefixEncoder(objective="fisher").partial_fit(rows[200:], labels[200:])
    streamed.merge(PrefixEncoder(objective="fisher").partial_fit(rows[:200], labels[:200]))
    assert fingerprint(streamed) == fingerprint(whole) == str(Fingerprint.of({"X": rows, "y": labels}))


def test_fewer_rows_than_columns_have_the_fingerprint_of_the_rows():
    few = np.random.default_rng(0).standard_normal((5, 8))
    assert fingerprint(PrefixEncoder().fit(few)) == str(Fingerprint.of({"X": few}))
    streamed = PrefixEncoder().fit(few[:3]).partial_fit(few[3:])
    assert fingerprint(streamed) == fingerprint(PrefixEncoder().fit(few))


def test_pairs_have_one():
    enc = PrefixEncoder(2, objective="similarity").fit_pairs(X[:200], X[:200] + 0.1)
    assert fingerprint(enc).startswith("200 rows, ")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [6, 7])
def test_sparse_rows_have_the_fingerprint_of_dense_ones(dtype, width):
    rng = np.random.default_rng(4)
    dense = (rng.standard_normal((40, width)) * (rng.random((40, width)) < 0.3) + 0.0).astype(dtype)
    dense[3] = 0
    rows, columns = np.nonzero(dense)
    halves = np.tile(dense[rows, columns] / 2, 2)  # every number in two entries that add up to it
    twice = sparse.csr_matrix((halves, (np.tile(rows, 2), np.tile(columns, 2))), shape=dense.shape)
    signed_zero = sparse.csr_matrix(dense)
    signed_zero.data = np.where(np.arange(signed_zero.nnz) == 0, dtype(-0.0), signed_zero.data)
    assert Fingerprint.of({"X": twice}) == Fingerprint.of({"X": dense})
    assert Fingerprint.of({"X": signed_zero}) == Fingerprint.of({"X": signed_zero.toarray()})
