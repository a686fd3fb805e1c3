"""What a code keeps on new documents: the searches whose relevant documents no fit has seen, evaluated apart.

A code that learns from pairs knows the documents of those pairs by heart. Of a store that grows, only unseen documents
tell what it will keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.recommendation import EMBEDDED
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.precision_cost import precision_table
from firstk.evaluation.recommending import CHANCE_CODE
from firstk.metrics.curve import EvaluationData

# With fewer unseen queries, shares are not worth a line of their own.
FEWEST = 10


def parts_by_seen(data: EvaluationData) -> dict[str, EvaluationData]:
    """Return the searches of "seen" queries, of which a relevant document was learned from, and of "unseen" ones.

    A part without queries is left out; both are where `data` does not tell them apart.
    """
    if data.query_seen is None:
        return {}
    seen, relevance = np.asarray(data.query_seen), np.asarray(data.relevance)
    counts = np.ones(len(seen), dtype=bool) if data.query_weight is None else np.asarray(data.query_weight) > 0
    parts = {
        "seen": relevance[(seen & counts)[relevance[:, 0]]],
        "unseen": relevance[(~seen & counts)[relevance[:, 0]]],
    }
    return {name: replace(data, relevance=part) for name, part in parts.items() if len(part)}


def table_of_unseen(
    encoder: FittedEncoder, data: EvaluationData, table: PrecisionTable, others: Mapping[str, FittedEncoder]
) -> PrecisionTable | None:
    """Return the points of a table, but for product quantizers, scored on unseen queries alone.

    None where all queries are unseen, as the table is of those then, or fewer than FEWEST are.
    """
    parts = parts_by_seen(data)
    if "seen" not in parts or "unseen" not in parts:
        return None
    unseen = parts["unseen"]
    if len(np.unique(np.asarray(unseen.relevance)[:, 0])) < FEWEST:
        return None
    ks = sorted({point.k for point in table.own if point.is_prefix})
    sizes = sorted({point.bytes for point in table.points if point.precision == EMBEDDED})
    # Columns drawn at random are advised to nobody.
    fitted = {name: other for name, other in others.items() if name != CHANCE_CODE}
    found = precision_table(encoder, unseen, table.metric, ks=ks, sizes=sizes, others=fitted)
    return replace(found, input_bytes=table.input_bytes)
