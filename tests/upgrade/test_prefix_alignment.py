"""The estimator: streams, merges, weights, dask, bad input, and scikit-learn's habits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from firstk import PrefixAlignment
from firstk.exceptions import AlignmentWarning, InvalidInputError
from firstk.upgrade import prefix_alignment
from firstk.upgrade.methods import (
    CCA,
    ClosedFormMethod,
    Procrustes,
    Ridge,
    WhitenedRidge,
    from_translations,
)
from upgrade.pairs import pairs

METHODS = [Procrustes(), Ridge(0.1), CCA(0.2, 0.5), WhitenedRidge(0.1, 0.3), "auto"]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_any_batches_and_any_order_give_what_one_fit_gives(method):
    old, new = pairs(n=500)
    whole = PrefixAlignment(method=method).fit(old, new)
    order = np.random.default_rng(0).permutation(500)
    streamed, other = PrefixAlignment(method=method), PrefixAlignment(method=method)
    for rows in np.array_split(order[:300], 3):
        streamed.partial_fit(old[rows], new[rows])
    streamed.merge(other.partial_fit(old[order[300:]], new[order[300:]]))
    assert streamed.method_ == whole.method_
    for name, vectors in (("encode_old", old), ("encode_new", new), ("old_to_new", old), ("new_to_old", new)):
        np.testing.assert_allclose(getattr(streamed, name)(vectors), getattr(whole, name)(vectors), rtol=0, atol=1e-10)
    assert streamed.n_pairs_ == 500
    assert other.n_pairs_ == 200


def test_a_weight_of_two_is_a_row_twice_and_of_zero_none():
    old, new = pairs(n=300)
    weight = np.random.default_rng(0).integers(0, 3, 300)
    weighted = PrefixAlignment(method=Ridge(0.1)).fit(old, new, sample_weight=weight)
    repeated = PrefixAlignment(method=Ridge(0.1)).fit(np.repeat(old, weight, axis=0), np.repeat(new, weight, axis=0))
    np.testing.assert_allclose(weighted.encode_old(old), repeated.encode_old(old), atol=1e-10)


def test_dask_arrays_and_memory_maps_are_taken(tmp_path):
    arrays = pytest.importorskip("dask.array")
    old, new = pairs(n=300)
    whole = PrefixAlignment(method=CCA(0.2, 0.5)).fit(old, new)
    chunked = PrefixAlignment(method=CCA(0.2, 0.5)).fit(
        arrays.from_array(old, chunks=(70, 3)), arrays.from_array(new, chunks=(110, 5))
    )
    np.testing.assert_allclose(chunked.encode_old(old), whole.encode_old(old), atol=1e-10)
    with pytest.raises(InvalidInputError, match="as many rows"):
        PrefixAlignment().fit(arrays.from_array(old), arrays.from_array(new[:9]))
    np.save(tmp_path / "old.npy", old)
    mapped = PrefixAlignment(method=CCA(0.2, 0.5)).fit(np.load(tmp_path / "old.npy", mmap_mode="r"), new)
    np.testing.assert_array_equal(mapped.encode_old(old), whole.encode_old(old))


def test_moments_that_were_saved_learn_on(tmp_path):
    old, new = pairs(n=300)
    PrefixAlignment(method=Ridge(0.1)).fit(old[:200], new[:200]).save(tmp_path / "a", moments=True)
    again = PrefixAlignment.load(tmp_path / "a").partial_fit(old[200:], new[200:])
    whole = PrefixAlignment(method=Ridge(0.1)).fit(old, new)
    np.testing.assert_allclose(again.encode_old(old), whole.encode_old(old), atol=1e-10)
    with pytest.raises(InvalidInputError, match="cannot learn on"):
        whole[:2].save(tmp_path / "b", moments=True)


def test_inputs_are_not_changed():
    old, new = pairs(n=200)
    before = old.copy(), new.copy()
    alignment = PrefixAlignment().fit(old, new)
    alignment.encode_old(old), alignment.old_to_new(old), alignment.new_to_old(new)
    np.testing.assert_array_equal(old, before[0])
    np.testing.assert_array_equal(new, before[1])


# -- bad input -------------------------------------------------------------------------------------------------------


def test_bad_pairs_are_errors_with_a_way_out():
    old, new = pairs(n=100)
    holed = old.copy()
    holed[5] = np.inf
    for bad_old, bad_new, message in [
        (holed, new, "takes finite numbers; 'old' has NaN or infinity in 1 of 100 rows (row 5)"),
        (old, new[:90], "needs as many rows in 'old' as in 'new'. Got 100 and 90"),
        (old[:, :0], new, "needs at least one row and one column in 'old'"),
        (old[0], new[0], "two-dimensional 'old'"),
        (old[:1], new[:1], "needs at least two pairs whose weight is not zero. Got 1"),
        (old[:20], new[:20], "needs at least 50 pairs. Got 20: give more pairs, or a method with its settings"),
        (np.ones_like(old), new, "all 100 rows of 'old' are the same"),
        (old, np.array([["a"] * 5] * 100), "takes numbers; 'new' holds something else"),
    ]:
        with pytest.raises(InvalidInputError) as caught:
            PrefixAlignment().fit(bad_old, bad_new)
        assert message in str(caught.value)
        assert "PrefixAlignment" in str(caught.value)


def test_what_is_no_array_of_vectors_is_told():
    old, new = pairs(n=100)
    with pytest.raises(InvalidInputError, match="'old' is a sparse matrix"):
        PrefixAlignment(method="procrustes").fit(sparse.csr_matrix(old), new)
    with pytest.raises(InvalidInputError, match="two-dimensional 'new'"):
        PrefixAlignment(method="procrustes").fit(old, None)
    with pytest.raises(InvalidInputError, match="Got 1: embed more"):
        PrefixAlignment(method="procrustes").fit(old, new, np.eye(100)[3])


def test_rows_of_a_frame_are_taken_in_their_order():
    """Slices of a frame whose index is of floats go by labels."""
    old, new = pairs(n=100)
    frame = pd.DataFrame(old, index=np.linspace(1000, 2000, 100))
    found, plain = (PrefixAlignment(method="procrustes").fit(side, new) for side in (frame, old))
    np.testing.assert_array_equal(found.encode_old(old), plain.encode_old(old))


def test_a_row_is_named_by_its_number_in_the_whole(monkeypatch):
    old, new = pairs(n=100)
    old[57, 1] = np.nan
    monkeypatch.setattr(prefix_alignment, "chunk_rows", lambda width: 10)
    with pytest.raises(InvalidInputError, match=r"1 of 100 rows \(row 57\)"):
        PrefixAlignment(method="procrustes").fit(old, new)


def test_a_fit_that_fails_leaves_the_one_before():
    old, new = pairs(n=100)
    alignment = PrefixAlignment(method="procrustes").fit(old, new)
    with pytest.raises(InvalidInputError, match="needs vectors that vary"):
        alignment.fit(np.ones_like(old), new)
    again = alignment.partial_fit(old, new)
    assert again.n_pairs_ == 200


@pytest.mark.parametrize("method", ["auto", Procrustes(), CCA(0.2, 0.5)], ids=repr)
def test_rows_that_do_not_correspond_are_said_to(method):
    old, new = pairs(n=400)
    with pytest.warns(AlignmentWarning, match="do not seem to be of the same texts"):
        PrefixAlignment(method=method).fit(old, new[np.random.default_rng(1).permutation(400)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrefixAlignment(method=method).fit(old, new)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "The 'n_components' parameter of PrefixAlignment must be a positive int or None"),
        ({"n_components": 99}, r"must be an int in \[1, 5\]"),
        ({"method": "magic"}, "The 'method' parameter of PrefixAlignment must be one of 'procrustes'"),
        ({"method": 3}, "The 'method' parameter of PrefixAlignment"),
        ({"verbose": "loud"}, "The 'verbose' parameter of PrefixAlignment"),
    ],
)
def test_wrong_parameters_are_errors(settings, message):
    old, new = pairs(n=100)
    with pytest.raises(InvalidInputError, match=message):
        PrefixAlignment(**{"method": "procrustes"} | settings).fit(old, new)


# -- scikit-learn ----------------------------------------------------------------------------------------------------


def test_parameters_copies_and_text():
    alignment = PrefixAlignment(8, method=CCA(0.3))
    assert clone(alignment).get_params() == alignment.get_params()
    assert set(alignment.get_params()) == {"n_components", "method", "verbose"}
    expected = "PrefixAlignment(method=CCA(shrinkage=0.3, power='auto', center=False), n_components=8)"
    assert " ".join(repr(alignment).split()) == expected
    for name in ("alignment_", "method_", "choice_", "n_components_", "spectrum_"):
        with pytest.raises(NotFittedError, match="has seen no pairs yet"):
            getattr(alignment, name)


@dataclass(frozen=True)
class Shift(ClosedFormMethod):
    """The user's own method: the means are exchanged, and nothing else."""

    name: ClassVar[str] = "shift"

    def solve(self, moments, rows=None):
        return from_translations(moments, np.eye(moments.q, moments.p), np.eye(moments.p, moments.q))


def test_a_method_of_the_users_own_is_taken_by_protocol_and_saved_without_its_code(tmp_path):
    old, new = pairs(n=100, p=5, q=5)
    alignment = PrefixAlignment(method=Shift()).fit(old, new)
    np.testing.assert_allclose(alignment.old_to_new(old), old - old.mean(axis=0) + new.mean(axis=0), atol=1e-12)
    alignment.save(tmp_path / "own")
    again = PrefixAlignment.load(tmp_path / "own")
    np.testing.assert_array_equal(again.old_to_new(old), alignment.old_to_new(old))
    with pytest.raises(InvalidInputError, match="a class of your own, which is not saved"):
        again.fit(old, new)
    with pytest.raises(InvalidInputError, match=r"lacks .* attributes of firstk\.upgrade\.contract\.AlignmentMethod"):
        PrefixAlignment(method=type("Half", (), {"name": "half"})()).fit(old, new)


@pytest.mark.parametrize("spread", [1, 10])
@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_a_noiseless_rotation_comes_back_with_its_lengths(spread, mean):
    rng = np.random.default_rng(0)
    old = rng.normal(size=(400, 30)) * np.geomspace(1, 1 / spread, 30) + mean * rng.normal(size=30)
    size = 10.0
    turn = size * np.linalg.qr(rng.normal(size=(30, 30)))[0]
    new = old @ turn
    alignment = PrefixAlignment().fit(old[:300], new[:300])
    np.testing.assert_allclose(alignment.old_to_new(old), new, atol=1e-6 * size)
    np.testing.assert_allclose(alignment.new_to_old(new), old, atol=1e-6)
    # A store of which a half was embedded again ranks as one that was embedded again as a whole.
    mixed = np.where(np.arange(400)[:, None] % 2 == 0, new, alignment.old_to_new(old))
    queries = rng.normal(size=(20, 30)) @ turn
    found, expected = (np.argsort(-queries @ store.T, axis=1)[:, :10] for store in (mixed, new))
    assert (found == expected).all()


@pytest.mark.parametrize("method", ["auto", Ridge(0.7), "cca", "whitened_ridge", "reduced_rank", "procrustes_ridge"])
def test_translations_have_the_scale_of_least_squares(method):
    old, new = pairs(n=300)
    alignment = PrefixAlignment(method=method).fit(old, new)
    for translate, start, end in ((alignment.old_to_new, old, new), (alignment.new_to_old, new, old)):
        solution = alignment.alignment_.solution
        offset = (solution.old_to_new if end is new else solution.new_to_old).offset
        found, goal = translate(start) - offset, end - offset
        assert np.vdot(found, goal) == pytest.approx(np.vdot(found, found), rel=1e-9)
