"""What a page recommends: the record of the evaluation, or another share or k, and how the head of the page says it."""

from __future__ import annotations

from pathlib import PurePath

from firstk._base.checks import bad_parameter, check_fraction
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.recommendation import (
    ABOUT_BITS,
    EMBEDDED,
    PRODUCT_QUANTIZER,
    RAW,
    Choice,
    OperatingPoint,
    Recommendation,
    bytes_text,
)
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.recommending import KEEP, Limits
from firstk.evaluation.records import HeldOutReport
from firstk.evaluation.report.reading import score_text, share_text
from firstk.evaluation.report.terms import COORDINATES_TERM, interval_term, known_terms, metric_of
from firstk.exceptions import InvalidInputError


def advice_of(
    report: HeldOutReport, k: int | None, keep: float | None, bytes_per_vector: int | None = None
) -> Recommendation | None:
    """Return what to recommend: what the evaluation did, unless a share or a k is asked for.

    Parameters
    ----------
    report : HeldOutReport
    k : int, optional
        This prefix length; as float32, unless a share is asked for too.
    keep : float in (0, 1], optional
        The share to keep.
    bytes_per_vector : int, optional
        The most that a stored vector may take.

    Returns
    -------
    advice : Recommendation or None
        None where a share of the score means nothing.
    """
    curve, table = report.lead.ours, report.precisions
    if keep is not None:
        keep = check_fraction(keep, "keep", "report", open_left=True)
    if k is not None and k not in curve.k:
        near = min(curve.k, key=lambda own: abs(own - k))
        allowed = f"a prefix length of this evaluation, up to {curve.k[-1]}; the nearest is {near}"
        raise bad_parameter("k", "report", allowed, k)
    if k is None and keep is None and bytes_per_vector is None and report.recommendation is not None:
        return report.recommendation
    if table is None or (k is not None and all(point.k != k for point in table.prefixes)):
        table = _table_of(report)
    limits = Limits(keep, bytes_per_vector=bytes_per_vector, k=k)
    if not limits.chooses:
        limits = Limits(KEEP)
    elif keep is None and bytes_per_vector is None:
        limits = Limits(k=k, precisions=("float32",))
    table.check_within(limits)
    try:
        return table.recommend(limits)
    except InvalidInputError:
        return None  # a share of a score that is not positive


def _table_of(report: HeldOutReport) -> PrecisionTable:
    """Return the curve as a table in float32: for records without one, and for lengths that theirs does not have."""
    curve = report.lead.ours
    return PrecisionTable(
        points=tuple(OperatingPoint(k, "float32", 4 * k, score) for k, score in curve),
        metric=curve.metric,
        input_score=curve.input_score,
        input_bytes=report.columns * report.itemsize,
        label=curve.label,
        higher_is_better=curve.higher_is_better,
        n_evaluated=curve.n_evaluated,
        supported=curve.supported,
    )


def asked_level(advice: Recommendation | None, higher_is_better: bool) -> tuple[str, float] | None:
    """Return the score that keeps the share that is asked for, and what a chart calls it."""
    if advice is None or advice.keep is None or advice.chance is not None:
        return None
    whole = "raw" if advice.reference == RAW else "the best"
    level = advice.reference_score * (advice.keep if higher_is_better else 1 / advice.keep)
    return f"{100 * advice.keep:g} % of {whole}", level


def start_of(advice: Recommendation | None, curve: PrefixCurve) -> int | None:
    """Return the prefix length that a page opens with: that of the encoder's own choice, where there is one."""
    if advice is None or advice.chance is not None:
        return None
    if advice.chosen is not None and not advice.chosen.point.is_prefix:
        return None  # bits have no k
    for choice in (advice.chosen, advice.advised, advice.best):
        if choice is not None and _is_prefix(choice.point) and choice.point.k in curve.k:
            return choice.point.k
    return None


def _is_prefix(point: OperatingPoint) -> bool:
    return point.code != RAW and point.is_prefix


def title_of(report: HeldOutReport, advice: Recommendation | None) -> str:
    """Return a title that says what is saved and what is kept, in words of everyday."""
    file = PurePath(str(report.facts.get("file") or report.facts.get("vectors") or "Vectors")).name or "Vectors"
    quality = metric_of(report.lead.ours.metric).quality
    if advice is None:
        return f"{file}: what short vectors keep of {quality}"
    if advice.chance is not None:
        return f"{file}: check the inputs, the scores are those of guessing"
    advised = advice.advised
    if advised is None:
        asked = "" if advice.keep is None else f", where {100 * advice.keep:g} % was asked for"
        most = (
            "no code is within the limits" if advice.best is None else f"at most {advice.best.share} of {quality} kept"
        )
        return f"{file}: {most}{advice.where}{asked}"
    instead = "" if advice.input_bytes is None else f" instead of {advice.input_bytes:,}"
    best = "" if advice.reference == RAW else " at its best"
    return (
        f"{file}: {advised.point.bytes:,} bytes a vector{instead}{_by_what(advised.point)}, {advised.share} of "
        f"{quality}{best} kept{advice.where}"
    )


def _by_what(point: OperatingPoint) -> str:
    """Name what makes the code, where it is not the encoder."""
    if point.precision == PRODUCT_QUANTIZER:
        return " with a product quantizer"
    if point.code == RAW:
        return f" by rounding to {point.precision}" if point.is_prefix else " as embedded bits of the raw vectors"
    return f" with {point.code}" if point.code else ""


def figures_of(advice: Recommendation | None, rows: int) -> tuple[tuple[str, str], ...]:
    """Return up to four large figures with what each is: bytes, share kept, the best other in these bytes, savings."""
    if advice is None or advice.chance is not None:
        return ()
    advised, before = advice.advised, advice.input_bytes
    whose = "of the raw vectors'" if advice.reference == RAW else "of the best"
    if advised is None:
        most, metric = advice.best, metric_of(advice.metric).name
        return (
            ()
            if most is None
            else ((most.share, f"{whose} {metric}{advice.where} at most: {most.point}, {most.point.bytes:,} bytes"),)
        )
    point = advised.point
    instead = "" if before is None else f" instead of {before:,}"
    name = metric_of(advice.metric).name
    found = [(f"{point.bytes:,}", f"bytes a vector{instead}: {point}")]
    count = f", {advice.n_new:,} {advice.unit}" if advice.on_new and advice.n_new is not None else ""
    score = f"{name} of {score_text(advice.reference_score)}"
    found.append((advised.share, f"{whose} {score}, kept{advice.where}{count}"))
    if advice.rival is not None:
        found.append((advice.rival.share, _about_rival(advice, advice.rival)))
    if before is not None and before > point.bytes:
        saved, whole = rows * (before - point.bytes), rows * before
        found.append((bytes_text(saved), f"saved on {rows:,} vectors: {share_text(saved / whole)} of their bytes"))
    return tuple(found)


def _about_rival(advice: Recommendation, rival: Choice) -> str:
    """Say whose share the third figure is, and what it is over all queries where the choice is on new documents."""
    limit = advice.bytes_per_vector
    who = "the best baseline" if rival.point.code else "this model"
    within = "" if limit is None or advice.keep is not None else f" in at most {limit:,} bytes"
    told = f"by {who}{within}{advice.where}: {rival.point}, {rival.point.bytes:,} bytes"
    if advice.rival_everything is None or advice.everything is None:
        return told
    theirs, ours = (f"{100 * choice.kept:.0f} %" for choice in (advice.rival_everything, advice.everything))
    return f"{told} (over all queries {theirs}, and {ours} by what is recommended)"


def terms_of(advice: Recommendation | None, lead: PrefixCurve) -> tuple[tuple[str, str], ...]:
    """Explain what the recommendation speaks of: metric, precisions, baselines, intervals."""
    metric = metric_of(lead.metric)
    terms = [(lead.metric, metric.text)] if metric.text else []
    if advice is None or advice.chance is not None:
        return tuple(terms)
    choices = (
        advice.advised,
        advice.chosen,
        advice.safe,
        advice.as_good,
        advice.best,
        advice.rival,
        *advice.thresholds,
    )
    points = [choice.point for choice in choices if choice is not None]
    if any(point.is_prefix for point in points):
        terms.append(COORDINATES_TERM)
    told = {"faiss"} if ABOUT_BITS not in advice.lines() else {"faiss", EMBEDDED}
    terms += known_terms(name for point in points for name in (point.code, point.precision) if name not in told)
    if any(choice is not None and choice.low is not None for choice in choices):
        name, _ = interval_term(advice.confidence)
        count = f"{advice.unit} evaluated" if advice.n_evaluated is None else f"{advice.n_evaluated:,} {advice.unit}"
        shown = next(choice.share for choice in choices if choice is not None)
        terms.append((shown, f"a {name}: the {count} cannot tell the share more exactly."))
    return tuple(terms)
