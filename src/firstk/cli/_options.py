"""The options that several commands share: one definition each, so that a name means the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

from firstk.cli._counts import read_count

VectorsArgument = Annotated[
    str,
    typer.Argument(
        metavar="VECTORS", help="File of vectors, folder of such files, or pattern in quotes: 'part-*.parquet'."
    ),
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        help="Which column holds the vectors, if several could: a name, a pattern (x*), or names with commas.",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label", "--target", help="Column of labels or targets in VECTORS; several target columns with commas."
    ),
]
LabelsOption = Annotated[
    str | None,
    typer.Option(
        "--labels", help="Labels or targets in another file, a row for each row of VECTORS.", metavar="FILE[:COLUMN]"
    ),
]
PairsOption = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        help="Pairs that belong together: two columns of row numbers or of vectors, and one of scores if there is one.",
        metavar="[FILE:]LEFT,RIGHT[,SCORE]",
    ),
]
NanOption = Annotated[
    str,
    typer.Option(
        "--nan",
        help="What to do with vectors that have NaN, infinity or missing numbers: stop with an error, or drop them.",
        metavar="refuse|drop",
    ),
]
RowsOption = Annotated[
    int | None,
    typer.Option(
        "--rows",
        parser=read_count,
        metavar="COUNT",
        help="How many vectors you will store, such as 10M, 200k or 10,000,000: sizes and savings are for so many.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
