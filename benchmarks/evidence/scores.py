"""Scores of codes: by row, query or pair, one column for each length, so that they can be resampled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.evidence.data import Encode
from firstk.metrics.bootstrap import MeanScore, RankAgreement

FEW_SHOT, DRAWS = 16, 3


def unit(Z: np.ndarray) -> np.ndarray:
    """Return rows of norm 1, in single precision; a zero row stays."""
    Z = np.asarray(Z, dtype=np.float32)
    return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows to search among and rows to classify, with labels."""

    reference: np.ndarray
    reference_labels: np.ndarray
    queries: np.ndarray
    labels: np.ndarray


def nearest(encode: Encode, part: Labelled, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return whether the nearest row by cosine has the right label."""
    hits = []
    for k in ks:
        rows, asked = (unit(encode(X, k, "document")) for X in (part.reference, part.queries))
        found = np.concatenate([(block @ rows.T).argmax(axis=1) for block in np.array_split(asked, 4)])
        hits.append(part.reference_labels[found] == part.labels)
    return {"all": MeanScore(np.stack(hits, axis=1))}


def few_shot(encode: Encode, part: Labelled, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return whether logistic regression on 16 rows of each class has the right label, a mean over three draws.

    The protocol of classification in mteb, with fewer draws; regularization is scikit-learn's default.
    """
    from sklearn.linear_model import LogisticRegression

    values = []
    for k in ks:
        rows, asked = (unit(encode(X, k, "document")) for X in (part.reference, part.queries))
        hits = []
        for seed in range(DRAWS):
            few = _few(part.reference_labels, seed)
            fitted = LogisticRegression(max_iter=100).fit(rows[few], part.reference_labels[few])
            hits.append(fitted.predict(asked) == part.labels)
        values.append(np.mean(hits, axis=0))
    return {"all": MeanScore(np.stack(values, axis=1))}


def _few(labels: np.ndarray, seed: int) -> np.ndarray:
    order = np.random.default_rng(seed).permutation(len(labels))
    return np.concatenate([order[labels[order] == c][:FEW_SHOT] for c in np.unique(labels)])


@dataclass(frozen=True, eq=False)
class Clustered:
    """V-measure of clusters (n, K) and labels, of rows that may be drawn several times."""

    clusters: np.ndarray
    labels: np.ndarray

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.labels)

    def score(self) -> np.ndarray:
        """Return the V-measure of each length."""
        return self.resampled(np.ones((self.n, 1)))[0]

    def column(self, i: int) -> Clustered:
        """Return the clusters of one length."""
        return replace(self, clusters=self.clusters[:, i : i + 1])

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Return the V-measure of resampled rows, whose clusters stay as they are."""
        classes = int(self.labels.max()) + 1
        found = np.empty((counts.shape[1], self.clusters.shape[1]))
        for j, column in enumerate(self.clusters.T):
            cells, size = column * classes + self.labels, (int(column.max()) + 1) * classes
            for b, weight in enumerate(counts.T):
                joint = np.bincount(cells, weights=weight, minlength=size).reshape(-1, classes)
                found[b, j] = _v_measure(joint / weight.sum())
        return found


def _v_measure(joint: np.ndarray) -> float:
    """Return the harmonic mean of homogeneity and completeness: 2 I / (H of clusters + H of classes)."""
    of_clusters, of_classes = joint.sum(axis=1), joint.sum(axis=0)
    sizes = _entropy(of_clusters) + _entropy(of_classes)
    return 2 * (sizes - _entropy(joint.ravel())) / sizes if sizes else 1.0


def _entropy(shares: np.ndarray) -> float:
    positive = shares[shares > 0]
    return -float(positive @ np.log(positive))


def clusters(encode: Encode, part: Labelled, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return clusters of the queries' codes by k-means, as many as there are classes; the references are not used."""
    from sklearn.cluster import KMeans

    classes, labels = np.unique(part.labels, return_inverse=True)
    means = KMeans(len(classes), n_init=1, max_iter=100, random_state=0)
    found = [means.fit_predict(unit(encode(part.queries, k, "document"))) for k in ks]
    return {"all": Clustered(np.stack(found, axis=1), labels)}


def spearman(encode: Encode, part: tuple[np.ndarray, np.ndarray, np.ndarray], ks: tuple[int, ...]) -> dict[str, Any]:
    """Return cosines of pairs beside their scores."""
    left, right, scores = part
    cosines = [
        (unit(encode(left, k, "query")) * unit(encode(right, k, "document"))).sum(axis=1) for k in ks
    ]  # fmt: skip
    return {"all": RankAgreement(np.stack(cosines, axis=1).astype(np.float64), np.asarray(scores, dtype=np.float64))}


@dataclass(frozen=True, eq=False)
class Search:
    """Documents, queries, and the relevant documents of each query; which queries have a document learned from."""

    documents: np.ndarray
    queries: np.ndarray
    relevant: tuple[dict[int, float], ...]
    seen: np.ndarray | None = None


def ndcg(encode: Encode, part: Search, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return nDCG@10 of every query, and of those with seen and with unseen documents apart."""
    values = []
    for k in ks:
        documents, asked = unit(encode(part.documents, k, "document")), unit(encode(part.queries, k, "query"))
        scores = asked @ documents.T
        best = np.argpartition(-scores, 10, axis=1)[:, :10]
        order = np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)
        values.append([_ndcg(found, judged) for found, judged in zip(order, part.relevant, strict=True)])
    table = np.array(values).T
    found = {"all": MeanScore(table)}
    if part.seen is not None:
        found |= {"seen": MeanScore(table[part.seen]), "unseen": MeanScore(table[~part.seen])}
    return found


def _ndcg(found: np.ndarray, judged: dict[int, float]) -> float:
    discounts = 1 / np.log2(np.arange(2, 12))
    ideal = np.sort(list(judged.values()))[::-1][:10]
    gained = np.array([judged.get(int(row), 0.0) for row in found])
    return float(gained @ discounts[: len(gained)]) / float(ideal @ discounts[: len(ideal)])
