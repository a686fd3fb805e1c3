"""The evaluation of an upgrade: every option by the same searches, with paired intervals, as one record.

Staying and translating are compared over the whole store, by alignments that are fitted on all pairs: that would be
deployed. Re-embedding needs the new vectors of all that is searched, so it is scored among the pairs that were held
out from a second fit, next to staying and translating there. Where both models have embedded every row, the file is
taken for a sample of a store, and everything is scored among held-out pairs.

One translation is recommended, of all methods and forms that were scored (`choosing`): it is the one that is compared
with staying and re-embedding, and the one that is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.stats import spearmanr

from firstk.advice.upgrade.choosing import cross_fitted, preferred
from firstk.advice.upgrade.mixing import Calibration, mixed_queries, mixed_rows
from firstk.advice.upgrade.records import (
    HELD_OUT,
    MIX,
    QUERIES,
    RE_EMBED,
    STAY,
    STORE,
    TRANSLATE,
    Estimate,
    Option,
    PairsPoint,
    Pool,
    ScoredOption,
    UpgradeReport,
)
from firstk.advice.upgrade.searches import FIDELITY, Searches, UpgradeData, searches_in, split_pairs
from firstk.advice.upgrade.verdict import FEWEST_QUERIES
from firstk.advice.upgrade.worth import asked_for, cosines, worth
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import MeanScore, check_confidence, resampled_scores

CONFIDENCE, RESAMPLES = 0.95, 2000
# Shares of the rows to embed anew that are tried.
SHARES = (0.05, 0.1, 0.2, 0.5)
# Shares of the pairs by which the learning curve grows, and the fewest that are worth a fit.
_PARTS, _FEWEST = (0.125, 0.25, 0.5), 60
# Lengths of the shared code in a table, as shares of its width, and the shortest of them.
_CUTS, _SHORTEST = (1.0, 0.5, 0.25, 0.125), 4
# The method that is chosen on held-out pairs.
AUTO = "auto"

Progress = Callable[[str], object]


class Estimator(Protocol):
    """An unfitted alignment: `PrefixAlignment`."""

    def fit(self, old: Any, new: Any) -> Any:
        """Fit on pairs, and return the fitted alignment."""


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


def prefix_alignment(method: Any, random_state: int) -> Estimator:
    """Return an unfitted alignment by a method or its name."""
    from firstk.alignment.prefix_alignment import PrefixAlignment

    return PrefixAlignment(method=method, random_state=random_state, verbose=False)


def usual_methods() -> tuple[str, ...]:
    """Return what is scored if no methods are named: what "auto" chooses, what it chooses among, and Procrustes."""
    from firstk.alignment import methods

    return tuple(dict.fromkeys((AUTO, methods.Procrustes.name, *methods.AUTO)))


def evaluate_upgrade(
    data: UpgradeData,
    *,
    methods: Sequence[str] | None = None,
    shares: Sequence[float] = SHARES,
    confidence: float = CONFIDENCE,
    random_state: int = 0,
    re_embedding: bool = True,
    learning: bool = True,
    estimator: Callable[[Any, int], Estimator] = prefix_alignment,
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
    confidence : float in (0, 1)
        Of the bootstrap intervals over queries.
    random_state : int
        Of the held-out pairs, and of fits that need one.
    re_embedding : bool
        Score re-embedding among held-out pairs, too; without it, and where the whole store can be searched, nothing is
        held out and one fit does.
    learning : bool
        Score the translation over the number of pairs, too.
    estimator : callable (method, random_state) -> unfitted alignment
    progress : callable (str) -> None
        Told the name of each step.

    Returns
    -------
    result : UpgradeResult
    """
    confidence = check_confidence(confidence, "evaluate_upgrade")
    names = tuple(usual_methods() if methods is None else methods)
    if not names:
        raise InvalidInputError("evaluate_upgrade takes at least one method, such as methods=['auto']. Got none.")
    shares = tuple(sorted({float(share) for share in shares if 0 < share < 1}))
    fit = _Fits(data, estimator, random_state, progress)
    everything = np.arange(len(data.new))
    kept, held = split_pairs(len(data.new), random_state)
    store = searches_in(data, np.arange(len(data.old))) if data.judged and not data.complete else None
    among_held = searches_in(data, np.sort(data.paired[held])) if re_embedding or store is None else None
    if store is None and among_held is None:
        raise InvalidInputError(
            f"None of the {len(data.old):,} rows of the store "
            + (
                "has the label of a query: check that both have the same labels."
                if data.labelled
                else "is relevant to a query: check that judgements name these rows."
            )
        )
    scored, anew = [], None
    if store is not None:
        scored.append(_scored(STORE, store, fit, everything, names))
    if among_held is not None:
        pool = _scored(HELD_OUT, among_held, fit, kept, (scored[0].chosen.method,) if scored else names)
        if scored:
            pool = replace(pool, chosen=pool.nearest(scored[0].chosen))
        anew = _anew(among_held, fit(pool.chosen.method, kept), shares, random_state, progress)
        scored.append(replace(pool, options=(*pool.options, *anew.options)))
    first = scored[0]
    final = fit(first.chosen.method, everything)
    report = UpgradeReport(
        metric=str(data.metric) if data.judged else FIDELITY,
        judged=data.judged,
        rows=len(data.old),
        pairs=len(data.new),
        widths=(data.old.shape[1], data.new.shape[1]),
        method=method_of(final),
        reason=_reason(first, final),
        translation=first.chosen,
        cross_fitted_gain=_cross_fitted_gain(first, confidence, random_state),
        pools=tuple(_estimated(one, confidence, random_state) for one in scored),
        learning=_learning(first, fit, confidence, random_state) if learning else (),
        confidence=confidence,
        calibration=None if anew is None else anew.calibration,
        worth_correlation=None if anew is None else anew.correlation,
        notes=(*(() if anew is None else anew.notes), *_notes(data, scored, re_embedding)),
    )
    return UpgradeResult(report, final, worth(final, data.old, _asked_in_store(data)))


@dataclass(frozen=True, eq=False)
class _Fits:
    """Alignments by method and pairs, each fitted once; "auto" knows the best settings of what it tried."""

    data: UpgradeData
    estimator: Callable[[Any, int], Estimator]
    random_state: int
    progress: Progress

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", {})

    def __call__(self, method: str, pairs: np.ndarray) -> Any:
        known: dict[tuple[str, bytes], Any] = self._known  # type: ignore[attr-defined]
        key = method, pairs.tobytes()
        if key not in known:
            self.progress(f"fitting {method} on {len(pairs):,} pairs")
            old, new = self.data.old[self.data.paired[pairs]], self.data.new[pairs]
            choice = getattr(known.get((AUTO, pairs.tobytes())), "choice_", None)
            settled = None if choice is None else choice.best_of(method)
            known[key] = found = self.estimator(settled or method, self.random_state).fit(old, new)
            known.setdefault((method_of(found), pairs.tobytes()), found)
        return known[key]


@dataclass(frozen=True, eq=False)
class _Scored:
    """Options and what every query scores by them, shape (m,), in one pool; and the translation to recommend."""

    name: str
    searches: Searches
    pairs: np.ndarray
    options: tuple[tuple[Option, np.ndarray], ...]
    chosen: Option

    @property
    def translations(self) -> tuple[list[Option], np.ndarray]:
        """The translations, and what queries score by them, shape (m, c); the one that pairs chose comes first."""
        found = [(option, values) for option, values in self.options if option.translates]
        return [option for option, _ in found], np.stack([values for _, values in found], axis=1)

    def nearest(self, wanted: Option) -> Option:
        """Return the same form of translation; of shared codes, which may be narrower here, that of the nearest k."""
        forms = [option for option, _ in self.options if (option.kind, option.method) == (wanted.kind, wanted.method)]
        forms = [option for option in forms if (option.k is None) == (wanted.k is None)]
        return min(forms, key=lambda option: abs((option.k or 0) - (wanted.k or 0)))

    def values(self, wanted: Option) -> np.ndarray | None:
        """Return what queries score by an option; None where it was not scored."""
        return next((values for option, values in self.options if option == wanted), None)


def method_of(alignment: Any) -> str:
    """Return the name of the method of a fitted alignment."""
    return str(getattr(alignment.method_, "name", alignment.method_))


def _scored(name: str, searches: Searches, fit: _Fits, pairs: np.ndarray, methods: Sequence[str]) -> _Scored:
    """Score staying and every translation among the rows of a pool; that of the first method comes first.

    Without judgements the first method is taken as it is: neighbors of the new model do not say what is relevant.
    """
    fit.progress(f"searching {len(searches.rows):,} rows")
    options = [] if not searches.data.stays else [(Option(STAY), _stay(searches))]
    seen: set[str] = set()
    for method in methods:
        alignment = fit(method, pairs)
        if method_of(alignment) not in seen:
            options += list(_translations(searches, alignment))
        seen.add(method_of(alignment))
    first = next(option for option, _ in options if option.translates)
    scored = _Scored(name, searches, pairs, tuple(options), first)
    if not searches.data.judged:
        return scored
    names, values = scored.translations
    return replace(scored, chosen=names[preferred(values, searches.weights)])


def _reason(scored: _Scored, alignment: Any) -> str:
    """Say why a translation is recommended: how cross-validation chose it, or what judged queries prefer it to."""
    names, values = scored.translations
    if scored.chosen == names[0]:
        return str(getattr(alignment.choice_, "why", ""))
    ahead = values[:, names.index(scored.chosen)] - values[:, 0]
    mean = float(np.average(ahead, weights=scored.searches.weights))
    return f"{mean:+.3f} to what cross-validation chose ({names[0].form}), by judged queries"


def _stay(searches: Searches) -> np.ndarray:
    return searches.scores(searches.document_vectors("old"), searches.query_vectors("old"))[:, 0]


def _translations(searches: Searches, alignment: Any) -> Iterator[tuple[Option, np.ndarray]]:
    """Yield an alignment's shared code at some lengths, the longest first, and its translations both ways."""
    method, documents, queries = method_of(alignment), searches.document_vectors("old"), searches.query_vectors("new")
    code, asked = alignment.encode_old(documents), alignment.encode_new(queries)
    d = code.shape[1]
    ks = sorted({max(min(_SHORTEST, d), round(d * cut)) for cut in _CUTS})
    values = searches.scores(code, asked, ks)
    for k, column in reversed(list(zip(ks, values.T, strict=True))):
        yield Option(TRANSLATE, method, k), column
    for option in (Option(TRANSLATE, method), Option(QUERIES, method)):
        yield option, searches.scores(*compared(option, alignment, documents, queries))[:, 0]


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
    code, asked = alignment.encode_old(documents), alignment.encode_new(queries)
    return code[:, : option.k], asked[:, : option.k]


# -- re-embedding ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Anew:
    """Options that embed rows anew, how translated scores are calibrated for them, and how good their order is."""

    options: tuple[tuple[Option, np.ndarray], ...]
    calibration: tuple[float, float] | None
    correlation: float | None
    notes: tuple[str, ...]


def _anew(searches: Searches, alignment: Any, shares: Sequence[float], random_state: int, progress: Progress) -> _Anew:
    """Score re-embedding of all rows, and of the best of them; say how good their order is."""
    progress("searching new vectors")
    old, new = (searches.document_vectors(model) for model in ("old", "new"))
    queries, translated = searches.query_vectors("new"), alignment.old_to_new(old)
    everything = Option(RE_EMBED, share=1.0), searches.scores(new, queries)[:, 0]
    missed = 1.0 - cosines(translated, new)
    lost = worth(alignment, old)
    varies = np.ptp(lost) > 0 and np.ptp(missed) > 0
    correlation = float(spearmanr(lost, missed).statistic) if varies else None
    if len(searches.asked) < 4 or not shares:
        return _Anew((everything,), None, correlation, ())
    mixes, differences = [], []
    chance = np.random.default_rng(random_state).permutation(len(old)).astype(np.float64)
    for share in shares:
        progress(f"mixing {100 * share:g} % new rows with translated ones")
        by_worth = _mix(searches, alignment, share, None)
        mixes.append((Option(MIX, method_of(alignment), share=share), by_worth))
        differences.append(by_worth - _mix(searches, alignment, share, chance))
    ahead = np.stack(differences, axis=1).mean(axis=1)
    found = Calibration.fit(queries, translated, new)
    notes = (_about_order(ahead, searches, random_state),)
    return _Anew((*mixes, everything), (found.offset, found.scale), correlation, notes)


def _mix(searches: Searches, alignment: Any, share: float, order: np.ndarray | None) -> np.ndarray:
    """Score a mix by two halves of the queries, each calibrated, and with rows ordered, by the other."""
    old, new = (searches.document_vectors(model) for model in ("old", "new"))
    queries, translated = searches.query_vectors("new"), alignment.old_to_new(old)
    asking = searches.query_vectors("old") if searches.data.stays else alignment.new_to_old(queries)
    halves = [np.arange(start, len(queries), 2) for start in (0, 1)]
    values = np.empty(len(queries))
    for part, other in (halves, halves[::-1]):
        worths = worth(alignment, old, asked_for(old, asking[other])) if order is None else order
        anew = np.zeros(len(old), dtype=bool)
        anew[np.argsort(-worths, kind="stable")[: round(share * len(old))]] = True
        rows = mixed_rows(translated, new, anew, Calibration.fit(queries[other], translated, new))
        values[part] = searches.scores(rows, mixed_queries(queries), part=part)[:, 0]
    return values


def _about_order(ahead: np.ndarray, searches: Searches, random_state: int) -> str:
    """Say what the order of re-embedding gains over a random one, on average over the shares."""
    mean, low, high = _interval(MeanScore(ahead[:, None], weights=searches.weights), CONFIDENCE, random_state)
    if low[0] > 0:
        said = "The order of re-embedding is better than a random one"
    elif high[0] < 0:
        said = "The order of re-embedding is worse than a random one, so choose rows at random"
    else:
        said = "The order of re-embedding is not clearly better than a random one"
    return f"{said}: {mean[0]:+.3f} ({low[0]:+.3f} to {high[0]:+.3f})."


def _asked_in_store(data: UpgradeData) -> np.ndarray | None:
    """Return how often each row is asked for by the old model's queries; None where there are none."""
    return None if data.queries_old is None else asked_for(data.old, data.queries_old)


# -- numbers ---------------------------------------------------------------------------------------------------


def _interval(scores: MeanScore, confidence: float, random_state: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and the ends of their intervals."""
    draws = resampled_scores(scores, resamples=RESAMPLES, random_state=random_state)
    edge = (1 - confidence) / 2
    low, high = np.quantile(draws, [edge, 1 - edge], axis=0)
    return scores.score(), low, high


def _estimates(values: np.ndarray, weights: np.ndarray | None, confidence: float, seed: int) -> list[Estimate]:
    found = _interval(MeanScore(values, weights=weights), confidence, seed)
    return [Estimate(*map(float, one)) for one in zip(*found, strict=True)]


def _estimated(scored: _Scored, confidence: float, seed: int) -> Pool:
    """Return a pool's options with their scores and paired differences."""
    values, weights = np.stack([one for _, one in scored.options], axis=1), scored.searches.weights
    bases = scored.values(Option(STAY)), scored.values(scored.chosen)
    scores = _estimates(values, weights, confidence, seed)
    gains, ahead = (
        [None] * len(scores) if base is None else _estimates(values - base[:, None], weights, confidence, seed)
        for base in bases
    )
    options = tuple(
        ScoredOption(option, score, None if option.kind == STAY else gain, None if option == scored.chosen else more)
        for (option, _), score, gain, more in zip(scored.options, scores, gains, ahead, strict=True)
    )
    return Pool(scored.name, len(scored.searches.rows), len(values), len(scored.pairs), options)


def _cross_fitted_gain(scored: _Scored, confidence: float, seed: int) -> Estimate | None:
    """Return what translating gains over staying if each half of the queries is scored by what the other one chose.

    None where both halves choose what all queries do: then the gain of that translation is no better than it should be.
    """
    stay = scored.values(Option(STAY))
    if stay is None or not scored.searches.data.judged:
        return None
    weights = scored.searches.weights
    honest = cross_fitted(scored.translations[1], weights)
    chosen = scored.values(scored.chosen)
    assert chosen is not None
    if np.array_equal(honest, chosen):
        return None
    return _estimates((honest - stay)[:, None], weights, confidence, seed)[0]


def _learning(scored: _Scored, fit: _Fits, confidence: float, seed: int) -> tuple[PairsPoint, ...]:
    """Return what the translation scores over the number of pairs: random draws, the smaller within the larger."""
    searches, pairs, option = scored.searches, scored.pairs, scored.chosen
    order = np.random.default_rng(seed + 1).permutation(pairs)
    sizes = sorted({round(part * len(pairs)) for part in _PARTS if round(part * len(pairs)) >= _FEWEST})
    documents, queries = searches.document_vectors("old"), searches.query_vectors("new")
    columns, counts = [], []
    for size in sizes:
        alignment = fit(option.method, np.sort(order[:size]))
        columns.append(searches.scores(*compared(option, alignment, documents, queries))[:, 0])
        counts.append(size)
    whole = scored.values(option)
    assert whole is not None
    values = np.stack([*columns, whole], axis=1)
    scores = _estimates(values, searches.weights, confidence, seed)
    steps: list[Estimate | None] = [None]
    if len(scores) > 1:
        steps += _estimates(np.diff(values, axis=1), searches.weights, confidence, seed)
    return tuple(
        PairsPoint(count, score, step) for count, score, step in zip([*counts, len(pairs)], scores, steps, strict=True)
    )


def _notes(data: UpgradeData, scored: Sequence[_Scored], re_embedding: bool) -> list[str]:
    notes = []
    names = {one.name: one for one in scored}
    if data.complete:
        notes.append(
            f"Both models have embedded all {len(data.old):,} rows, so they are taken for a sample of a store: "
            "alignments are fitted on two thirds of them, and everything is scored among the others."
        )
    if re_embedding and HELD_OUT not in names:
        notes.append(
            "No held-out pair is relevant to a query, so re-embedding could not be scored: embed the rows that are "
            "judged with the new model, too."
        )
    for one in scored:
        if len(one.searches.asked) < FEWEST_QUERIES:
            notes.append(
                f"{len(one.searches.asked)} queries have a relevant row among those searched ({one.name}): too few for "
                f"a verdict, which takes {FEWEST_QUERIES}."
            )
    return notes
