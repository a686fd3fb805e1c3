"""An index of bytes over its life: it finds what decoding finds, rows come and go, and bad requests raise errors."""

import warnings

import numpy as np
import pytest

from firstk import CodeIndex, PrefixEncoder, Similarity
from firstk._base.checks import numba_may_compile
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.search import FitWarning
from firstk.search import index_file as _file

RNG = np.random.default_rng(0)
MIXING = np.linalg.qr(RNG.normal(size=(24, 24)))[0] * 0.8 ** np.arange(24)[:, None]
X = (RNG.normal(size=(600, 24)) @ MIXING + 0.3).astype(np.float32)
Q = (RNG.normal(size=(20, 24)) @ MIXING + 0.3).astype(np.float32)
LABELS = (X[:, 0] > 0.3).astype(int) + 2 * (X[:, 1] > 0.3)
X.flags.writeable = Q.flags.writeable = False
ENCODERS = {
    "reconstruction": PrefixEncoder().fit(X),
    "part of the axes": PrefixEncoder(10).fit(X),
    "dot products": PrefixEncoder(objective=Similarity(keep="dot_products")).fit(X),
    "neighbors": PrefixEncoder(objective="similarity").fit(X),
    "fisher": PrefixEncoder(objective="fisher").fit(X, LABELS),
}
ENGINES = ("numpy", "compiled") if numba_may_compile() else ("numpy",)
METRICS = ("cosine", "inner_product", "l2")
ENCODER = ENCODERS["reconstruction"]
INDEX = CodeIndex.fit(X, encoder=ENCODER, bytes=8)
OTHER = PrefixEncoder().fit(X[:300])


def brute_force(quantizer, codes, queries, n, ids=None):
    """Ids and scores of the best rows by decoded codes; ties to the lower id."""
    ids = np.arange(len(codes)) if ids is None else ids
    q, Z = quantizer.encode_query(queries).astype(np.float64), quantizer.decode(codes).astype(np.float64)
    if quantizer.metric == "cosine":
        norms = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(Z, axis=1)
        scores = q @ Z.T / np.where(norms > 0, norms, 1)
    elif quantizer.metric == "inner_product":
        scores = q @ Z.T
    else:
        # E|q - z|^2 = |q - E z|^2 + E|z - E z|^2
        cells = quantizer.embedded.named_cells(codes)
        tables = [variances for _, variances in quantizer.stored.cell_tables]
        variances = sum(t[cells[:, i]] if len(t) > 1 else t[0] for i, t in enumerate(tables))
        scores = ((q[:, None] - Z) ** 2).sum(axis=2) + variances
    order = np.array([np.lexsort((ids, row if quantizer.metric == "l2" else -row)) for row in scores])[:, :n]
    return ids[order], np.take_along_axis(scores, order, 1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ENCODERS)
def test_a_search_finds_what_decoding_finds(name, metric, engine):
    encoder = ENCODERS[name]
    bytes_ = min(7, encoder.quantizer(None).bytes)
    index = CodeIndex.fit(X, encoder=encoder, bytes=bytes_, metric=metric, engine=engine)
    found = index.search(Q, 10)
    ids, scores = brute_force(index.quantizer, index.quantizer.encode(X), Q, 10)
    assert np.allclose(found.scores, scores, rtol=1e-5, atol=1e-6)
    # Where neighboring scores differ by more than rounding, the ids are the same.
    clear = np.abs(np.diff(scores, axis=1)) > 1e-5 * np.abs(scores).max()
    assert clear.mean() > 0.7
    assert (found.ids == ids)[:, :-1][clear & np.roll(clear, 1, axis=1)].all()


def test_scores_are_those_of_the_quantizer():
    for metric in METRICS:
        index = CodeIndex.fit(X, encoder=ENCODER, bytes=9, metric=metric)
        queries = index.quantizer.encode_query(Q)
        scores = index.quantizer.scores(queries, index.codes)
        best = -np.sort(-scores, axis=1)[:, :5]
        if metric == "cosine":
            best = best / np.linalg.norm(queries, axis=1, keepdims=True)
        if metric == "l2":
            best = (queries.astype(np.float64) ** 2).sum(axis=1, keepdims=True) - best
        assert np.allclose(index.search(Q, 5).scores, best, rtol=1e-4, atol=1e-5)


def test_equal_rows_come_in_the_order_of_their_ids():
    twice, ids = np.vstack([X[:40], X[:40], X[:40]]), RNG.permutation(120) + 7
    index = CodeIndex.fit(twice, encoder=ENCODER, bytes=8, ids=ids)
    found = index.search(twice[:40], 3)
    assert (found.scores == found.scores[:, :1]).all(axis=1).mean() > 0.9
    for row in range(40):
        if (found.scores[row] == found.scores[row, 0]).all():
            assert found.ids[row].tolist() == sorted(found.ids[row].tolist())
    whole = index.search(Q, 120)
    for ids_, scores in zip(whole.ids, whole.scores.astype(np.float64), strict=True):
        assert all(a < b for a, b, s, t in zip(ids_, ids_[1:], scores, scores[1:], strict=False) if s == t)


@pytest.mark.parametrize("engine", ENGINES)
def test_answers_do_not_depend_on_batches_and_threads(engine, monkeypatch):
    monkeypatch.setattr("firstk.search.codes.index._ROWS", 64)
    index = CodeIndex.fit(X, encoder=ENCODER, bytes=8, engine=engine)
    whole = index.search(Q, 9, threads=1)
    for threads in (2, 3, 7, None):
        again = index.search(Q, 9, threads=threads)
        assert np.array_equal(again.ids, whole.ids)
        assert np.array_equal(again.scores, whole.scores)
    for size in (1, 3, 7):
        parts = [index.search(Q[start : start + size], 9, threads=3) for start in range(0, len(Q), size)]
        assert np.array_equal(np.vstack([part.ids for part in parts]), whole.ids)
        assert np.array_equal(np.vstack([part.scores for part in parts]), whole.scores)


@pytest.mark.parametrize("metric", METRICS)
def test_a_cut_index_is_one_of_fewer_bytes(metric):
    index = CodeIndex.fit(X, encoder=ENCODER, bytes=11, metric=metric, ids=np.arange(600) * 3)
    for bytes_ in range(1, 12):
        cut, fresh = index.cut(bytes_), CodeIndex.fit(X, encoder=ENCODER, bytes=bytes_, metric=metric, ids=index.ids)
        assert cut.bytes == bytes_
        assert np.array_equal(cut.codes, fresh.codes)
        assert np.array_equal(cut.search(Q, 7).ids, fresh.search(Q, 7).ids)
    assert repr(index.cut(4)) == f"CodeIndex(600 rows of 4 bytes, {metric})"
    assert cut.add(X[:1]).tolist() == [599 * 3 + 1]
    assert len(index) == 600


def test_stored_bytes_make_the_same_index():
    quantizer = ENCODER.quantizer(16)
    codes = quantizer.encode(X)
    index = CodeIndex.from_codes(codes[:, :8], quantizer, stamp=quantizer.fingerprint)
    assert index.bytes == 8
    assert np.array_equal(index.search(Q, 10).ids, INDEX.search(Q, 10).ids)
    part = CodeIndex.from_codes(codes[:100, :8], quantizer)
    part.add_codes(codes[100:], stamp=quantizer.fingerprint)
    assert np.array_equal(part.codes, index.codes)
    assert np.array_equal(part.search(Q, 10).scores, index.search(Q, 10).scores)


def test_an_index_can_start_empty():
    index = CodeIndex.from_codes(np.empty((0, 8), np.uint8), ENCODER.quantizer(8))
    with pytest.raises(InvalidInputError, match=r"this index holds none\. Add some first"):
        index.search(Q)
    assert index.add(X).tolist() == list(range(600))
    assert np.array_equal(index.search(Q).ids, INDEX.search(Q).ids)


def test_memory_is_the_bytes_and_a_norm():
    rows = np.tile(X, (20, 1))
    index = CodeIndex.fit(rows, encoder=ENCODER, bytes=12)
    # Bytes and what packing loses, four of the norm, eight of the id.
    assert index.nbytes <= len(rows) * (13 + 4 + 8) + 64 * 32


# -- storage -----------------------------------------------------------------------------------------------------------


PARTS = {
    "another model's bytes": ({"fingerprint": "f" * 64}, {}, "were made by encoder"),
    "another number of bytes": ({"bytes": 9}, {}, "9 bytes expected"),
    "more bytes than there are": ({"bytes": 900}, {}, "an int in"),
    "another metric": ({"metric": "hamming"}, {}, "'metric' parameter"),
    "no engine": ({"engine": "gpu"}, {}, "'engine' parameter"),
    "rows cut off": ({}, {"codes": np.zeros((10, 8), np.uint8)}, "not one distinct int64 for each row"),
    "floats": ({}, {"codes": np.zeros((600, 8), np.float32)}, "codes are float32"),
    "equal ids": ({}, {"ids": np.zeros(600, np.int64)}, "not one distinct int64"),
    "an id that comes again": ({"next_id": 4}, {}, "is not above all ids"),
    "a sum in words": ({"fit": {"rows": "many"}}, {}, "do not fit"),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_that_do_not_fit_are_named(tmp_path, name):
    facts, arrays, message = PARTS[name]
    before = _file.read_index(INDEX.save(tmp_path / "index"), _file.BYTES_FORMAT)
    path = _file.write_index(tmp_path / "other", before[0] | facts, before[1] | arrays, _file.BYTES_FORMAT)
    with pytest.raises(CorruptModelError, match=message):
        CodeIndex.load(path)


def test_an_index_without_its_encoder_is_damaged(tmp_path):
    facts, arrays = _file.read_index(INDEX.save(tmp_path / "index"), _file.BYTES_FORMAT)
    bare = {name: arrays[name] for name in ("codes", "ids")}
    with pytest.raises(CorruptModelError, match="it has no encoder"):
        CodeIndex.load(_file.write_index(tmp_path / "other", facts, bare, _file.BYTES_FORMAT))


# -- bad requests ------------------------------------------------------------------------------------------------------


def fit(**parameters):
    return lambda: CodeIndex.fit(X, **({"encoder": ENCODER, "bytes": 8} | parameters))


def spoiled(value):
    bad = Q.copy()
    bad[3, 2] = value
    return bad


QUANTIZER = ENCODER.quantizer(8)
CODES = QUANTIZER.encode(X[:5])
ZEROS = CodeIndex.fit(X, encoder=ENCODERS["fisher"], bytes=1)
CASES = {
    "no bytes": (fit(bytes=0), r"'bytes' parameter of a quantizer must be an int in \[1, "),
    "more bytes than the code has": (fit(bytes=1000), r"an int in \[1, "),
    "unknown metric": (fit(metric="hamming"), "'metric' parameter of CodeIndex.fit"),
    "unknown engine": (fit(engine="gpu"), "'engine' parameter"),
    "no encoder": (fit(encoder="model/"), "must be a FittedEncoder or a fitted PrefixEncoder"),
    "NaN rows": (lambda: CodeIndex.fit(spoiled(np.nan), encoder=ENCODER, bytes=8), "NaN or infinity in 1 of 20 rows"),
    "no rows": (lambda: CodeIndex.fit(X[:0], encoder=ENCODER, bytes=8), "at least one row"),
    "another width": (lambda: CodeIndex.fit(X[:, :5], encoder=ENCODER, bytes=8), "with 24 columns. Got 5"),
    "duplicate ids": (fit(ids=[0] * 600), "takes every id once; id 0 is there several times"),
    "ids of another length": (fit(ids=[1, 2]), "as many ids as rows. Got 2 and 600"),
    "known id added": (lambda: INDEX.add(X[:2], ids=[900, 7]), "id 7 is in the index already"),
    "NaN added": (lambda: INDEX.add(spoiled(np.nan)), "NaN or infinity"),
    "unknown id removed": (lambda: INDEX.remove([3, 4000]), "id 4000 is not in it .* Nothing was removed"),
    "query of another width": (lambda: INDEX.search(Q[:, :5]), "with 24 columns. Got 5"),
    "NaN query": (lambda: INDEX.search(spoiled(np.nan)), r"NaN or infinity in 1 of 20 rows \(row 3\)"),
    "more neighbors than rows": (lambda: INDEX.search(Q, 601), r"an int in \[1, 600\] \(the rows of the index\)"),
    "no neighbors": (lambda: INDEX.search(Q, 0), r"an int in \[1, 600\]"),
    "neighbors in words": (lambda: INDEX.search(Q, "ten"), r"'n_neighbors' parameter of CodeIndex.search"),
    "no threads": (lambda: INDEX.search(Q, threads=0), "an int of at least 1, or None"),
    "a direction of nothing": (lambda: ZEROS.search(ENCODERS["fisher"].encoder_.mean[None]), "row 0 of 'Q' is all"),
    "cut to more": (lambda: INDEX.cut(9), r"'bytes' parameter of CodeIndex.cut must be an int in \[1, 8\]"),
    "cut to nothing": (lambda: INDEX.cut(0), r"an int in \[1, 8\]"),
    "codes of floats": (lambda: CodeIndex.from_codes(X, QUANTIZER), "codes stored as uint8"),
    "codes too wide": (lambda: CodeIndex.from_codes(np.zeros((5, 9), np.uint8), QUANTIZER), "m from 1 to 8"),
    "one code": (lambda: CodeIndex.from_codes(CODES[0], QUANTIZER), "of shape"),
    "no quantizer": (lambda: CodeIndex.from_codes(CODES, ENCODER), "must be an EmbeddedQuantizer"),
    "codes of another model": (
        lambda: CodeIndex.from_codes(CODES, QUANTIZER, stamp=OTHER.quantizer(8).fingerprint),
        "were made by encoder",
    ),
    "added codes of another model": (
        lambda: INDEX.add_codes(CODES, stamp=OTHER.quantizer(8).fingerprint),
        "were made by encoder",
    ),
    "added codes too short": (lambda: INDEX.add_codes(CODES[:, :5]), "takes codes of 8 bytes or more.*Got 5"),
    "shortlist alone": (lambda: INDEX.search(Q, shortlist=50), "with 'rerank' only"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_requests_raise_and_change_nothing(name):
    run, message = CASES[name]
    with pytest.raises(InvalidInputError, match=message):
        run()
    assert len(INDEX) == 600
    assert INDEX.ids.tolist() == list(range(600))


def test_inputs_are_not_changed():
    rows, queries = X.copy(), Q.copy()
    index = CodeIndex.fit(rows, encoder=ENCODER, bytes=8)
    codes = index.codes
    index.search(queries)
    rows[:] = 0
    assert np.array_equal(queries, Q)
    stored = codes.copy()
    other = CodeIndex.from_codes(stored, QUANTIZER)
    other.remove([0])
    assert np.array_equal(stored, codes)


# -- rows that no longer fit -------------------------------------------------------------------------------------------


def test_rows_that_do_not_fit_the_cells_bring_a_warning(tmp_path):
    index = CodeIndex.fit(X[:300], encoder=ENCODER, bytes=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.add(X[300:])  # rows like those of the fit
        index.add(X[:1] * 9)  # one stray row is no trend
    with pytest.warns(FitWarning, match=r"do not fit its cells: their mean squared error is .* times that of the rows"):
        index.add(4 * X)
    with pytest.warns(FitWarning):
        CodeIndex.load(index.save(tmp_path / "index")).add(X[:1])


# -- reranking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ENCODERS)
def test_reranking_the_whole_index_is_exact(tmp_path, name, metric):
    encoder = ENCODERS[name].encoder_
    index = CodeIndex.fit(X, encoder=encoder, bytes=1, metric=metric)
    codes = encoder.encode(X)
    np.save(tmp_path / "codes.npy", codes.astype(np.float16))
    found = index.search(Q, 5, rerank=codes, shortlist=600)
    q, Z = encoder.encode(Q, side="query").astype(np.float64), codes.astype(np.float64)
    if index.quantizer._of_vectors and name != "part of the axes":
        q, Z = Q.astype(np.float64), X.astype(np.float64)
    if name != "part of the axes":
        scores = {
            "cosine": q @ Z.T / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(Z, axis=1),
            "inner_product": q @ Z.T,
            "l2": -((q[:, None] - Z) ** 2).sum(axis=2),
        }[metric]
        best = -np.sort(-scores, axis=1)[:, :5]
        assert np.allclose(found.scores, -best if metric == "l2" else best, rtol=1e-3, atol=1e-4)
    half = index.search(Q, 5, rerank=tmp_path / "codes.npy", shortlist=600)
    assert np.allclose(half.scores, found.scores, rtol=0.02, atol=0.02)


def test_reranking_improves_few_bytes_and_part_of_the_code_helps(tmp_path):
    index, codes = INDEX.cut(3), ENCODER.encoder_.encode(X).astype(np.float16)
    truth = INDEX.search(Q, 10, rerank=codes, shortlist=600).ids
    path = tmp_path / "codes.npy"
    np.save(path, codes)
    np.save(tmp_path / "short.npy", codes[:, :8])

    def recall(found):
        return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.ids, truth, strict=True)])

    plain, short, whole = (
        recall(index.search(Q, 10)),
        recall(index.search(Q, 10, rerank=tmp_path / "short.npy", shortlist=100)),
        recall(index.search(Q, 10, rerank=str(path), shortlist=100)),
    )
    assert plain < short < whole
    assert whole > 0.9
    assert np.array_equal(index.search(Q, 10, rerank=path).ids, index.search(Q, 10, rerank=path, shortlist=100).ids)


def test_codes_to_rerank_from_are_found_by_id():
    ids, codes = RNG.permutation(600) + 1000, ENCODER.encoder_.encode(X)
    index = CodeIndex.fit(X, encoder=ENCODER, bytes=3, ids=ids)
    expected = CodeIndex.fit(X, encoder=ENCODER, bytes=3).search(Q, 5, rerank=codes)
    shuffled = RNG.permutation(600)
    found = index.search(Q, 5, rerank=codes[shuffled], rerank_ids=ids[shuffled])
    assert np.array_equal(found.ids, ids[expected.ids])
    index.remove(ids[:100])
    assert index.search(Q, 5, rerank=codes[shuffled], rerank_ids=ids[shuffled]).ids.shape == (20, 5)
    for arguments, message in (
        ({"rerank": codes}, "of which 'rerank' has no code: it has 600 rows"),
        ({"rerank": codes[:50], "rerank_ids": ids[:50]}, "has no code"),
        ({"rerank": codes, "rerank_ids": ids[:5]}, "one distinct id in 'rerank_ids' for each of the 600 rows"),
        ({"rerank": codes, "rerank_ids": np.zeros(600, int)}, "1 of them distinct"),
        ({"rerank": np.hstack([codes, codes])}, "k from 1 to 24"),
        ({"rerank": codes.astype(int)}, "as floats of shape"),
        ({"rerank": "nowhere.npy"}, "cannot read 'rerank' from 'nowhere.npy'"),
        ({"rerank": np.full_like(codes, np.nan), "rerank_ids": ids}, "holds NaN"),
        ({"rerank": codes, "rerank_ids": ids, "shortlist": 4}, "at least 5"),
        ({"rerank": codes, "rerank_ids": ids, "shortlist": 501}, r"an int in \[1, 500\]"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            index.search(Q, 5, **arguments)
