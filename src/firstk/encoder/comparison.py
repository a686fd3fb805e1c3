"""The metric in which codes are compared: one rule for curves, exports, indices and the documentation."""

from __future__ import annotations


def search_metric() -> str:
    """Return the metric in which codes are searched: cosine, whatever the objective.

    Curves and precision tables compare codes by cosine after truncation, so a store that compared them in another
    metric would keep another share than was promised. Where the lengths of vectors carry meaning (keep="dot_products"
    of vectors that are not normalized), name the metric of a store explicitly.
    """
    return "cosine"
