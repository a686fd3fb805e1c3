"""``firstk transform``: a store of vectors re-encoded in one stream."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.atomic_file import check_new
from firstk.cli import _options as given
from firstk.cli._progress import row_progress
from firstk.data.remote import place_of
from firstk.exceptions import InvalidInputError
from firstk.words.text import number_of, were

if TYPE_CHECKING:
    from firstk.advice.stored_codes import ReadBack
    from firstk.encoder.code_map import CodeMap
    from firstk.encoder.fitted import FittedEncoder
    from firstk.estimator.transform_files import Outcome

# In place of a model: the vectors as they are.
RAW = "raw"
# What is fitted for each precision that needs it, as the subject of a sentence.
ROUNDING = {
    "int8": "The scale of int8 was",
    "int4": "The steps of int4 were",
    "binary": "The thresholds of binary were",
    "embedded": "The cells of these bits were",
}
_METRICS = {"cosine": "cosines", "inner_product": "inner products", "l2": "distances"}


def transform(
    model_or_raw: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a saved encoder, or of an alignment of two models; 'raw' to keep the vectors as they are.",
        ),
    ],
    source: given.VectorsArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, or folder where a folder is read.")],
    k: Annotated[int | None, typer.Option("-k", min=1, help="Coordinates to keep; all if not given.")] = None,
    side: Annotated[
        str | None,
        typer.Option(help="Encode documents (if not given) or queries, for pairs.", metavar="document|query"),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="How codes are stored; float32 if not given.", metavar="float32|float16|int8|int4|binary|embedded"
        ),
    ] = None,
    bytes_per_vector: Annotated[
        int | None,
        typer.Option(
            "--bytes-per-vector",
            help="Store embedded bits of so many bytes, of which every prefix is a code; without -k and --precision.",
            metavar="BYTES",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(help="Codes that this command wrote: same k and precision, rounded alike.", metavar="FILE"),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            help="Of an alignment: the code that both models share (if not given), or the other model's space.",
            metavar="shared|new|old",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Other columns to copy, with commas; all if not given, '' for none.")
    ] = None,
    nan: given.NanOption = "refuse",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a folder that was not finished.")] = False,
    force: given.ForceOption = False,
    json: given.JsonOption = False,
    quiet: given.QuietOption = False,
) -> None:
    """Write the first k coordinates of every vector of a file, or of a folder of shards.

    Reads, encodes and writes in a stream, in bounded memory. Other columns are copied; the vector column keeps its
    name. A file is written under a temporary name and renamed when it is complete. A folder of shards gives a folder
    of shards; with --resume, those that an earlier run finished are not done again.

    Queries that are rounded must be rounded like the documents: --like takes k, precision, scales and thresholds from
    a file that this command wrote. The model 'raw' keeps the first k numbers of each vector as they are.

    With --bytes-per-vector 32 a vector becomes 32 bytes, bits of the coordinates where they are worth most. The first
    16 of them are the code of 16 bytes: 'firstk transform raw short.parquet --bytes-per-vector 16 -o shorter.parquet'
    cuts. Queries of such codes are float32: --like short.parquet --side query.

    An alignment, which firstk align wrote, encodes the old model's vectors as documents and the new model's as queries
    (--side query), in one code that can be cut; --into new translates old vectors into the new model's space, and
    --into old new ones back.
    """
    from firstk.advice.stored_codes import read_back
    from firstk.data.files import open_vectors
    from firstk.encoder.code_map import CodeMap
    from firstk.estimator.transform_files import transform_files

    check_new(place_of(out), force=force)
    encoder = _encoder(model_or_raw, side, into)
    source, vectors = given.file_and_column(source)
    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    with row_progress(lambda: open_vectors(source, vectors).rows, quiet=quiet or json) as progress:
        outcome = transform_files(
            encoder,
            source,
            out,
            k=k,
            side=side,
            precision=precision,
            bytes_per_vector=bytes_per_vector,
            like=like,
            vectors=vectors,
            columns=names,
            nan=nan,
            resume=resume,
            progress=progress,
        )
    asking = _for_queries(model_or_raw, encoder, outcome) if side != "query" else []
    # A folder has its shards in an order of its own, and queries have no neighbors among themselves to speak of.
    check = None
    readable = outcome.precision != "embedded" or (_has_note(outcome) and not outcome.cut)
    if not isinstance(encoder, CodeMap) and place_of(out).is_file() and side != "query" and like is None and readable:
        check = read_back(encoder, source, out, vectors=vectors)
    lines = _lines(outcome, asking)
    if check is not None:
        lines.insert(1, _about(check))
    if side is None and not asking and _has_sides(encoder):
        lines.insert(1, "They were encoded as documents; this model encodes queries another way: --side query.")
    if json:
        kept = {"neighbors_kept": None if check is None else check.kept}
        lines = [dumps(asdict(outcome) | kept)]
    typer.echo("\n".join(lines))


def keeps_raw_vectors(model: Path) -> bool:
    """Whether this is the word 'raw' in place of a model; a folder of that name is a model."""
    return str(model) == RAW and not model.exists()


def _encoder(model: Path, side: str | None, into: str | None) -> FittedEncoder | CodeMap | None:
    from firstk.encoder.fitted import FittedEncoder
    from firstk.encoder.storage.folder import is_alignment

    if is_alignment(model):
        from firstk import PrefixAlignment

        return PrefixAlignment.load(model).alignment_.code_map(side, into)
    if into is not None:
        raise InvalidInputError(f"--into {into} is for alignments, which firstk align writes, and '{model}' is none.")
    return None if keeps_raw_vectors(model) else FittedEncoder.load(model)


def _about(check: ReadBack) -> str:
    return (
        f"Read back: {check.rows:,} of these rows find {100 * check.kept:.0f} % of their ten nearest neighbors among "
        "themselves, as the full vectors have them. (That is fidelity: a code that learned from labels or judgements "
        "leaves the full vectors on purpose. Whether it finds what is relevant, firstk curve tells.)"
    )


def _has_sides(encoder: FittedEncoder | CodeMap | None) -> bool:
    """Tell whether queries are encoded otherwise than documents."""
    import numpy as np

    return encoder is not None and not np.array_equal(encoder.mean, encoder.query_mean)


def _for_queries(model: Path, encoder: FittedEncoder | CodeMap | None, outcome: Outcome) -> list[str]:
    """Return what to do with the queries that will be asked of what was written, where that needs saying."""
    from firstk.encoder.code_map import CodeMap

    if isinstance(encoder, CodeMap):
        words = [
            "firstk",
            "transform",
            str(model),
            "QUERIES",
            "--side",
            "query",
            "-k",
            str(outcome.k),
            "-o",
            "queries.npz",
        ]
        return ["Queries of the new model, for these codes:", f"  {shlex.join(words)}"] if encoder.shared else []
    embedded = outcome.precision == "embedded"
    if outcome.like or not (outcome.fitted_on or embedded):
        return []
    side = ["--side", "query"] if embedded or _has_sides(encoder) else []
    # Bits that were cut are read by the model that made them, wherever that is.
    by = "MODEL" if outcome.cut else str(model)
    words, alike = ["firstk", "transform", by, "QUERIES", *side], ["--like", outcome.path]
    if not embedded:
        lead = "as float32 (the promised score holds for these), or rounded like these rows"
        ways = {"queries.npz": ["-k", str(outcome.k)], "rounded_queries.npz": alike}
    elif _has_note(outcome):
        lead, ways = "as float32, whose products with these codes are scores", {"queries.npz": alike}
        lead += " (MODEL is the one that made the codes)" if outcome.cut else ""
    else:
        return [
            f"'{outcome.path}' holds bytes alone. In Python: quantizer = FittedEncoder.load({by!r}).quantizer("
            f"{outcome.bytes_per_vector}, {outcome.metric!r}); quantizer.decode reads them, quantizer.encode_query "
            "encodes queries."
        ]
    return [f"Queries, {lead}:", *(f"  {shlex.join([*words, *way, '-o', out])}" for out, way in ways.items())]


def _has_note(outcome: Outcome) -> bool:
    """Tell whether what was written says how it is read."""
    from firstk.data.files.vector_table import find_files, format_of

    return format_of(find_files(outcome.path)[0]).notes


def _lines(outcome: Outcome, queries: list[str]) -> list[str]:
    from firstk.words.text import bytes_text

    speed = f"{outcome.seconds:.1f} s ({outcome.rows / max(outcome.seconds, 1e-9):,.0f} a second)"
    codes = f"{number_of(outcome.k, 'coordinate')} as {outcome.precision}"
    if outcome.precision == "embedded":
        codes = f"embedded bits for {_METRICS[outcome.metric or 'cosine']}, which can be cut at any byte"
    lines = [
        f"{number_of(outcome.rows, 'vector')} of {outcome.width} written to {outcome.path}: {codes}, "
        f"{number_of(outcome.bytes_per_vector, 'byte')} each, in {speed}."
    ]
    codes_alone, size = outcome.rows * outcome.bytes_per_vector, _size(outcome.path)
    if outcome.precision == "embedded" and size > codes_alone and _has_note(outcome):
        lines.append(
            f"The file takes {bytes_text(size)}, codes {bytes_text(codes_alone)} of it. The rest is other columns, if "
            "there are any, and what the codes are read by, whatever the number of rows."
        )
    if before := outcome.finished_before:
        lines.append(f"{number_of(before, 'file')} {were(before)} finished before and not done again.")
    if dropped := outcome.dropped:
        lines.append(f"{number_of(dropped, 'vector')} with NaN, infinity or missing numbers {were(dropped)} left out.")
    if outcome.left_out:
        lines.append(f"Columns that this format has no room for were left out: {', '.join(outcome.left_out)}.")
    if outcome.fitted_on:
        lines.append(
            f"{ROUNDING[outcome.precision]} fitted on {outcome.fitted_on:,} of these rows and stored in the file."
        )
    lines += queries
    if outcome.like and outcome.metric and outcome.precision == "float32":
        norms = " (cosines, if the decoded codes are divided by their norms)" if outcome.metric == "cosine" else ""
        lines.append(
            f"Products of these codes with those of {outcome.like}, decoded, are scores{norms}. In Python, "
            f"firstk.data.files.open_vectors({str(outcome.like)!r}).read().vectors decodes them; "
            "firstk.CodeIndex searches the bytes without decoding."
        )
    elif outcome.like:
        lines.append(f"Rounded like {outcome.like}: k, precision, scales and thresholds are its own.")
    if outcome.clipped:
        lines.append(_about_clipping(outcome))
    return lines


def _size(path: str) -> int:
    """Return the bytes of a local file; 0 for folders and what lies elsewhere."""
    place = place_of(path)
    return place.stat().st_size if isinstance(place, Path) and place.is_file() else 0


def _about_clipping(outcome: Outcome) -> str:
    share, verb = outcome.clipped / (outcome.rows * outcome.k), were(outcome.clipped)
    seen, way_out = (
        (f"the rows that {outcome.like} took its scale from", "A few do no harm.")
        if outcome.like
        else ("the first rows, from which int8 takes its scale", "Shuffle the rows, or write float16.")
    )
    return (
        f"{number_of(outcome.clipped, 'number')} ({share:.2g} of all) {verb} larger than any among {seen}, and {verb} "
        f"clipped to the largest there. {way_out}"
    )
