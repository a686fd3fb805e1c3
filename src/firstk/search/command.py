"""``firstk move``: vectors from one store or file to another, shorter on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk.cli._options import ForceOption, JsonOption, NanOption, QuietOption, file_and_column
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
        int | None, typer.Option("-k", min=1, help="Coordinates to keep (in a store: to index); all if not given.")
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
            help="How codes are stored in a file; or in pgvector (float32, float16, binary; with --full: in its index "
            "alone); or indexed by sqlite-vec "
            "(float32, binary), qdrant (float32, float16) and usearch (float32, float16, int8); "
            "other stores index float32.",
            metavar="float32|float16|int8|int4|binary",
        ),
    ] = None,
    bytes_per_vector: Annotated[
        int | None,
        typer.Option("--bytes-per-vector", help="In a file: embedded bits of so many bytes.", metavar="BYTES"),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option("--id", help="Column of ids; 'id' or the primary key if not given.", metavar="COLUMN"),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Other columns to copy, with commas; all if not given, '' for none.")
    ] = None,
    nan: NanOption = "refuse",
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
    origin, vectors = file_and_column(origin)
    chosen: dict[str, Any] = {"vectors": vectors, "ids": ids, "columns": names, "nan": nan}
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


def search(
    place: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A short file, a saved index, or a store as SCHEME:PLACE#NAME."),
    ],
    queries: Annotated[str, typer.Argument(metavar="QUERIES", help="File of query vectors, as they came.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Results: .parquet, or a TREC run for any other suffix.")
    ] = None,
    limit: Annotated[int, typer.Option("-k", min=1, help="Results per query.")] = 10,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="The encoder that made the codes; none for raw vectors.")
    ] = None,
    relevance: Annotated[str | None, typer.Option(metavar="FILE", help="Judgements, to score the results.")] = None,
    raw_vectors: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="SOURCE",
            help="Raw vectors with the same ids: prints the share of their results that is found.",
        ),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            "--id", help="Column of ids; 'id' if not given, else row numbers.", metavar="[QUERYCOLUMN,]COLUMN"
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Search a store, an index or a short file; with --against or --relevance, score the results.

    Example: firstk search sqlite:codes.db#digits digits.npz --model model/ -o run.tsv

    Without judgements, --against counts how many of the raw vectors' results are found: the recall that 'firstk fit'
    promises. With --relevance nDCG and recall are printed, and with both their share of the raw vectors' scores.
    """
    from firstk._base.atomic_file import check_new
    from firstk.data.files import open_vectors
    from firstk.encoder import FittedEncoder
    from firstk.search.asking import ask

    check_new(out, force=force)
    place, vectors = file_and_column(place)
    opened = open_vectors(*file_and_column(queries))
    encoder = None if model is None else FittedEncoder.load(model)
    query_ids, _, ids = (ids or "").rpartition(",")  # one column is of both
    found = ask(place, opened, limit, model=encoder, ids=ids or None, vectors=vectors)
    names = _names(opened, query_ids or ids or None)
    raw = None
    if raw_vectors is not None:
        raw_place, raw_column = file_and_column(raw_vectors)
        raw = ask(raw_place, opened, limit, ids=ids or None, vectors=raw_column)
    told = [
        f"Searched {found.place[0].lower()}{found.place[1:]}: {number_of(len(names), 'query', 'queries')}, "
        f"{number_of(len(found.ids[0]), 'result')} each."
    ]
    told += _worth(found.ids, None if raw is None else raw.ids, names, relevance, limit)
    if out is not None:
        _write_run(out, names, found.ids, found.scores)
        told.append(f"Results: {out}")
    else:
        told += [f"Results of the first query, {names[0]} (all: -o FILE): {', '.join(map(str, found.ids[0]))}"]
    typer.echo("\n".join(told))


def _names(opened: Any, ids: str | None) -> list[Any]:
    """Return the ids of the queries; row numbers where there is no column of them."""
    from firstk.integrations import ID_COLUMN

    column = ids if ids is not None else ID_COLUMN if ID_COLUMN in opened.columns else None
    if column is None:
        return list(range(opened.rows))
    return [name for batch in opened.batches(columns=(column,)) for name in batch.columns[column].tolist()]


def _worth(
    found: list[list[Any]], raw: list[list[Any]] | None, names: list[Any], relevance: str | None, limit: int
) -> list[str]:
    """Say what results keep: of the raw vectors' results, and by judgements."""
    import numpy as np

    from firstk.advice import read_columns
    from firstk.exceptions import InvalidInputError
    from firstk.metrics import MeanScore, bootstrap_interval
    from firstk.search.asking import ranking_scores

    told = []
    if raw is not None:
        if not {str(one) for ids in found for one in ids} & {str(one) for ids in raw for one in ids}:
            raise InvalidInputError(
                f"No result has an id of the raw vectors: results are {found[0][0]!r}, ..., theirs {raw[0][0]!r}, .... "
                "Name the column of ids (--id)."
            )
        pairs = zip(found, raw, strict=True)
        shares = np.array([len({*map(str, one)} & {*map(str, other)}) / len(other) for one, other in pairs])
        low, high = (float(end[0]) for end in bootstrap_interval(MeanScore(shares[:, None])))
        told.append(f"Found {shares.mean():.1%} of the raw vectors' {limit} results ({low:.1%} to {high:.1%}).")
    if relevance is not None:
        _, held, columns = read_columns(None, relevance)
        sides = [list(map(str, held[name].tolist())) for name in columns[:2]]
        grades = [float(grade) for grade in held[columns[2]].tolist()] if len(columns) > 2 else [1.0] * len(sides[0])
        judged = dict(zip(zip(*sides, strict=True), grades, strict=True))
        if not set(sides[1]) & {str(one) for ids in (*found, *(raw or ())) for one in ids}:
            raise InvalidInputError(
                f"No result is a judged document: results are {found[0][0]!r}, ..., and judgements name "
                f"{sides[1][0]!r}, .... Name the column of ids (--id), or give the judgements of this store."
            )
        scores = ranking_scores(found, names, judged, limit)
        whole = None if raw is None else ranking_scores(raw, names, judged, limit)
        count = number_of(int(scores.pop("queries")), "judged query", "judged queries")
        for name, score in scores.items():
            of = "" if whole is None or not whole[name] else f", {score / whole[name]:.1%} of the raw vectors'"
            of += "" if whole is None else f" {whole[name]:.4f}"
            told.append(f"{name} {score:.4f}{of} ({count}).")
    return told


def _write_run(path: Path, names: list[Any], ids: list[list[Any]], scores: list[list[float]]) -> None:
    """Write results by an atomic write: as parquet, or a line for each in TREC's six columns."""
    from firstk._base.atomic_file import atomic_file
    from firstk.exceptions import InvalidInputError

    rows = [
        (name, key, rank, score)
        for name, keys, values in zip(names, ids, scores, strict=True)
        for rank, (key, score) in enumerate(zip(keys, values, strict=True), 1)
    ]
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        columns = dict(zip(("query", "document", "rank", "score"), map(list, zip(*rows, strict=True)), strict=True))
        with atomic_file(path, "A run") as temporary:
            parquet.write_table(pyarrow.table(columns), temporary)
        return
    if spaced := next((key for row in rows for key in row[:2] if len(str(key).split()) != 1), None):
        raise InvalidInputError(
            f"TREC's form divides columns by spaces, and the id {spaced!r} has some. Write .parquet."
        )
    lines = (f"{name} Q0 {key} {rank} {score:.6g} firstk\n" for name, key, rank, score in rows)
    with atomic_file(path, "A run") as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")
