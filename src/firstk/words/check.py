"""The verdict on new rows in words: what they keep, what would tell more, and what has moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from firstk.words.text import number_of, percent

if TYPE_CHECKING:
    from firstk.estimator.check import CheckReport


def lines(report: CheckReport) -> Iterator[str]:
    """Yield the verdict, then what it rests on."""
    yield headline(report)
    for one in report.kept:
        yield (
            f"  {one.metric}: {one.now:.3f} ({one.low:.3f} to {one.high:.3f}) of the full vectors' among "
            f"{one.among:,} rows, {one.then:.3f} at the fit."
        )
    if report.share_now is not None:
        yield (
            f"  Variance in the span of {number_of(report.k, 'coordinate')}: {report.share_now:.1%}, "
            f"{report.share_then:.1%} at the fit; as many, fitted to these rows, would hold {report.share_best:.1%}."
        )
    yield (
        f"  The mean has moved by {report.drift.mean_shift:.2f} standard deviations; the variance is "
        f"{report.drift.scatter_ratio:.2f} times that of the fit."
    )
    yield from (f"  {note}" for note in report.notes)


def headline(report: CheckReport) -> str:
    """Return the verdict as one line; of an unclear one, what would tell."""
    worst = report.worst
    share = f"{percent(worst.ratio, 1)} % ({percent(worst.ratio_low, 1)} to {percent(worst.ratio_high, 1)})"
    what = f"{share} of the {worst.metric} that it kept at the fit, with {number_of(report.k, 'coordinate')}"
    if report.verdict != "unclear":
        return f"refit: keeps {what}." if report.refit else f"still keeps {what}."
    if report.limited:
        margin = max(one.profile_margin for one in report.limited)
        way_out = (
            f"more would not either, as what it kept at the fit is known to {percent(margin, 1)} % only. Compare "
            f"with more rows of that time, of which up to {report.most:,} are scored, by against="
        )
    elif report.rows < report.most:
        way_out = f"check more, up to {report.most:,} are scored"
    else:
        way_out = (
            f"what is lost is too close to that, and no more than {report.most:,} are scored. Decide by another "
            f"tolerance than {report.tolerance:g}"
        )
    return (
        f"unclear: keeps {what}. {report.rows:,} rows cannot tell whether more than {percent(report.tolerance, 1)} % "
        f"is lost: {way_out}."
    )
