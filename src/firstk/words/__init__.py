"""Sentences: the only place where decisions become English.

Decisions are records with reason codes; terminal, page and card show the lines that are made of them here. Nothing here
computes, and every module reads records of `quality` and `advice` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.words.terms": ["interval_term", "metric_of"],
        "firstk.words.text": ["bytes_text", "number_of", "rounded_up", "were"],
    },
)

if TYPE_CHECKING:
    from firstk.words.terms import interval_term as interval_term
    from firstk.words.terms import metric_of as metric_of
    from firstk.words.text import bytes_text as bytes_text
    from firstk.words.text import number_of as number_of
    from firstk.words.text import rounded_up as rounded_up
    from firstk.words.text import were as were
