"""Embedded bits beside equal bits, in the codes of one model that learned from labels or judgements.

The encoder is the same in all rows of a table; only the bytes are spent differently. Scores are of test rows or test
queries, which no fit has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.bytes.cases import nearest
from benchmarks.bytes.settings import BYTES
from firstk import PrefixEncoder, metrics
from firstk.data.precision import PRECISIONS
from firstk.objectives import Fisher
from firstk_papers.datasets import load_banking77, load_scifact

EQUAL = ("int8", "int4", "binary")


def tables() -> dict[str, dict[str, Any]]:
    """Return both tables, as records."""
    return {"judged scifact": _scifact(), "judged banking77": _banking77()}


def printed(record: dict[str, Any]) -> str:
    """Return a table as text."""
    rows = [f"{record['title']} (raw vectors {record['raw']:.3f})", " " * 36 + "".join(f"{b:>8}" for b in BYTES)]
    for name, scores in record["scores"].items():
        cells = (f"{scores[str(b)]:.3f}" if str(b) in scores else "-" for b in BYTES)
        rows.append(f"{name:<36}" + "".join(f"{cell:>8}" for cell in cells))
    return "\n".join(rows)


def _scifact() -> dict[str, Any]:
    sets = load_scifact()
    encoder = PrefixEncoder(objective="similarity").fit_search(sets.queries, sets.documents, sets.judgements_train)

    def ndcg(queries: np.ndarray, documents: np.ndarray) -> float:
        return float(metrics.ndcg(documents, queries, sets.judgements_test, ks=[documents.shape[1]])[-1])

    raw = ndcg(sets.queries, sets.documents)
    title = "SciFact, fitted on the training judgements: nDCG@10 of the test queries"
    return _record(title, encoder, sets.documents, sets.queries, ndcg, raw)


def _banking77() -> dict[str, Any]:
    sets = load_banking77()
    encoder = PrefixEncoder(objective=Fisher(shrinkage="auto")).fit(sets.X_train, sets.y_train)

    def accuracy(queries: np.ndarray, stored: np.ndarray) -> float:
        unit = stored / np.maximum(np.linalg.norm(stored, axis=1, keepdims=True), 1e-12)
        return float(np.mean(sets.y_train[nearest(queries, unit)[:, 0]] == sets.y_test))

    raw = accuracy(sets.X_test, sets.X_train)
    title = "Banking77, fitted on the training labels: 1-NN accuracy of the test rows"
    return _record(title, encoder, sets.X_train, sets.X_test, accuracy, raw)


def _record(
    title: str, encoder: PrefixEncoder, stored: np.ndarray, queries: np.ndarray, score: Callable[..., float], raw: float
) -> dict[str, Any]:
    scores = {"embedded": {str(b): round(s, 4) for b, s in _embedded(encoder, stored, queries, score)}}
    fitted = encoder.encoder_
    Z, Q = fitted.encode(stored), fitted.encode(queries, side="query")
    for name in EQUAL:
        scores[name] = {}
        for size in BYTES:
            k = size * {"int8": 1, "int4": 2, "binary": 8}[name]
            if k <= fitted.d:
                rounding = PRECISIONS[name].fit(Z[:, :k])
                restored = rounding.restore(rounding.quantise(Z[:, :k]))[:, :k]
                scores[name][str(size)] = round(score(Q[:, :k], restored), 4)
    return {"title": title, "raw": round(raw, 4), "coordinates": fitted.d, "scores": scores}


def _embedded(
    encoder: PrefixEncoder, stored: np.ndarray, queries: np.ndarray, score: Callable[..., float]
) -> Iterator[tuple[int, float]]:
    quantizer = encoder.quantizer(metric="cosine", rows=stored)
    codes = quantizer.encode(stored)
    Q = quantizer.encode_query(queries)
    for size in BYTES:
        if size <= quantizer.bytes:
            yield size, score(Q, quantizer.decode(quantizer.cut(codes, size)))
