"""What a recommendation says of new documents: from the scores of searches that no fit has seen, as records alone.

How those are scored is in :mod:`firstk.evaluation.new_documents`.
"""

from __future__ import annotations

from dataclasses import replace

from firstk.encoder.recommendation import Choice, OperatingPoint, Recommendation
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.recommending import Limits, share_of
from firstk.exceptions import InvalidInputError


def with_unseen(
    advice: Recommendation | None, table: PrecisionTable | None, limits: Limits | None = None
) -> Recommendation | None:
    """Add to a recommendation what its choice keeps on new documents, and what to store for those.

    Parameters
    ----------
    advice : Recommendation or None
    table : PrecisionTable or None
        What `table_of_unseen` returned.
    limits : Limits, optional
        Those of the recommendation.
    """
    if advice is None or table is None or advice.chosen is None or advice.chance is not None:
        return advice
    unseen = _kept_by(advice.chosen.point, table)
    if unseen is None:
        return advice
    try:
        instead = table.recommend(limits).advised
    except InvalidInputError:
        instead = None
    same = instead is not None and _named(instead.point) == _named(advice.chosen.point)
    return replace(advice, unseen=unseen, n_unseen=table.n_evaluated, for_new=None if same else instead)


def _kept_by(point: OperatingPoint, table: PrecisionTable) -> Choice | None:
    """Return what a point keeps by another table."""
    same = next((other for other in table.points if _named(other) == _named(point)), None)
    try:
        return None if same is None else share_of(table, same)
    except InvalidInputError:
        return None


def _named(point: OperatingPoint) -> tuple[object, ...]:
    return point.code, point.k, point.bytes, point.stored_as
