"""The evaluation of an upgrade: every option by the same searches, with paired intervals, as one record.

Staying and translating are compared over the whole store, by alignments that are fitted on all pairs: that would be
deployed. Re-embedding needs the new vectors of all that is searched, so it is scored among the pairs that were held
out from a second fit, next to staying and translating there. Where both models have embedded every row, the file is
taken for a sample of a store, and everything is scored among held-out pairs.

One translation is recommended, of all methods and forms: the one that is compared with staying and re-embedding, and
the one that is saved. Held-out pairs have chosen a method before any judged query was looked at; another one takes its
place where judged queries clearly prefer it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from firstk import Rows
from firstk.exceptions import InvalidInputError
from firstk.metrics import MeanScore, resampled_scores
from firstk.quality import DRAWS, Difference, interval, select
from firstk.upgrade.data import FIDELITY, Searches, UpgradeData, searches_in, split_pairs
from firstk.upgrade.methods import AUTO as CHOSEN_AMONG
from firstk.upgrade.methods import Procrustes
from firstk.upgrade.mixing import Rescaling, asked_for, mixed_queries, mixed_rows, worth
from firstk.upgrade.prefix_alignment import PrefixAlignment
from firstk.upgrade.records import (
    HELD_OUT,
    MIX,
    QUERIES,
    RE_EMBED,
    STAY,
    STORE,
    TRANSLATE,
    Option,
    PairsPoint,
    Pool,
    ScoredOption,
    UpgradeReport,
)

# Shares of the rows to embed anew that are tried.
SHARES = (0.05, 0.1, 0.2, 0.5)
# Shares of the pairs by which the learning curve grows, and the fewest that are worth a fit.
_PARTS, _FEWEST = (0.125, 0.25, 0.5), 60
# Lengths of the shared code in a table, as shares of its width, and the shortest of them.
_CUTS, _SHORTEST = (1.0, 0.5, 0.25, 0.125), 4
# Queries by which the order of re-embedding can be chosen and scored.
_FEWEST_FOR_ORDER = 4
# The method that is chosen on held-out pairs; and what is scored if no methods are named.
AUTO = "auto"
USUAL = tuple(dict.fromkeys((AUTO, Procrustes.name, *CHOSEN_AMONG)))

Progress = Callable[[str], object]
Scored = tuple[Option, np.ndarray]


@dataclass(frozen=True, eq=False)
class UpgradeResult:
    """The record of an evaluation, the alignment that was fitted on all pairs, and the order of re-embedding.

    Attributes
    ----------
    report : UpgradeReport
    alignment : PrefixAlignment
        By the method of ``report.translation``.
    worth : ndarray of shape (N,)
        Of each row of the store; rows of the highest are to be embedded anew first.
    """

    report: UpgradeReport
    alignment: Any
    worth: np.ndarray


def prefix_alignment(method: Any) -> PrefixAlignment:
    """Return an unfitted alignment by a method or its name."""
    return PrefixAlignment(method=method, verbose=False)


def evaluate_upgrade(
    data: UpgradeData,
    *,
    methods: Sequence[str] | None = None,
    shares: Sequence[float] = SHARES,
    random_state: int = 0,
    re_embedding: bool = True,
    learning: bool = True,
    estimator: Callable[[Any], Any] = prefix_alignment,
    progress: Progress = lambda step: None,
) -> UpgradeResult:
    """Score staying, translating, re-embedding and mixes of them by the same searches.

    Parameters
    ----------
    data : UpgradeData
    methods : sequence of str, optional
        Methods of alignment that are scored. The first is recommended unless judged queries clearly prefer another.
        "auto", those that it chooses among, and Procrustes, if not given.
    shares : sequence of float
        Shares of the rows to embed anew.
    random_state : int
        Of the held-out pairs and of the draws.
    re_embedding : bool
        Score re-embedding among held-out pairs, too; without it, and where the whole store can be searched, nothing is
        held out and one fit does.
    learning : bool
        Score the translation over the number of pairs, too.
    estimator : callable (method) -> unfitted alignment
    progress : callable (str) -> None
        Told the name of each step.

    Returns
    -------
    result : UpgradeResult
    """
    names = tuple(USUAL if methods is None else methods)
    if not names:
        raise InvalidInputError("evaluate_upgrade takes at least one method, such as methods=['auto']. Got none.")
    fit = _Fits(data, estimator, progress)
    everything = np.arange(len(data.new))
    kept, held = split_pairs(len(data.new), random_state)
    store = searches_in(data, np.arange(len(data.old))) if data.judged and not data.complete else None
    among_held = searches_in(data, np.sort(data.paired[held])) if re_embedding or store is None else None
    if store is None and among_held is None:
        raise InvalidInputError(
            f"None of the {len(data.old):,} rows of the store "
            + (
                "has the label of a query: check that both have the same labels."
                if isinstance(data.asked, Rows)
                else "is relevant to a query: check that judgements name these rows."
            )
        )
    pools: list[_Pool] = []
    anew: dict[str, Any] = {}
    if store is not None:
        pools.append(_translating(STORE, store, fit, everything, names))
    if among_held is not None:
        pool = _translating(HELD_OUT, among_held, fit, kept, (pools[0].chosen.method,) if pools else names)
        if pools:
            pool = replace(pool, chosen=pool.nearest(pools[0].chosen))
        wanted = sorted({float(share) for share in shares if 0 < share < 1})
        options, anew = _re_embedding(among_held, fit(pool.chosen.method, kept), wanted, random_state, progress)
        pools.append(replace(pool, options=(*pool.options, *options)))
    first = pools[0]
    final = fit(first.chosen.method, everything)
    report = UpgradeReport(
        metric=data.metric if data.judged else FIDELITY,
        judged=data.judged,
        rows=len(data.old),
        pairs=len(data.new),
        widths=(data.old.shape[1], data.new.shape[1]),
        method=method_of(final),
        reason=first.reason(final),
        translation=first.chosen,
        cross_fitted_gain=_cross_fitted_gain(first, random_state),
        pools=tuple(_record(one, random_state) for one in pools),
        learning=_learning(first, fit, random_state) if learning else (),
        re_embedding=re_embedding,
        **anew,
    )
    asked = None if data.queries_old is None else asked_for(data.old, data.queries_old)
    return UpgradeResult(report, final, worth(final, data.old, asked))


@dataclass(frozen=True, eq=False)
class _Fits:
    """Alignments by method and pairs, each fitted once; "auto" knows the best settings of what it tried."""

    data: UpgradeData
    estimator: Callable[[Any], Any]
    progress: Progress
    known: dict[tuple[str, bytes], Any] = field(default_factory=dict)

    def __call__(self, method: str, pairs: np.ndarray) -> Any:
        key = method, pairs.tobytes()
        if key not in self.known:
            self.progress(f"fitting {method} on {len(pairs):,} pairs")
            old, new = self.data.old[self.data.paired[pairs]], self.data.new[pairs]
            choice = getattr(self.known.get((AUTO, pairs.tobytes())), "choice_", None)
            settled = None if choice is None else choice.best_of(method)
            self.known[key] = found = self.estimator(settled or method).fit(old, new)
            self.known.setdefault((method_of(found), pairs.tobytes()), found)
        return self.known[key]


def method_of(alignment: Any) -> str:
    """Return the name of the method of a fitted alignment."""
    return str(getattr(alignment.method_, "name", alignment.method_))


# -- staying and translating -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Pool:
    """Options and what every query scores by them, shape (m,), in one pool; and the translation to recommend."""

    name: str
    searches: Searches
    pairs: np.ndarray
    options: tuple[Scored, ...]
    chosen: Option

    @property
    def translations(self) -> tuple[list[Option], np.ndarray]:
        """The translations, and what queries score by them, shape (m, c); the one that pairs chose comes first."""
        found = [(option, values) for option, values in self.options if option.translates]
        return [option for option, _ in found], np.stack([values for _, values in found], axis=1)

    def values(self, wanted: Option) -> np.ndarray | None:
        """Return what queries score by an option; None where it was not scored."""
        return next((values for option, values in self.options if option == wanted), None)

    def nearest(self, wanted: Option) -> Option:
        """Return the same form of translation; of shared codes, which may be narrower here, that of the nearest k."""
        forms = [option for option, _ in self.options if (option.kind, option.method) == (wanted.kind, wanted.method)]
        forms = [option for option in forms if (option.k is None) == (wanted.k is None)]
        return min(forms, key=lambda option: abs((option.k or 0) - (wanted.k or 0)))

    def reason(self, alignment: Any) -> str:
        """Say why a translation is recommended: how cross-validation chose it, or what judged queries prefer it to."""
        names, values = self.translations
        if self.chosen == names[0]:
            return str(getattr(alignment.choice_, "why", ""))
        ahead = values[:, names.index(self.chosen)] - values[:, 0]
        mean = float(np.average(ahead, weights=self.searches.weights))
        return f"{mean:+.3f} to what cross-validation chose ({names[0].form}), by judged queries"


def _translating(name: str, searches: Searches, fit: _Fits, pairs: np.ndarray, methods: Sequence[str]) -> _Pool:
    """Score staying and every translation among the rows of a pool; that of the first method comes first.

    Without judgements the first method is taken as it is: neighbors of the new model do not say what is relevant.
    """
    fit.progress(f"searching {len(searches.rows):,} rows")
    documents, options = searches.document_vectors("old"), list[Scored]()
    if searches.data.stays:
        options.append((Option(STAY), searches.scores(documents, searches.query_vectors("old"))[:, 0]))
    alignments: dict[str, Any] = {}
    for method in methods:  # "auto" comes to one of the others
        alignment = fit(method, pairs)
        alignments.setdefault(method_of(alignment), alignment)
    queries = searches.query_vectors("new")
    for method, alignment in alignments.items():
        # The shared code at some lengths, the longest first, and the translations both ways.
        code, asked = alignment.encode_old(documents), alignment.encode_new(queries)
        d = code.shape[1]
        ks = sorted({max(min(_SHORTEST, d), round(d * cut)) for cut in _CUTS})
        values = searches.scores(code, asked, ks)
        options += [(Option(TRANSLATE, method, k), column) for k, column in zip(ks, values.T, strict=True)][::-1]
        for option in (Option(TRANSLATE, method), Option(QUERIES, method)):
            options.append((option, searches.scores(*compared(option, alignment, documents, queries))[:, 0]))
    first = next(option for option, _ in options if option.translates)
    pool = _Pool(name, searches, pairs, tuple(options), first)
    if not searches.data.judged:
        return pool
    translations, found = pool.translations
    return replace(pool, chosen=translations[preferred(found, searches.weights)])


def compared(
    option: Option, alignment: Any, documents: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the queries that a translation compares by cosine.

    Parameters
    ----------
    option : Option
        The shared code at k, translated documents or translated queries.
    alignment : PrefixAlignment
    documents, queries : ndarray of shape (n, p) and (m, q)
        Rows as the old model embeds them, and queries as the new one does.
    """
    if option.kind == QUERIES:
        return documents, alignment.new_to_old(queries)
    if option.k is None:
        return alignment.old_to_new(documents), queries
    return alignment.encode_old(documents)[:, : option.k], alignment.encode_new(queries)[:, : option.k]


def preferred(values: np.ndarray, weights: np.ndarray | None = None) -> int:
    """Return the column to recommend: the first, unless the best one is clearly ahead of it.

    Parameters
    ----------
    values : ndarray of shape (m, c)
        What each query scores by each translation; the first is the one that held-out pairs chose.
    weights : ndarray of shape (m,), optional
        What each query counts in the mean.

    Examples
    --------
    >>> preferred(np.array([[0.5, 0.6], [0.4, 0.6], [0.5, 0.7], [0.3, 0.4]]))
    1
    >>> preferred(np.array([[0.5, 0.6], [0.4, 0.1], [0.5, 0.9], [0.3, 0.2]]))
    0
    """
    if not len(values) or (weights is not None and not weights.any()):
        return 0
    counted = slice(None) if weights is None else weights > 0
    means, draws = _draws(values[counted], None if weights is None else weights[counted], 0)
    # The first is simplest, and all of the loss that is not clear may be taken for that.
    return select(means, draws.T, order=[0] + [1] * (values.shape[1] - 1), most=np.inf).chosen


def cross_fitted(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return what each query scores by the translation that the other half of the queries prefers, shape (m,).

    What is chosen by queries scores too well on the same queries.
    """
    parts = [np.arange(start, len(values), 2) for start in (0, 1)]
    made = np.empty(len(values))
    for part, other in (parts, parts[::-1]):
        made[part] = values[part, preferred(values[other], None if weights is None else weights[other])]
    return made


def _cross_fitted_gain(pool: _Pool, seed: int) -> Difference | None:
    """Return what translating gains over staying if each half of the queries is scored by what the other one chose.

    None where both halves choose what all queries do: then the gain of that translation is no better than it should be.
    """
    stay = pool.values(Option(STAY))
    if stay is None or not pool.searches.data.judged:
        return None
    honest = cross_fitted(pool.translations[1], pool.searches.weights)
    if np.array_equal(honest, pool.values(pool.chosen)):  # type: ignore[arg-type]
        return None
    return _differences((honest - stay)[:, None], pool.searches, seed)[0]


def _learning(pool: _Pool, fit: _Fits, seed: int) -> tuple[PairsPoint, ...]:
    """Return what the translation scores over the number of pairs: random draws, the smaller within the larger."""
    searches, pairs, option = pool.searches, pool.pairs, pool.chosen
    order = np.random.default_rng(seed + 1).permutation(pairs)
    counts = sorted({round(part * len(pairs)) for part in _PARTS if round(part * len(pairs)) >= _FEWEST})
    documents, queries = searches.document_vectors("old"), searches.query_vectors("new")
    columns = [
        searches.scores(*compared(option, fit(option.method, np.sort(order[:count])), documents, queries))[:, 0]
        for count in counts
    ]
    values = np.stack([*columns, pool.values(option)], axis=1)  # type: ignore[list-item]
    steps = [None, *_differences(np.diff(values, axis=1), searches, seed)] if counts else [None]
    return tuple(map(PairsPoint, [*counts, len(pairs)], _scores(values, searches, seed), steps))


# -- re-embedding ----------------------------------------------------------------------------------------------


def _re_embedding(
    searches: Searches, alignment: Any, shares: Sequence[float], seed: int, progress: Progress
) -> tuple[list[Scored], dict[str, Any]]:
    """Score re-embedding of all rows, and of the best of them.

    Returns the options, and what a report says of mixes: how translated scores are calibrated, and what the order by
    `worth` gains over a random one.
    """
    progress("searching new vectors")
    old, new = (searches.document_vectors(model) for model in ("old", "new"))
    queries, translated = searches.query_vectors("new"), alignment.old_to_new(old)
    everything = Option(RE_EMBED, share=1.0), searches.scores(new, queries)[:, 0]
    if len(searches.queries) < _FEWEST_FOR_ORDER or not shares:
        return [everything], {}
    asking = searches.query_vectors("old") if searches.data.stays else alignment.new_to_old(queries)
    halves = [np.arange(start, len(queries), 2) for start in (0, 1)]

    def mixed(share: float, order: np.ndarray | None) -> np.ndarray:
        """Score each half of the queries; the other half calibrates, and orders rows by worth if no order is given."""
        values = np.empty(len(queries))
        for part, other in (halves, halves[::-1]):
            key = worth(alignment, old, asked_for(old, asking[other])) if order is None else order
            anew = np.zeros(len(old), dtype=bool)
            anew[np.argsort(-key, kind="stable")[: round(share * len(old))]] = True
            rows = mixed_rows(translated, new, anew, Rescaling.fit(queries[other], translated, new))
            values[part] = searches.part(part).scores(rows, mixed_queries(queries[part]))[:, 0]
        return values

    options, ahead = [], []
    chance = np.random.default_rng(seed).permutation(len(old)).astype(np.float64)
    for share in shares:
        progress(f"mixing {100 * share:g} % new rows with translated ones")
        options.append((Option(MIX, method_of(alignment), share=share), mixed(share, None)))
        ahead.append(options[-1][1] - mixed(share, chance))
    found = Rescaling.fit(queries, translated, new)
    order_gain = _differences(np.mean(ahead, axis=0)[:, None], searches, seed)[0]
    return [*options, everything], {"calibration": (found.offset, found.scale), "order_gain": order_gain}


# -- numbers ---------------------------------------------------------------------------------------------------


def _draws(values: np.ndarray, weights: np.ndarray | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of columns, shape (c,), and those of resampled queries, shape (B, c)."""
    scores = MeanScore(values, weights=weights)
    return scores.score(), resampled_scores(scores, resamples=DRAWS, random_state=seed)


def _scores(values: np.ndarray, searches: Searches, seed: int) -> list[Difference]:
    """Return means with percentile intervals, which do not leave the range of a score."""
    means, draws = _draws(values, searches.weights, seed)
    return [Difference(*map(float, one)) for one in zip(means, *interval(draws), strict=True)]


def _differences(values: np.ndarray, searches: Searches, seed: int) -> list[Difference]:
    """Return mean differences with their intervals."""
    means, draws = _draws(values, searches.weights, seed)
    return [Difference.of(mean, column) for mean, column in zip(means, draws.T, strict=True)]


def _record(pool: _Pool, seed: int) -> Pool:
    """Return a pool's options with their scores and paired differences."""
    values, searches = np.stack([one for _, one in pool.options], axis=1), pool.searches
    gains, ahead = (
        [None] * len(pool.options) if base is None else _differences(values - base[:, None], searches, seed)
        for base in (pool.values(Option(STAY)), pool.values(pool.chosen))
    )
    embedding = [i for i, (option, _) in enumerate(pool.options) if option.share]  # by shares, ascending
    options = []
    for i, ((option, _), score) in enumerate(zip(pool.options, _scores(values, searches, seed), strict=True)):
        larger = [j for j in embedding if option.share and j > i]
        options.append(
            ScoredOption(
                option,
                score,
                gain=None if option.kind == STAY else gains[i],
                over_translating=None if option == pool.chosen else ahead[i],
                over_larger=tuple(_differences(values[:, [i]] - values[:, larger], searches, seed)) if larger else (),
            )
        )
    return Pool(pool.name, len(searches.rows), len(values), len(pool.pairs), tuple(options))
