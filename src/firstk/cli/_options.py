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
        help="The column of vectors: a name, or a pattern (x*).",
        metavar="COLUMN",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label",
        "--target",
        help="Labels or targets: columns, or FILE[:COLUMN].",
        metavar="COLUMN",
    ),
]
PairsOption = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        help="Pairs, by ids or as vectors: [FILE:]LEFT,RIGHT[,SCORE].",
        metavar="COLUMNS",
    ),
]
QueriesOption = Annotated[
    str | None,
    typer.Option(
        "--queries",
        help="Queries of VECTORS; FILE:COLUMN weights them.",
        metavar="FILE",
    ),
]
RelevanceOption = Annotated[
    str | None,
    typer.Option(
        "--relevance",
        help="Judgements: FILE[:QUERY,DOCUMENT[,GRADE]].",
        metavar="FILE",
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Ids, if not called id: COLUMN or QUERYCOLUMN,DOCUMENTCOLUMN; :row for row numbers.",
        metavar="COLUMN",
    ),
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Only documents that share FIELD, or FIELD=VALUE.",
        metavar="FIELD",
    ),
]
NanOption = Annotated[
    str,
    typer.Option(
        "--nan",
        help="Vectors with NaN or infinity.",
        metavar="refuse|drop",
    ),
]
RowsOption = Annotated[
    int | None,
    typer.Option(
        "--rows",
        parser=read_count,
        metavar="COUNT",
        help="How many vectors you will store, such as 10M or 200k: sizes and savings are for this number.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print only one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file or model.")]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Print everything, not only the answer.")]
KeepOption = Annotated[
    float | None, typer.Option("--keep", metavar="SHARE", help="Choose the cheapest code that keeps this: 0.99.")
]
BytesPerVectorOption = Annotated[
    int | None, typer.Option("--bytes-per-vector", min=1, metavar="N", help="Choose the best code within N bytes.")
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
