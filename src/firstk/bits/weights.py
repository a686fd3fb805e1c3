r"""Weights of errors: what a unit of squared error of a coordinate costs a search.

The error of a score, :math:`q \cdot (z - \hat z)`, has the mean square :math:`\sum_i E[q_i^2] D_i(b_i)` where errors of
coordinates are uncorrelated. Recall of near neighbors asks for less than that: their errors are not independent of the
query. So :math:`w_i = E[q_i^2]^\tau`, with tau of 0, 1/2 or 1 chosen by the recall of held-out queries. Without queries
the documents stand for them, with tau = 1/3 (figures in docs/decisions/bits.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.checks import bad_parameter, is_real
from firstk.bits.embedded import Embedded
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.bits.quantizer import EmbeddedQuantizer

# Without queries, and the choices with them.
DOCUMENTS_TAU, TAUS = 1 / 3, (0.0, 0.5, 1.0)
# With fewer, queries of a log say little of the next one.
FEWEST_QUERIES = 30
# One query in so many is held out; recall is that of so many neighbors; queries, documents, bytes that are looked at.
_HELD_OUT, _NEIGHBORS, _MOST_QUERIES, _MOST_DOCUMENTS, _BYTES = 3, 10, 1000, 8192, 32


def check_tau(tau: object) -> float:
    """Return an exponent, a number of at least 0."""
    if not is_real(tau) or tau < 0:
        raise bad_parameter("tau", "quantizer", "a number of at least 0, such as 0.5, or None", tau)
    return float(tau)


def document_weights(embedded: Embedded, tau: float = DOCUMENTS_TAU) -> np.ndarray:
    """Return the weights where documents stand for queries: powers of the variances of the coordinates."""
    return np.asarray(embedded.coordinate_variances**tau)


def query_weights(
    quantizer: EmbeddedQuantizer, queries: MatrixLike, documents: MatrixLike | None, tau: float | None
) -> np.ndarray:
    """Return powers of the second moments of the coordinates of queries.

    Parameters
    ----------
    quantizer : EmbeddedQuantizer
        Its bytes and metric are those for which tau is chosen.
    queries : array-like of shape (m, p)
    documents : array-like of shape (n, p), optional
        Vectors among which held-out queries look for neighbors; needed where tau is not given.
    tau : float, optional
        If not given, chosen by the recall@10 of the neighbors by codes in floating point; of equals the smallest.
    """
    Q = quantizer.query_encoder.encode(queries, side="query", owner="quantizer").astype(np.float64)
    d = quantizer.embedded.trees.d
    if tau is not None:
        return np.asarray((Q[:, :d] ** 2).mean(axis=0) ** tau)
    held, seen = Q[::_HELD_OUT][:_MOST_QUERIES], np.delete(Q, np.s_[::_HELD_OUT], axis=0)
    if documents is None or len(seen) < 1:
        missing = "this encoder has no sample of documents" if documents is None else f"there are {len(Q)} queries"
        raise InvalidInputError(
            f"The weight of the queries is chosen on held-out ones, and {missing}. Give some thousand documents "
            "(rows=X), and at least two queries, or the exponent itself (tau=0.5)."
        )
    moments = (seen[:, :d] ** 2).mean(axis=0)
    few = documents[:_MOST_DOCUMENTS]  # type: ignore[index]
    Z = np.asarray(quantizer.rounded.encode(few, owner="quantizer"))
    near = _neighbors(quantizer.exact_scores(held, Z))
    scores = [_recall(quantizer, held, Z, near, moments**each) for each in TAUS]
    return np.asarray(((Q[:, :d] ** 2).mean(axis=0)) ** TAUS[int(np.argmax(scores))])


def _recall(
    quantizer: EmbeddedQuantizer, queries: np.ndarray, Z: np.ndarray, near: np.ndarray, weights: np.ndarray
) -> float:
    weighted = quantizer.embedded.weighted(weights)
    other = replace(quantizer, embedded=weighted.at(min(quantizer.bytes, _BYTES, weighted.n_bytes)))
    found = _neighbors(other.scores(queries, other.embedded.quantise(Z)))
    return float(np.mean([len(np.intersect1d(*pair)) for pair in zip(found, near, strict=True)]))


def _neighbors(scores: np.ndarray) -> np.ndarray:
    """Return the best columns of each row; of equals the first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :_NEIGHBORS]
