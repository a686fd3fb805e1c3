"""All results of a tier as one page with their figures: each claim, what was measured, and the outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from firstk_papers.frame.claims import SOURCES, WORDS, ClaimResult, Measure
from firstk_papers.frame.drawing import cell_text
from firstk_papers.frame.files import write_text
from firstk_papers.frame.panels import Chart, Heatmap, Pictures, Table
from firstk_papers.frame.runner import Result
from firstk_papers.frame.specs import PAPERS, Spec

OUTCOMES: dict[bool | str | None, tuple[str, str]] = {
    True: ("held", WORDS[True]),
    False: ("failed", WORDS[False]),
    "depends": ("depends", "depends on the run"),
    None: ("open", WORDS[None]),
}
TIER_TEXTS = {
    "smoke": "Small settings, in minutes: they show that everything runs, and not what the papers' sizes give.",
    "full": "The papers' settings, as far as two cores carry them; what was cut short is marked.",
    "authors": "The settings of the authors' published code, where they differ from the paper's text.",
}
OWN_TIER_TEXTS = {
    "smoke": "Small settings: they show that everything runs, and not what the full ones give.",
    "full": "The full settings; what was cut short is marked.",
    "authors": "The settings of the authors' code.",
}


def write_results_page(folder: Path, results: Sequence[Result], specs: Mapping[str, Spec], tier: str) -> Path:
    """Write ``index.html`` into the folder of a tier.

    Parameters
    ----------
    folder : Path
        Where the figures of the results are, too.
    results : sequence of Result
    specs : mapping of str to Spec
        All there are: an experiment without a result is listed as not run.
    tier : {"smoke", "full", "authors"}
    """
    page = Template(_static("results.html")).substitute(
        css=_static("results.css"),
        script=_static("results.js"),
        title=escape(_title(specs)),
        tier=escape(tier),
        tier_text=escape((TIER_TEXTS if _ours(specs) else OWN_TIER_TEXTS)[tier]),
        counts=_counts([claim for result in results for claim in result.claims]),
        contents=_contents(results, specs),
        papers="\n".join(_paper(p, results, folder) for p in dict.fromkeys(result.paper for result in results)),
    )
    path = folder / "index.html"
    write_text(path, page)
    return path


def _static(name: str) -> str:
    return files("firstk_papers.frame").joinpath("static", name).read_text(encoding="utf-8")


def _papers(specs: Mapping[str, Spec]) -> list[str]:
    return list(dict.fromkeys(spec.paper for spec in specs.values()))


def _ours(specs: Mapping[str, Spec]) -> bool:
    """Tell whether these are the experiments of this package, and not those of a folder of one's own."""
    return _papers(specs) == list(PAPERS)


def _title(specs: Mapping[str, Spec]) -> str:
    """Name the page after what is on it."""
    if _ours(specs):
        return "Reproducing the papers"
    *others, last = _papers(specs)
    return f"Experiments of {', '.join(others)} and {last}" if others else f"Experiments of {last}"


def _counts(claims: Sequence[ClaimResult]) -> str:
    """Count outcomes by whose claim it was."""
    rows = []
    for source, text in SOURCES.items():
        found: Counter[bool | str | None] = Counter(claim.outcome for claim in claims if claim.says == source)
        cells = "".join(f'<td class="{OUTCOMES[outcome][0]}">{found[outcome]}</td>' for outcome in OUTCOMES)
        rows.append(f'<tr><th scope="row">{escape(text)}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{text}</th>' for _, text in OUTCOMES.values())
    return (
        f'<table class="counts"><caption>Claims by whose they are</caption><thead><tr><th scope="col">said by</th>'
        f"{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _contents(results: Sequence[Result], specs: Mapping[str, Spec]) -> str:
    """List all experiments with the outcomes of their claims; those without a result are named."""
    found = {result.id: result for result in results}
    rows = []
    for spec in specs.values():
        result = found.get(spec.id)
        if result is None:
            name, outcome = escape(spec.id), '<span class="badge open">not run</span>'
        else:
            name = f'<a href="#{result.stem}">{escape(spec.id)}</a>'
            outcome = " ".join(_dot(claim) for claim in result.claims)
        rows.append(f"<tr><td>{name}</td><td>{escape(spec.title)}</td><td>{outcome}</td></tr>")
    return (
        '<table class="contents"><caption>All experiments; a dot a claim</caption><thead><tr><th scope="col">id</th>'
        f'<th scope="col">what</th><th scope="col">claims</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _dot(claim: ClaimResult) -> str:
    kind, text = OUTCOMES[claim.outcome]
    said = escape(f"{claim.statement}: {text}")
    return f'<span class="dot {kind}" role="img" title="{said}" aria-label="{text}"></span>'


def _badge(claim: ClaimResult) -> str:
    kind, text = OUTCOMES[claim.outcome]
    seen = f"<small>{escape(claim.depends)}; here: {WORDS[claim.held]}</small>" if kind == "depends" else ""
    return f'<span class="badge {kind}">{text}</span>{seen}'


def _paper(paper: str, results: Sequence[Result], folder: Path) -> str:
    parts = [_experiment(result, folder) for result in results if result.paper == paper]
    heading = f"{PAPERS[paper].citation}. {PAPERS[paper].title}" if paper in PAPERS else paper
    return f"<section><h2>{escape(heading)}</h2>\n{''.join(parts)}</section>"


def _experiment(result: Result, folder: Path) -> str:
    outcome = "failed" if any(claim.outcome is False for claim in result.claims) else "held"
    reading = f'<p class="reading"><b>Our reading.</b> {escape(result.reading)}</p>' if result.reading else ""
    tables = "".join(_html_table(panel) for panel in result.panels if isinstance(panel, Table))
    return (
        f'<article id="{result.stem}" data-outcome="{outcome}"><h3>{escape(result.title)}</h3>'
        f'<p class="where"><code>{escape(result.id)}</code> · {escape(result.where)} · {result.seconds:,.0f} s on one '
        f"core</p>{_figure(result, folder)}{_claims(result)}{reading}{tables}{_asides(result)}</article>"
    )


def _figure(result: Result, folder: Path) -> str:
    path = folder / f"{result.stem}.svg"
    charts = [panel for panel in result.panels if isinstance(panel, (Chart, Heatmap, Pictures))]
    if not path.is_file() or not charts:
        return ""
    text = "; ".join(panel.title for panel in charts)
    return f'<figure><a href="{path.name}"><img alt="{escape(text)}" src="{path.name}"></a></figure>'


def _claims(result: Result) -> str:
    rows = "".join(
        f"<tr data-held='{OUTCOMES[claim.outcome][0]}'><td>{escape(claim.statement)}"
        f"<small>{escape(claim.where)} · said by {escape(SOURCES[claim.says])}"
        f"{'. ' + escape(claim.reading) if claim.reading else ''}</small></td>"
        f"<td>{escape(claim.threshold)}</td><td>{escape(_measured(claim.measured))}</td><td>{_badge(claim)}</td></tr>"
        for claim in result.claims
    )
    return (
        '<table class="claims"><thead><tr><th scope="col">claim</th><th scope="col">asks</th>'
        f'<th scope="col">measured</th><th scope="col">outcome</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _measured(value: Measure) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return cell_text(float(value) if value is not None else None)


def _html_table(panel: Table) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in panel.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell_text(value))}</td>" for value in row) + "</tr>" for row in panel.rows
    )
    return (
        f'<details><summary>{escape(panel.title)}</summary><div class="scroll" tabindex="0"><table><thead><tr>{heads}'
        f"</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _asides(result: Result) -> str:
    """Write what was cut short, the substitutes, notes, and the settings."""
    parts = [("Cut short (censored)", result.censored), ("Notes", result.notes)]
    stands = tuple(f"{s['paper']}: {s['used']} ({s['why']})" for s in result.substitutes)
    parts.append(("Substitutes", stands))
    text = "".join(
        f"<h4>{heading}</h4><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        for heading, lines in parts
        if lines
    )
    settings = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in result.settings.items()
    )
    return f"{text}<details><summary>Settings</summary><dl>{settings}</dl></details>"
