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
        help="Pairs that belong together: two columns of ids of VECTORS' rows (see --id) or of vectors, and one of "
        "scores if there is one. With --queries the left side names rows of that file.",
        metavar="[FILE:]LEFT,RIGHT[,SCORE]",
    ),
]
QueriesOption = Annotated[
    str | None, typer.Option("--queries", help="Queries; VECTORS is the store that they search.", metavar="FILE")
]
RelevanceOption = Annotated[
    str | None,
    typer.Option(
        "--relevance",
        help="Judgements: columns of query ids, document ids, and perhaps grades. All of VECTORS are candidates.",
        metavar="FILE[:QUERY,DOCUMENT[,GRADE]]",
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column of the ids by which judgements or pairs name rows; found by itself if called id, doc_id, ...",
        metavar="COLUMN|QUERYCOLUMN,DOCUMENTCOLUMN",
    ),
]
ByRowOption = Annotated[bool, typer.Option("--by-row", help="Judgements or pairs name rows by number, from 0.")]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Search among the documents that have the query's own value of FIELD, or this VALUE of it.",
        metavar="FIELD[=VALUE]",
    ),
]
QueryWeightOption = Annotated[
    str | None,
    typer.Option("--query-weight", help="Column of --queries: what each query counts in the mean.", metavar="COLUMN"),
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
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
