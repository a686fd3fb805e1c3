"""Other libraries and recipes: turbovec, turboquant-pro, sentence-transformers, and cut, rotate, equal bits."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.bytes.cases import NEIGHBORS, Axes, Case
from benchmarks.bytes.settings import BYTES, Encoded, Rebuilt, Searched, Setting

# Bytes of scale that turbovec and turboquant-pro store for each vector.
NORM = 4
# How many rows sentence-transformers' rescoring of bits takes into the shortlist, in multiples of ten.
RESCORED = 4


def settings(case: Case) -> Iterator[Setting]:
    """Return the settings of the packages that are installed."""
    d = case.store.shape[1]
    for size in BYTES:
        for axes in ("pca", "svd"):
            for bits in (2, 3, 4):
                if (width := 8 * size // bits) <= d:
                    name = f"{axes.upper()}{width},rotated,{bits} bits"
                    yield Setting(
                        "cut, rotated, equal bits", name, size,
                        lambda c, a=axes, w=width, b=bits: equal_bits(c, getattr(c, a).first(w), b),
                    )  # fmt: skip
    if _installed("turbovec"):
        yield from _turbovec(d)
    if _installed("turboquant_pro"):
        yield from _turboquant_pro(d)
    if _installed("sentence_transformers"):
        yield from _sentence_transformers(d)


def missing() -> list[str]:
    """Name the packages that are not installed."""
    return [name for name in ("turbovec", "turboquant_pro", "sentence_transformers") if not _installed(name)]


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def equal_bits(case: Case, axes: Axes, bits: int) -> Encoded:
    """Cut, rotate at random, and round every coordinate to the best levels of a normal variable (Max 1960)."""
    start = time.perf_counter()
    axes = axes.turned()
    Z, seen = axes.of(case.store), axes.of(case.training)
    center, scale = seen.mean(axis=0), seen.std(axis=0) + 1e-12
    levels = normal_levels(bits)
    codes = np.searchsorted((levels[1:] + levels[:-1]) / 2, (Z - center) / scale)
    decoded = (levels[codes] * scale + center).astype(np.float32)
    seconds = {"encode": time.perf_counter() - start}
    return Encoded((Rebuilt(decoded, axes),), 4 * axes.rows.size + 8 * len(axes.rows), seconds)


def normal_levels(bits: int) -> np.ndarray:
    """Return the levels of the quantizer of a normal variable that has the least mean squared error."""
    from scipy.stats import norm

    levels = norm.ppf((np.arange(2**bits) + 0.5) / 2**bits)
    for _ in range(2000):
        edges = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
        levels = (norm.pdf(edges[:-1]) - norm.pdf(edges[1:])) / np.diff(norm.cdf(edges))
    return levels


def _turbovec(d: int) -> Iterator[Setting]:
    for bits in (2, 4):  # 3 bits are stored as 4
        if d * bits // 8 + NORM <= max(BYTES):
            yield Setting(
                "turbovec", f"turbovec{d}x{bits}", d * bits // 8 + NORM, lambda c, b=bits: turbovec(c, c.raw, b)
            )
        for size in BYTES:
            width = (size - NORM) // bits * 8
            if 8 <= width < d:
                yield Setting(
                    "turbovec", f"PCA{width},turbovec{bits}", width * bits // 8 + NORM,
                    lambda c, w=width, b=bits: turbovec(c, c.pca.first(w), b),
                )  # fmt: skip


def turbovec(case: Case, axes: Axes, bits: int) -> Encoded:
    """Encode with turbovec, calibrated on stored rows drawn at random as its documentation asks."""
    from turbovec import TurboQuantIndex

    start = time.perf_counter()
    Z = axes.of(case.store)
    index = TurboQuantIndex(dim=len(axes.rows), bit_width=bits)
    seen = case.training[np.random.default_rng(0).permutation(len(case.training))[:4096]]
    index.calibrate(axes.of(seen))
    index.add(Z)
    seconds = {"encode": time.perf_counter() - start}

    def search(Q: np.ndarray) -> np.ndarray:
        return index.search(np.ascontiguousarray(Q @ axes.rows.T), NEIGHBORS)[1].astype(np.int64)

    return Encoded((Searched({"own": search}),), 4 * axes.rows.size, seconds)


def _turboquant_pro(d: int) -> Iterator[Setting]:
    for size in BYTES:
        for bits in (2, 3, 4):
            if 8 <= (width := (size - NORM) * 8 // bits) <= d:
                name = f"PCAMatryoshka({width}) {bits} bits"
                yield Setting("turboquant-pro", name, size, lambda c, w=width, b=bits: turboquant_pro(c, w, b))
        # Three segments, each with a norm of its own.
        if 16 <= (width := (size - 3 * NORM) * 8 // 3) <= d:
            yield Setting("turboquant-pro", f"eigenweighted({width})", size, lambda c, w=width: eigenweighted(c, w))


def turboquant_pro(case: Case, width: int, bits: int) -> Encoded:
    """Encode with turboquant-pro: principal axes, cut, rotated, one width of bits."""
    from turboquant_pro import PCAMatryoshka

    start = time.perf_counter()
    pca = PCAMatryoshka(case.store.shape[1], width)
    pca.fit(case.training)
    pipeline = pca.with_quantizer(bits=bits)
    trained = time.perf_counter()
    codes = pipeline.compress_batch(case.store)
    seconds = {"train": trained - start, "encode": time.perf_counter() - trained}
    rebuilt = np.asarray(pipeline.decompress_batch(codes), np.float32)
    return Encoded((Rebuilt(rebuilt, case.raw),), 4 * width * (case.store.shape[1] + width), seconds)


def eigenweighted(case: Case, width: int) -> Encoded:
    """Encode with turboquant-pro's three segments of 4, 3 and 2 bits."""
    from turboquant_pro import PCAMatryoshka

    start = time.perf_counter()
    pca = PCAMatryoshka(case.store.shape[1], width)
    pca.fit(case.training)
    pipeline = pca.with_weighted_quantizer(avg_bits=3.0)
    trained = time.perf_counter()
    Z = pca.transform(case.store)
    parts = [
        quantizer.decompress_batch(quantizer.compress_batch(Z[:, start_ : start_ + n]))
        for start_, n, _, quantizer in pipeline.segments
    ]
    seconds = {"train": trained - start, "encode": time.perf_counter() - trained}
    rebuilt = np.asarray(pca.inverse_transform(np.concatenate(parts, axis=1)), np.float32)
    return Encoded((Rebuilt(rebuilt, case.raw),), 4 * width * (case.store.shape[1] + width), seconds)


def _sentence_transformers(d: int) -> Iterator[Setting]:
    yield Setting("sentence-transformers int8", f"int8 of {d}", d, lambda c: st_int8(c, c.raw))
    yield Setting("sentence-transformers ubinary", f"ubinary of {d}", d // 8, lambda c: st_ubinary(c, c.raw))
    for size in BYTES:
        if size < d:
            yield Setting(
                "sentence-transformers int8", f"PCA{size},int8", size, lambda c, w=size: st_int8(c, c.pca.first(w))
            )
        if 8 * size < d:
            yield Setting(
                "sentence-transformers ubinary", f"PCA{8 * size},ubinary", size,
                lambda c, w=8 * size: st_ubinary(c, c.pca.first(w)),
            )  # fmt: skip


def st_int8(case: Case, axes: Axes) -> Encoded:
    """Round with quantize_embeddings to int8 over the ranges of the stored rows."""
    from sentence_transformers.quantization import quantize_embeddings

    start = time.perf_counter()
    Z = axes.of(case.store)
    seen = axes.of(case.training)
    ranges = np.stack([seen.min(axis=0), seen.max(axis=0)])
    codes = quantize_embeddings(Z, "int8", ranges=ranges)
    seconds = {"encode": time.perf_counter() - start}
    steps = (ranges[1] - ranges[0]) / 255
    rebuilt = ((codes.astype(np.float32) + 128.5) * steps + ranges[0]).astype(np.float32)
    return Encoded((Rebuilt(rebuilt, axes),), 4 * axes.rows.size + 8 * len(axes.rows), seconds)


def st_ubinary(case: Case, axes: Axes) -> Encoded:
    """Round with quantize_embeddings to bits; Hamming distance finds a shortlist, which float queries rescore."""
    import faiss
    from sentence_transformers.quantization import quantize_embeddings, semantic_search_faiss

    start = time.perf_counter()
    codes = quantize_embeddings(axes.of(case.store), "ubinary")
    seconds = {"encode": time.perf_counter() - start}
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)

    def search(Q: np.ndarray) -> np.ndarray:
        hits, _, _ = semantic_search_faiss(
            axes.of(Q), corpus_index=index, corpus_precision="ubinary", top_k=NEIGHBORS, rescore=True,
            rescore_multiplier=RESCORED, exact=True, output_index=True,
        )  # fmt: skip
        return np.array([[hit["corpus_id"] for hit in row] for row in hits])

    return Encoded((Searched({"own, rescored": search}),), 4 * axes.rows.size, seconds)
