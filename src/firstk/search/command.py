"""``firstk move``: vectors from one store or file to another, shorter on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk.cli._options import ForceOption, JsonOption, NanOption, QuietOption, VectorsOption
from firstk.cli._progress import counted_progress
from firstk.words import bytes_text, number_of, were

if TYPE_CHECKING:
    from firstk.search.moving import Moved, MovePlan

_PLACE = "a file, folder, pattern or URL, or a store as SCHEME:PLACE#NAME"


def move(
    origin: Annotated[str, typer.Argument(metavar="SOURCE", help=f"Where vectors are: {_PLACE}. It is only read.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help=f"Where they go: {_PLACE}. It is created.")],
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="Folder of a saved encoder; without one, vectors stay as they are."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", help="Coordinates to keep (in a store: to index); all if not given.")
    ] = None,
    full: Annotated[
        int | None, typer.Option("--full", help="In a store: length of a longer code that reranks.", metavar="LENGTH")
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            help="How the target compares; cosine for codes, the source's own for vectors that stay as they are.",
            metavar="auto|cosine|inner_product|l2",
        ),
    ] = "auto",
    precision: Annotated[
        str | None,
        typer.Option(
            help="How codes are stored in a file; or indexed by pgvector (float32, float16, binary), sqlite-vec "
            "(float32, binary), qdrant (float32, float16) and usearch (float32, float16, int8); "
            "other stores index float32.",
            metavar="float32|float16|int8|int4|binary",
        ),
    ] = None,
    bytes_per_vector: Annotated[
        int | None,
        typer.Option("--bytes-per-vector", help="In a file: embedded bits of so many bytes.", metavar="BYTES"),
    ] = None,
    vectors: VectorsOption = None,
    ids: Annotated[
        str | None,
        typer.Option("--id", help="Column of ids; 'id' or the primary key if not given.", metavar="COLUMN"),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Other columns to copy, with commas; all if not given, '' for none.")
    ] = None,
    nan: NanOption = "refuse",
    batch: Annotated[int, typer.Option(help="Rows that are encoded and written at a time.")] = 1000,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print rows, bytes and an estimate of time; write nothing.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a move that was interrupted.")] = False,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Move vectors with their ids and payloads from any store or file to any other, re-encoded on the way.

    Example: firstk move digits.npz sqlite:codes.db#digits --model model/ -k 8

    "Take this table of pgvector, write a collection of Qdrant with 64 numbers": firstk move
    postgresql://me@host/search#documents qdrant:folder#documents --model model/ -k 64. A source may be a table that
    another program filled.

    Stores: postgresql://USER@HOST/DATABASE#TABLE, sqlite:FILE#TABLE, duckdb:FILE#TABLE, lancedb:FOLDER#TABLE,
    chroma:FOLDER#NAME, milvus:FILE.db#NAME, qdrant:FOLDER#NAME, faiss:FOLDER, usearch:FOLDER; servers as
    qdrant+http://HOST:6333#NAME (milvus+http, chroma+http). Passwords and keys are taken from the environment
    (PGPASSWORD, QDRANT_API_KEY, MILVUS_TOKEN, CHROMA_TOKEN) and never shown.

    Rows go in batches, in bounded memory. At the end the target is read back, and the number of rows and checksums of
    ids, payloads and codes are compared (from file to file, where columns are copied, rows and codes). After Ctrl-C or
    a kill, the same command with --resume goes on: no row is lost, and none is there twice. --dry-run tells first what
    it will take.

    Codes that firstk wrote are moved as they are: from file to file byte for byte, into a store decoded to float32,
    from store to store with both lengths, the indexed and the longer one. To cut them, give the --model that made them.
    Embedded bits stay in files, where --bytes-per-vector cuts them.
    """
    from firstk.encoder import FittedEncoder
    from firstk.search import moving

    encoder = None if model is None else FittedEncoder.load(model)
    recode = moving.Recode(encoder, k, full, metric, precision, bytes_per_vector)
    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    chosen: dict[str, Any] = {"vectors": vectors, "ids": ids, "columns": names, "nan": nan, "batch": batch}
    if dry_run:
        planned = moving.plan(origin, target, recode, **chosen)
        typer.echo(_document(planned) if json else "\n".join(_planned(planned)))
        return
    try:
        with counted_progress("moving", quiet=quiet or json) as (begin, progress):
            moved = moving.move(
                origin, target, recode, **chosen, resume=resume, force=force, begin=begin, progress=progress
            )
    except KeyboardInterrupt:
        typer.echo("Rows that were written are kept: the same command with --resume goes on.", err=True)
        raise
    typer.echo(_document(moved) if json else "\n".join(_moved(moved)))


def _document(outcome: Moved | MovePlan) -> str:
    from dataclasses import asdict
    from json import dumps

    return dumps(asdict(outcome))


def _planned(plan: MovePlan) -> list[str]:
    size = f"{bytes_text(plan.source_bytes)} of vectors become {bytes_text(plan.target_bytes)} of codes"
    lines = [
        f"{number_of(plan.rows, 'row')} of {plan.width} numbers from {plan.source} to {plan.target}: "
        f"{number_of(plan.k, 'coordinate')} each. {size} (without ids, payloads and indexes).",
        f"Reading and encoding takes about {_time(plan.reading)}, by {number_of(plan.sampled, 'row')}.",
    ]
    if plan.writing is None:
        lines.append("Writing was not tried: the target is not on this machine.")
    else:
        lines.append(
            f"Writing and reading back takes about {_time(plan.writing)}, by the same rows in a scratch place; indexes "
            "of graphs get slower as they grow."
        )
    lines.append("Nothing was written. Run the command without --dry-run.")
    return lines


def _moved(moved: Moved) -> list[str]:
    speed = f"{moved.seconds:.1f} s ({moved.rows / max(moved.seconds, 1e-9):,.0f} a second)"
    lines = [
        f"{number_of(moved.rows, 'row')} of {moved.width} numbers moved from {moved.source} to {moved.target}: "
        f"{number_of(moved.k, 'coordinate')}, {number_of(moved.bytes_per_vector, 'byte')} each, in {speed}."
    ]
    if moved.decoded_from is not None:
        lines.append(
            f"Codes of the source ({moved.decoded_from}, {number_of(moved.source_bytes_per_vector, 'byte')} each) were "
            f"decoded: they take {number_of(moved.bytes_per_vector, 'byte')} each in the target."
        )
    if before := moved.there_before:
        lines.append(f"{number_of(before, 'row')} {were(before)} there from an earlier run and not written again.")
    if dropped := moved.dropped:
        lines.append(f"{number_of(dropped, 'row')} with NaN, infinity or missing numbers {were(dropped)} left out.")
    if moved.left_out:
        lines.append(f"Columns that this format has no room for were left out: {', '.join(moved.left_out)}.")
    *some, last = moved.compared
    lines.append(f"Read back and compared: {', '.join(some)} and {last} are those that were sent.")
    if moved.checksum:
        lines.append(
            f"Checksum of ids and payloads: {moved.checksum}. Codes are compared up to rounding, and not in it."
        )
    return lines


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
