"""The section of texts: a few queries, and what all numbers and the first k coordinates of each code find.

The page opens with the texts of its first k; when the slider moves, the script looks up the others.
"""

from __future__ import annotations

from html import escape

import numpy as np

from firstk.advice.report.page import Page
from firstk.advice.text_neighbors import TextNeighbors


def texts_html(page: Page, number: int) -> str:
    """Return the queries, each with a column for all numbers and one for each code."""
    found: TextNeighbors = page.sections[number].neighbors
    queries = "".join(_query(found, i, page.start) for i in range(len(found.texts)))
    return f'<div class="texts" data-section="{number}">{queries}</div>'


def _query(found: TextNeighbors, i: int, k: int) -> str:
    columns = [_column("all numbers", found, i, found.of_raw(i))]
    columns += [_column(name, found, i, found.at(name, k, i), k) for name in found.by_prefix]
    return (
        f"<article><h3>{escape(found.texts[i])} <small>{escape(found.labels[i])}</small></h3>"
        f'<div class="columns">{"".join(columns)}</div></article>'
    )


def _column(name: str, found: TextNeighbors, i: int, rows: np.ndarray, k: int | None = None) -> str:
    """Return the texts that one code finds; the script rewrites those that move with k."""
    moves = "" if k is None else f' data-code="{escape(name, quote=True)}" data-query="{i}"'
    length = "" if k is None else f', k = <span class="k">{k}</span>'
    items = "".join(
        f"<li{'' if found.stored_labels[row] == found.labels[i] else ' class=other'}>"
        f"<span>{escape(found.stored_texts[row])}</span> <small>{escape(found.stored_labels[row])}</small></li>"
        for row in rows
    )
    return f"<div{moves}><h4>{escape(name)}{length}</h4><ol>{items}</ol></div>"


def texts_data(page: Page, number: int) -> dict[str, object]:
    """Return the texts that some prefix finds, and which of them at each stop; a query's class, to mark others."""
    found: TextNeighbors = page.sections[number].neighbors
    used = np.unique(np.concatenate([rows.ravel() for rows in found.by_prefix.values()]))
    place = {int(row): at for at, row in enumerate(used)}
    return {
        "texts": [[found.stored_texts[row], found.stored_labels[row]] for row in used],
        "labels": found.labels,
        "found": {
            name: [
                [[place[int(row)] for row in found.at(name, k, i)] for i in range(len(found.texts))] for k in page.stops
            ]
            for name in found.by_prefix
        },
    }
