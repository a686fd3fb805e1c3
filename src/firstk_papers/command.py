"""``firstk reproduce``: the papers' figures, tables and claims, run here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk.cli._progress import looked_at
from firstk.exceptions import InvalidInputError
from firstk.words import number_of

if TYPE_CHECKING:
    from firstk_papers.frame.cells import Job
    from firstk_papers.frame.runner import Run
    from firstk_papers.frame.specs import Spec


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to run: ids (talukder2026/fig1), papers (talukder2026, bao2020, balestriero2024), or all."
        ),
    ] = None,
    tier: Annotated[
        str,
        typer.Option("--tier", help="smoke: small settings, in minutes. full: as printed. authors: as in their code."),
    ] = "smoke",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of results; a tier has a folder in it.")] = Path(
        "results"
    ),
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Processes at once, a thread each; results do not depend on it.")
    ] = 1,
    own: Annotated[
        Path | None, typer.Option("--specs", help="A folder of experiments of your own, laid out like ours.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute again what is finished already.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments, and run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
) -> None:
    """Reproduce results of the three papers firstk is built on, and tell which claims hold.

    Example: firstk reproduce bao2020/fig1 --tier smoke

    Writes a record with its claims, a figure (SVG and PNG) for each, and one page, index.html. Finished cells are
    stored: a run that was stopped resumes where it was. Data sets are read from the folder that FIRSTK_DATA names.
    """
    from firstk._base.checks import check_choice
    from firstk_papers.frame.specs import HERE, TIERS, catalogue, choose

    check_choice(tier, TIERS, "tier", "firstk reproduce")
    if own is not None:
        sys.path.insert(0, str(own.resolve()))  # where studies of one's own are
    specs = catalogue(own or HERE)
    if not specs:
        raise InvalidInputError(f"'{own}' holds no experiments: there is no file like talukder2026/fig1.toml in it.")
    if listed:
        _list(list(specs.values()) if not names else choose(names, specs), as_json)
        return
    if not names:
        raise InvalidInputError(
            "Name what to reproduce: an id such as talukder2026/fig1, a paper such as talukder2026, or all. See --list."
        )
    chosen = choose(names, specs, tier)
    _report(_run(chosen, specs, tier, out / tier, jobs, fresh, as_json), out / tier, as_json)


def _list(specs: list[Spec], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([{"id": s.id, "title": s.title, "where": s.where} for s in specs], indent=1))
        return
    width = max(len(spec.id) for spec in specs)
    for spec in specs:
        typer.echo(f"{spec.id:<{width}}  {spec.title} ({spec.where}; {number_of(len(spec.claims), 'claim')})")


def _run(
    chosen: list[Spec], specs: dict[str, Spec], tier: str, folder: Path, jobs: int, fresh: bool, quiet: bool
) -> Run:
    from firstk_papers.frame.page import write_results_page
    from firstk_papers.frame.runner import read_results, run

    with ExitStack() as stack:
        found = run(chosen, tier, folder, workers=jobs, fresh=fresh, progress=_bar(stack, quiet))
    write_results_page(folder, read_results(folder, specs), specs, tier)
    return found


def _bar(stack: ExitStack, quiet: bool) -> Callable[[int], Callable[[Job], None]]:
    """Return a progress bar of cells, on a terminal."""

    def begin(total: int) -> Callable[[Job], None]:
        if not total or not looked_at(quiet):
            return lambda job: None
        from tqdm import tqdm

        bar = stack.enter_context(tqdm(total=total, desc="reproducing", unit=" cells", leave=False, file=sys.stderr))

        def done(job: Job) -> None:
            bar.set_postfix_str(job.study, refresh=False)
            bar.update()

        return done

    return begin


def _report(found: Run, folder: Path, as_json: bool) -> None:
    if as_json:
        claims = [{"experiment": r.id, **asdict(claim)} for r in found.results.values() for claim in r.claims]
        typer.echo(json.dumps({"claims": claims, "refused": found.failed}, indent=1))
    else:
        from firstk_papers.frame.claims import WORDS

        for result in found.results.values():
            typer.echo(f"\n{result.id}  {result.title}")
            for claim in result.claims:
                measured = claim.measured if not isinstance(claim.measured, float) else f"{claim.measured:.4g}"
                seen = f"; depends on the run: {claim.depends}" if claim.depends else ""
                typer.echo(f"  {WORDS[claim.held]:<13}{claim.statement} [{claim.threshold}; measured {measured}{seen}]")
        typer.echo(f"\nOpen the page: {(folder / 'index.html').resolve().as_uri()}")
    if found.failed:
        raise InvalidInputError(
            "These could not be run. " + " ".join(f"{name}: {why}" for name, why in found.failed.items())
        )
