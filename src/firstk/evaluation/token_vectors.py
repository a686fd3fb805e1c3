"""Token vectors (ColBERT-like models): a document or a query is several vectors, compared by MaxSim.

A code of tokens is an ordinary encoder. What differs is its data, documents of unequal numbers of tokens, and its
metric (`firstk.metrics.max_sim`); this module is where an encoder, its baselines and token vectors meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_count, check_lengths, check_matrix
from firstk.encoder.curve import PrefixCurve, supported_lengths
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.naming import objective_name
from firstk.estimator.prefix_encoder import PrefixEncoder
from firstk.evaluation.baselines import baselines_of
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import MeanScore, bootstrap_interval, check_confidence
from firstk.metrics.judgements import Qrels, judgement_rows
from firstk.metrics.late_interaction import check_offsets, max_sim_per_query, taken

# Measures of judged documents by MaxSim: the measure, and how many documents are looked at.
TOKEN_METRICS = {"ndcg@10": ("ndcg", 10), "mrr@10": ("mrr", 10), "relevant_recall@100": ("recall", 100)}


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Vectors of tokens, document after document (or query after query).

    Attributes
    ----------
    X : ndarray of shape (t, p)
    offsets : ndarray of int of shape (n + 1,)
        Rows ``offsets[i]`` to ``offsets[i + 1]`` are the tokens of document i; each document has at least one.

    Examples
    --------
    >>> tokens = TokenVectors([[1, 0], [0, 1], [1, 1]], [0, 2, 3])
    >>> len(tokens), tokens.document(1)
    (2, array([[1., 1.]]))
    """

    X: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        X = check_matrix(self.X, "TokenVectors", "X")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "offsets", check_offsets(self.offsets, len(X), "TokenVectors", "offsets"))

    @classmethod
    def from_list(cls, documents: Sequence[ArrayLike]) -> TokenVectors:
        """Join one array of shape (tokens, p) for each document, as models return them."""
        parts = [np.asarray(part) for part in documents]
        if not parts or any(part.ndim != 2 or part.shape[1] != parts[0].shape[1] for part in parts):
            shapes = [part.shape for part in parts[:4]]
            raise InvalidInputError(f"TokenVectors.from_list takes arrays of shape (tokens, p). Got shapes {shapes}.")
        return cls(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))

    @classmethod
    def from_column(cls, X: ArrayLike, documents: ArrayLike) -> tuple[TokenVectors, np.ndarray]:
        """Group tokens by a column that names their documents; return them, and the name of each document.

        The tokens of a document follow each other; a name that comes back later raises an error.
        """
        names = np.asarray(documents)
        tokens = check_matrix(X, "TokenVectors", "X")
        if names.shape != (len(tokens),):
            raise InvalidInputError(
                f"TokenVectors.from_column takes the document of each of {len(tokens)} tokens. Got shape {names.shape}."
            )
        starts = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
        found, counts = np.unique(names[starts], return_counts=True)
        if (counts > 1).any():
            raise InvalidInputError(
                f"The tokens of a document follow each other. Those of {found[counts > 1][0]!r} are in "
                f"{counts.max()} places: sort the rows by document."
            )
        return cls(tokens, np.append(starts, len(tokens))), names[starts]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def document(self, i: int) -> np.ndarray:
        """Return the tokens of document `i`."""
        return self.X[self.offsets[i] : self.offsets[i + 1]]

    def take(self, documents: ArrayLike) -> TokenVectors:
        """Return some documents."""
        return TokenVectors(*taken(self.X, self.offsets, np.asarray(documents)))

    def sample(self, most: int = 50_000, random_state: int = 0) -> np.ndarray:
        """Return about `most` tokens, the same number of each document where it has as many: long ones count no more.

        All tokens are returned where there are no more than `most`.
        """
        most = check_count(most, "most", "TokenVectors.sample")
        if len(self.X) <= most:
            return self.X
        sizes = np.diff(self.offsets)
        each = _equal_share(sizes, most)
        rng = np.random.default_rng(random_state)
        # The tokens of a document in a random order, of which the first few are taken.
        order = np.lexsort((rng.random(len(self.X)), np.repeat(np.arange(len(self)), sizes)))
        place = np.arange(len(self.X)) - np.repeat(self.offsets[:-1], sizes)
        return self.X[np.sort(order[place < each])]


def _equal_share(sizes: np.ndarray, most: int) -> int:
    """Return the largest number of tokens a document with which no more than `most` are taken; at least 1."""
    low, high = 1, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(sizes, middle).sum() <= most else (low, middle - 1)
    return low


def fit_tokens(
    encoder: PrefixEncoder, documents: TokenVectors, *, most: int = 50_000, random_state: int = 0
) -> PrefixEncoder:
    """Fit an encoder on tokens of documents, of each document as many: long documents count no more than short ones.

    Parameters
    ----------
    encoder : PrefixEncoder
        With an objective that needs no labels; ``Similarity(keep="dot_products")`` is recommended, since MaxSim adds up
        dot products of tokens. It is fitted and returned.
    documents : TokenVectors
    most : int
        About how many tokens are fitted on.
    random_state : int
        Seed of the draw.
    """
    _check_tokens(documents, "documents", "fit_tokens")
    return encoder.fit(documents.sample(most, random_state))


def curve_tokens(
    encoder: PrefixEncoder | FittedEncoder,
    queries: TokenVectors,
    documents: TokenVectors,
    relevance: ArrayLike | Qrels,
    *,
    metric: str = "ndcg@10",
    query_ids: ArrayLike | None = None,
    document_ids: ArrayLike | None = None,
    ks: ArrayLike | None = None,
    confidence: float | None = None,
) -> PrefixCurve:
    """Score every prefix of an encoder by judged searches with MaxSim among all documents.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
    queries, documents : TokenVectors
    relevance : array-like of shape (j, 3), or mapping
        Rows (query, document, relevance), or of each query a mapping from documents to relevance.
    metric : {"ndcg@10", "mrr@10", "relevant_recall@100"}
    query_ids, document_ids : array-like, optional
        The ids by which `relevance` names queries and documents; without them it names their numbers.
    ks : sequence of int, optional
        Prefix lengths; all if not given.
    confidence : float in (0, 1), optional
        With it, the curve has the bootstrap interval of every score, over the queries.

    Returns
    -------
    PrefixCurve
        `input_score` is that of the raw token vectors.
    """
    found, judged = _fitted(encoder), judgement_rows(relevance, query_ids, document_ids)
    raw = _scores(None, queries, documents, judged, metric, None)
    return _curve(found, queries, documents, judged, metric, ks, confidence, raw)


def compare_tokens(
    encoder: PrefixEncoder | FittedEncoder,
    queries: TokenVectors,
    documents: TokenVectors,
    relevance: ArrayLike | Qrels,
    *,
    metric: str = "ndcg@10",
    query_ids: ArrayLike | None = None,
    document_ids: ArrayLike | None = None,
    ks: ArrayLike | None = None,
    confidence: float | None = None,
) -> dict[str, PrefixCurve]:
    """Return the curve of an encoder, and those of the baselines, fitted on a sample of the documents' tokens.

    Arguments are those of `curve_tokens`.
    """
    found, judged = _fitted(encoder), judgement_rows(relevance, query_ids, document_ids)
    raw = _scores(None, queries, documents, judged, metric, None)
    lengths = check_lengths(ks, found.d, "compare_tokens")
    encoders = {objective_name(found.config): found} | baselines_of(documents.sample())
    return {
        name: _curve(one, queries, documents, judged, metric, lengths[lengths <= one.d], confidence, raw, name)
        for name, one in encoders.items()
    }


def _curve(
    encoder: FittedEncoder,
    queries: TokenVectors,
    documents: TokenVectors,
    judged: np.ndarray,
    metric: str,
    ks: ArrayLike | None,
    confidence: float | None,
    raw: MeanScore,
    label: str | None = None,
) -> PrefixCurve:
    lengths = check_lengths(ks, encoder.d, "curve_tokens")
    if confidence is not None:
        confidence = check_confidence(confidence, "curve_tokens")
    rows = _scores(encoder, queries, documents, judged, metric, lengths)
    ends = (None, None) if confidence is None else bootstrap_interval(rows, confidence)
    low, high = (None if end is None else tuple(end.tolist()) for end in ends)
    return PrefixCurve(
        k=tuple(lengths.tolist()),
        score=tuple(rows.score().tolist()),
        metric=f"MaxSim {metric}",
        input_score=float(raw.score()[0]),
        label=objective_name(encoder.config) if label is None else label,
        n_evaluated=rows.n,
        low=low,
        high=high,
        confidence=confidence,
        supported=supported_lengths(encoder.config, encoder.d),
    )


def _scores(
    encoder: FittedEncoder | None,
    queries: TokenVectors,
    documents: TokenVectors,
    judged: np.ndarray,
    metric: str,
    ks: np.ndarray | None,
) -> MeanScore:
    """Return scores by query; without an encoder, of the raw vectors at full width."""
    for name, tokens in (("queries", queries), ("documents", documents)):
        _check_tokens(tokens, name, "curve_tokens")
    if metric not in TOKEN_METRICS:
        raise bad_parameter("metric", "curve_tokens", f"one of {', '.join(TOKEN_METRICS)}", metric)
    if encoder is None:
        codes, ks = (documents.X, queries.X), np.array([documents.X.shape[1]])
    else:
        codes = (
            encoder.coordinates(documents.X, side="document", owner="curve_tokens"),
            encoder.coordinates(queries.X, side="query", owner="curve_tokens"),
        )
    measure, at = TOKEN_METRICS[metric]
    rows, values = max_sim_per_query(
        codes[0], documents.offsets, codes[1], queries.offsets, judged, measure, at=at, ks=ks
    )
    return MeanScore(values, rows=rows)


def _fitted(encoder: PrefixEncoder | FittedEncoder) -> FittedEncoder:
    found = getattr(encoder, "encoder_", encoder)
    if not isinstance(found, FittedEncoder):
        raise bad_parameter("encoder", "curve_tokens", "a fitted PrefixEncoder or a FittedEncoder", encoder)
    return found


def _check_tokens(tokens: object, name: str, owner: str) -> None:
    if not isinstance(tokens, TokenVectors):
        raise bad_parameter(name, owner, "TokenVectors, such as TokenVectors.from_list(arrays)", type(tokens).__name__)
