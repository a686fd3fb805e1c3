"""Embedded bytes in faiss: the same neighbors and scores as a CodeIndex, from raw vectors."""

import numpy as np
import pytest

from firstk import CodeIndex, PrefixEncoder, Similarity
from firstk.exceptions import InvalidInputError

faiss = pytest.importorskip("faiss")
from firstk.search import bytes_to_faiss  # noqa: E402

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(900, 30)) * 0.88 ** np.arange(30) + 0.4).astype(np.float32)
Q = (RNG.normal(size=(40, 30)) * 0.88 ** np.arange(30) + 0.4).astype(np.float32)
ENCODERS = {
    "centred": PrefixEncoder().fit(X),
    "part of the axes": PrefixEncoder(12).fit(X),
    "dot products": PrefixEncoder(objective=Similarity(keep="dot_products")).fit(X),
    "unit norm": PrefixEncoder(objective="similarity").fit(X),
    "labels": PrefixEncoder(objective="fisher").fit(X, (X[:, 0] > 0.4) + 2 * (X[:, 1] > 0.4)),
    "pairs": PrefixEncoder(objective="similarity").fit_pairs(X[:400] + 0.1, X[:400] * 1.1),
}


def same(index, exported, n=10):
    ours, (scores, ids) = index.search(Q, n), exported.search(Q, n)
    scale = np.abs(ours.scores).max()
    assert np.allclose(ours.scores, scores, rtol=1e-4, atol=1e-5 * scale)
    # Rounding may swap neighbors whose scores are equal to it.
    clear = (np.abs(np.diff(ours.scores, axis=1, prepend=np.inf)) > 1e-5 * scale) & (
        np.abs(np.diff(ours.scores, axis=1, append=np.inf)) > 1e-5 * scale
    )
    clear[:, -1] = False
    assert clear.mean() > 0.5
    assert np.array_equal(ours.ids[clear], ids[clear])


@pytest.mark.parametrize("metric", ["inner_product", "l2"])
@pytest.mark.parametrize("name", ENCODERS)
def test_faiss_finds_the_same(name, metric, tmp_path):
    encoder = ENCODERS[name]
    n_bytes = min(11, encoder.quantizer(None).bytes)
    index = CodeIndex.fit(X, encoder=encoder, bytes=n_bytes, metric=metric, ids=RNG.permutation(900) + 5)
    exported = bytes_to_faiss(index)
    same(index, exported)
    assert (exported.d, exported.ntotal) == (30, 900)
    faiss.write_index(exported, str(tmp_path / "codes.faiss"))
    same(index, faiss.read_index(str(tmp_path / "codes.faiss")))
    store = faiss.downcast_index(faiss.downcast_index(exported.index).index)
    assert store.code_size == index.packing.planes + 4 * (metric == "l2")


def test_deep_coordinates_and_a_cut():
    steep = (X - 0.4) * 0.4 ** np.arange(30)
    encoder = PrefixEncoder().fit(steep)
    index = CodeIndex.fit(steep, encoder=encoder, bytes=6, metric="inner_product")
    assert index.quantizer.embedded.bits.max() > 4
    for each in (index, index.cut(3)):
        exported = bytes_to_faiss(each)
        ours, (scores, _) = each.search(steep[:20], 5), exported.search(steep[:20].astype(np.float32), 5)
        assert np.allclose(ours.scores, scores, rtol=1e-4, atol=1e-6)


def test_what_has_no_exact_export():
    with pytest.raises(InvalidInputError, match=r"does not divide by norms.*metric='inner_product'"):
        bytes_to_faiss(CodeIndex.fit(X, encoder=ENCODERS["centred"], bytes=4))
    below = CodeIndex.fit(X, encoder=ENCODERS["centred"], bytes=4, metric="l2", ids=np.arange(900) - 3)
    with pytest.raises(InvalidInputError, match="faiss takes ids from 0 on, and this index has -3"):
        bytes_to_faiss(below)
    with pytest.raises(InvalidInputError, match="must be a CodeIndex"):
        bytes_to_faiss(ENCODERS["centred"])
