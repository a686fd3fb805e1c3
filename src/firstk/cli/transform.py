"""``firstk transform``: a store of vectors re-encoded in one stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk.cli._options import JsonOption, NanOption, QuietOption, VectorsArgument, VectorsOption
from firstk.cli._progress import row_progress
from firstk.cli._text import number_of, were

if TYPE_CHECKING:
    from firstk.estimator.transform_files import Outcome


def transform(
    model: Annotated[Path, typer.Argument(help="Folder of a saved encoder.")],
    source: VectorsArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, or folder where a folder is read.")],
    k: Annotated[int | None, typer.Option("-k", help="Coordinates to keep; all if not given.")] = None,
    side: Annotated[
        str, typer.Option(help="Encode documents or queries, for pairs.", metavar="document|query")
    ] = "document",
    precision: Annotated[
        str, typer.Option(help="How codes are stored.", metavar="float32|float16|int8|int4|binary")
    ] = "float32",
    vectors: VectorsOption = None,
    columns: Annotated[
        str | None, typer.Option(help="Other columns that travel along, with commas; all if not given, '' for none.")
    ] = None,
    nan: NanOption = "refuse",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a folder that was not finished.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the first k coordinates of every vector of a file, or of a folder of shards.

    Reads, encodes and writes in a stream, in bounded memory. Other columns travel along; the vector column keeps its
    name. The file appears under its name when it is whole. A folder of shards gives a folder of shards; with
    --resume, those that an earlier run finished are not done again.
    """
    from firstk.data.files import open_vectors
    from firstk.encoder.fitted import FittedEncoder
    from firstk.estimator.transform_files import transform_files

    encoder = FittedEncoder.load(model)
    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    with row_progress(lambda: open_vectors(source, vectors).rows, quiet=quiet or json) as progress:
        outcome = transform_files(
            encoder,
            source,
            out,
            k=k,
            side=side,
            precision=precision,
            vectors=vectors,
            columns=names,
            nan=nan,
            resume=resume,
            progress=progress,
        )
    typer.echo(_document(outcome) if json else "\n".join(_lines(outcome)))


def _document(outcome: Outcome) -> str:
    from dataclasses import asdict
    from json import dumps

    return dumps(asdict(outcome))


def _lines(outcome: Outcome) -> list[str]:
    speed = f"{outcome.seconds:.1f} s ({outcome.rows / max(outcome.seconds, 1e-9):,.0f} a second)"
    codes = f"{number_of(outcome.k, 'coordinate')} as {outcome.precision}"
    lines = [
        f"{number_of(outcome.rows, 'vector')} of {outcome.width} written to {outcome.path}: {codes}, "
        f"{number_of(outcome.bytes_per_vector, 'byte')} each, in {speed}."
    ]
    if before := outcome.finished_before:
        lines.append(f"{number_of(before, 'file')} {were(before)} finished before and not done again.")
    if dropped := outcome.dropped:
        lines.append(f"{number_of(dropped, 'vector')} with NaN, infinity or missing numbers {were(dropped)} left out.")
    if outcome.left_out:
        lines.append(f"Columns that this format has no room for were left out: {', '.join(outcome.left_out)}.")
    if outcome.clipped:
        share, verb = outcome.clipped / (outcome.rows * outcome.k), were(outcome.clipped)
        lines.append(
            f"{number_of(outcome.clipped, 'number')} ({share:.2g} of all) {verb} larger than any among the first rows, "
            f"from which int8 takes its scale, and {verb} clipped to the largest there. Shuffle the rows, or write "
            "float16."
        )
    return lines
