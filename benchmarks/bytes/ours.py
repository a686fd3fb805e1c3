"""Codes of firstk: embedded bits, of one fit and one stored string, and the precisions with equal bits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.bytes.cases import NEIGHBORS, Axes, Case, nearest
from benchmarks.bytes.settings import BYTES, Encoded, Rebuilt, Searched, Setting
from firstk import PrefixEncoder
from firstk.bits.quantizer import EmbeddedQuantizer
from firstk.data.precision import PRECISIONS
from firstk.objectives import Fisher, Similarity

OURS = "firstk embedded"
# The objective whose line is compared with the others; the rest are reported beside it.
HEADLINE = f"{OURS}, reconstruction"
# Of the objectives that learn from labels, the one that was ahead on validation rows (docs/decisions/bits.md).
SUPERVISED = f"{OURS}, error bound"
# Bits go where queries look, by a sample of them; those that are searched for are others.
WITH_QUERIES = "with queries"
OBJECTIVES = {
    "reconstruction": "reconstruction",
    WITH_QUERIES: "reconstruction",
    "dot products": Similarity(keep="dot_products"),
    "fisher": Fisher(shrinkage="auto"),
    "error bound": "error_bound",
}
LABELLED = ("fisher", "error bound")


def settings(case: Case) -> Iterator[Setting]:
    """Return what firstk stores in so many bytes."""
    d = case.store.shape[1]
    for objective in OBJECTIVES:
        if objective == "reconstruction" or (case.model == "minilm" and (objective not in LABELLED or case.labels)):
            for size in BYTES:
                yield Setting(
                    f"{OURS}, {objective}", f"{size} bytes", size, lambda c, o=objective, b=size: embedded(c, o, b),
                    for_more_bytes=False, cached=False,
                )  # fmt: skip
    for size in BYTES:
        for name, width in (("int8", size), ("int4", 2 * size), ("binary", 8 * size)):
            if width <= d:
                yield Setting(
                    f"firstk {name}", f"SVD{width},{name}", size, lambda c, w=width, p=name: equal_bits(c, w, p)
                )


@dataclass(frozen=True, eq=False)
class String:
    """The store as one string of bytes, for the queries of a mask."""

    quantizer: EmbeddedQuantizer
    codes: np.ndarray
    asked: np.ndarray

    def decoded(self, size: int) -> np.ndarray:
        """Return the unit codes that the first bytes stand for."""
        Z = self.quantizer.decode(self.quantizer.cut(self.codes, min(size, self.quantizer.bytes)))
        return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)


_strings: dict[tuple[str, str], tuple[list[String], dict[str, float]]] = {}


def embedded(case: Case, objective: str, size: int) -> Encoded:
    """Return the first bytes of the string that one fit and one encoding made of the store."""
    key = (case.name, objective)
    if key not in _strings:
        _strings.clear()
        _strings[key] = _encoded(case, objective)
    strings, seconds = _strings[key]

    def search(queries: np.ndarray) -> np.ndarray:
        found = np.empty((len(queries), NEIGHBORS), np.int64)
        for string in strings:
            found[string.asked] = nearest(string.quantizer.encode_query(queries[string.asked]), string.decoded(size))
        return found

    quantizer = strings[0].quantizer
    once = quantizer.at(min(size, quantizer.bytes)).stored_once
    return Encoded((Searched({"cosine": search}),), once, seconds)


def _encoded(case: Case, objective: str) -> tuple[list[String], dict[str, float]]:
    """Fit and encode: once, or once for each half of the queries where the other half may be seen."""
    start = time.perf_counter()
    encoder = PrefixEncoder(objective=OBJECTIVES[objective])
    encoder.fit(case.training, case.training_labels if objective in LABELLED else None)
    everybody = np.ones(len(case.queries), bool)
    halves = [case.folds == fold for fold in (0, 1)] if objective == WITH_QUERIES else [everybody]
    quantizers = []
    for asked in halves:
        seen = {"queries": case.queries[~asked]} if objective == WITH_QUERIES else {}
        quantizer = encoder.quantizer(metric="cosine", **seen)
        quantizers.append(quantizer.at(min(max(BYTES), quantizer.bytes)))
    trained = time.perf_counter()
    strings = [String(q, q.encode(case.store), asked) for q, asked in zip(quantizers, halves, strict=True)]
    return strings, {"train": trained - start, "encode": (time.perf_counter() - trained) / len(halves)}


def every_length(case: Case) -> list[tuple[int, float]]:
    """Return recall at many lengths of the string, for the figure."""
    found = []
    for size in range(4, max(BYTES) + 1, 4):
        rows = embedded(case, "reconstruction", size).found(case.queries)["cosine"]
        found.append((size, round(float(case.measures(rows)[0].mean()), 4)))
    return found


def equal_bits(case: Case, width: int, precision: str) -> Encoded:
    """Store the first coordinates of the objective that keeps dot products, in one precision."""
    start = time.perf_counter()
    encoder = PrefixEncoder(width, objective=Similarity(keep="dot_products")).fit(case.training).encoder_
    Z = encoder.encode(case.store)
    rounding = PRECISIONS[precision].fit(encoder.encode(case.training))
    trained = time.perf_counter()
    codes = rounding.quantise(Z)
    seconds = {"train": trained - start, "encode": time.perf_counter() - trained}
    axes = Axes(np.zeros(case.store.shape[1], np.float32), encoder.components.astype(np.float32))
    return Encoded((Rebuilt(rounding.restore(codes)[:, : encoder.d], axes),), 4 * axes.rows.size, seconds)
