"""``firstk diagnose``: which objective to fit on a file of vectors, in words first, then numbers, then the command."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk.cli._notes import warnings_as_notes
from firstk.cli._options import (
    ByRowOption,
    FilterOption,
    IdOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    NanOption,
    PairsOption,
    QueriesOption,
    QueryWeightOption,
    QuietOption,
    RelevanceOption,
    VectorsArgument,
    VectorsOption,
)
from firstk.cli._progress import row_progress, step_progress
from firstk.cli._text import judged_options, words_of
from firstk.cli.fit import spelled
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.evaluation.diagnosis import Diagnosis, Gathered, Trial, Trials
    from firstk.evaluation.inputs import VectorSource

# Rows are copied to float64 on the way into the moments: smaller batches than elsewhere bound the memory.
BATCH_ROWS = 16384
# Rows that are read of files of more than twice as many, where their format lets others be skipped; and in one place.
SAMPLE_ROWS, SAMPLE_BLOCK = 2**18, 1024

KindOption = Annotated[
    str,
    typer.Option(
        help="What the labels are; auto takes floating-point numbers for targets.",
        metavar="auto|labels|targets",
    ),
]
ImageOption = Annotated[
    str | None, typer.Option(help="Shape of flattened images, to mask in patches.", metavar="HxW[xC]")
]
OnlyOption = Annotated[
    str | None,
    typer.Option(
        help="Parts to compute, with commas: alignment, subspaces, ranking, denoising, label_noise.",
        metavar="PARTS",
    ),
]
BytesOption = Annotated[
    int | None,
    typer.Option(min=1, help="Bytes that a stored vector may take: the command to run next asks for them."),
]
PlotOption = Annotated[
    Path | None, typer.Option(help="Figure of alignment and spectrum: .svg, .png or .pdf.", metavar="FILE")
]


def diagnose(
    source: VectorsArgument,
    label: LabelOption = None,
    labels: LabelsOption = None,
    pairs: PairsOption = None,
    queries: QueriesOption = None,
    relevance: RelevanceOption = None,
    ids: IdOption = None,
    by_row: ByRowOption = False,
    filter: FilterOption = None,
    query_weight: QueryWeightOption = None,
    kind: KindOption = "auto",
    image: ImageOption = None,
    only: OnlyOption = None,
    bytes_per_vector: BytesOption = None,
    plot: PlotOption = None,
    vectors: VectorsOption = None,
    nan: NanOption = "refuse",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Try every objective that the data allow on a sample, rank them, and print the command to run next.

    Objectives are evaluated on held-out rows (or pairs) at 8, 16, 32 and 64 coordinates as float32; what they keep in
    fewer bytes, next to PCA and SVD in as many, is for 'firstk fit' to tell. With labels or targets it also
    shows whether PCA puts what they need first (alignment), what the largest and the smallest principal directions know
    of them (subspaces), whether masking would help (denoising), and how many labels look wrong (label_noise). In any
    case: rank, effective dimension, how far the vectors lean to one side (anisotropy), copies, constant columns.
    """
    from firstk.evaluation.diagnosis import diagnose_gathered
    from firstk.evaluation.inputs import VectorSource

    shape = _image_shape(image)
    parts = None if only is None else [part.strip().replace("-", "_") for part in only.split(",") if part.strip()]
    if plot is not None:
        from firstk.evaluation.report.figures import check_figure

        check_figure(plot)
    silent = quiet or json
    place = VectorSource(
        source, vectors, label, labels, pairs, nan, queries, relevance, ids, by_row, filter, query_weight
    )
    with warnings_as_notes():
        gathered, trials, rows, total = _read(place, kind, silent)
    with step_progress(None, quiet=silent) as say:
        found = diagnose_gathered(gathered, trials, image_shape=shape, parts=parts, progress=say)
    found = replace(found, command=_command(found, place, rows, bytes_per_vector), rows_in_file=total)
    if plot is not None:
        from firstk.evaluation.report.figures import plot_spectrum, write_figure

        curves = () if found.alignment is None else found.alignment.curves
        write_figure(plot, plot_spectrum(found.spectrum, curves), dpi=150)
    if plot is not None and not json:
        typer.echo(f"The figure is in {plot}.\n")
    typer.echo(found.to_json() if json else found.render())


def _read(place: VectorSource, kind: str, quiet: bool) -> tuple[Gathered, Trials | None, VectorSource, int]:
    """Read the vectors, the pairs to compare objectives on, where objectives without pairs find their rows; count them.

    The number of rows is 0 where all were read that there are.
    """
    place.check()
    if not place.judged:
        gathered, total = _gathered(place, kind, quiet)
        return gathered, None, place, total
    from firstk.evaluation.diagnosis import gather, trials_of
    from firstk.evaluation.judged_pairs import read_columns, read_judged_pairs

    if place.relevance is not None and (place.label is not None or place.labels is not None):
        raise InvalidInputError("Judgements take the place of labels: leave --label and --labels out, or --relevance.")
    judged = read_judged_pairs(place)
    rows = place
    if judged.store is None:  # pairs of vectors: the left sides are rows as well
        source, _, names = read_columns(
            None if place.pairs is None else place.source, place.pairs or place.relevance or ""
        )
        rows = replace(place, source=source, vectors=names[0], pairs=None, relevance=None)
    store = None if judged.store is None else judged.documents
    if judged.searches:
        X, trials = trials_of(store, None, judged.evaluation())
    else:
        X, trials = trials_of(store, tuple(judged.columns.values()), None)
    return gather(X), trials, rows, 0


def _gathered(place: VectorSource, kind: str, quiet: bool) -> tuple[Gathered, int]:
    """Read the file once, or a sample of a large one; what its labels are is settled by the first batch.

    Of a sample, the number of all rows comes with it; 0 where all were read.
    """
    from firstk.evaluation.diagnosis import gather_batches
    from firstk.evaluation.inputs import open_labeled

    found = open_labeled(place.source, vectors=place.vectors, label=place.label, labels=place.labels, nan=place.nan)
    table = found.table
    sample = found.spread(SAMPLE_ROWS, SAMPLE_BLOCK) if table.rows > 2 * SAMPLE_ROWS else None
    rows = table.rows if sample is None else SAMPLE_ROWS
    with row_progress(lambda: rows, quiet=quiet, what="reading") as progress:
        gathered = gather_batches(sample or found.batches(BATCH_ROWS), rows, table.width, kind, progress)
    return gathered, 0 if sample is None else table.rows


def _command(found: Diagnosis, place: VectorSource, rows: VectorSource, most_bytes: int | None) -> str:
    """Return the ``firstk fit`` that fits what was chosen on all rows; empty where nothing was compared."""
    trial = None if found.ranking is None else found.ranking.chosen
    if trial is None:
        return ""
    where = place if trial.pairs else rows
    given = {"--vectors": where.vectors, **_asked(trial)}
    if found.kind in ("labels", "targets"):
        given |= {"--label": where.label, "--labels": where.labels}
    # Judgements evaluate an objective that does not learn from them; scored pairs do not.
    if not trial.pairs and not where.relevance:
        where = replace(where, pairs=None, by_row=False)
    given |= judged_options(where)
    given |= {"--nan": where.nan if where.nan != "refuse" else None}
    given |= {"--bytes-per-vector": None if most_bytes is None else str(most_bytes), "-o": "model"}
    return shlex.join(["firstk", "fit", str(where.source), *words_of(given)])


def _asked(trial: Trial) -> dict[str, str | None]:
    """Return the options of ``firstk fit`` that ask for an objective as it was tried."""
    settings = {spelled(name): "none" if value is None else f"{value}" for name, value in trial.settings.items()}
    return {
        "--objective": trial.objective,
        **settings,
        "--solver": None if trial.solver == "auto" else trial.solver,
        "--components": None if trial.components is None else str(trial.components),
    }


def _image_shape(text: str | None) -> tuple[int, ...] | None:
    """Read 28x28 or 32x32x3."""
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) not in (2, 3) or not all(side.strip().isdecimal() and int(side) > 0 for side in sides):
        from firstk._base.checks import bad_parameter

        raise bad_parameter("--image", "diagnose", "HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS, such as 28x28", text)
    return tuple(int(side) for side in sides)
