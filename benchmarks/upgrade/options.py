"""What can be done about a store when the model changes: pairs of a store and queries, compared by cosine."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from benchmarks.upgrade.cases import Case, vectors
from benchmarks.upgrade.drift_adapter import MAPS, DriftAdapter
from benchmarks.upgrade.lambda_orthogonal import LambdaOrthogonal
from firstk import PrefixAlignment
from firstk.upgrade.methods import AUTO, PUBLIC

# Methods in the order in which they are run, slow ones last. Of those that "auto" chooses among it has settings that
# were chosen on held-out pairs, and others choose theirs alike; the last four have fixed settings.
FIXED = ("procrustes", "low_rank_affine", "lambda_orthogonal", "residual_mlp")
CHOSEN = (*AUTO, *(name for name in PUBLIC if name not in (*AUTO, *FIXED)))
METHODS = ("auto", *CHOSEN, *FIXED)
# Methods whose translation of queries into the old space has a column, too.
OF_QUERIES = ("ridge", "low_rank_affine")

Compared = tuple[str, np.ndarray, np.ndarray]


class Fits:
    """Alignments of a case, each fitted once; the methods that "auto" tried have the settings that it found."""

    def __init__(self, case: Case):
        self.case, self._known = case, dict[str, Any]()

    def __call__(self, method: Any) -> Any:
        """Return the alignment of a method or its name."""
        if isinstance(method, str) and method in AUTO:
            choice = self("auto").choice_
            assert choice is not None
            method = choice.best_of(method) or method
        if repr(method) not in self._known:
            old, new = (vectors(self.case.data, model)[0][self.case.rows] for model in (self.case.old, self.case.new))
            own = LambdaOrthogonal() if method == LambdaOrthogonal.name else method
            made: Any = DriftAdapter(method) if method in MAPS else PrefixAlignment(method=own)
            self._known[repr(method)] = made.fit(old, new)
        return self._known[repr(method)]

    def estimator(self, method: Any) -> Any:
        """Return an unfitted alignment as `evaluate_upgrade` takes it, whose fit on these pairs is looked up."""
        fits = self

        class Known:
            def fit(self, old: np.ndarray, new: np.ndarray) -> PrefixAlignment:
                if len(old) == fits.case.n_pairs:
                    return fits(method)
                return PrefixAlignment(method=method).fit(old, new)

        return Known()


def options(case: Case, fits: Fits, methods: tuple[str, ...], known: Collection[str] = ()) -> Iterator[Compared]:
    """Give the name of each option that is not known yet, with the store and the queries that it compares."""
    (old, old_queries), (new, new_queries) = (vectors(case.data, model) for model in (case.old, case.new))
    if "stay" not in known:
        yield "stay", old, old_queries
        yield "re-embed", new, new_queries
    for name in methods:
        if name in known:
            continue
        alignment = fits(name)
        store, queries = alignment.encode_old(old), alignment.encode_new(new_queries)
        yield name, store, queries
        if name == "auto":
            half = max(1, alignment.n_components_ // 2)
            yield "auto, half", store[:, :half], queries[:, :half]
        if name in OF_QUERIES:
            yield f"{name} of queries", old, alignment.new_to_old(new_queries)
