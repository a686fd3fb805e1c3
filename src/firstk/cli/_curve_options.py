"""The options of ``firstk curve``: one name each, so that the command's signature reads as a list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved encoder.")]
Reference = Annotated[
    str | None,
    typer.Option(help="Rows to look among, and to fit readouts and baselines on.", metavar="FILE"),
]
ReferenceLabels = Annotated[
    str | None, typer.Option(help="Labels of the reference, in a file of their own.", metavar="FILE[:COLUMN]")
]
Relevance = Annotated[
    str | None,
    typer.Option(
        help="Judgements for nDCG@10: columns of queries (rows of VECTORS), documents, and perhaps grades.",
        metavar="FILE[:QUERY,DOCUMENT[,GRADE]]",
    ),
]
Documents = Annotated[
    str | None, typer.Option(help="Documents of the judgements; VECTORS itself if not given.", metavar="FILE")
]
Ids = Annotated[
    str | None,
    typer.Option("--id", help="Column by which judgements name queries and documents; row numbers if not given."),
]
MetricName = Annotated[
    str,
    typer.Option(
        help="explained_variance, readback_variance, r2, 1nn_accuracy, probe_accuracy, head_accuracy, recall@10, "
        "mixture, spearman, positive_recall@10, ndcg@10; auto: the objective's own."
    ),
]
Confidence = Annotated[float, typer.Option(help="Of the bootstrap intervals; 0 for none.")]
Precisions = Annotated[
    str | None,
    typer.Option(help="How codes may be stored: float32, float16, int8, binary, several with commas, or all."),
]
Keep = Annotated[float | None, typer.Option(help="Choose the cheapest that keeps this share of the score.")]
RelativeTo = Annotated[
    str, typer.Option(help="What --keep is a share of: the full code or the raw vectors.", metavar="full|input")
]
BytesPerVector = Annotated[int | None, typer.Option(min=1, help="Choose among codes of at most so many bytes.")]
Latency = Annotated[
    float | None,
    typer.Option(help="Choose among codes that exact search goes through in so many milliseconds, measured here."),
]
Length = Annotated[int | None, typer.Option("-k", min=1, help="Choose this k.")]
StoreRows = Annotated[int | None, typer.Option("--rows", min=1, help="Rows that the store will hold.")]
Most = Annotated[int, typer.Option(min=1, help="Use at most so many rows of each file, drawn at random.")]
Baselines = Annotated[bool, typer.Option(help="Evaluate PCA, uncentred SVD, plain truncation, random dimensions too.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", help="Write the picture: .svg, .png or .pdf.")]
