"""A diagnosis in words: the objective to fit with its margin, the runners-up, what is wrong with the data, the command.

Twenty lines at most; the rest is for those who ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from firstk.data.task import FEWEST_NEW
from firstk.words.choice import ABOVE_RAW, NOTABLE
from firstk.words.text import number_of, score_text

if TYPE_CHECKING:
    from firstk.advice.diagnosis import Diagnosis, Ranking, Trial
    from firstk.advice.diagnosis.vectors import Vectors
    from firstk.quality.curve import PrefixCurve

# Objectives and findings about the vectors in the answer; the explanation has all of them.
MOST_OBJECTIVES, MOST_PROBLEMS = 6, 4
# Share of the vectors with which codes of an objective hold on classes without labels (docs/objectives/fisher.md and
# classification.md, "Beyond the labels"); the others hold there as they are.
BEYOND_LABELS = {"fisher": 0.5, "classification": 0.3}
# From this mean cosine of pairs on, all vectors point one way.
ONE_WAY = 0.3
# What a name of the table, or its last word, means.
_GLOSSES = {
    "reconstruction": "is PCA",
    "similarity, dot_products": "is uncentred SVD",
    "gradient": "is trained by gradient descent",
}
# What is evaluated, by metric.
_UNITS = {"ndcg@10": "queries", "spearman": "pairs", "positive_recall@10": "pairs"}
_FIDELITY = (
    "This is fidelity: whether short codes find the neighbors of the full vectors. Judgements (--relevance) or labels "
    "tell whether they find what is relevant."
)
_PAPER = (
    "How variance suits the task, as Balestriero and LeCun (2024) look at it: firstk_papers.balestriero2024 has "
    "alignment.align, spectrum_ends.compare_ends, label_noise.look_for_noise and denoising.effect_of."
)


def answer(found: Diagnosis) -> list[str]:
    """Return what to fit, how sure that is, the runners-up, what is wrong with the data, and the next command."""
    lines = [] if found.ranking is None else list(_ranked(found.ranking))
    if found.unranked:
        lines.append(f"Objectives were not compared: {found.unranked}")
    if found.rows_in_file > found.vectors.rows:
        lines.append(f"Data: {found.vectors.rows:,} of {found.rows_in_file:,} rows were read, at even distances.")
    problems = [_problem(code, found.vectors) for code in found.vectors.problems]
    lines += [f"Data: {sentence}" for sentence in problems[:MOST_PROBLEMS]]
    if found.command:
        lines += ["", "Next:", f"  {found.command}"]
    return lines or ["Nothing is wrong with the vectors."]


def explanation(found: Diagnosis) -> list[str]:
    """Return all that the answer leaves out: other findings and the numbers."""
    ranking, vectors = found.ranking, found.vectors
    lines = [] if ranking is None else [f"- {sentence}" for sentence in _findings(ranking)]
    lines += [f"- {_problem(code, vectors)}" for code in vectors.problems[MOST_PROBLEMS:]]
    lines += [f"- {sentence}" for sentence in _facts(vectors)]
    if found.kind in ("labels", "targets"):
        lines.append(f"- {_PAPER}")
    tables = {} if ranking is None else {"Objectives, with 95 % intervals": list(_intervals(ranking))}
    for title, table in (tables | {"Vectors": list(_numbers(vectors))}).items():
        width = max(len(name) for name, _ in table)
        lines += ["", title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in table)]
    return lines


# -- the ranking -------------------------------------------------------------------------------------------------


def _ranked(ranking: Ranking) -> Iterator[str]:
    trial, first = ranking.chosen, ranking.curves[0]
    mean = f"{score_text(trial.mean)} ({score_text(trial.low)} to {score_text(trial.high)})"
    units = _UNITS.get(first.metric, "rows") + (" for new documents" if ranking.everything else "")
    count = "" if first.n_evaluated is None else f"{first.n_evaluated:,} "
    scope = f"{count}held-out {units}" + (f" of {ranking.folds} fits" if ranking.folds > 1 else "")
    at = f"mean {first.metric} at k = {_listed([str(k) for k in first.k])}"
    yield f"Objective {trial.name} {_verdict(ranking)}: {mean}, {at}, {scope}."
    shown = list(ranking.trials)
    if len(shown) > MOST_OBJECTIVES:
        shown = [one for one in shown if one is not trial][: MOST_OBJECTIVES - 1]
        shown = sorted([*shown, trial], key=lambda one: -one.mean)
    wide = max(len(one.name) for one in shown)
    yield ""
    heads = "".join(f"{name:>9}" for name in (*(f"k = {k}" for k in first.k), "mean"))
    yield f"  {'':<{wide}}{heads}  behind the best"
    for one in shown:
        scores = "".join(f"{score_text(score):>9}" for score in (*one.curve.score, one.mean))
        yield f"  {one.name:<{wide}}{scores}  {'' if one is ranking.trials[0] else _behind(one)}".rstrip()
    if first.input_score is not None:
        yield f"  {'raw vectors':<{wide}}{score_text(first.input_score):>9}  at full width"
    if rest := len(ranking.trials) - len(shown):
        yield f"  ({rest} more with --explain)"
    if ranking.task == "none":
        yield _FIDELITY


def _verdict(ranking: Ranking) -> str:
    own, best, *others = ranking.chosen, *ranking.trials
    if ranking.reason == "best":
        if not others:
            return "is the only one that could be fitted"
        return f"is best, ahead of {others[0].name} by {_behind(others[0])}"
    other = _listed(ranking.level) if own is best else best.name
    level = f"is level with {other}" if own.level else f"is not clearly behind {other}"
    why = "better where documents are known" if ranking.reason == "known" else "simpler or faster"
    return f"{level}{' on new documents' if ranking.everything else ''}, and {why}"


def _findings(ranking: Ranking) -> Iterator[str]:
    """Yield what each length keeps, what known documents change, other classes, and what was not tried."""
    curve = ranking.chosen.curve
    if curve.input_score and curve.input_score > 0:
        kept = ", ".join(
            f"{score / curve.input_score:.0%} at k = {k}" for k, score in zip(curve.k, curve.score, strict=True)
        )
        of = "ten nearest neighbors" if ranking.task == "none" else f"raw vectors' {curve.metric}"
        above = f" {ABOVE_RAW}" if max(curve.score) > (1 + NOTABLE) * curve.input_score else ""
        yield f"Of the {of} {ranking.choice} keeps {kept}.{above}"
    if ranking.known:
        yield _about_new(ranking)
    yield from _beyond(ranking.chosen, ranking.task)
    for name, reason in ranking.left_out.items():
        yield f"Not tried: {name} ({reason.rstrip('.')})."


def _about_new(ranking: Ranking) -> str:
    """Say how the choice fares where documents are known, or that too few queries ask for new ones."""
    if not ranking.everything:
        return (
            f"{ranking.known:,} of the queries ask for documents that a fit has learned "
            "from with other queries. Objectives that learn from pairs have memorized these; new documents will score "
            f"lower. The other queries are too few to rank by: {FEWEST_NEW} are needed."
        )
    best, own = max(ranking.everything, key=_mean), ranking.chosen.everything
    assert own is not None
    told = (
        "Objectives are ranked on new documents: queries that share relevant documents were held out together. Over "
        f"queries like those given, {ranking.known_share:.0%} of which ask for known documents, {own.label} reaches "
        f"{_mean(own):.3f}"
    )
    if best.label == own.label:
        return f"{told}."
    trial = next(trial for trial in ranking.trials if trial.name == best.label)
    how = "" if trial.solver == "auto" else f" (--set solver={trial.solver})"
    return f"{told} and {best.label} {_mean(best):.3f}. Fit that one{how} if few documents will be added."


def _beyond(trial: Trial, task: str) -> Iterator[str]:
    """Name the setting for codes that will meet classes, or kinds of vectors, that are not among these."""
    share = BEYOND_LABELS.get(trial.objective) if task == "labels" else None
    if trial.name == "similarity, neighbors":
        yield (
            "Its axes are those of these vectors. If codes will also be used for other kinds of vectors, fit on some "
            "of them too, or set objective.keep=projections, which loses less there."
        )
    elif share is not None:
        yield (
            f"{trial.objective} keeps what these labels need. If codes will also be used for classes without labels, "
            f"set objective.reconstruction={share:g}."
        )


def _intervals(ranking: Ranking) -> Iterator[tuple[str, str]]:
    first, whole = ranking.curves[0], ranking.everything
    head = "".join(f"{f'k = {k}':<23}" for k in first.k)
    yield first.metric, f"{head}{'mean':<23}{'all    ' if whole else ''}seconds"
    for trial in ranking.trials:
        curve = trial.curve
        ends = zip((*curve.score, trial.mean), (*curve.low, trial.low), (*curve.high, trial.high), strict=True)  # type: ignore[misc]
        cells = "".join(f"{f'{score:.3f} ({low:.3f} to {high:.3f})':<23}" for score, low, high in ends)
        mean = "" if trial.everything is None else f"{_mean(trial.everything):.3f}  "
        yield curve.label, f"{cells}{mean}{trial.seconds:.1f}"
    for start, what in _GLOSSES.items():
        if any(start in (curve.label, curve.label.rpartition(", ")[2]) for curve in ranking.curves):
            yield "", f"({start} {what})"
    if whole:
        yield "", f"(all: queries like those given, {ranking.known_share:.0%} of them for known documents)"


def _behind(trial: Trial) -> str:
    return f"{-trial.ahead.value:.3f} ({-trial.ahead.high:.3f} to {-trial.ahead.low:.3f})"


def _mean(curve: PrefixCurve) -> float:
    return sum(curve.score) / len(curve.score)


def _listed(names: Sequence[str]) -> str:
    """Join names as a sentence does; those with a comma in them by semicolons."""
    comma = "; " if any("," in name for name in names) else ", "
    return names[0] if len(names) == 1 else comma.join(names[:-1]) + f" and {names[-1]}"


# -- the vectors -------------------------------------------------------------------------------------------------


def _problem(code: str, found: Vectors) -> str:
    """Say what a reason code means here."""

    def columns(places: Sequence[int]) -> str:
        shown = ", ".join(map(str, places[:8])) + (", ..." if len(places) > 8 else "")
        return f"{number_of(len(places), 'column')} ({shown})"

    constant, dead, offset = map(columns, (found.constant_columns, found.dead_columns, found.offset_columns))
    several = number_of(found.contradictions, "vector")
    units = "" if found.dead_columns else " If columns differ in units, scale them first."
    sentences = {
        "contradictions": f"{several} with more than one label; no classifier can get all of these right.",
        "copies": f"{number_of(found.copies, 'row repeats', 'rows repeat')} an earlier row exactly "
        f"({found.copies / found.rows:.2%}).",
        "zeros": f"{number_of(found.zero_rows, 'row')} of zeros, whose cosines are undefined.",
        "lossless": f"{found.exact_width} coordinates keep these vectors without loss: their rank is below their width "
        f"{found.width}.",
        "few rows": f"only {found.rows} rows for {found.width} columns; that they fit into {found.rank} directions "
        "says nothing about other rows.",
        "units": f"rank {found.rank_with_mean} of {found.width}; some directions are too small for dot products to see."
        + units,
        "dead": f"{dead} of rounding error next to the others. Do not scale to unit variance; that would make "
        "signal of it.",
        "one column": f"one column has {found.largest_column_share:.0%} of the variance; check its units.",
        "offset": f"{offset} far from 0; center the vectors before storing them in few bits.",
        "constant": f"{constant} without variance.",
    }
    return sentences[code]


def _facts(found: Vectors) -> Iterator[str]:
    if found.rank_with_mean >= found.width:
        yield f"The vectors have full rank {found.width}: every shorter code loses something."
    if found.lossless:
        yield (
            f"Without loss: PrefixEncoder({found.exact_width}, objective=Similarity(keep='dot_products'), "
            "solver=ClosedForm(precision='float64')).fit(X).transform(X) keeps all dot products and distances."
        )
    if found.unit_norms:
        yield "All vectors have unit norm."
    else:
        yield f"Norms are between {found.norm_least:.4g} and {found.norm_most:.4g}, {found.norm_mean:.4g} on average."
    way = "share a direction, which centring removes" if found.mean_cosine >= ONE_WAY else "share no direction"
    yield f"Pairs of vectors have cosine {found.mean_cosine:.3f} on average: they {way}."
    yield (
        f"Effective dimension: {found.effective_dimension:.3g}; {found.variance_dims['90']} of {found.rank} directions "
        f"hold 90 % of the variance, {found.variance_dims['99']} hold 99 %."
    )


def _numbers(found: Vectors) -> Iterator[tuple[str, str]]:
    yield "rows, width", f"{found.rows:,} x {found.width}"
    yield "rank: centred, as given", f"{found.rank}, {found.rank_with_mean}"
    yield "effective dimension", f"{found.effective_dimension:.2f}"
    shares = ", ".join(f"{share} %: {k}" for share, k in found.variance_dims.items())
    yield "directions for a share of variance", shares
    yield "mean cosine of pairs", f"{found.mean_cosine:.4f}"
    yield "norm of mean / mean norm", f"{found.mean_share:.4f}"
    yield "norms: mean, least, most", f"{found.norm_mean:.5g}, {found.norm_least:.5g}, {found.norm_most:.5g}"
    yield "copies, contradictions", f"{found.copies}, {found.contradictions}"
    yield "constant columns, large offsets", f"{len(found.constant_columns)}, {len(found.offset_columns)}"
