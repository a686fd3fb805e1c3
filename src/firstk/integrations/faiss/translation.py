"""Translations of an alignment inside a faiss index: new queries search an index of old vectors, or the reverse.

Needs the extra "search". The chain is that of the translation: subtract the mean, a linear map, whose bias is the mean
of the other side, and normalization where its vectors have unit norm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.checks import check_choice, require
from firstk.exceptions import InvalidInputError
from firstk.integrations.faiss.vectors import Index, PreTransform, chained

if TYPE_CHECKING:
    from firstk.upgrade import FittedAlignment, PrefixAlignment

DIRECTIONS = ("new_to_old", "old_to_new")


def translate_queries(
    alignment: PrefixAlignment | FittedAlignment, index: Index, direction: str = "new_to_old"
) -> PreTransform:
    """Return a view of an index that takes vectors of the other model; the stored vectors are shared, not copied.

    Parameters
    ----------
    alignment : PrefixAlignment or FittedAlignment
        With a linear method.
    index : faiss.Index
        Of vectors of the old model.
    direction : {"new_to_old", "old_to_new"}
        "new_to_old": new queries search the index of old vectors. "old_to_new": old vectors search, and are added to,
        an index of new ones.
    """
    faiss = require("faiss", "search", "A faiss index")
    check_choice(direction, DIRECTIONS, "direction", "translate_queries")
    fitted = getattr(alignment, "alignment_", alignment)
    to_old = direction == "new_to_old"
    chosen = fitted.solution.new_to_old if to_old else fitted.solution.old_to_new
    if index.d != chosen.d:
        raise InvalidInputError(
            f"The index holds vectors of {index.d} numbers, and '{direction}' gives {chosen.d}. Give the index of "
            f"{'old' if to_old else 'new'} vectors."
        )
    unit = fitted.unit_old if to_old else fitted.unit_new
    return chained(faiss, index, chosen.mean, chosen.weight, chosen.offset, unit=unit)
