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
        help="Pairs: two columns of ids of VECTORS' rows (see --id) or of vectors, then perhaps one of scores; in "
        "VECTORS or in a FILE. With --queries the left side names rows of that file.",
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
        "--nan", help="Vectors with NaN, infinity or missing numbers: an error, or dropped.", metavar="refuse|drop"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
