"""Quantizers of faiss: product, optimized product, residual, RaBitQ, scalar, TurboQuant and EDEN."""

from __future__ import annotations

import time
from collections.abc import Iterator

import faiss
import numpy as np

from benchmarks.bytes.cases import NEIGHBORS, Axes, Case
from benchmarks.bytes.settings import BYTES, Encoded, Rebuilt, Searched, Setting

# Bytes that RaBitQ and EDEN store for each vector beside its bits.
RABITQ_FACTORS = {1: 8, 2: 20, 3: 20, 4: 20}
EDEN_FACTORS = 8
NORM = 4
# The most rows that slow quantizers are trained on; faiss takes 256 a centroid at most.
TRAINED_ON = 65_536
RQ_LEAST, RQ_MOST = 8, 64
# Numbers of a part of a vector that k-means of faiss is fast with.
PADDED = 16


def settings(case: Case) -> Iterator[Setting]:
    """Return all settings of faiss for the widths of a case."""
    d = case.store.shape[1]
    for size in BYTES:
        yield Setting("faiss PQ", f"PQ{size}x8", size, lambda c, m=size: product(c, m, 8))
        if 2 * size <= d:
            yield Setting("faiss PQ", f"PQ{2 * size}x4", size, lambda c, m=2 * size: product(c, m, 4))
        yield Setting("faiss OPQ+PQ", f"OPQ{size},PQ{size}x8", size, lambda c, m=size: optimized(c, m), slow=True)
        if RQ_LEAST <= size <= RQ_MOST:
            yield Setting("faiss RQ", f"RQ{size}x8", size, lambda c, m=size: residual(c, m), slow=True)
        for bits, width in ((8, size), (4, 2 * size)):
            if width <= d:
                name = f"PCA{width},SQ{bits}"
                yield Setting("faiss SQ4/SQ8", name, size, lambda c, w=width, b=bits: scalar(c, w, b))
    yield from rotated(case, "faiss PCA+RaBitQ", "faiss RaBitQ", RABITQ_FACTORS, rabitq)
    yield from rotated(case, "faiss EDEN", "faiss EDEN", dict.fromkeys((1, 2, 3, 4), EDEN_FACTORS), eden)
    # TurboQuant's levels are those of a unit vector: a cut one needs its norm, or goes without.
    yield from rotated(case, "faiss TurboQuant", "faiss TurboQuant", dict.fromkeys((1, 2, 3, 4), NORM), turboquant)
    yield from rotated(case, "faiss TurboQuant", "faiss TurboQuant", dict.fromkeys((1, 2, 3, 4), 0), turboquant_unit)


def rotated(case, cut_family, full_family, factors, encode) -> Iterator[Setting]:
    """Return settings that keep leading principal axes, or all axes, and rotate those at random."""
    d = case.store.shape[1]
    for bits, factor in factors.items():
        if -(-d * bits // 8) + factor <= max(BYTES):
            size = -(-d * bits // 8) + factor
            yield Setting(full_family, f"RR{d},{encode.__name__}{bits}", size, lambda c, b=bits: encode(c, c.raw, b))
        for size in BYTES:
            width = (size - factor) * 8 // bits
            while encode is rabitq and -(-width // 8) + -(-width * (bits - 1) // 8) + factor > size:
                width -= 1  # signs and the other bits are packed apart
            if not 8 <= width < d:
                continue
            name = f"PCA{width},{encode.__name__}{bits}"
            yield Setting(cut_family, name, size, lambda c, w=width, b=bits: encode(c, c.pca.first(w), b))


def product(case: Case, m: int, bits: int) -> Encoded:
    """Product quantizer of the vectors as they are; missing columns are zeros."""
    axes = _padded(case.raw, m)
    return _coded(case, axes, _product_quantizer(len(axes.rows), m, bits), 4 * 2**bits * len(axes.rows))


def optimized(case: Case, m: int) -> Encoded:
    """Product quantizer behind a learned rotation (50 iterations, the default of faiss)."""
    start = time.perf_counter()
    d = case.store.shape[1]
    width = -(-d // m) * m
    learned = faiss.OPQMatrix(d, m, width)
    quantizer = _product_quantizer(width, m, 8)
    learned.pq = quantizer  # of which faiss keeps a pointer alone
    learned.train(_sample(case.training))
    rows = faiss.vector_to_array(learned.A).reshape(width, d)
    trained = time.perf_counter() - start
    size = 4 * 256 * width + 4 * width * d
    done = _coded(case, Axes(case.raw.mean, rows), _product_quantizer(width, m, 8), size)
    return Encoded(done.ways, done.codebook_bytes, {**done.seconds, "train": done.seconds["train"] + trained})


_residuals: dict[str, faiss.ResidualQuantizer] = {}


def residual(case: Case, m: int) -> Encoded:
    """Residual quantizer, beam of 5; levels are learned one after the other, so the longest is trained for all."""
    start = time.perf_counter()
    d = case.store.shape[1]
    longest = _residuals.get(case.name)
    if longest is None:
        longest = faiss.ResidualQuantizer(d, RQ_MOST, 8)
        longest.max_beam_size = 5
        longest.use_beam_LUT = 1
        longest.train(_sample(case.training))
        _residuals.clear()
        _residuals[case.name] = longest
    short = faiss.ResidualQuantizer(d, m, 8)
    short.max_beam_size = 5
    books = faiss.vector_to_array(longest.codebooks)[: m * 256 * d]
    faiss.copy_array_to_vector(np.ascontiguousarray(books), short.codebooks)
    short.is_trained = True
    short.use_beam_LUT = 1
    short.compute_codebook_tables()
    trained = time.perf_counter() - start
    codes = short.compute_codes(case.store)
    seconds = {"train": trained, "encode": time.perf_counter() - start - trained}
    return Encoded((Rebuilt(short.decode(codes), case.raw),), 4 * 256 * m * d, seconds)


def scalar(case: Case, width: int, bits: int) -> Encoded:
    """Scalar quantizer of principal coordinates, a range for each."""
    kind = {8: faiss.ScalarQuantizer.QT_8bit, 4: faiss.ScalarQuantizer.QT_4bit}[bits]
    axes = case.pca.first(width)
    return _coded(case, axes, faiss.ScalarQuantizer(width, kind), 4 * axes.rows.size + 8 * width)


def rabitq(case: Case, axes: Axes, bits: int) -> Encoded:
    """RaBitQ's own search, queries in 8 bits: as good as float queries (measured), and thirty times as fast."""
    return _estimated(case, axes.turned(), lambda width, metric: _rabitq_index(width, metric, bits))


def eden(case: Case, axes: Axes, bits: int) -> Encoded:
    """EDEN's own search."""
    return _estimated(case, axes.turned(), lambda width, metric: faiss.IndexEDEN(width, metric, bits))


def turboquant(case: Case, axes: Axes, bits: int) -> Encoded:
    """TurboQuant's levels of the mean squared error, and the norm of each vector."""
    return _turboquant(case, axes, bits, normed=True)


def turboquant_unit(case: Case, axes: Axes, bits: int) -> Encoded:
    """TurboQuant's levels of the mean squared error; the norm is left out."""
    return _turboquant(case, axes, bits, normed=False)


def _turboquant(case: Case, axes: Axes, bits: int, *, normed: bool) -> Encoded:
    start = time.perf_counter()
    axes = axes.turned()
    kind = getattr(faiss.ScalarQuantizer, f"QT_{bits}bit_tqmse")
    quantizer = faiss.ScalarQuantizer(len(axes.rows), kind)
    Z = axes.of(case.store)
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    # Without stored norms all vectors get the same one.
    stored = norms if normed else np.full_like(norms, np.sqrt((norms**2).mean()))
    Z /= np.maximum(norms, 1e-12)
    quantizer.train(Z)
    decoded = quantizer.decode(quantizer.compute_codes(Z)) * stored
    return Encoded((Rebuilt(decoded, axes),), 4 * axes.rows.size, {"encode": time.perf_counter() - start})


def _rabitq_index(width: int, metric: int, bits: int) -> faiss.Index:
    index = faiss.IndexRaBitQ(width, metric, bits)
    index.qb = 8
    return index


def _estimated(case: Case, axes: Axes, make) -> Encoded:
    """Search by distance: the vectors have norm one, and by inner product every setting tried was worse or equal."""
    start = time.perf_counter()
    Z = axes.of(case.store)
    index = make(len(axes.rows), faiss.METRIC_L2)
    index.train(axes.of(case.training))
    index.add(Z)
    seconds = {"encode": time.perf_counter() - start}
    searched = Searched({"own": lambda Q: index.search(axes.of(Q), NEIGHBORS)[1]})
    return Encoded((searched,), 4 * axes.rows.size, seconds)


def _product_quantizer(width: int, m: int, bits: int) -> faiss.ProductQuantizer:
    """Return a product quantizer whose k-means pads short parts with zeros.

    That changes nothing but the time: faiss 1.15.1 compares parts of fewer than 16 numbers six times as slowly.
    """
    quantizer = faiss.ProductQuantizer(width, m, bits)
    if width // m < PADDED:
        parts = (faiss.RemapDimensionsTransform(width // m, PADDED, False), faiss.IndexFlatL2(PADDED))
        index = faiss.IndexPreTransform(*parts)
        quantizer.assign_index, quantizer.held = index, (*parts, index)
    return quantizer


def _coded(case: Case, axes: Axes, quantizer, codebook_bytes: int) -> Encoded:
    start = time.perf_counter()
    Z = axes.of(case.store)
    quantizer.train(_sample(axes.of(case.training)))
    trained = time.perf_counter()
    codes = quantizer.compute_codes(Z)
    seconds = {"train": trained - start, "encode": time.perf_counter() - trained}
    return Encoded((Rebuilt(quantizer.decode(codes), axes),), codebook_bytes, seconds)


def _padded(axes: Axes, multiple: int) -> Axes:
    """Return the axes and as many zeros as make their number a multiple."""
    missing = -len(axes.rows) % multiple
    return Axes(axes.mean, np.pad(axes.rows, ((0, missing), (0, 0))))


def _sample(Z: np.ndarray) -> np.ndarray:
    picked = np.sort(np.random.default_rng(0).permutation(len(Z))[:TRAINED_ON])
    return np.ascontiguousarray(Z[picked])
