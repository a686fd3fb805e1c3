"""The page of an upgrade: what to do, and every option with its score, its gain, what it takes, and a drawing of both.

Options stand in the order of what they cost; what each gains over staying is drawn beside it, with its interval.
"""

from __future__ import annotations

from collections.abc import Sequence

from firstk.advice.report.html import Html, document, element, joined, paragraphs
from firstk.quality import CONFIDENCE, Difference
from firstk.upgrade.records import HELD_OUT, STAY, STORE, Pool
from firstk.upgrade.verdict import Verdict
from firstk.upgrade.words import INTERVAL, answer, explanation, heading, notes
from firstk.words import interval_term, metric_of

# Size of a drawing, and the room around what it draws.
_WIDTH, _HEIGHT, _MARGIN = 120.0, 14.0, 6.0


def render_upgrade(verdict: Verdict, *, commands: Sequence[str] = ()) -> str:
    """Return the page of an upgrade as the text of an HTML file.

    Parameters
    ----------
    verdict : Verdict
        What `verdict_of` says of it, with the record.
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
    # The scores of staying, translating and re-embedding.
    first, held, everything = report.pools[0], report.pool(HELD_OUT), report.re_embedded
    name = metric_of(report.metric).name
    named = [(first.find(STAY), "staying"), (first.translation, "translating")]
    figures = [(f"{one.score.value:.3f}", f"{name} of {what}") for one, what in named if one is not None]
    if held is not None and everything is not None:
        where, stay = f", among {held.rows:,} held-out pairs", held.find(STAY)
        if first is not held and stay is not None:
            where += f", where staying has {stay.score.value:.3f}"
        figures.append((f"{everything.score.value:.3f}", f"{name} of re-embedding all{where}"))
    return document(
        joined(*(_options(pool, verdict) for pool in report.pools), _learning(verdict)),
        title=heading(verdict),
        summary="\n\n".join(lines),
        commands=commands,
        figures=figures,
        terms=words,
        about="What was compared",
        facts=facts,
        notes=known,
    )


def _options(pool: Pool, verdict: Verdict) -> Html:
    """Return the table of a pool's options."""
    if pool.name == STORE:
        title = "Over the whole store"
        text = f"{pool.queries:,} queries look among {pool.rows:,} rows. Alignments are fitted on {pool.pairs:,} pairs."
    else:
        title = "Among held-out pairs"
        text = (
            f"{pool.queries:,} queries look among {pool.rows:,} rows that both models have embedded. Alignments are "
            f"fitted on {pool.pairs:,} other pairs, so scores of re-embedding and translating can be compared here."
        )
    terms, rows = verdict.terms, verdict.report.rows
    drawn = [one.gain for one in pool.options if one.gain is not None]
    cells = []
    for one in pool.options:
        score = f"{one.score.value:.3f} ({one.score.low:.3f} to {one.score.high:.3f})"
        gain: object = ""
        if one.gain is not None:
            gain = (_signed(one.gain), _drawing(one.gain, drawn, chosen=one.option == verdict.option))
        name = one.option.name + (" (saved)" if one is pool.translation else "")
        cells.append([name, score, gain, f"{terms.embedded(one.option, rows):,}"])
    heads = ["option", f"score ({INTERVAL})", f"more than staying ({INTERVAL})", "embedded"]
    table = _table(heads, cells, element("caption", metric_of(verdict.report.metric).name))
    whole = element("div", table, class_="scroll whole options", role="region", tabindex=0, aria_label=title)
    return element("section", element("h2", title), paragraphs(text), whole)


def _drawing(gain: Difference, all_gains: Sequence[Difference], *, chosen: bool) -> Html:
    """Draw a gain and its interval on an axis that all gains of a table share, with a line where staying is."""
    ends = [0.0, *(end for one in all_gains for end in (one.low, one.high))]
    scale = (_WIDTH - 2 * _MARGIN) / ((max(ends) - min(ends)) or 1.0)
    zero, low, value, high = (_MARGIN + scale * (x - min(ends)) for x in (0.0, gain.low, gain.value, gain.high))
    ring = {"fill": "none", "stroke": "currentColor", "class_": "chosen"}
    return element(
        "svg",
        element("line", x1=zero, x2=zero, y1=0.0, y2=_HEIGHT, stroke="currentColor", opacity="0.4"),
        element("line", x1=low, x2=high, y1=_HEIGHT / 2, y2=_HEIGHT / 2, stroke="currentColor"),
        element("circle", cx=value, cy=_HEIGHT / 2, r=3.0, style="fill:var(--ours-1)"),
        element("circle", element("title", "recommended"), cx=value, cy=_HEIGHT / 2, r=5.5, **ring) if chosen else None,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        style="display:block;width:100%;max-width:12em",
        aria_hidden="true",
    )


def _learning(verdict: Verdict) -> Html | None:
    """Return the table of scores by number of pairs."""
    report = verdict.report
    if len(report.learning) < 2:
        return None
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
    return element("section", element("h2", "How many pairs are enough?"), paragraphs(text), table)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], caption: Html | None = None) -> Html:
    top = element("thead", element("tr", [element("th", head, scope="col") for head in heads]))
    body = [element("tr", element("th", name, scope="row"), [element("td", c) for c in cells]) for name, *cells in rows]
    return element("table", caption, top, element("tbody", body), class_="full")


def _signed(value: Difference) -> str:
    return f"{value.value:+.3f} ({value.low:+.3f} to {value.high:+.3f})"
