"""What can be done about a store when the model changes: pairs of a store and queries, compared by cosine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.upgrade.cases import Case, vectors
from firstk import PrefixAlignment
from firstk.alignment.auto import choose
from firstk.alignment.methods import AUTO, PUBLIC, restore
from firstk.moments.paired import PairedStatistics

# Settings of these are chosen on held-out pairs; the others have fixed ones.
CHOSEN = (*AUTO, *(name for name in ("reduced_rank",) if name not in AUTO))
FIXED = ("procrustes", "lambda_orthogonal", "low_rank_affine", "residual_mlp")

Compared = tuple[str, np.ndarray, np.ndarray]


def options(case: Case, fixed: tuple[str, ...] = FIXED) -> Iterator[Compared]:
    """Give the name of each option with the store and the queries that it compares."""
    (old, old_queries), (new, new_queries) = (vectors(case.data, model) for model in (case.old, case.new))
    yield "stay", old, old_queries
    yield "re-embed", new, new_queries
    a, b = old[case.rows], new[case.rows]
    statistics = PairedStatistics.of(a, b)
    methods = [PUBLIC[name]() for name in CHOSEN]
    # One look at the held-out pairs for all methods: each has its own best settings, "auto" the best of its methods.
    settings = {}
    for trial in choose(methods, statistics.moments, statistics.sample)[1].tried:
        settings.setdefault(trial.method, restore(trial.method, trial.settings))
    for name in (*CHOSEN, *fixed):
        alignment = PrefixAlignment(method=settings.get(name, name), random_state=0).fit(a, b)
        yield name, alignment.encode_old(old), alignment.encode_new(new_queries)
        if name in ("ridge", "low_rank_affine"):
            yield f"{name} of queries", old, alignment.new_to_old(new_queries)
    alignment = PrefixAlignment().fit(a, b)
    store, queries = alignment.encode_old(old), alignment.encode_new(new_queries)
    half = max(1, alignment.n_components_ // 2)
    yield f"auto: {alignment.method_!r}", store, queries
    yield "auto, half", store[:, :half], queries[:, :half]
