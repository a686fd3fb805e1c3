"""``firstk reproduce``: the papers' figures, tables and claims, run here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk.cli._progress import looked_at
from firstk.exceptions import InvalidInputError
from firstk.words import number_of

if TYPE_CHECKING:
    from firstk_papers.frame.cells import Job


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to run: ids (talukder2026/fig1), papers (talukder2026, bao2020, balestriero2024), or all. "
            "Without names the experiments are listed."
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
) -> None:
    """Reproduce results of the three papers firstk is built on, and tell which claims hold.

    Example: firstk reproduce bao2020/fig1 --tier smoke

    Writes a record with its claims, a figure (SVG and PNG) for each, and one page, index.html. Finished cells are
    stored: a run that was stopped resumes where it was. Data sets are read from the folder that FIRSTK_DATA names.
    """
    from firstk._base.checks import check_choice
    from firstk_papers.frame.claims import WORDS
    from firstk_papers.frame.page import write_results_page
    from firstk_papers.frame.runner import read_results, run
    from firstk_papers.frame.specs import HERE, TIERS, catalogue, choose

    check_choice(tier, TIERS, "tier", "firstk reproduce")
    if own is not None:
        sys.path.insert(0, str(own.resolve()))  # where studies of one's own are
    specs = catalogue(own or HERE)
    if not specs:
        raise InvalidInputError(f"'{own}' holds no experiments: there is no file like talukder2026/fig1.toml in it.")
    if not names:
        width = max(map(len, specs))
        for spec in specs.values():
            typer.echo(f"{spec.id:<{width}}  {spec.title} ({spec.where}; {number_of(len(spec.claims), 'claim')})")
        return
    with ExitStack() as stack:
        found = run(choose(names, specs, tier), tier, out / tier, workers=jobs, progress=_bar(stack))
    write_results_page(out / tier, read_results(out / tier, specs), specs, tier)
    for result in found.results.values():
        typer.echo(f"\n{result.id}  {result.title}")
        for claim in result.claims:
            measured = claim.measured if not isinstance(claim.measured, float) else f"{claim.measured:.4g}"
            seen = f"; depends on the run: {claim.depends}" if claim.depends else ""
            typer.echo(f"  {WORDS[claim.held]:<13}{claim.statement} [{claim.threshold}; measured {measured}{seen}]")
    typer.echo(f"\nOpen the page: {(out / tier / 'index.html').resolve().as_uri()}")
    if found.failed:
        raise InvalidInputError(
            "These could not be run. " + " ".join(f"{name}: {why}" for name, why in found.failed.items())
        )


def _bar(stack: ExitStack) -> Callable[[int], Callable[[Job], None]]:
    """Return a progress bar of cells, on a terminal."""

    def begin(total: int) -> Callable[[Job], None]:
        if not total or not looked_at(False):
            return lambda job: None
        from tqdm import tqdm

        bar = stack.enter_context(tqdm(total=total, desc="reproducing", unit=" cells", leave=False, file=sys.stderr))

        def done(job: Job) -> None:
            bar.set_postfix_str(job.study, refresh=False)
            bar.update()

        return done

    return begin
