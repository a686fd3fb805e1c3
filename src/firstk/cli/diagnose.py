"""``firstk diagnose``: what the order of a file of vectors serves, in words first and numbers after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.checks import bad_parameter
from firstk.cli._options import (
    JsonOption,
    LabelOption,
    LabelsOption,
    NanOption,
    QuietOption,
    VectorsArgument,
    VectorsOption,
)
from firstk.cli._progress import row_progress, step_progress

if TYPE_CHECKING:
    from firstk.evaluation.diagnosis import Gathered

# Rows are copied to float64 on the way into the moments: smaller batches than elsewhere bound the memory.
BATCH_ROWS = 16384

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
        help="Parts to compute, with commas: alignment, subspaces, suitability, denoising, label_noise.",
        metavar="PARTS",
    ),
]
PlotOption = Annotated[
    Path | None, typer.Option(help="Figure of alignment and spectrum: .svg, .png or .pdf.", metavar="FILE")
]


def diagnose(
    source: VectorsArgument,
    label: LabelOption = None,
    labels: LabelsOption = None,
    kind: KindOption = "auto",
    image: ImageOption = None,
    only: OnlyOption = None,
    plot: PlotOption = None,
    vectors: VectorsOption = None,
    nan: NanOption = "refuse",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say whether the order by variance serves a task, which objective fits, and what is unusual in the vectors.

    With labels or targets: alignment of variance with them, the best objective, top against bottom of the spectrum,
    denoising by masking, label noise. Without: rank, effective dimension, anisotropy, copies, constant columns, and
    whether any noise could help. Reads the file once, in a stream.
    """
    from firstk.evaluation.diagnosis import PARTS, diagnose_gathered

    shape = _image_shape(image)
    parts = None if only is None else [part.strip().replace("-", "_") for part in only.split(",") if part.strip()]
    if plot is not None:
        from firstk.evaluation.report.figures import check_figure

        check_figure(plot)
    silent = quiet or json
    gathered = _gathered(source, vectors, label, labels, nan, kind, silent)
    with step_progress(1 + len(PARTS), quiet=silent) as say:
        found = diagnose_gathered(gathered, image_shape=shape, parts=parts, progress=say)
    if plot is not None:
        from firstk.evaluation.report.figures import plot_spectrum, write_figure

        curves = () if found.alignment is None else found.alignment.curves
        write_figure(plot, plot_spectrum(found.spectrum, curves), dpi=150)
    typer.echo(found.to_json() if json else found.render())
    if plot is not None and not json:
        typer.echo(f"\nThe figure is in {plot}.")


def _gathered(
    source: str, vectors: str | None, label: str | None, labels: str | None, nan: str, kind: str, quiet: bool
) -> Gathered:
    """Read the file once; what its labels are is settled by the first batch."""
    from firstk.evaluation.diagnosis import gather_batches
    from firstk.evaluation.inputs import open_labeled

    found = open_labeled(source, vectors=vectors, label=label, labels=labels, nan=nan)
    table = found.table
    with row_progress(lambda: table.rows, quiet=quiet, what="reading") as progress:
        return gather_batches(found.batches(BATCH_ROWS), table.rows, table.width, kind, progress)


def _image_shape(text: str | None) -> tuple[int, ...] | None:
    """Read 28x28 or 32x32x3."""
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) not in (2, 3) or not all(side.strip().isdecimal() and int(side) > 0 for side in sides):
        raise bad_parameter("--image", "diagnose", "HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS, such as 28x28", text)
    return tuple(int(side) for side in sides)
