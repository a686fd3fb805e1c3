"""The page of an upgrade: what to do, options against what they cost, and every score in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt

from firstk.advice.report.charts import stroke
from firstk.advice.report.html import Html, document, joined, paragraphs
from firstk.advice.report.layout import RAW_LOOK, Frame, Values, spread
from firstk.quality import CONFIDENCE, Difference
from firstk.upgrade.records import HELD_OUT, MIX, RE_EMBED, STAY, STORE, TRANSLATE, Option, Pool, ScoredOption
from firstk.upgrade.verdict import Verdict
from firstk.upgrade.words import INTERVAL, answer, explanation, heading, money, notes
from firstk.words import interval_term, metric_of

_WIDE = Frame(width=760, height=412, left=56, right=548, top=52, bottom=352, labelled=True)
_NARROW = Frame(width=380, height=332, left=48, right=362, top=52, bottom=268, labelled=False)
_TICKS, _FEW_TICKS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0), (0.0, 0.1, 0.5, 1.0)
_LINE = 18.0


def render_upgrade(verdict: Verdict, *, commands: Sequence[str] = ()) -> str:
    """Return the page of an upgrade as the text of an HTML file.

    Parameters
    ----------
    verdict : Verdict
        What `verdict_of` says of it, with the record; with prices in its terms, the picture has them.
    commands : sequence of str
        Commands that do what the verdict says.
    """
    report = verdict.report
    known = list(notes(report))
    lines = [*answer(verdict), *(line for line in explanation(verdict) if line not in known)]
    words = [
        ("translate", "a map that was fitted on pairs brings old vectors and new queries into one code."),
        ("re-embed", "the new model embeds the text of a row again."),
        interval_term(CONFIDENCE),
    ]
    if not report.judged:
        fidelity = "the share of the new model's ten nearest rows that an option finds; not relevance."
        words.insert(0, ("fidelity", fidelity))
    facts: list[tuple[str, str | int | float]] = [
        ("Rows of the store", report.rows),
        ("Pairs", report.pairs),
        ("Old vectors", f"{report.widths[0]} numbers"),
        ("New vectors", f"{report.widths[1]} numbers"),
        ("Translation", report.translation.form),
        ("Scored by", report.metric),
    ]
    return document(
        joined(
            Html(_picture(verdict)), *(Html(_options(pool, verdict)) for pool in report.pools), Html(_learning(verdict))
        ),
        title=heading(verdict),
        summary="\n\n".join(lines),
        commands=commands,
        figures=_figures(verdict),
        terms=words,
        about="What was compared",
        facts=facts,
        notes=known,
    )


def _figures(verdict: Verdict) -> list[tuple[str, str]]:
    """Return the scores of staying, translating and re-embedding."""
    report = verdict.report
    first, held, everything = report.pools[0], report.pool(HELD_OUT), report.re_embedded
    name = metric_of(report.metric).name
    named = [(first.find(STAY), "staying"), (first.translation, "translating")]
    found = [(f"{one.score.value:.3f}", f"{name} of {what}") for one, what in named if one is not None]
    if held is not None and everything is not None:
        where, stay = f", among {held.rows:,} held-out pairs", held.find(STAY)
        if first is not held and stay is not None:
            where += f", where staying has {stay.score.value:.3f}"
        found.append((f"{everything.score.value:.3f}", f"{name} of re-embedding all{where}"))
    return found


# -- the picture -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Point:
    """An option in the picture; `whole` where it was scored over the whole store."""

    scored: ScoredOption
    value: Difference
    whole: bool

    @property
    def option(self) -> Option:
        return self.scored.option

    @property
    def name(self) -> str:
        """What the legend calls it."""
        kinds = {STAY: "stay", MIX: "re-embed the best part", RE_EMBED: "re-embed all"}
        return kinds.get(self.option.kind, f"translate, {self.option.method}")

    @property
    def told(self) -> str:
        return f"{self.option.name}, {'whole store' if self.whole else 'held-out pairs'}: {_signed(self.value)}"


def _picture(verdict: Verdict) -> str:
    """Draw each option: how many rows it embeds anew, and what it scores."""
    pools = verdict.report.pools
    stays = all(pool.find(STAY) is not None for pool in pools)
    none = Difference(0.0, 0.0, 0.0)
    points = [
        _Point(one, (one.gain if stays else one.score) or none, pool.name == STORE)
        for pool in pools
        for one in pool.methods
    ]
    methods = dict.fromkeys(point.name for point in points if point.option.translates)
    colours = {name: "ours-1" if i == 0 else f"baseline-{i % 5}" for i, name in enumerate(methods)}
    for point in points:
        colours.setdefault(point.name, {STAY: "raw", MIX: "ours-0"}.get(point.option.kind, "ours-2"))
    text = (
        "Each point is an option: how many rows it embeds anew, and what it scores more or less than staying, with its "
        "interval. Further left is cheaper, and higher is better."
    )
    if any(point.whole for point in points):
        text += " Open points are scored over the whole store, filled ones among held-out pairs."
    drawn = "\n".join(_draw(verdict, points, colours, frame) for frame in (_WIDE, _NARROW))
    legend = "".join(f'<li style="color:var(--{colour})">{escape(name)}</li>' for name, colour in colours.items())
    return (
        f"<section><h2>What does each option bring, and cost?</h2>\n{paragraphs(text)}\n"
        f'<figure>{drawn}<ul class="legend">{legend}</ul></figure></section>'
    )


def _draw(verdict: Verdict, points: Sequence[_Point], colours: dict[str, str], frame: Frame) -> str:
    up = Values.covering([end for point in points for end in (point.value.low, point.value.high, point.value.value)])
    kind = "wide" if frame.labelled else "narrow"
    described = "; ".join(f"{point.option.name}: {_signed(point.value)}" for point in points) + "."

    def place(number: int) -> tuple[float, float]:
        """Return where a point is drawn; those that cost nothing stand side by side."""
        point = points[number]
        aside = 0.0 if point.option.share else 8.0 * ((number % 8) - 3.5)
        return frame.x(_across(point.option.share)) + aside, frame.y(up.share(point.value.value))

    parts = [_axes(verdict, up, frame)]
    # Mixes and re-embedding: one line of growing cost. It begins at a translation only if mixes contain that one.
    mixed = {Option(TRANSLATE, point.option.method) for point in points if point.option.kind == MIX}
    steps = [i for i, point in enumerate(points) if not point.whole and (point.option.share or point.option in mixed)]
    if steps:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, steps))
        parts.append(f'<polyline points="{line}" fill="none" stroke-width="1.5" style="stroke:var(--ours-0)"/>')
    for number, point in enumerate(points):
        (x, y), colour = place(number), colours[point.name]
        low, high = (frame.y(up.share(end)) for end in (point.value.low, point.value.high))
        fill = "var(--paper)" if point.whole else f"var(--{colour})"
        parts.append(
            f'<path class="whiskers" d="M{x:.1f} {low:.1f}V{high:.1f}" fill="none" stroke-width="1"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" stroke-width="2" style="fill:{fill};stroke:var(--{colour})">'
            f"<title>{escape(point.told)}</title></circle>"
        )
        if point.option == verdict.option and (point.whole or not any(other.whole for other in points)):
            parts.append(
                f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke-width="2" '
                f'style="stroke:currentColor"><title>recommended</title></circle>'
            )
    if frame.labelled:  # names next to the plot, moved apart where they would overlap
        shown = {point.name: point for point in reversed(points)}
        wanted = [frame.y(up.share(point.value.value)) for point in shown.values()]
        start = frame.right + 16
        names = (
            f'<circle cx="{start:g}" cy="{y:.1f}" r="4" style="fill:var(--{colours[name]})"/>'
            f'<text x="{start + 12:g}" y="{y + 4.5:.1f}" style="fill:var(--{colours[name]})">{escape(name)}</text>'
            for name, y in zip(shown, spread(wanted, _LINE, frame.top, frame.bottom), strict=True)
        )
        parts.append(f'<g class="names">{"".join(names)}</g>')
    return (
        f'<svg class="plot {kind}" viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" '
        f'aria-labelledby="options-{kind}-title options-{kind}-desc">\n'
        f'<title id="options-{kind}-title">Options against rows that are embedded anew</title>\n'
        f'<desc id="options-{kind}-desc">{escape(described)}</desc>\n' + "\n".join(parts) + "\n</svg>"
    )


def _axes(verdict: Verdict, up: Values, frame: Frame) -> str:
    report, terms = verdict.report, verdict.terms
    stays, name = report.pools[0].find(STAY) is not None, metric_of(report.metric).name
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
    below, priced = (42, "") if terms.cost_per_million is None else (56, ", and its price")
    middle = (frame.left + frame.right) / 2
    label = f"share of the rows that is embedded anew{priced}"
    parts.append(f'<text x="{middle:.1f}" y="{frame.bottom + below:g}" text-anchor="middle">{label}</text></g>')
    return "\n".join(parts)


def _across(share: float) -> float:
    """Return the place of a share on the axis, which is one of square roots: budgets pay for small shares."""
    return 0.09 + 0.86 * sqrt(share)


# -- tables ----------------------------------------------------------------------------------------------------


def _options(pool: Pool, verdict: Verdict) -> str:
    if pool.name == STORE:
        title = "Over the whole store"
        text = f"{pool.queries:,} queries look among {pool.rows:,} rows. Alignments are fitted on {pool.pairs:,} pairs."
    else:
        title = "Among held-out pairs"
        text = (
            f"{pool.queries:,} queries look among {pool.rows:,} rows that both models have embedded. Alignments are "
            f"fitted on {pool.pairs:,} other pairs, so scores of re-embedding and translating can be compared here."
        )
    rows = []
    for one in pool.options:
        name = escape(one.option.name) + (" (saved)" if one is pool.translation else "")
        embedded = f"{verdict.terms.embedded(one.option, verdict.report.rows):,}"
        score = f"{one.score.value:.3f} ({one.score.low:.3f} to {one.score.high:.3f})"
        rows.append([name, score, "" if one.gain is None else _signed(one.gain), embedded])
    heads = ["option", f"score ({INTERVAL})", f"more than staying ({INTERVAL})", "embedded"]
    caption = f"<caption>{escape(metric_of(verdict.report.metric).name)}</caption>"
    return (
        f"<section><h2>{title}</h2>\n{paragraphs(text)}\n"
        f'<div class="scroll whole options" role="region" tabindex="0" aria-label="{title}">'
        f"{_table(heads, rows, caption)}</div></section>"
    )


def _learning(verdict: Verdict) -> str:
    report = verdict.report
    if len(report.learning) < 2:
        return ""
    rows = []
    for point in report.learning:
        ends = f"{point.score.low:.3f} to {point.score.high:.3f}"
        step = "" if point.step is None else _signed(point.step)
        rows.append([f"{point.pairs:,}", f"{point.score.value:.3f}", ends, step])
    text = (
        f"The recommended translation ({report.translation.form}), fitted on fewer pairs. Where the last doubling "
        "gains nothing, more will not either."
    )
    table = _table(["pairs", "score", INTERVAL, "gained by these"], rows)
    return f"<section><h2>How many pairs are enough?</h2>\n{paragraphs(text)}\n{table}</section>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return f'<table class="full">{caption}<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>'


def _signed(value: Difference) -> str:
    return f"{value.value:+.3f} ({value.low:+.3f} to {value.high:+.3f})"
