"""Codes in a folder with a usearch graph of the short ones: rows in SQLite, reranking in numpy.

usearch has no filter: with one, all short codes that meet it are compared, which is exact. Needs the extra "stores".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firstk.data.remote import shown_place
from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import StoreLayout, best_first, scores_of
from firstk.search.stores.index_folder import IndexFolder

_METRICS = {"cosine": "cos", "inner_product": "ip", "l2": "l2sq"}
_FLOATS = ("f64", "f32", "f16", "bf16")
_TYPES = {"float32": "f32", "float16": "f16", "int8": "i8"}


@dataclass(frozen=True, eq=False)
class USearch(IndexFolder):
    """A folder of rows and a usearch graph.

    Attributes
    ----------
    folder : path
    precision : {"float32", "float16", "int8"}
        Of the short codes in the graph.
    """

    precision: str = "float32"

    name = "usearch"
    purpose = "A usearch store"
    packages = ("usearch",)
    ending = ".usearch"
    precisions = tuple(_TYPES)

    def _new(self, layout: StoreLayout) -> Any:
        from usearch.index import Index

        self._state["metric"] = layout.compared
        return Index(ndim=layout.short, metric=_METRICS[layout.compared], dtype=_TYPES[self.precision])

    def _load(self, path: Path, layout: StoreLayout) -> Any:
        index = self._new(layout)
        index.load(str(path))
        return index

    def _save(self, index: Any, path: Path) -> None:
        index.save(str(path))

    def _add(self, index: Any, keys: np.ndarray, codes: np.ndarray, layout: StoreLayout) -> Any:
        # With several threads usearch 2.26.6 left 15 of 40,000 rows out of reach, in graphs of 2,000; with one, none.
        index.add(keys.astype(np.uint64), codes, threads=1)
        return index

    def _nearest(self, index: Any, query: np.ndarray, count: int, allowed: np.ndarray | None) -> np.ndarray:
        if allowed is not None:
            codes, metric = np.asarray(index.get(allowed.astype(np.uint64), np.float32)), self._state["metric"]
            return np.asarray(allowed[best_first(scores_of(codes, query, metric), metric, count)])
        index.expansion_search = max(64, count)
        return np.asarray(index.search(query, count).keys, dtype=np.int64)

    def _opened_file(self) -> Any:
        from usearch.index import Index

        index: Any = Index.restore(str(self.folder), view=True)
        kind = str(index.dtype).rpartition(".")[2].lower()
        if kind not in _FLOATS:
            raise InvalidInputError(
                f"'{shown_place(self.folder)}' keeps vectors as {kind}, rounded. Move the vectors that it was built "
                "from."
            )
        kind = str(getattr(index.metric_kind, "name", index.metric_kind)).lower()
        metric = {name: metric for metric, name in _METRICS.items()}.get(kind)

        def codes_at(start: int, part: Any) -> np.ndarray:
            return np.asarray(index.get(np.asarray(part, np.uint64), np.float32))

        return np.asarray(index.keys[: len(index)], np.uint64), codes_at, int(index.ndim), metric
