"""Statistics as bytes between workers and a driver: the calling conventions of Spark and Ray, without either."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.estimator.encoding import Wish
from firstk.exceptions import CorruptModelError, IllegalCombinationError, InvalidInputError
from firstk.integrations._arrow_batches import coder
from firstk.integrations.parts import ShortSampleError, _below, _merged, finish, measure, merge
from firstk.moments.fingerprint import row_priorities

pd = pytest.importorskip("pandas", reason="needs pandas, as Spark and Ray do here")

RNG = np.random.default_rng(0)
N, P, C = 300, 5, 3
Y = RNG.integers(0, C, N)
X = RNG.normal(size=(N, P)) * [4.0, 3.0, 2.0, 1.0, 0.5] + RNG.normal(size=(C, P))[Y] * 2
NAMES = np.array(["red", "green", "blue"])[Y]
CUTS = [0, 1, 90, 90, 200, 300]  # one partition is empty


def frames(first, last, size=40):
    """Yield what Spark's mapInPandas hands to a function: an iterator of frames, with vectors as lists."""
    for start in range(first, last, size):
        rows = slice(start, min(start + size, last))
        yield pd.DataFrame({"vector": list(map(list, X[rows])), "label": NAMES[rows]})


def map_in_pandas(function):
    """Do what Spark does: call the function once a partition, on an iterator, and collect the rows it yields."""
    parts = [list(function(frames(a, b))) for a, b in itertools.pairwise(CUTS)]
    return [row for part in parts for frame in part for row in frame.itertuples(index=False)]


def test_the_recipe_for_spark():
    encoder = PrefixEncoder(objective="fisher")

    def partition(frames):
        batches = ({"X": np.stack(frame["vector"]), "y": frame["label"].to_numpy()} for frame in frames)
        yield pd.DataFrame({"moments": [measure(encoder, batches)]})

    finish(encoder, (bytes(row.moments) for row in map_in_pandas(partition)))
    expected = PrefixEncoder(objective="fisher").fit(X, NAMES)
    np.testing.assert_allclose(encoder.components_, expected.components_, rtol=0, atol=1e-9)
    assert list(encoder.encoder_.head.classes) == ["blue", "green", "red"]
    assert encoder.encoder_.record.data_fingerprint == expected.encoder_.record.data_fingerprint


def test_the_recipe_for_ray():
    encoder = PrefixEncoder(objective="fisher")

    def batch(columns):  # Ray Data hands over a mapping of arrays, and takes one
        return {"moments": np.array([measure(encoder, [{"X": columns["vector"], "y": columns["label"]}])], object)}

    batches = [{"vector": X[a:b], "label": Y[a:b]} for a, b in itertools.pairwise(CUTS)]
    rows = [row for columns in batches for row in batch(columns)["moments"]]
    finish(encoder, rows)
    np.testing.assert_allclose(
        encoder.components_, PrefixEncoder(objective="fisher").fit(X, Y).components_, rtol=0, atol=1e-9
    )


def test_a_tree_of_merges_gives_the_same(monkeypatch):
    monkeypatch.setattr("firstk.moments.statistics._SAMPLE_ROWS", 20)  # in place of 8,192, which few rows do not fill
    encoder = PrefixEncoder()
    parts = [measure(encoder, [X[i : i + 30]]) for i in range(0, N, 30)]
    tree = merge([merge(parts[:3]), merge(parts[3:7]), merge([]), merge(parts[7:])])
    found = finish(PrefixEncoder(), [tree])
    np.testing.assert_allclose(found.components_, PrefixEncoder().fit(X).components_, rtol=0, atol=1e-9)
    assert len(tree) < 3 * len(parts[0]), "what travels does not grow with the number of rows"


@pytest.mark.parametrize("cuts", [CUTS, [0, 295, 296, 297, 298, 300]], ids=["even", "one large"])
def test_parts_that_know_the_number_of_rows_hold_little_more_than_one_sample(monkeypatch, cuts):
    monkeypatch.setattr("firstk.moments.statistics._SAMPLE_ROWS", 4)  # in place of 8,192; some 85 rows are kept
    encoder = PrefixEncoder()
    parts = [measure(encoder, [X[a:b]], rows=N) for a, b in itertools.pairwise(cuts)]
    held = [statistics for part in parts if (statistics := _merged([part])[0]) is not None]
    below = _below(4, N)
    hashes = np.sort(np.concatenate([part.sample.priority for part in held]))
    everything = row_priorities({"X": X})
    np.testing.assert_array_equal(hashes, np.sort(np.concatenate([
        np.sort(everything[a:b])[:4] for a, b in itertools.pairwise(cuts) if b > a
    ]))[: len(hashes)])  # fmt: skip
    assert (hashes < below).all()
    whole = _merged([measure(encoder, [X])])[0].sample
    assert _merged(parts)[0].sample["X"].tobytes() == whole["X"].tobytes()
    np.testing.assert_allclose(finish(encoder, [merge(parts[:2]), merge(parts[2:])]).components_,
                               PrefixEncoder().fit(X).components_, atol=1e-9)  # fmt: skip


def test_a_sample_that_came_out_short_is_noticed():
    """Of many equal rows, one hash decides whether all of them are kept or none."""
    assert _below(100, 244) is None  # all are kept: 100 and eight deviations
    below = _below(8192, 10**6)
    assert (np.random.default_rng(0).integers(0, 2**64, 10**6, dtype=np.uint64) < below).sum() > 8192
    encoder, same = PrefixEncoder(), np.repeat(X[:20], 15, axis=0)
    with pytest.raises(ShortSampleError, match=r"hold \d+ rows of a sample of \d+: many rows are equal"):
        finish(encoder, [measure(encoder, [same], rows=10**6)])
    finish(encoder, [measure(encoder, [same])])
    with pytest.raises(InvalidInputError, match="Part 1 has rows 'None', other parts have another"):
        merge([measure(encoder, [X], rows=N), measure(encoder, [X])])


def test_pairs_and_their_sample_travel():
    left, right = X, X + RNG.normal(size=X.shape)
    encoder = PrefixEncoder(2, objective="similarity")
    parts = [measure(encoder, [(left[a:b], right[a:b])], pairs=True) for a, b in itertools.pairwise(CUTS)]
    found = finish(encoder, parts)
    expected = PrefixEncoder(2, objective="similarity").fit_pairs(left, right)
    np.testing.assert_allclose(found.components_, expected.components_, rtol=0, atol=1e-9)
    assert found.objective_ == expected.objective_


def test_bad_parts_get_a_sentence():
    part = measure(PrefixEncoder(), [X])
    with pytest.raises(InvalidInputError, match="No partition had a row"):
        finish(PrefixEncoder(), [measure(PrefixEncoder(), []), merge([])])
    with pytest.raises(CorruptModelError, match="Part 1 cannot be read"):
        finish(PrefixEncoder(), [part, part[:-20]])
    with pytest.raises(InvalidInputError, match="objective 'reconstruction', and the encoder has 'fisher'"):
        finish(PrefixEncoder(objective="fisher"), [part])
    with pytest.raises(InvalidInputError, match="Part 1 has objective 'fisher', other parts have another"):
        merge([part, measure(PrefixEncoder(objective="fisher"), [(X, Y)])])
    with pytest.raises(InvalidInputError, match="cannot take in"):
        finish(PrefixEncoder(), [part, measure(PrefixEncoder(), [X[:, :3]])])
    with pytest.raises(ValueError, match="NaN"):
        measure(PrefixEncoder(), [np.full((3, 2), np.nan)])


def test_training_on_rows_raises():
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    with pytest.raises(IllegalCombinationError, match=r"integrations\.distributed"):
        measure(PrefixEncoder(objective="classification"), [(X, Y)])


@pytest.mark.parametrize("rows", [-1, 2.5, "many", True])
def test_a_number_of_rows_that_is_none_raises_an_error(rows):
    with pytest.raises(InvalidInputError, match="'rows' parameter of measure"):
        measure(PrefixEncoder(2), [np.eye(4)], rows=rows)


def test_a_coder_travels_as_the_files_of_a_model():
    pytest.importorskip("pyarrow", reason="needs the extra 'tables'")
    made = coder(PrefixEncoder(3).fit(X), ["vector"], "vector", Wish(k=2), "refuse", [])
    assert made.metadata, "the driver reads the model too"
    sent = pickle.loads(pickle.dumps(made))
    assert all(isinstance(part, bytes) for part in sent.files.values())
    assert {type(value) for value in vars(sent).values()} <= {dict, Wish, str}
    assert sent.metadata == made.metadata
