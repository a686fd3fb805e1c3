"""Translations in ONNX and in front of a faiss index: the neighbors of the translation in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixAlignment
from firstk.exceptions import InvalidInputError
from firstk.upgrade.methods import CCA, Procrustes, Ridge, WhitenedRidge
from upgrade.pairs import pairs

METHODS = [Procrustes(), Ridge(0.1), CCA(0.2, 0.5), WhitenedRidge(0.1, 0.3)]


def fitted(method, unit=True):
    old, new = pairs(n=300, p=12, q=20, unit=unit)
    return PrefixAlignment(method=method).fit(old[:200], new[:200]), old, new


def nearest(queries, documents, k=5):
    return np.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_new_queries_search_a_faiss_index_of_old_vectors(method):
    faiss = pytest.importorskip("faiss")
    from firstk.integrations.faiss import translate_queries

    alignment, old, new = fitted(method)
    index = faiss.IndexFlatIP(12)
    index.add(old.astype(np.float32))
    view = translate_queries(alignment, index)
    _, found = view.search(new[200:].astype(np.float32), 5)
    expected = nearest(alignment.new_to_old(new[200:]), old)
    assert np.mean(found == expected) > 0.99  # float32 may exchange neighbors that tie
    assert np.mean(found[:, 0] == np.arange(200, 300)) > 0.2  # and they mean something
    assert index.ntotal == 300


def test_the_view_outlives_the_objects_that_it_was_made_of_and_is_written_to_one_file(tmp_path):
    faiss = pytest.importorskip("faiss")
    from firstk.integrations.faiss import translate_queries

    def build():
        alignment, old, new = fitted(Ridge(0.1))
        index = faiss.IndexFlatIP(12)
        index.add(old.astype(np.float32))
        return translate_queries(alignment, index), new.astype(np.float32)

    view, new = build()
    before = view.search(new[:20], 5)[1]
    faiss.write_index(view, str(tmp_path / "old.faiss"))
    again = faiss.read_index(str(tmp_path / "old.faiss"))
    np.testing.assert_array_equal(again.search(new[:20], 5)[1], before)


def test_a_faiss_index_of_the_wrong_width_is_an_error():
    faiss = pytest.importorskip("faiss")
    from firstk.integrations.faiss import translate_queries

    alignment, _, _ = fitted(Ridge(0.1))
    with pytest.raises(InvalidInputError, match="holds vectors of 20 numbers, and 'new_to_old' gives 12"):
        translate_queries(alignment, faiss.IndexFlatIP(20))
    with pytest.raises(InvalidInputError, match="The 'direction' parameter of translate_queries"):
        translate_queries(alignment, faiss.IndexFlatIP(12), "sideways")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("direction", ["old_to_new", "new_to_old"])
@pytest.mark.parametrize("unit", [True, False])
def test_onnx_translates_as_numpy_does(tmp_path, method, direction, unit):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from firstk.integrations.onnx import export_translation

    alignment, old, new = fitted(method, unit)
    path = export_translation(alignment, tmp_path / "translation.onnx", direction)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    asked, store = (old, new) if direction == "old_to_new" else (new, old)
    vectors = asked[200:].astype(np.float32)
    (translated,) = session.run(None, {"vectors": vectors})
    expected = getattr(alignment, direction)(vectors.astype(np.float64))
    assert translated.dtype == np.float32
    np.testing.assert_allclose(translated, expected, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(nearest(translated.astype(np.float64), store, 1), nearest(expected, store, 1))


def test_onnx_takes_two_directions_only(tmp_path):
    pytest.importorskip("onnx")
    from firstk.integrations.onnx import export_translation

    with pytest.raises(InvalidInputError, match="The 'direction' parameter of onnx"):
        export_translation(fitted(Procrustes())[0], tmp_path / "x.onnx", "up")
