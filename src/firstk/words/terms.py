"""Terms of a page, each explained in one line: metrics, precisions, baselines, intervals.

A page explains a term where it appears, so that whoever it is forwarded to need not look anything up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from firstk.words.commands import FITTED_BASELINES
from firstk.words.text import EMBEDDED, PRODUCT_QUANTIZER, RAW


class MetricTerm(NamedTuple):
    """What a page calls a metric, the question it answers, how it is defined, and what of it is kept or lost."""

    name: str
    heading: str
    text: str
    quality: str


METRICS: dict[str, MetricTerm] = {
    "1nn_accuracy": MetricTerm(
        "1-NN accuracy",
        "Does the nearest row have the same class?",
        "Share of held-out rows whose nearest training row, by cosine of the first k coordinates, has their label.",
        "the accuracy",
    ),
    "probe_accuracy": MetricTerm(
        "probe accuracy",
        "Does a linear probe find the class?",
        "Accuracy on held-out rows of a least-squares probe that was fitted to the first k coordinates.",
        "the accuracy",
    ),
    "head_accuracy": MetricTerm(
        "own-head accuracy",
        "Does the encoder's own head find the class?",
        "Accuracy on held-out rows of the head that was trained with the code. Baselines have no such head.",
        "the accuracy",
    ),
    "mixture": MetricTerm(
        "mixture score",
        "Are targets and vectors kept together?",
        "Share of targets and vectors, weighed together, that the first k coordinates explain on held-out rows.",
        "the score",
    ),
    "r2": MetricTerm(
        "R²",
        "Are the targets predicted?",
        "R² on held-out rows of the best linear readout of the first k coordinates: 1 is perfect, 0 is no better than "
        "the mean.",
        "the predictions",
    ),
    "explained_variance": MetricTerm(
        "explained variance",
        "Are the vectors rebuilt?",
        "Share of the variance of held-out rows that the encoder's own decoder rebuilds from the first k coordinates.",
        "the variance",
    ),
    "readback_variance": MetricTerm(
        "variance rebuilt",
        "Are the vectors rebuilt?",
        "Share of the variance of held-out rows that the best linear decoder rebuilds from the first k coordinates.",
        "the variance",
    ),
    "recall@10": MetricTerm(
        "recall@10",
        "Are neighbors kept?",
        "Share of the ten nearest neighbors at full width that are among the ten nearest by the first k coordinates. "
        "It asks whether short vectors find what the long ones find, not whether that is relevant.",
        "the nearest neighbors",
    ),
    "spearman": MetricTerm(
        "Spearman correlation",
        "Do cosines agree with scores?",
        "Spearman correlation, on held-out pairs, of the cosine of the first k coordinates with the score of the pair: "
        "1 if both rank the pairs alike.",
        "the agreement with the scores",
    ),
    "positive_recall@10": MetricTerm(
        "recall@10 of partners",
        "Are partners found?",
        "Share of held-out pairs whose right side is among the ten nearest to the left, by the first k coordinates.",
        "the search quality",
    ),
    "ndcg@10": MetricTerm(
        "nDCG@10",
        "Are relevant documents found?",
        "How high the relevant documents stand among the first ten results of a query: 1 if they are all on top, 0 if "
        "none is among the ten; the mean over the queries.",
        "the search quality",
    ),
    "mrr@10": MetricTerm(
        "MRR@10",
        "How far down is the first relevant document?",
        "One over the rank of the first relevant document: 1 if it comes first, 1/2 if second, 0 beyond the tenth; the "
        "mean over the queries.",
        "the search quality",
    ),
    "relevant_recall@100": MetricTerm(
        "recall@100 of relevant documents",
        "Are relevant documents among the first hundred?",
        "Share of a query's relevant documents that are among its first hundred results; the mean over the queries.",
        "the search quality",
    ),
}

PRECISION_TERMS = {
    "float32": "4 bytes per number, as embeddings usually come.",
    "float16": "2 bytes per number.",
    "int8": "1 byte per number, which is one of 255 levels.",
    "int4": "half a byte per number, which is one of 16 levels.",
    "binary": "1 bit per number: is it above or below the middle?",
    "binary, binary queries": "queries are rounded to bits as well, as in a binary index. Other queries stay float32.",
    EMBEDDED: "each vector becomes a string of bytes, the most important bits first. It can be cut after any byte, and "
    "queries stay float32.",
    PRODUCT_QUANTIZER: "of faiss: a vector is cut into pieces, and a byte names the nearest of 256 patterns for each.",
}

CODE_TERMS = {
    "PCA": "principal components, the directions along which the vectors vary most "
    f"({' '.join(FITTED_BASELINES['PCA'])}).",
    "uncentred SVD": "the directions that keep dot products best: PCA without taking off the mean "
    f"({' '.join(FITTED_BASELINES['uncentred SVD'])}).",
    "plain truncation": "the first k numbers of each vector as they are.",
    "random dimensions": "k of the numbers of each vector, drawn at random.",
    RAW: "the vectors as they came, uncut.",
    "faiss": "a library for vector search, here with its product quantizer.",
}

AXIS_TERMS = {
    "spectrum": "what the objective gains by this coordinate.",
    "mean |z|": "how large the coordinate is on average, whatever its sign.",
    "variance of z": "how much the coordinate varies from row to row.",
    "1‑D probe accuracy": "how often the class is right that is read off this coordinate alone.",
    "1‑D readout R²": "how well the target is predicted from this coordinate alone.",
}

COORDINATES_TERM = ("coordinates", "the numbers of a code, in the order of their use: the first k are kept.")


def metric_of(name: str) -> MetricTerm:
    """Return how a page speaks of a metric; one that it does not know is called by its name."""
    return METRICS.get(name, MetricTerm(name, name, "", "the score"))


def about_metric(name: str) -> str:
    """Return one line that says what a metric is."""
    return f"{name}: {metric_of(name).text}"


def interval_term(confidence: float) -> tuple[str, str]:
    """Explain intervals of that confidence."""
    return (
        f"{100 * confidence:g} % interval",
        "how far the score may be off by chance, as only so many were evaluated: a band, or a thin upright line.",
    )


def known_terms(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return those of the names that are explained here, as a page shows them, with their explanations, each once."""
    lines, shown = CODE_TERMS | PRECISION_TERMS | AXIS_TERMS, {EMBEDDED: "embedded bits"}
    return tuple((shown.get(name, name), lines[name]) for name in dict.fromkeys(names) if name in lines)
