"""Quantizers of encoders: the same bytes however they are made, scores by definition, storage and errors."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from firstk import Fisher, FittedEncoder, PrefixEncoder, Similarity
from firstk._base.tensors import to_bytes
from firstk.bits import encoding as cells
from firstk.bits.quantizer import METRICS
from firstk.bits.weights import TAUS
from firstk.data.task import Pairs
from firstk.encoder.network import TrainedMLP
from firstk.encoder.storage.folder import read_model, write_model
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.integrations import parts
from firstk.moments.statistics import Statistics

N, P = 600, 12
LABELS = np.arange(N) % 5


def draw(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) @ np.linalg.qr(rng.standard_normal((P, P)))[0] * np.linspace(2, 0.2, P)
    return (X + rng.standard_normal((5, P))[np.arange(n) % 5] + 0.5).astype(np.float32)


X = draw()
X.flags.writeable = False
# Enough rows for codebooks.
MANY = draw(n=4200)
FITS = {
    "reconstruction": lambda: PrefixEncoder().fit(X),
    "short": lambda: PrefixEncoder(5).fit(X),
    "dot products": lambda: PrefixEncoder(objective=Similarity(keep="dot_products")).fit(X),
    "fisher": lambda: PrefixEncoder(8, objective="fisher").fit(X, LABELS),
    "fisher, auto": lambda: PrefixEncoder(objective=Fisher("auto")).fit(X, LABELS),
    "neighbors": lambda: PrefixEncoder(objective="similarity").fit(X),
    "pairs": lambda: PrefixEncoder(objective=Similarity("neighbors", 0.5, 0.0)).fit_pairs(X[:300], X[300:]),
    "codebooks": lambda: PrefixEncoder().fit(MANY),
    "codebooks, fisher": lambda: PrefixEncoder(8, objective=Fisher("auto")).fit(MANY, np.arange(len(MANY)) % 5),
    "one coordinate": lambda: PrefixEncoder(1).fit(X),
    "fewer rows than columns": lambda: PrefixEncoder(5).fit(X[:11]),
}


@pytest.fixture(params=FITS, scope="module")
def encoder(request):
    return FITS[request.param]()


@pytest.fixture(scope="module")
def reconstruction():
    return FITS["reconstruction"]()


def bits(codes):
    return np.unpackbits(codes, axis=1)


# -- the same bytes ------------------------------------------------------------------------------------------------


def test_cutting_is_encoding_at_that_length_for_every_length(encoder):
    whole = encoder.quantizer()
    codes = whole.encode(X)
    assert codes.dtype == np.uint8
    assert codes.shape == (N, whole.bytes)
    for bytes in range(1, whole.bytes + 1):
        short = encoder.quantizer(bytes)
        assert (short.bytes, short.fingerprint) == (bytes, whole.fingerprint)
        np.testing.assert_array_equal(short.encode(X), whole.cut(codes, bytes))
        np.testing.assert_array_equal(whole.at(bytes).encode(X), whole.cut(codes, bytes))
        np.testing.assert_array_equal(short.decode(codes[:, :bytes]), whole.decode(codes[:, :bytes]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_do_not_matter(encoder, dtype, monkeypatch):
    rows, quantizer = X.astype(dtype), encoder.quantizer()
    codes = quantizer.encode(rows)
    for step in (1, 7, 64, 599):
        parts = [quantizer.encode(rows[i : i + step]) for i in range(0, N, step)]
        np.testing.assert_array_equal(np.concatenate(parts), codes)
    np.testing.assert_array_equal(quantizer.encode(np.asfortranarray(rows)), codes)
    np.testing.assert_array_equal(quantizer.encode(sparse.csr_matrix(rows)), codes)
    monkeypatch.setattr(cells, "_BLOCK_ENTRIES", 50)
    np.testing.assert_array_equal(quantizer.encode(rows), codes)


def test_bytes_are_those_of_codes_in_float64(encoder):
    quantizer = encoder.quantizer()
    exact = quantizer.embedded.quantise(quantizer.rounded.encode(X.astype(np.float64)))
    np.testing.assert_array_equal(quantizer.encode(X), exact)
    np.testing.assert_array_equal(quantizer.encode(X.astype(np.float64)), exact)
    # Those of the encoder's own axes, which have more than 16 bits, and codes in float32 differ near thresholds only.
    assert np.mean(bits(quantizer.embedded.quantise(encoder.transform(X))) != bits(exact)) < 2e-2


@pytest.mark.parametrize("name", ["reconstruction", "neighbors"])
def test_products_that_are_off_by_their_rounding_change_no_byte(name, monkeypatch):
    """Stand for another processor, or another shape of a batch: everything that BLAS gives is off by a rounding."""
    encoder = FITS[name]()
    quantizer = encoder.quantizer()
    # Rows whose coordinates lie on thresholds, where the last bit would decide.
    walls = quantizer.embedded.sorted_thresholds
    Z = quantizer.rounded.encode(X.astype(np.float64))[:200]
    for number, i in enumerate(quantizer.embedded.used):
        Z[:, i] = np.resize(walls[number], len(Z))
    rows = Z @ np.linalg.pinv(quantizer.rounded.components).T + encoder.mean_
    for dtype in (np.float32, np.float64):
        vectors = rows.astype(dtype)
        codes = quantizer.encode(vectors)
        true = cells._Coordinates.approximate
        for seed in range(3):
            rng = np.random.default_rng(seed)

            def off(self, rng=rng, true=true):
                Z, doubt = true(self)
                return (Z + rng.uniform(-0.9, 0.9, Z.shape) * doubt * self.lengths[:, None]).astype(Z.dtype), 2 * doubt

            monkeypatch.setattr(cells._Coordinates, "approximate", off)
            np.testing.assert_array_equal(quantizer.encode(vectors), codes)
            monkeypatch.undo()


def test_rows_between_centroids_are_encoded_alike_by_products_that_are_off_by_their_rounding(monkeypatch):
    encoder = FITS["codebooks"]()
    quantizer = encoder.quantizer()
    book = quantizer.embedded.codebooks.books[0][1].astype(np.float64)
    rows = np.vstack([(book[:-1] + book[1:]) / 2 @ encoder.components_[: book.shape[1]] + encoder.mean_, MANY[:300]])
    true = cells._Coordinates.approximate
    for dtype in (np.float32, np.float64):
        vectors = rows.astype(dtype)
        codes = quantizer.encode(vectors)
        # Of rows that are summed one by one, in float64: the reference.
        books = quantizer.embedded.codebooks
        source = cells._Coordinates(quantizer.rounded, np.arange(books.width), vectors, np.float64)
        Z = source.exact_rows(books.width)(np.arange(len(rows)))
        np.testing.assert_array_equal(codes[:, : books.levels], books.encode(Z)[0])
        for seed in range(3):
            rng = np.random.default_rng(seed)

            def off(self, rng=rng, true=true):
                Z, doubt = true(self)
                return (Z + rng.uniform(-0.9, 0.9, Z.shape) * doubt * self.lengths[:, None]).astype(Z.dtype), 2 * doubt

            monkeypatch.setattr(cells._Coordinates, "approximate", off)
            np.testing.assert_array_equal(quantizer.encode(vectors), codes)
            monkeypatch.undo()


def test_the_bound_on_rounding_holds(reconstruction):
    """Products in float32 are no further from the truth than is allowed for, and not by far nearer."""
    used = np.arange(P)
    source = cells._Coordinates(reconstruction.encoder_, used, X)
    Z, doubt = source.approximate()
    true = reconstruction.encoder_.coordinates(X.astype(np.float64)).T
    share = np.abs(Z - true) / (doubt * source.lengths[:, None])
    assert share.max() < 1
    exact = np.stack([source.exact(np.arange(N), i) for i in used])
    np.testing.assert_allclose(exact, true, rtol=1e-12, atol=1e-12)


def test_a_network_gives_the_same_bytes_for_any_batches():
    rng = np.random.default_rng(0)
    network = TrainedMLP((rng.standard_normal((6, P)), rng.standard_normal((4, 6))), (np.zeros(6), np.zeros(4)), True)
    encoder = FittedEncoder(np.eye(4), np.ones(4), X.mean(0).astype(float), X.mean(0).astype(float), network=network)
    quantizer = encoder.quantizer(rows=X)
    codes = quantizer.encode(X)
    np.testing.assert_array_equal(np.concatenate([quantizer.encode(row[None]) for row in X]), codes)
    np.testing.assert_array_equal(codes, quantizer.embedded.quantise(encoder.encode(X.astype(np.float64))))


# -- the sample ----------------------------------------------------------------------------------------------------


def assert_same(first, second, depth=8):
    """Compare trees up to a depth."""
    trees = first.embedded.trees, second.embedded.trees
    for name in ("centroids", "squares"):
        parts = (getattr(made, name)[:, : 2 ** (depth + 1) - 1] for made in trees)
        np.testing.assert_allclose(*parts, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(*(made.distortion[:, : depth + 1] for made in trees), rtol=1e-5)


def test_streams_merges_and_parts_keep_the_sample(monkeypatch):
    monkeypatch.setattr("firstk.moments.statistics._SAMPLE_ROWS", 100)
    rows = X.astype(np.float64)  # so that axes agree to many digits
    whole = PrefixEncoder(6).fit(rows)
    assert len(whole._statistics.sample) == 100
    stream = PrefixEncoder(6)
    for i in range(0, N, 70):
        stream.partial_fit(rows[i : i + 70])
    other = PrefixEncoder(6).fit(rows[300:]).merge(PrefixEncoder(6).fit(rows[:300]))
    apart = parts.finish(PrefixEncoder(6), [parts.measure(PrefixEncoder(6), [rows[i::4]]) for i in range(4)])
    for made in (stream, other, apart):
        np.testing.assert_array_equal(made._statistics.sample["X"], whole._statistics.sample["X"])
        assert_same(made.quantizer(), whole.quantizer())


def test_the_sample_does_not_depend_on_types_or_signs_of_zero():
    rows = np.where(np.abs(X) < 0.3, 0, X)
    sample = PrefixEncoder(3).fit(rows)._statistics.sample.priority
    for other in (rows.astype(np.float64), np.where(rows == 0, np.float32(-0.0), rows), sparse.csr_matrix(rows)):
        np.testing.assert_array_equal(PrefixEncoder(3).fit(other)._statistics.sample.priority, sample)


def test_rows_of_weight_zero_are_not_sampled_and_weights_count():
    weight = np.where(np.arange(N) < 300, 2.0, 0.0)
    rows = X.astype(np.float64)
    assert_same(
        PrefixEncoder(4).fit(rows, sample_weight=weight).quantizer(), PrefixEncoder(4).fit(rows[:300]).quantizer()
    )
    counts = np.arange(N) % 2 + 1
    weighted = PrefixEncoder(4).fit(rows, sample_weight=counts).quantizer()
    # Deeper cells are split or not by how many rows they have, where a copy is a row.
    assert_same(weighted, PrefixEncoder(4).fit(np.repeat(rows, counts, axis=0)).quantizer(), depth=3)


def test_moments_without_a_sample_give_no_sample():
    """Moments that an earlier firstk saved have none: a sample of the rows added since would stand for all."""
    encoder = PrefixEncoder(4).fit(X[:300])
    arrays = encoder._statistics.to_arrays()
    arrays = {name: part for name, part in arrays.items() if not name.startswith("sample.columns")}
    arrays |= {"sample.capacity": np.zeros(1, np.int64), "sample.priority": np.zeros(0, np.uint64)}
    for old_first in (True, False):
        old = PrefixEncoder(4).fit(X[:300])
        new = PrefixEncoder(4).fit(X[300:])
        old._statistics = Statistics.from_arrays(arrays)
        made = old.merge(new) if old_first else new.merge(old)
        with pytest.raises(InvalidInputError, match=r"quantizer\(bytes, rows=X\)"):
            made.quantizer()
        assert made.quantizer(2, rows=X).encode(X).shape == (N, 2)


def test_rows_in_place_of_the_sample(reconstruction):
    loaded = replace(reconstruction.encoder_, sample=None, cells=None)
    assert_same(loaded.quantizer(rows=X), reconstruction.quantizer())
    assert_same(loaded.quantizer(rows=X[::-1]), reconstruction.quantizer())


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize(("scored", "store", "codebooks"), [(1, None, False), (0, None, True), (1, MANY, True)])
def test_codes_of_scored_pairs_have_no_codebooks_unless_there_is_a_store(scored, store, codebooks, loaded, tmp_path):
    """They serve the order of all pairs, near and far; codebooks serve the nearest few of a store."""
    left, right = MANY, draw(1, len(MANY))
    scores = np.einsum("ij,ij->i", left, right) if scored else None
    encoder = PrefixEncoder(objective=Similarity("neighbors", 0.5, 0.0)).fit(Pairs(left, right, scores, store))
    fitted = encoder.encoder_
    if loaded:
        fitted.save(tmp_path / "model")
        fitted = FittedEncoder.load(tmp_path / "model")
    for quantizer in (fitted.quantizer(), fitted.quantizer(rows=MANY)):
        assert (quantizer.embedded.codebooks.levels > 0) == codebooks


def test_sparse_rows_that_stay_sparse(monkeypatch):
    monkeypatch.setattr("firstk.estimator.problem._DENSE_BYTES", 0)
    rows = sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0, X))
    encoder = PrefixEncoder(2).fit(rows)
    assert sparse.issparse(encoder.encoder_.sample["X"])
    np.testing.assert_array_equal(encoder.quantizer().encode(rows), encoder.quantizer().encode(rows.toarray()))


# -- scores --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_scores_by_definition(encoder, metric):
    quantizer = encoder.quantizer(metric=metric)
    codes = quantizer.cut(quantizer.encode(X), min(2, quantizer.bytes))
    queries, Z = quantizer.encode_query(X[:20]), quantizer.decode(codes)
    assert Z.dtype == queries.dtype == np.float32
    scores, cut = quantizer.scores(queries, codes), quantizer.at(codes.shape[1])
    if metric == "cosine":
        expected = queries @ Z.T / np.linalg.norm(Z, axis=1)
    elif metric == "inner_product":
        expected = queries @ Z.T
    else:
        # The expected squared distance to all rows of the cell: of z = c + r, with r in the cell of a tree,
        # E[z^2] = c^2 + 2 c E[r] + E[r^2], summed over coordinates.
        trees, named = quantizer.embedded.trees, cut.embedded.named_cells(codes)
        index = [2**b - 1 + c for b, c in zip(cut.embedded.bits, named.T, strict=True)]
        means, squares = (
            np.stack([part[i, at] for i, at in enumerate(index)]) for part in (trees.centroids, trees.squares)
        )
        books = np.zeros((trees.d, N))
        books[: cut.embedded.codebooks.width] = cut.embedded.codebooks.sums(codes[:, : cut.embedded.codebooks.levels]).T
        if (
            cut.embedded.codebooks.levels < quantizer.embedded.codebooks.levels
        ):  # cut among codebooks: the error that these leave
            width = cut.embedded.codebooks.errors.shape[1]
            squares[:width] = means[:width] ** 2 + cut.embedded.codebooks.errors[-1][:, None]
        expected = 2 * queries @ Z.T - (books**2 + 2 * books * means + squares).sum(axis=0)
    np.testing.assert_allclose(scores, expected, rtol=2e-4, atol=2e-4)
    # The same from tables of cells, as searches compute it.
    books = cut.embedded.codebooks.sums(codes[:, : cut.embedded.codebooks.levels])
    found = queries[:, : books.shape[1]] @ books.T
    named = np.pad(cut.embedded.named_cells(codes), ((0, 0), (0, cut.k - cut.embedded.trees.d)))
    for i in range(cut.k):
        found += queries[:, [i]] * cut.stored.cell_tables[i][0][named[:, i]]
    np.testing.assert_allclose(found, queries @ Z.T, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", ["reconstruction", "short", "dot products"])
def test_orthonormal_axes_are_scored_as_vectors(name):
    """With all bits, scores are nearly those of the vectors, projected on the axes and the mean."""
    encoder = FITS[name]()
    B, mean = encoder.components_, encoder.mean_
    rebuilt = (X - mean) @ B.T @ B + mean
    Q = draw(1, 30).astype(np.float64)
    truth = {
        "inner_product": Q @ rebuilt.T,
        "cosine": Q @ rebuilt.T / np.linalg.norm(rebuilt, axis=1),
        "l2": -(((((Q - mean) @ B.T)[:, None] - (X - mean) @ B.T) ** 2).sum(2)),
    }
    for metric, expected in truth.items():
        quantizer = encoder.quantizer(metric=metric)
        found = quantizer.scores(quantizer.encode_query(Q), quantizer.encode(X))
        if metric == "l2":
            found = found - np.sum(((Q - mean) @ B.T) ** 2, axis=1, keepdims=True)
        exact = quantizer.exact_scores(
            quantizer.encode_query(Q).astype(float), quantizer.rounded.encode(X.astype(float))
        )
        if metric == "l2":
            exact = exact - np.sum(((Q - mean) @ B.T) ** 2, axis=1, keepdims=True)
        np.testing.assert_allclose(exact, expected, rtol=1e-4, atol=5e-3)  # axes have 16 bits
        assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.999
    assert quantizer.k == encoder.n_components_
    # A mean that is not in the span of the axes is one more coordinate.
    assert encoder.quantizer().k == encoder.n_components_ + (name == "short")


def test_a_decoded_code_without_bits_is_the_mean(reconstruction):
    quantizer = reconstruction.quantizer(1, metric="l2")
    without = np.flatnonzero(quantizer.embedded.bits == 0)
    np.testing.assert_allclose(quantizer.decode(quantizer.encode(X))[:, without], 0, atol=1e-5)


# -- weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pairs", "fisher", "reconstruction"])
def test_queries_leave_out_coordinates_without_bits(name):
    """So that cosines of different queries compare; those of vectors, products and distances need all coordinates."""
    fitted, asked = FITS[name]().encoder_, draw(3, 50)
    for metric in METRICS:
        quantizer = fitted.quantizer(1, metric)
        whole = quantizer.query_encoder.encode(asked, side="query").astype(np.float32)
        coded = np.zeros(quantizer.k, dtype=bool)
        coded[quantizer.embedded.used] = True
        cut = metric == "cosine" and name != "reconstruction"
        assert not coded.all()
        np.testing.assert_array_equal(quantizer.encode_query(asked), np.where(coded | (not cut), whole, 0))


def test_queries_move_bits_to_where_they_look(reconstruction):
    Q = draw(2, 90)
    Q = (reconstruction.mean_ + (Q - reconstruction.mean_) @ reconstruction.components_[6:8].T
         @ reconstruction.components_[6:8]).astype(np.float32) * [1]  # fmt: skip
    plain = reconstruction.quantizer(4, metric="l2", tau=0.0)
    asked = reconstruction.quantizer(4, metric="l2", queries=Q, tau=1.0)
    assert asked.embedded.bits[6:8].sum() > plain.embedded.bits[6:8].sum()
    moments = (asked.encode_query(Q).astype(float) ** 2).mean(0)
    np.testing.assert_array_equal(asked.embedded.order, asked.embedded.weighted(moments).at(asked.bytes).order)
    assert asked.fingerprint != plain.fingerprint
    # Chosen among the three, on queries that the weights were not computed from.
    chosen = reconstruction.quantizer(4, metric="l2", queries=Q)
    orders = [chosen.embedded.weighted(moments**tau).at(4).order for tau in TAUS]
    assert any(np.array_equal(chosen.embedded.order, order) for order in orders)
    assert not all(np.array_equal(chosen.embedded.order, order) for order in orders)


def test_documents_stand_for_queries(reconstruction):
    default, plain = reconstruction.quantizer(), reconstruction.quantizer(tau=0)
    cells = reconstruction.encoder_.with_cells().cells
    np.testing.assert_array_equal(plain.embedded.order, cells.weighted(None).order)
    assert not np.array_equal(plain.embedded.order, default.embedded.order)
    given = reconstruction.quantizer(tau=1 / 3)
    np.testing.assert_array_equal(given.embedded.order, default.embedded.order)


def test_choosing_tau_needs_documents_and_queries(reconstruction):
    bare = replace(reconstruction.encoder_.with_cells(), sample=None)
    with pytest.raises(InvalidInputError, match="no sample of documents"):
        bare.quantizer(2, queries=X[:50])
    bare.quantizer(2, queries=X[:50], rows=X)
    bare.quantizer(2, queries=X[:50], tau=0.5)
    with pytest.raises(InvalidInputError, match="there are 1 queries"):
        reconstruction.quantizer(2, queries=X[:1])
    for tau in (-1, "a", np.nan, True):
        with pytest.raises(InvalidInputError, match="'tau'"):
            reconstruction.quantizer(2, tau=tau)


# -- bytes in all --------------------------------------------------------------------------------------------------


def test_what_is_stored_once_is_counted(encoder):
    fitted = encoder.encoder_
    for bytes in {1, 5, encoder.quantizer().bytes} - set(range(encoder.quantizer().bytes + 1, 6)):
        quantizer = encoder.quantizer(bytes)
        embedded = quantizer.embedded
        books = sum(256 * (window.stop - window.start) + 4 for window, _ in embedded.codebooks.books)
        cells = sum(4 * (2 ** (bits + 1) - 1) for bits in embedded.bits if bits)
        means = [fitted.mean]
        means += [] if (fitted.mean == fitted.query_mean).all() else [fitted.query_mean]
        numbers, axes = (
            sum(np.count_nonzero(part) for part in means),
            np.count_nonzero(fitted.components[embedded.used]),
        )
        short = 2 * axes + len(embedded.used) if quantizer.rounded is not quantizer.encoder else 4 * axes
        assert quantizer.stored_once == books + cells + 2 * len(embedded.order) + 4 * numbers + short
        assert quantizer.bytes_in_all(100) == bytes + quantizer.stored_once / 100
    for rows in (0, 1.5, "all", True):
        with pytest.raises(InvalidInputError, match="'rows'"):
            quantizer.bytes_in_all(rows)


def test_a_network_and_columns_that_are_kept_count():
    columns = FittedEncoder(np.eye(6)[:3], np.ones(3), np.zeros(6), np.zeros(6))
    assert columns.stored_once(slice(2)) == 4 * 2
    weights = [np.ones((4, 6)), np.ones((3, 4))]
    network = TrainedMLP(weights, [np.ones(4), np.ones(3)], False)
    deep = replace(columns, components=np.eye(3), network=network)
    assert deep.stored_once(slice(3)) == 4 * (3 + 24 + 12 + 7)


# -- cuts of encoders, and storage -----------------------------------------------------------------------------------


def test_encoders_that_are_cut(encoder):
    k = min(3, encoder.n_components_)
    short = encoder[:k]
    quantizer = short.quantizer()
    assert quantizer.embedded.trees.d == k
    if not encoder.encoder_.normalized:
        np.testing.assert_array_equal(
            quantizer.embedded.trees.centroids, encoder.quantizer().embedded.trees.centroids[:k]
        )
    loaded = replace(encoder.encoder_.with_cells(), sample=None)[:k]
    if encoder.encoder_.normalized:
        with pytest.raises(InvalidInputError, match="brings codes to unit norm"):
            loaded.quantizer()
    else:
        np.testing.assert_array_equal(loaded.quantizer().encode(X), quantizer.encode(X))


def test_saved_encoders_make_the_same_bytes(encoder, tmp_path):
    codes = encoder.quantizer().encode(X)
    encoder.save(tmp_path / "model")
    for loaded in (PrefixEncoder.load(tmp_path / "model"), FittedEncoder.load(tmp_path / "model")):
        assert loaded.quantizer().fingerprint == encoder.quantizer().fingerprint
        np.testing.assert_array_equal(loaded.quantizer().encode(X), codes)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.quantizer().encode(X), codes)


def test_weights_of_queries_are_saved(reconstruction, tmp_path):
    quantizer = reconstruction.quantizer(3, queries=X[:60], tau=1)
    quantizer.encoder.save(tmp_path / "model")
    loaded = FittedEncoder.load(tmp_path / "model").quantizer(3)
    assert loaded.fingerprint == quantizer.fingerprint


def test_a_saved_encoder_has_trees_whether_or_not_they_were_asked_for(tmp_path):
    made = PrefixEncoder(3).fit(X)
    made.save(tmp_path / "model")
    assert_same(PrefixEncoder.load(tmp_path / "model").quantizer(), PrefixEncoder(3).fit(X).quantizer())
    assert to_bytes(read_model(tmp_path / "model")[1])  # arrays of numbers, and nothing else


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("trees.squares") is None, "trees have"),
        (lambda a: a.update({"trees.more": np.zeros(3)}), "trees have"),
        (lambda a: a.update({"trees.centroids": a["trees.centroids"][:, ::-1].copy()}), "do not ascend"),
        (lambda a: a.update({"trees.squares": a["trees.squares"] * np.float32(np.nan)}), "NaN"),
        (lambda a: a.update({"trees.distortion": -a["trees.distortion"]}), "negative"),
        (lambda a: a.update({"trees.distortion": a["trees.distortion"][0]}), "trees"),
        (lambda a: a.update({"trees.order": np.array([0, 3], np.int32)}), "coordinates from 0 to 2"),
        (lambda a: a.update({"trees.order": np.array([0, -1], np.int32)}), "coordinates from 0 to 2"),
        (lambda a: a.update({"trees.order": np.zeros(9, np.int32)}), "more than 8 bits"),
        (lambda a: a.update({"trees.order": np.zeros((2, 2), np.int32)}), "coordinates from 0 to 2"),
    ],
)
def test_damaged_trees_are_refused(change, said, tmp_path):
    PrefixEncoder(3).fit(X).save(tmp_path / "model")
    config, arrays = read_model(tmp_path / "model")
    change(arrays)
    write_model(tmp_path / "model", config, arrays)
    with pytest.raises(CorruptModelError, match=said):
        FittedEncoder.load(tmp_path / "model")


def test_models_without_trees_load_and_say_what_is_missing(tmp_path):
    made = PrefixEncoder(3).fit(X)
    made.save(tmp_path / "model")
    config, arrays = read_model(tmp_path / "model")
    write_model(tmp_path / "model", config, {name: part for name, part in arrays.items() if "trees" not in name})
    loaded = PrefixEncoder.load(tmp_path / "model")
    with pytest.raises(InvalidInputError, match=r"saved without them.*quantizer\(bytes, rows=X\)"):
        loaded.quantizer(2)
    np.testing.assert_array_equal(loaded.quantizer(2, rows=X).encode(X), made.quantizer(2).encode(X))


def test_numbers_too_large_for_trees_do_not_hinder_saving(tmp_path):
    made = PrefixEncoder(3).fit(X.astype(np.float64) * 1e30)
    made.save(tmp_path / "model")
    with pytest.raises(InvalidInputError, match="Scale the vectors"):
        made.quantizer(2)
    assert PrefixEncoder.load(tmp_path / "model").n_components_ == 3


# -- errors --------------------------------------------------------------------------------------------------------


def test_errors_name_what_is_wrong(reconstruction):
    quantizer = reconstruction.quantizer(4)
    most = reconstruction.quantizer().bytes
    for bytes in (0, -3, 1.5, "4", True, most + 1):
        with pytest.raises(InvalidInputError, match=rf"\[1, {most}\] \(the bytes that the code has\)"):
            reconstruction.quantizer(bytes)
    with pytest.raises(InvalidInputError, match="'metric'"):
        reconstruction.quantizer(4, metric="euclid")
    codes = quantizer.encode(X)
    for wrong in (codes.astype(np.int64), codes[0], np.hstack([codes, codes]), codes[:, :0]):
        for use in (quantizer.decode, lambda c: quantizer.cut(c, 1), lambda c: quantizer.scores(np.ones((1, P)), c)):
            with pytest.raises(InvalidInputError, match=r"a? ?quantizer of 4 bytes|uint8"):
                use(wrong)
    with pytest.raises(InvalidInputError, match="have 2 bytes, and cannot be cut at 3"):
        quantizer.cut(codes[:, :2], 3)
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[3, 1] = value
        for use in (quantizer.encode, quantizer.encode_query, lambda B: reconstruction.quantizer(2, rows=B)):
            with pytest.raises(InvalidInputError, match="row 3"):
                use(bad)
    with pytest.raises(InvalidInputError, match="12 columns"):
        quantizer.encode(X[:, :5])
    with pytest.raises(InvalidInputError, match="12 columns"):
        quantizer.embedded.quantise(X[:, :5])
    other = PrefixEncoder(4).fit(X[:100]).quantizer(2)
    quantizer.check_codes(reconstruction.quantizer(2).fingerprint)
    with pytest.raises(InvalidInputError, match="were made by encoder"):
        quantizer.check_codes(other.fingerprint)
    with pytest.raises(InvalidInputError, match="'stamp' parameter of a quantizer must be a CodeStamp"):
        quantizer.check_codes(5)


def test_codes_that_do_not_vary_have_no_byte():
    made = FittedEncoder(np.eye(2), np.ones(2), np.zeros(2), np.zeros(2))
    with pytest.raises(InvalidInputError, match="0 bits lower their error"):
        made.quantizer(rows=np.ones((50, 2)))


def test_inputs_are_not_changed(reconstruction):
    rows = X.copy()
    quantizer = reconstruction.quantizer(4, rows=rows, queries=rows[:30])
    codes = quantizer.encode(rows)
    kept = codes.copy()
    quantizer.decode(codes)
    quantizer.scores(quantizer.encode_query(rows), codes)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(codes, kept)


@pytest.mark.parametrize("name", ["codebooks", "neighbors"])
def test_effort_gives_cuts_of_one_string_whatever_batch_and_rounding(name, monkeypatch):
    encoder, rows = FITS[name](), (MANY if name == "codebooks" else X)[:60]
    quantizer = encoder.quantizer()
    codes, plain = quantizer.encode(rows, effort=3), quantizer.encode(rows)
    for size in (1, 3, quantizer.bytes):
        np.testing.assert_array_equal(quantizer.at(size).encode(rows[7:9], effort=3), codes[7:9, :size])
    levels = quantizer.embedded.levels
    true = cells._Coordinates.approximate

    def off(self):
        Z, doubt = true(self)
        noise = np.random.default_rng(0).uniform(-0.9, 0.9, Z.shape)
        return (Z + noise * doubt * self.lengths[:, None]).astype(Z.dtype), 2 * doubt

    monkeypatch.setattr(cells._Coordinates, "approximate", off)
    np.testing.assert_array_equal(quantizer.encode(rows, effort=3), codes)
    if levels:
        Z = quantizer.rounded.encode(rows)
        left = [np.square(Z - quantizer.embedded.at(levels).restore(part[:, :levels])).sum() for part in (codes, plain)]
        assert left[0] < left[1]
    else:
        np.testing.assert_array_equal(codes, plain)


@pytest.mark.parametrize("effort", [0, 9, 1.5, True])
def test_effort_is_a_small_int(effort, reconstruction):
    with pytest.raises(InvalidInputError, match=r"effort.*1, 8"):
        reconstruction.quantizer(bytes=2).encode(X[:3], effort=effort)
