"""An index with the encoder inside finds what encoding first and searching finds, and survives the way to disk."""

from pathlib import Path

import numpy as np
import pytest

from firstk import FittedEncoder, PrefixEncoder, Similarity
from firstk.data.files import open_vectors, write_vectors
from firstk.data.precision import PRECISIONS
from firstk.encoder.network import TrainedMLP
from firstk.exceptions import CorruptModelError, InvalidInputError, MissingExtraError

faiss = pytest.importorskip("faiss", reason="needs the extra 'search'")

from firstk.integrations import faiss as exports  # noqa: E402

OBJECTIVES = {  # with the metric that the index is asked for
    "reconstruction": ("reconstruction", "auto"),
    "fisher": ("fisher", "l2"),
    "neighbors": ("similarity", "auto"),
    "dot_products": (Similarity(keep="dot_products"), "inner_product"),
}


@pytest.fixture(scope="module")
def encoders(digits):
    return {
        name: PrefixEncoder(objective=objective).fit(digits.X_train, digits.y_train)
        for name, (objective, _) in OBJECTIVES.items()
    }


@pytest.fixture(scope="module")
def pairs():
    """Return an encoder whose sides have means far apart, with its queries and documents."""
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(500, 16)).astype(np.float32) + 2
    documents = queries + 0.5 * rng.normal(size=queries.shape).astype(np.float32) - 7
    return PrefixEncoder(objective="similarity").fit_pairs(queries, documents), queries, documents


def assert_same_neighbors(found, wanted, scale=1.0, step=0.0):
    """Place by place scores agree to float32; so ids that differ are tied, and digits have few ties.

    `step` is that of codes which the index rounds: those between two steps go either way, and there are few of them.
    """
    (scores, ids), (wanted_scores, wanted_ids) = found, wanted
    apart = np.abs(scores - wanted_scores) / scale
    assert apart.max() <= max(step, 1e-5)
    assert (apart > 1e-5).mean() < 0.01
    assert (ids != wanted_ids).mean() < 0.02


def encoded_first(encoder, k, description, metric, documents, queries, n=10):
    """The plain way: codes by firstk, then an index on them."""
    index = faiss.index_factory(k, description, faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT)
    Z, q = encoder.encode_document(documents, k), encoder.encode_query(queries, k)
    if metric == "auto":
        faiss.normalize_L2(Z)
        faiss.normalize_L2(q)
    if not index.is_trained:
        index.train(Z)
    index.add(Z)
    return index.search(q, n)


@pytest.mark.parametrize("description", ["Flat", "HNSW32", "IVF8,Flat", "IVF8,SQ8"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_neighbors_are_those_of_encoding_first(name, description, digits, encoders, tmp_path):
    X, Q = digits.X_train.astype(np.float32), digits.X_test.astype(np.float32)
    encoder, metric = encoders[name], OBJECTIVES[name][1]
    for k in (2, 7, encoder.n_components_):
        index = encoder.to_faiss(k, description, documents=X, metric=metric)
        wanted = encoded_first(encoder, k, description, metric, X, Q)
        scale = np.abs(wanted[0]).max() + 1
        assert_same_neighbors(index.search(Q, 10), wanted, scale, 1 / 255 if "SQ8" in description else 0.0)
        # One file, read by faiss alone.
        again = faiss.read_index(str(exports.save(index, tmp_path / "index.faiss")))
        assert again.ntotal == len(X)
        for one, other in zip(again.search(Q, 10), index.search(Q, 10), strict=True):
            assert np.array_equal(one, other)


def test_int4_codes_are_the_bytes_of_a_scalar_quantizer(digits, encoders):
    """faiss decodes stored int4 bytes to what firstk restores, for an odd number of coordinates too."""
    for k in (7, 12):
        Z = encoders["neighbors"].transform(digits.X_train, k)
        int4 = PRECISIONS["int4"].fit(Z)
        index = faiss.IndexScalarQuantizer(k, faiss.ScalarQuantizer.QT_4bit, faiss.METRIC_INNER_PRODUCT)
        trained = np.concatenate([int4.mean - 8 * int4.step, 15 * int4.step]).astype(np.float32)
        faiss.copy_array_to_vector(trained, index.sq.trained)
        stored = int4.quantise(Z)
        assert index.sq.code_size == stored.shape[1]
        np.testing.assert_allclose(index.sq.decode(stored), int4.restore(stored), atol=1e-5)


def test_ids_of_a_table_come_back(digits, encoders, tmp_path):
    X = digits.X_train[:50].astype(np.float32)
    write_vectors(tmp_path / "docs.npz", X, {"key": np.arange(50) * 11, "name": np.array([f"n{i}" for i in range(50)])})
    table = open_vectors(tmp_path / "docs.npz")
    index = encoders["neighbors"].to_faiss(20, documents=table, ids="key")
    assert index.search(X, 1)[1].ravel().tolist() == list(range(0, 550, 11))
    with pytest.raises(InvalidInputError, match="a list of ints"):
        encoders["neighbors"].to_faiss(20, documents=table, ids="name")
    with pytest.raises(InvalidInputError, match="no column 'id'"):
        encoders["neighbors"].to_faiss(20, documents=table, ids="id")


def test_inner_products_survive_where_pca_ruins_them():
    """Positive unit vectors: centring moves inner products; keep="dot_products" does not centre."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(3000, 32))).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X, Q = X[:-200], X[-200:]
    truth = np.argsort(-(Q @ X.T), axis=1)[:, :10]
    ours = PrefixEncoder(objective=Similarity(keep="dot_products")).fit(X).to_faiss(documents=X)
    pca = faiss.index_factory(32, "PCA32,Flat", faiss.METRIC_INNER_PRODUCT)
    pca.train(X)
    pca.add(X)

    def recall(index):
        found = index.search(Q, 10)[1]
        return np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, truth, strict=True)])

    assert recall(ours) > 0.999
    assert recall(pca) < 0.6


@pytest.mark.parametrize("description", ["Flat", "IVF4,Flat"])
def test_each_side_is_centred_by_its_own_mean(description, pairs, tmp_path):
    encoder, queries, documents = pairs
    index = encoder.to_faiss(5, description, documents=documents)
    wanted = encoded_first(encoder, 5, description, "cosine", documents, queries)
    assert_same_neighbors(index.search(queries, 10), wanted)
    # As documents, the same queries would find something else.
    wrong = exports.as_side(index, encoder, "document").search(queries, 10)[1]
    assert (wrong != wanted[1]).mean() > 0.2
    # Later documents go in by the other side, and the file answers queries.
    index = encoder.to_faiss(5, description, documents=documents[:300])
    exports.as_side(index, encoder, "document").add(documents[300:])
    again = exports.load(exports.save(exports.as_side(index, encoder, "query"), tmp_path / "index.faiss"))
    assert again.ntotal == len(documents)
    if description == "Flat":
        assert_same_neighbors(again.search(queries, 10), wanted)


def test_a_side_must_be_named_where_the_two_differ(pairs, encoders):
    encoder, _, documents = pairs
    with pytest.raises(InvalidInputError, match="side='document'"):
        encoder.to_faiss(5)
    index = encoder.to_faiss(5, side="document")
    index.add(documents)
    assert exports.as_side(index, encoder, "query").search(documents, 3)[1].min() >= 0
    assert encoders["fisher"].to_faiss(3).d == 64  # one mean: nothing to name
    with pytest.raises(InvalidInputError, match="both sides"):
        encoder.to_faiss(5, documents=documents, side="query")
    with pytest.raises(InvalidInputError, match="not built from this encoder"):
        exports.as_side(index, encoders["neighbors"], "query")


def test_large_offsets_keep_their_digits():
    """x is 1e4 +- 1 and neighbors differ by 1e-3: a bias after the product would see noise."""
    rng = np.random.default_rng(1)
    X = (1e4 + rng.normal(size=(400, 20))).astype(np.float32)
    encoder = PrefixEncoder(objective="reconstruction").fit(X.astype(float))
    index = encoder.to_faiss(documents=X, metric="l2")
    assert_same_neighbors(index.search(X, 5), encoded_first(encoder, encoder.n_components_, "Flat", "l2", X, X, 5), 50)
    assert np.array_equal(index.search(X, 1)[1].ravel(), np.arange(400))


def test_cosine_on_codes_that_are_not_unit(digits, encoders):
    X, Q = digits.X_train, digits.X_test
    index = encoders["fisher"].to_faiss(6, documents=X, metric="cosine")
    Z, q = encoders["fisher"].transform(X, 6), encoders["fisher"].transform(Q, 6)
    cosines = (q / np.linalg.norm(q, axis=1)[:, None]) @ (Z / np.linalg.norm(Z, axis=1)[:, None]).T
    scores, ids = index.search(Q.astype(np.float32), 1)
    assert np.abs(scores[:, 0] - cosines.max(axis=1)).max() < 1e-5
    assert (ids[:, 0] == cosines.argmax(axis=1)).mean() > 0.99


@pytest.mark.parametrize("description", ["Flat", "HNSW16", "IVF4,Flat"])
def test_ids_come_back(description, digits, encoders):
    X = digits.X_train[:200]
    ids = np.arange(200) * 7 + 10**12
    index = encoders["neighbors"].to_faiss(20, description, documents=X, ids=ids)
    found = index.search(X.astype(np.float32), 1)[1].ravel()
    assert (found == ids).mean() > 0.97  # a graph may miss a few


def test_an_index_that_is_empty_says_so_in_its_own_way(encoders):
    index = encoders["neighbors"].to_faiss(8)
    assert (index.search(np.ones((2, 64), np.float32), 3)[1] == -1).all()


def test_zero_rows_are_taken(encoders):
    encoder = encoders["neighbors"]
    X = np.stack([encoder.mean_, encoder.mean_ + 1]).astype(np.float32)
    index = encoder.to_faiss(8, documents=X)
    assert np.isfinite(index.search(X, 2)[0]).all()


def test_inputs_are_left_alone_and_any_float_is_taken(digits, encoders):
    X = digits.X_train[:50].astype(np.float64)
    before = X.copy()
    index = encoders["fisher"].to_faiss(3, documents=X)
    assert np.array_equal(X, before)
    half = encoders["fisher"].to_faiss(3, documents=X.astype(np.float16))
    assert np.array_equal(half.search(X[:5].astype(np.float32), 3)[1], index.search(X[:5].astype(np.float32), 3)[1])


def test_a_table_of_files_streams_in(digits, encoders, tmp_path, monkeypatch):
    X = digits.X_train[:500].astype(np.float32)
    write_vectors(tmp_path / "a.npy", X[:300])
    write_vectors(tmp_path / "b.npy", X[300:])
    monkeypatch.setattr(exports.vectors, "_ROWS", 64)
    table = open_vectors(str(tmp_path / "*.npy"))
    streamed = encoders["neighbors"].to_faiss(9, "IVF4,Flat", documents=table)
    whole = encoders["neighbors"].to_faiss(9, "IVF4,Flat", documents=X)
    assert_same_neighbors(streamed.search(X, 5), whole.search(X, 5))
    write_vectors(tmp_path / "narrow.npy", X[:, :5])
    with pytest.raises(InvalidInputError, match=r"narrow\.npy' has 5"):
        encoders["neighbors"].to_faiss(9, documents=open_vectors(tmp_path / "narrow.npy"))


def test_rows_that_are_dropped_keep_the_numbers_of_the_others(digits, encoders, tmp_path):
    X = digits.X_train[:100].astype(np.float32)
    X[10] = np.nan
    write_vectors(tmp_path / "a.npy", X)
    index = encoders["neighbors"].to_faiss(20, documents=open_vectors(tmp_path / "a.npy", nan="drop"))
    assert index.ntotal == 99
    assert np.array_equal(index.search(X[[9, 11, 99]], 1)[1].ravel(), [9, 11, 99])


BAD = {
    "an index nobody knows": ({"index": "Fancy7"}, "cannot build an index 'Fancy7'"),
    "a code that does not divide": ({"k": 7, "index": "PQ4"}, "multiple of the number of subquantizers"),
    "no string": ({"index": 32}, "index_factory"),
    "k too large": ({"k": 99}, r"\[1, 53\]"),
    "k zero": ({"k": 0}, r"\[1, 53\]"),
    "an unknown metric": ({"metric": "hamming"}, "'metric'"),
    "an unknown side": ({"side": "left"}, "'side'"),
    "ids without documents": ({"ids": [1]}, "no documents"),
    "a wrong width": ({"documents": np.ones((9, 5))}, "64 columns. Got 5"),
    "no documents": ({"documents": np.ones((0, 64))}, "at least one row"),
    "not a number": ({"documents": np.full((9, 64), np.nan)}, "NaN or infinity in 9 of 9"),
    "too few to train on": ({"documents": np.ones((9, 64)), "index": "IVF64,Flat"}, "cannot be trained on 9"),
    "ids twice": ({"documents": np.ones((3, 64)), "ids": [4, 5, 4]}, "1 occur more than once, the first of them 4"),
    "too few ids": ({"documents": np.ones((3, 64)), "ids": [4, 5]}, "Got 2 and 3"),
    "ids of another kind": ({"documents": np.ones((2, 64)), "ids": ["a", "b"]}, "a list of ints"),
    "negative ids": ({"documents": np.ones((2, 64)), "ids": [-1, 5]}, "Got -1 to 5"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calls_get_sentences(case, encoders):
    arguments, message = BAD[case]
    with pytest.raises(InvalidInputError, match=message):
        encoders["neighbors"].to_faiss(**arguments)


def test_networks_raise_with_the_way_out():
    layers = TrainedMLP((np.ones((3, 4)),), (np.zeros(3),), True)
    encoder = FittedEncoder(np.eye(3), np.ones(3), np.zeros(4), np.zeros(4), network=layers)
    with pytest.raises(InvalidInputError, match="Encode first"):
        exports.to_faiss(encoder)


def test_damaged_and_foreign_files_raise(digits, encoders, tmp_path):
    path = exports.save(encoders["neighbors"].to_faiss(9, documents=digits.X_train[:300]), tmp_path / "index.faiss")
    whole = path.read_bytes()
    for length in (0, 3, 100, len(whole) // 2, len(whole) - 60):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptModelError, match=r"index\.faiss"):
            exports.load(path)
    for place in (5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(CorruptModelError, match="checksum"):
            exports.load(path)
    with pytest.raises(InvalidInputError, match="No such file"):
        exports.load(tmp_path / "missing.faiss")
    faiss.write_index(faiss.IndexFlatL2(4), str(path))
    with pytest.raises(InvalidInputError, match="holds no firstk encoder"):
        exports.load(path)


def test_a_file_that_faiss_wrote_is_read_too(digits, encoders, tmp_path):
    index = encoders["neighbors"].to_faiss(9, documents=digits.X_train[:300])
    faiss.write_index(index, str(tmp_path / "index.faiss"))
    assert exports.load(tmp_path / "index.faiss").ntotal == 300


def test_a_file_is_written_whole_or_not_at_all(encoders, tmp_path, monkeypatch):
    path = exports.save(encoders["fisher"].to_faiss(3), tmp_path / "index.faiss")
    before = path.read_bytes()

    def fail(index, name):
        Path(name).write_bytes(b"half")
        raise RuntimeError("Error in somewhere.cpp:12: Error: 'ret == size' failed: disk full")

    monkeypatch.setattr(faiss, "write_index", fail)
    with pytest.raises(InvalidInputError, match="disk full"):
        exports.save(encoders["fisher"].to_faiss(4), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_extra_is_named(encoders, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"firstk\[search\]"):
        encoders["fisher"].to_faiss(3)
