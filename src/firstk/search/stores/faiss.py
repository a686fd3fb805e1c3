"""Codes in a folder with a faiss index of the short ones: rows in SQLite, reranking in numpy.

For an index alone, which takes raw vectors, see `firstk.integrations.faiss`. Needs the extra "stores".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base.checks import require
from firstk.data.remote import shown_place
from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import EXTRA, StoreLayout
from firstk.search.stores.index_folder import IndexFolder


@dataclass(frozen=True, eq=False)
class Faiss(IndexFolder):
    """A folder of rows and a faiss index.

    Attributes
    ----------
    folder : path
    index : str
        For faiss's ``index_factory``: "Flat", which is exact, "HNSW32", "IVF256,Flat", ... It is trained on the rows
        that are there when the first search, or the end of a push, needs it.
    """

    index: str = "Flat"

    name = "faiss"
    purpose = "A faiss store"
    packages = ("faiss",)
    ending = ".faiss"

    def _new(self, layout: StoreLayout) -> Any:
        import faiss

        kind = faiss.METRIC_L2 if layout.compared == "l2" else faiss.METRIC_INNER_PRODUCT
        try:
            return faiss.IndexIDMap2(faiss.index_factory(layout.short, self.index, kind))
        except RuntimeError:
            raise InvalidInputError(
                f"faiss cannot build '{self.index}' on {layout.short} coordinates. See its index_factory."
            ) from None

    def _load(self, path: Path, layout: StoreLayout) -> Any:
        import faiss

        return faiss.read_index(str(path))

    def _save(self, index: Any, path: Path) -> None:
        import faiss

        faiss.write_index(index, str(path))

    def _add(self, index: Any, keys: np.ndarray, codes: np.ndarray, layout: StoreLayout) -> Any:
        if not index.is_trained:
            index.train(codes)
        index.add_with_ids(codes, keys)
        return index

    def _nearest(self, index: Any, query: np.ndarray, count: int, allowed: np.ndarray | None) -> np.ndarray:
        faiss: Any = require("faiss", EXTRA, self.purpose)
        inner = faiss.downcast_index(index.index)
        kinds: dict[str, Any] = {"IndexHNSW": faiss.SearchParametersHNSW, "IndexIVF": faiss.SearchParametersIVF}
        kind = next((made for name, made in kinds.items() if type(inner).__name__.startswith(name)), None)
        params = (kind or faiss.SearchParameters)()
        if kind is faiss.SearchParametersHNSW:
            params.efSearch = max(64, count)
        elif kind is faiss.SearchParametersIVF:
            params.nprobe = min(inner.nlist, max(8, inner.nlist // 8))
        selector = None if allowed is None else faiss.IDSelectorBatch(allowed)
        if selector is not None:
            params.sel = selector
        found = index.search(query[None], count, params=params)[1][0]
        return np.asarray(found[found >= 0])

    def _opened_file(self) -> Any:
        import faiss

        owner = faiss.read_index(str(self.folder))  # must live as long as what it is seen as
        index: Any = faiss.downcast_index(owner)
        keys = np.arange(index.ntotal)
        if hasattr(index, "id_map"):
            keys, index = faiss.vector_to_array(index.id_map), faiss.downcast_index(index.index)
        if "Flat" not in type(index).__name__:
            raise InvalidInputError(
                f"'{shown_place(self.folder)}' is an {type(index).__name__}, which keeps rounded vectors. Move the "
                "vectors that it was built from."
            )
        if hasattr(index, "make_direct_map"):
            index.make_direct_map()

        def codes_at(start: int, part: Any, owner: Any = owner) -> np.ndarray:
            return np.asarray(index.reconstruct_batch(np.arange(start, start + len(part))))

        metric = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "inner_product"}.get(index.metric_type)
        return keys, codes_at, int(index.d), metric
