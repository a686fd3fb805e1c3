"""The options that several commands share: one definition each, so that a name means the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firstk.cli._counts import read_count
from firstk.data.remote import is_there

if TYPE_CHECKING:
    from firstk.advice.inputs import VectorSource

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
        "--label",
        "--target",
        help="Labels or targets: a column of VECTORS, several target columns with commas, or another file with one row "
        "per row of VECTORS.",
        metavar="COLUMN|FILE[:COLUMN]",
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
    str | None,
    typer.Option(
        "--queries",
        help="Queries; VECTORS is the store that they search. A column may say how much each query counts.",
        metavar="FILE[:WEIGHT]",
    ),
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
        help="Column of the ids by which judgements or pairs name rows; detected if it is called id, doc_id, ...; "
        ":row for row numbers, from 0.",
        metavar="COLUMN|QUERYCOLUMN,DOCUMENTCOLUMN|:row",
    ),
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Search among the documents that have the query's own value of FIELD, or this VALUE of it.",
        metavar="FIELD[=VALUE]",
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
        help="How many vectors you will store, such as 10M or 200k: sizes and savings are for so many.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Print all there is to say, not the answer alone.")]
KeepOption = Annotated[
    float | None, typer.Option("--keep", help="Choose the cheapest code that keeps this share of the score; 0.99.")
]
BytesPerVectorOption = Annotated[
    int | None, typer.Option("--bytes-per-vector", min=1, help="Choose the best code in at most so many bytes.")
]


def place_of_options(
    source: str,
    vectors: str | None = None,
    label: str | None = None,
    pairs: str | None = None,
    nan: str = "refuse",
    queries: str | None = None,
    relevance: str | None = None,
    ids: str | None = None,
    filter: str | None = None,
) -> VectorSource:
    """Return where vectors, labels and judgements are, as the options of a command name it."""
    from firstk.advice.inputs import VectorSource

    column, file = (None, label) if is_label_file(label) else (label, None)
    weight = None
    if queries is not None and not is_there(queries) and ":" in queries:
        queries, _, weight = queries.rpartition(":")
    by_row = ids == ":row"
    return VectorSource(
        source, vectors, column, file, pairs, nan, queries, relevance, None if by_row else ids, by_row, filter, weight
    )


def is_label_file(label: str | None) -> bool:
    """Tell whether labels are in a file of their own: FILE or FILE:COLUMN, and the file is there."""
    return label is not None and (is_there(label) or (":" in label and is_there(label.rpartition(":")[0])))
