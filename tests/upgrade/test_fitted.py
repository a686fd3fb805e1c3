"""The shared code of every method: its order, its cosines, its cuts, its file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from firstk import PrefixAlignment, PrefixEncoder
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.upgrade.methods import CCA, Procrustes, ProcrustesRidge, ReducedRank, Ridge
from upgrade.pairs import cosines, pairs

TRANSLATIONS = [Procrustes(), Ridge(0.1), ProcrustesRidge(0.3), ReducedRank(3, 0.1)]
METHODS = [*TRANSLATIONS, CCA(0.2, 0.5), CCA(0.2, 1.0, center=True)]
every_method = pytest.mark.parametrize("method", METHODS, ids=repr)


def fitted(method, p=6, q=9, **settings):
    old, new = pairs(p=p, q=q, **settings)
    return PrefixAlignment(method=method).fit(old, new), old, new


@pytest.mark.parametrize("method", TRANSLATIONS, ids=repr)
@pytest.mark.parametrize("unit", [True, False])
def test_into_a_space_that_translations_span_the_code_has_their_cosines(method, unit):
    alignment, old, new = fitted(method, p=9, q=6, unit=unit)
    codes = alignment.encode_old(old), alignment.encode_new(new)
    if alignment.n_components_ == 6:
        np.testing.assert_allclose(cosines(*codes), cosines(alignment.old_to_new(old), new), atol=1e-9)
    else:  # a map of rank 3 and the mean span 4 dimensions: every query has its own factor, and the same neighbors
        assert alignment.n_components_ == 4
        ours, theirs = cosines(*codes).T, cosines(alignment.old_to_new(old), new).T
        np.testing.assert_allclose(
            ours / np.linalg.norm(ours, axis=1, keepdims=True),
            theirs / np.linalg.norm(theirs, axis=1, keepdims=True),
            atol=1e-9,
        )


@pytest.mark.parametrize("method", TRANSLATIONS, ids=repr)
def test_into_a_wider_space_the_code_orders_neighbors_as_translations_do(method):
    alignment, old, new = fitted(method, p=4, q=9)
    assert alignment.n_components_ <= 5
    ours = cosines(alignment.encode_new(new), alignment.encode_old(old))
    theirs = cosines(new, alignment.old_to_new(old))
    factor = np.einsum("ij,ij->i", ours, theirs) / np.einsum("ij,ij->i", theirs, theirs)
    np.testing.assert_allclose(ours, theirs * factor[:, None], atol=1e-9)


@pytest.mark.parametrize("method", TRANSLATIONS, ids=repr)
def test_no_other_axes_have_more_agreement_than_the_first_k(method):
    alignment, old, new = fitted(method, p=9, q=6)
    translated = alignment.alignment_.solution.old_to_new(old, "test")
    agreement = translated.T @ new / len(new)
    codes = alignment.encode_old(old), alignment.encode_new(new)
    along = np.einsum("ij,ij->j", *codes) / len(new)
    np.testing.assert_allclose(along, alignment.spectrum_, atol=1e-8 * np.abs(along).max())
    assert (np.diff(alignment.spectrum_) <= 1e-12).all()
    rng = np.random.default_rng(0)
    for k in range(1, 4):
        for _ in range(50):
            other = np.linalg.qr(rng.normal(size=(6, k)))[0]
            assert np.trace(other.T @ agreement @ other) <= along[:k].sum() + 1e-9


@every_method
def test_a_cut_is_the_beginning_of_the_code_and_leaves_translations(method):
    alignment, old, new = fitted(method)
    short = alignment[:3]
    np.testing.assert_array_equal(short.encode_old(old), alignment.encode_old(old, 3))
    np.testing.assert_allclose(alignment.encode_new(new, 3), alignment.encode_new(new)[:, :3], atol=1e-12)
    np.testing.assert_array_equal(short.old_to_new(old), alignment.old_to_new(old))
    assert short.n_components_ == 3
    assert len(short.spectrum_) == 3
    for wrong in (slice(1, 3), slice(0), slice(99), slice(None, 3, 2), 3):
        with pytest.raises(InvalidInputError):
            alignment[wrong]


@every_method
@pytest.mark.parametrize("unit", [True, False])
def test_translations_have_unit_norm_where_the_vectors_have(method, unit):
    alignment, old, new = fitted(method, unit=unit)
    for translated in (alignment.old_to_new(old), alignment.new_to_old(new)):
        norms = np.linalg.norm(translated, axis=1)
        assert np.allclose(norms, 1) == unit
    single = alignment.old_to_new(old.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, alignment.old_to_new(old), atol=1e-4 * np.abs(single).max())


@every_method
def test_a_saved_alignment_is_the_same_to_the_last_bit(tmp_path, method):
    alignment, old, new = fitted(method)
    alignment.save(tmp_path / "upgrade", extra={"note.txt": "kept"})
    again = PrefixAlignment.load(tmp_path / "upgrade")
    assert again.method_ == method
    for name, vectors in (("encode_old", old), ("encode_new", new), ("old_to_new", old), ("new_to_old", new)):
        assert getattr(again, name)(vectors).tobytes() == getattr(alignment, name)(vectors).tobytes()
    assert again.alignment_.fingerprint() == alignment.alignment_.fingerprint()
    assert again.n_pairs_ == len(old)
    with pytest.raises(InvalidInputError, match="cannot learn on"):
        again.partial_fit(old, new)


def test_a_damaged_or_foreign_folder_is_an_error(tmp_path):
    alignment, old, _ = fitted(Ridge(0.1))
    folder = alignment.save(tmp_path / "upgrade")
    with pytest.raises(CorruptModelError, match="holds an alignment, not an encoder: load it with PrefixAlignment"):
        PrefixEncoder.load(folder)
    PrefixEncoder(2).fit(old).save(tmp_path / "encoder")
    with pytest.raises(CorruptModelError, match="holds an encoder, not an alignment: load it with PrefixEncoder"):
        PrefixAlignment.load(tmp_path / "encoder")
    payload = bytearray((folder / "model.safetensors").read_bytes())
    payload[-1] ^= 1
    (folder / "model.safetensors").write_bytes(payload)
    with pytest.raises(CorruptModelError, match="does not match the checksum"):
        PrefixAlignment.load(folder)
    (folder / "config.json").write_text(json.dumps({"format": "firstk-alignment"}))
    with pytest.raises(CorruptModelError):
        PrefixAlignment.load(folder)
    with pytest.raises(CorruptModelError):
        PrefixAlignment.load(tmp_path / "nothing")


def test_a_wrong_k_and_wrong_widths_are_errors():
    alignment, old, new = fitted(Ridge(0.1))
    with pytest.raises(InvalidInputError, match=r"The 'k' parameter of FittedAlignment\.encode_old must be an int in"):
        alignment.encode_old(old, 0)
    with pytest.raises(InvalidInputError, match=r"takes 'X' with 6 columns\. Got 9"):
        alignment.encode_old(new)
    with pytest.raises(InvalidInputError, match=r"takes 'Q' with 9 columns\. Got 6"):
        alignment.new_to_old(old)
