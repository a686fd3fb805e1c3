"""The options that several commands share: one definition each, so that a name means the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

VectorsArgument = Annotated[
    str, typer.Argument(metavar="VECTORS", help="File of vectors, folder of shards, or pattern in quotes.")
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        "--vectors", help="The vector column, where there are several: a name, a pattern, or names with commas."
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", "--target", help="Column of labels or targets; several columns of numbers with commas."),
]
LabelsOption = Annotated[
    str | None, typer.Option("--labels", help="Labels or targets in a file of their own.", metavar="FILE[:COLUMN]")
]
PairsOption = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        help="Pairs: two columns of row numbers or of vectors, then perhaps one of scores; in VECTORS or in a FILE.",
        metavar="[FILE:]LEFT,RIGHT[,SCORE]",
    ),
]
NanOption = Annotated[
    str,
    typer.Option(
        "--nan", help="Vectors with NaN, infinity or missing numbers: an error, or dropped.", metavar="refuse|drop"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
