"""The page of an upgrade: what to do, options against what they cost, and every score in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt

from firstk.advice.report.html import (
    commands_html,
    document,
    facts_html,
    headline_html,
    notes_html,
    paragraphs,
    summary_html,
    terms_html,
)
from firstk.advice.report.layout import Frame, Values, spread
from firstk.advice.report.palette import RAW_LOOK
from firstk.advice.report.svg import stroke
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
    Pool,
    ScoredOption,
    UpgradeReport,
)
from firstk.advice.upgrade.verdict import Terms, Verdict, clearly_better, money
from firstk.words.terms import interval_term, metric_of

_WIDE = Frame(width=760, height=412, left=56, right=548, top=52, bottom=352, labelled=True)
_NARROW = Frame(width=380, height=332, left=48, right=362, top=52, bottom=268, labelled=False)
_TICKS, _FEW_TICKS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0), (0.0, 0.1, 0.5, 1.0)
_LINE = 18.0
_STAYED, _MIXED, _EMBEDDED = "stay", "re-embed the best part", "re-embed all"
TITLES = {
    STAY: "Stay with the old model",
    TRANSLATE: "Translate the store",
    MIX: "Re-embed a part, translate the rest",
    RE_EMBED: "Re-embed everything",
    "judge": "Find out what is relevant first",
}
PICTURE_TEXT = (
    "Each point is an option: how many rows it embeds anew, and what it scores more or less than staying, with its "
    "interval. Further left is cheaper, and higher is better."
)


def render_upgrade(
    report: UpgradeReport, verdict: Verdict, terms: Terms | None = None, *, commands: Sequence[str] = ()
) -> str:
    """Return the page of an upgrade as the text of an HTML file.

    Parameters
    ----------
    report : UpgradeReport
    verdict : Verdict
        What `verdict_of` says of it.
    terms : Terms, optional
        With prices, the picture has them.
    commands : sequence of str
        Commands that do what the verdict says.
    """
    terms = terms or Terms()
    parts = [_picture_section(report, verdict, terms), *(_table(report, pool, terms) for pool in report.pools)]
    return document(
        title=_heading(report, verdict, terms),
        header="\n".join(
            (
                summary_html("\n\n".join(verdict.lines)),
                commands_html(commands),
                headline_html(_figures(report)),
                terms_html(_terms(report)),
            )
        ),
        body="\n".join((*parts, _learning(report))),
        footer="\n".join((facts_html("What was compared", _facts(report)), notes_html(report.notes))),
    )


def _heading(report: UpgradeReport, verdict: Verdict, terms: Terms) -> str:
    if verdict.action == STAY and terms.budget_rows is None and clearly_better(report) is not None:
        return "Stay with the old model, or re-embed everything"
    queries = verdict.option is not None and verdict.option.kind == QUERIES
    return "Translate new queries" if queries else TITLES[verdict.action]


def _figures(report: UpgradeReport) -> list[tuple[str, str]]:
    """Return the scores of staying, translating and re-embedding."""
    first, held = report.pools[0], report.pool(HELD_OUT)
    name = metric_of(report.metric).name
    named = [(first.find(STAY), "staying"), (first.translation, "translating")]
    found = [(f"{one.score.value:.3f}", f"{name} of {what}") for one, what in named if one is not None]
    everything = None if held is None else held.find(RE_EMBED)
    if held is not None and everything is not None:
        where = f", among {held.rows:,} held-out pairs"
        stay = held.find(STAY)
        if first is not held and stay is not None:
            where += f", where staying has {stay.score.value:.3f}"
        found.append((f"{everything.score.value:.3f}", f"{name} of re-embedding all{where}"))
    return found


def _terms(report: UpgradeReport) -> list[tuple[str, str]]:
    terms = [
        (
            "translate",
            "a map that was fitted on pairs brings old vectors and new queries into one code; no row is embedded.",
        ),
        ("re-embed", "the new model embeds the text of a row again."),
        interval_term(report.confidence),
    ]
    if not report.judged:
        terms.insert(
            0, ("fidelity", "the share of the new model's ten nearest rows that an option finds; not relevance.")
        )
    return terms


def _facts(report: UpgradeReport) -> list[tuple[str, str | int | float]]:
    return [
        ("Rows of the store", report.rows),
        ("Pairs", report.pairs),
        ("Old vectors", f"{report.widths[0]} numbers"),
        ("New vectors", f"{report.widths[1]} numbers"),
        ("Translation", report.translation.form),
        ("Scored by", report.metric),
    ]


# -- the picture -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Point:
    """An option in the picture; `whole` where it was scored over the whole store."""

    scored: ScoredOption
    value: Estimate
    whole: bool

    @property
    def share(self) -> float:
        return self.scored.option.share


def _points(report: UpgradeReport) -> list[_Point]:
    """Return the options that are drawn: staying, each method in its best form, mixes and re-embedding."""
    stays = all(pool.find(STAY) is not None for pool in report.pools)
    return [
        _Point(one, (one.gain if stays else one.score) or Estimate(0.0, 0.0, 0.0), pool.name == STORE)
        for pool in report.pools
        for one in _drawn(pool)
    ]


def _drawn(pool: Pool) -> list[ScoredOption]:
    """Return one translation of each method, the recommended one first, and all other options."""
    translations: dict[str, ScoredOption] = {pool.translation.option.method: pool.translation}
    rest = [one for one in pool.options if one.option.translates and one.option.method not in translations]
    for one in sorted(rest, key=lambda one: -one.score.value):
        translations.setdefault(one.option.method, one)
    stay = [one for one in pool.options if one.option.kind == STAY]
    return [*stay, *translations.values(), *(one for one in pool.options if one.option.share)]


def _picture_section(report: UpgradeReport, verdict: Verdict, terms: Terms) -> str:
    points = _points(report)
    text = PICTURE_TEXT
    if any(point.whole for point in points):
        text += " Open points are scored over the whole store, filled ones among held-out pairs."
    drawn = "\n".join(_draw(report, points, verdict, terms, frame) for frame in (_WIDE, _NARROW))
    legend = "".join(
        f'<li style="color:var(--{colour})">{escape(name)}</li>'
        for name, colour in _colours(points).items()
        if name in {_name(point) for point in points}
    )
    return (
        f"<section><h2>What does each option bring, and cost?</h2>\n{paragraphs(text)}\n"
        f'<figure>{drawn}<ul class="legend">{legend}</ul></figure></section>'
    )


def _draw(report: UpgradeReport, points: Sequence[_Point], verdict: Verdict, terms: Terms, frame: Frame) -> str:
    up = Values.covering([end for point in points for end in (point.value.low, point.value.high, point.value.value)])
    kind = "wide" if frame.labelled else "narrow"
    ids = f"options-{kind}"
    return "\n".join(
        (
            f'<svg class="plot {kind}" viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" '
            f'aria-labelledby="{ids}-title {ids}-desc">',
            f'<title id="{ids}-title">Options against rows that are embedded anew</title>',
            f'<desc id="{ids}-desc">{escape(_described(points))}</desc>',
            _axes(report, up, frame, terms),
            *(_marks(points, verdict, up, frame)),
            _names(points, up, frame) if frame.labelled else "",
            "</svg>",
        )
    )


def _described(points: Iterable[_Point]) -> str:
    return "; ".join(f"{point.scored.option.name}: {_signed(point.value)}" for point in points) + "."


def _axes(report: UpgradeReport, up: Values, frame: Frame, terms: Terms) -> str:
    stays = report.pools[0].find(STAY) is not None
    name = metric_of(report.metric).name
    what = f"{name}, more than staying" if stays else name
    parts = [
        '<g class="axis">',
        f'<text class="measure" x="0" y="16">{escape(what)}<tspan>, higher is better</tspan></text>',
    ]
    for tick, text in zip(up.ticks, up.texts(), strict=True):
        y, kind = frame.y(up.share(tick)), "base" if tick == up.ticks[0] else "grid"
        parts.append(
            f'<line class="{kind}" x1="{frame.left:g}" x2="{frame.right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{frame.left - 8:g}" y="{y + 4.5:.1f}" text-anchor="end">{text}</text>'
        )
    if stays and up.ticks[0] < 0 < up.ticks[-1]:
        y = frame.y(up.share(0.0))
        parts.append(f'<line x1="{frame.left:g}" x2="{frame.right:g}" y1="{y:.1f}" y2="{y:.1f}" {stroke(RAW_LOOK)}/>')
    for share in _TICKS if frame.labelled else _FEW_TICKS:
        x = frame.x(_across(share))
        parts.append(f'<text x="{x:.1f}" y="{frame.bottom + 20:g}" text-anchor="middle">{100 * share:g} %</text>')
        price = terms.price(Option(MIX, share=share), report.rows)
        if price is not None:
            parts.append(f'<text x="{x:.1f}" y="{frame.bottom + 36:g}" text-anchor="middle">{money(price)}</text>')
    below = frame.bottom + (42 if terms.cost_per_million is None else 56)
    label = "share of the rows that is embedded anew" + ("" if terms.cost_per_million is None else ", and its price")
    middle = (frame.left + frame.right) / 2
    parts.append(f'<text x="{middle:.1f}" y="{below:g}" text-anchor="middle">{label}</text></g>')
    return "\n".join(parts)


def _across(share: float) -> float:
    """Return the place of a share on the axis, which is one of square roots: budgets pay for small shares."""
    return 0.09 + 0.86 * sqrt(share)


def _place(point: _Point, number: int, up: Values, frame: Frame) -> tuple[float, float]:
    """Return where a point is drawn; those that cost nothing stand side by side."""
    aside = 0.0 if point.share else 8.0 * ((number % 8) - 3.5)
    return frame.x(_across(point.share)) + aside, frame.y(up.share(point.value.value))


def _marks(points: Sequence[_Point], verdict: Verdict, up: Values, frame: Frame) -> list[str]:
    line = [point for point in points if not point.whole and (point.share or point.scored.option.translates)]
    # Mixes and re-embedding: one line of growing cost. It begins at a translation only if mixes contain that one.
    chosen = [point for point in line if point.share or _in_mixes(point.scored.option, line)]
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_place(point, points.index(point), up, frame) for point in chosen))
    parts = (
        [f'<polyline points="{steps}" fill="none" stroke-width="1.5" style="stroke:var(--ours-0)"/>'] if steps else []
    )
    colours = _colours(points)
    for number, point in enumerate(points):
        x, y = _place(point, number, up, frame)
        colour = colours[_name(point)]
        low, high = (frame.y(up.share(end)) for end in (point.value.low, point.value.high))
        fill = "var(--paper)" if point.whole else f"var(--{colour})"
        parts.append(
            f'<path class="whiskers" d="M{x:.1f} {low:.1f}V{high:.1f}" fill="none" stroke-width="1"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" stroke-width="2" style="fill:{fill};stroke:var(--{colour})">'
            f"<title>{escape(_title(point))}</title></circle>"
        )
        if point.scored.option == verdict.option and (point.whole or not any(other.whole for other in points)):
            parts.append(
                f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke-width="2" '
                f'style="stroke:currentColor"><title>recommended</title></circle>'
            )
    return parts


def _in_mixes(option: Option, points: Sequence[_Point]) -> bool:
    """Tell whether mixes translate by this option what they do not embed anew."""
    mixed = {point.scored.option.method for point in points if point.scored.option.kind == MIX}
    return option.kind == TRANSLATE and option.k is None and option.method in mixed


def _colours(points: Sequence[_Point]) -> dict[str, str]:
    """Return the colour of each name: the translation that was chosen stands out among the methods."""
    methods = dict.fromkeys(_name(point) for point in points if point.scored.option.translates)
    found = {name: "ours-1" if i == 0 else f"baseline-{i % 5}" for i, name in enumerate(methods)}
    return found | {_STAYED: "raw", _MIXED: "ours-0", _EMBEDDED: "ours-2"}


def _name(point: _Point) -> str:
    """Return what the legend calls a point."""
    option = point.scored.option
    return {STAY: _STAYED, MIX: _MIXED, RE_EMBED: _EMBEDDED}.get(option.kind, f"translate, {option.method}")


def _title(point: _Point) -> str:
    where = "whole store" if point.whole else "held-out pairs"
    return f"{point.scored.option.name}, {where}: {_signed(point.value)}"


def _names(points: Sequence[_Point], up: Values, frame: Frame) -> str:
    """Write what the kinds of points are, next to the plot, moved apart where they would overlap."""
    colours = _colours(points)
    shown = {name: point for point in reversed(points) if (name := _name(point))}
    wanted = [frame.y(up.share(point.value.value)) for point in shown.values()]
    places = spread(wanted, _LINE, frame.top, frame.bottom)
    start = frame.right + 16
    parts = [
        f'<circle cx="{start:g}" cy="{y:.1f}" r="4" style="fill:var(--{colours[name]})"/>'
        f'<text x="{start + 12:g}" y="{y + 4.5:.1f}" style="fill:var(--{colours[name]})">{escape(name)}</text>'
        for name, y in zip(shown, places, strict=True)
    ]
    return '<g class="names">' + "".join(parts) + "</g>"


# -- tables ----------------------------------------------------------------------------------------------------


def _table(report: UpgradeReport, pool: Pool, terms: Terms) -> str:
    if pool.name == STORE:
        heading = "Over the whole store"
        text = f"{pool.queries:,} queries look among {pool.rows:,} rows. Alignments are fitted on {pool.pairs:,} pairs."
    else:
        heading = "Among held-out pairs"
        text = (
            f"{pool.queries:,} queries look among {pool.rows:,} rows that both models have embedded. Alignments are "
            f"fitted on {pool.pairs:,} other pairs, so scores of re-embedding and translating can be compared here."
        )
    confidence = f"{100 * report.confidence:g} % interval"
    heads = ["option", f"score ({confidence})", f"more than staying ({confidence})", "embedded"]
    rows = [
        "".join(
            (
                f"<tr{' class=raw' if one.option.kind == STAY else ''}>",
                f'<th scope="row">{escape(one.option.name)}{" (saved)" if one is pool.translation else ""}</th>',
                f"<td>{one.score.value:.3f} ({one.score.low:.3f} to {one.score.high:.3f})</td>",
                f"<td>{'' if one.gain is None else _signed(one.gain)}</td>",
                f"<td>{terms.embedded(one.option, report.rows):,}</td></tr>",
            )
        )
        for one in pool.options
    ]
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f"<section><h2>{heading}</h2>\n{paragraphs(text)}\n"
        f'<div class="scroll whole options" role="region" tabindex="0" aria-label="{heading}"><table class="full">'
        f"<caption>{escape(metric_of(report.metric).name)}</caption>"
        f"<thead><tr>{columns}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _learning(report: UpgradeReport) -> str:
    if len(report.learning) < 2:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{point.pairs:,}</th><td>{point.score.value:.3f}</td>'
        f"<td>{point.score.low:.3f} to {point.score.high:.3f}</td>"
        f"<td>{'' if point.step is None else _signed(point.step)}</td></tr>"
        for point in report.learning
    )
    text = (
        f"The recommended translation ({report.translation.form}), fitted on fewer pairs. Where the last doubling "
        "gains nothing, more will not either."
    )
    return (
        f"<section><h2>How many pairs are enough?</h2>\n{paragraphs(text)}\n"
        f'<table class="full"><thead><tr><th scope="col">pairs</th><th scope="col">score</th>'
        f'<th scope="col">{100 * report.confidence:g} % interval</th><th scope="col">gained by these</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></section>"
    )


def _signed(value: Estimate) -> str:
    return f"{value.value:+.3f} ({value.low:+.3f} to {value.high:+.3f})"
