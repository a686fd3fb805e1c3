"""``firstk export``: a saved encoder as an ONNX file, a program without firstk, or inside a faiss index."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk._base.atomic_file import check_new
from firstk.cli import _options as given
from firstk.exceptions import InvalidInputError
from firstk.words.text import number_of

if TYPE_CHECKING:
    import numpy as np

    from firstk.data.files import VectorTable
    from firstk.estimator.prefix_encoder import PrefixEncoder

TARGETS = ("faiss", "js", "numpy", "onnx", "sql")


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved encoder.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="What to write. After a colon, of faiss what is built on the codes and the metric (faiss:HNSW32,l2; "
            "Flat and auto, which is cosine, if not given); of sql the dialect, postgresql, duckdb or sqlite, and the "
            "name of the function (sql:duckdb,encode); of js and sql the bytes of embedded bits to search (js:16).",
            metavar="onnx|faiss|numpy|sql|js",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[VECTORS]", help="faiss: vectors to put into the index; as firstk transform takes them."
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Length of the prefix; all of it if not given.")] = None,
    ids: Annotated[
        str | None, typer.Option("--id", help="faiss: column of the documents' ids; 'id' where there is one.")
    ] = None,
    force: given.ForceOption = False,
    as_json: given.JsonOption = False,
) -> None:
    """Write a saved encoder for other programs.

    onnx: one file that runs in any ONNX runtime, with k as an input. faiss: an index that takes raw vectors, with the
    documents in it. Searches return the ids of the documents where these are whole numbers; other ids are written next
    to the index, to OUT.ids.json.

    numpy, sql, js: a program that needs no firstk. numpy: a Python file of some lines, and its arrays in an npz file
    beside it. sql: a function for PostgreSQL, or a macro for DuckDB. js: a module for browsers and node. js and sql
    (PostgreSQL, SQLite) also search embedded bits.
    """
    from firstk._base.checks import check_choice

    to, _, more = to.partition(":")
    check_choice(to, TARGETS, "to", "export")
    settings = _settings(to, [part.strip() for part in more.split(",") if part.strip()])
    check_new(out, force=force)
    from firstk.estimator.prefix_encoder import PrefixEncoder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes of one's own, which an export does not need
        encoder = PrefixEncoder.load(model)
    if to != "faiss":
        if source is not None:
            what = "An ONNX file" if to == "onnx" else f"An export to {to}"
            raise InvalidInputError(f"{what} holds the encoder alone. Leave VECTORS out, or export to faiss.")
        if to == "numpy":
            check_new(out.with_suffix(".npz"), force=force)
        facts = _to_program(encoder, to, k, out, settings)
    else:
        table = _opened(source, ids)
        names = _ids_of(table, ids)
        if names is not None and not names.in_index:
            check_new(names.file(out), force=force)
        facts = _to_faiss(encoder, k, out, names, **settings, documents=table, progress=True)
    facts = {"path": str(out), "to": to, "input_width": encoder.encoder_.p} | facts
    typer.echo(json.dumps(facts) if as_json else _text(facts))


def _settings(to: str, parts: list[str]) -> dict[str, Any]:
    """Return what follows the colon of ``--to``, by name."""
    if to == "faiss":
        # The description of an index may have commas of its own.
        metric = parts.pop() if parts and parts[-1] in ("auto", "cosine", "inner_product", "l2") else "auto"
        return {"index": ",".join(parts) or "Flat", "metric": metric}
    if to == "sql":
        from firstk.integrations.standalone import DIALECTS

        names = [part for part in parts if part not in DIALECTS and not part.isdigit()]
        dialect = next((part for part in parts if part in DIALECTS), "postgresql")
        return {"dialect": dialect, "name": ",".join(names) or "firstk_encode"} | _bytes(parts)
    if to == "js" and all(part.isdigit() for part in parts):
        return _bytes(parts)
    if parts:
        raise InvalidInputError(f"Nothing follows --to {to}. Got {', '.join(parts)}.")
    return {}


def _bytes(parts: list[str]) -> dict[str, Any]:
    """Return the bytes of embedded bits, where a number is among what follows the colon."""
    given = [int(part) for part in parts if part.isdigit()]
    return {"bytes": given[0]} if given else {}


def _opened(source: str | None, ids: str | None) -> VectorTable:
    if source is None:
        raise InvalidInputError("A faiss index needs vectors to hold: firstk export MODEL VECTORS --to faiss.")
    from firstk.data.files import open_vectors

    documents, vectors = given.file_and_column(source)
    return open_vectors(documents, vectors=vectors, beside=() if ids is None else (ids,))


@dataclass(frozen=True, eq=False)
class _Ids:
    """The ids of the documents, and whether they go into the index or into a file next to it."""

    column: str
    values: np.ndarray
    in_index: bool

    def file(self, out: Path) -> Path:
        from firstk.integrations.faiss import ids_file

        return ids_file(out)


def _ids_of(table: VectorTable, column: str | None) -> _Ids | None:
    from firstk.integrations._documents import ID_COLUMN, Documents
    from firstk.integrations.faiss import takes_ids

    name = column if column is not None else ID_COLUMN if ID_COLUMN in table.columns else None
    if name is None:
        return None
    values = Documents(table).column(name)
    return _Ids(name, values, takes_ids(values))


def _to_program(encoder: PrefixEncoder, to: str, k: int | None, out: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Write what computes codes elsewhere, and return facts about it."""
    from firstk.integrations.standalone import TARGETS as PROGRAMS

    if k is not None and "bytes" in settings:
        raise InvalidInputError("Embedded bits are of all coordinates: leave -k out, or the bytes after the colon.")
    short = encoder if k is None else encoder[:k]
    if to == "onnx":
        short.to_onnx(out)
    else:
        PROGRAMS[to](short, out, **settings)
    files = [out, out.with_suffix(".npz")] if to == "numpy" else [out]
    told = {"bytes_per_vector" if name == "bytes" else name: value for name, value in settings.items()}
    return {"k": short.n_components_, "bytes": sum(file.stat().st_size for file in files)} | told


def _to_faiss(encoder: PrefixEncoder, k: int | None, out: Path, ids: _Ids | None, **settings: Any) -> dict[str, Any]:
    from firstk.integrations import faiss

    whole = encoder.to_faiss(k, ids=ids.values if ids is not None and ids.in_index else None, **settings)
    faiss.save(whole, out)
    if ids is not None and not ids.in_index:
        faiss.save_ids(ids.values, out)
    return {
        "k": whole.index.d,
        "documents": whole.ntotal,
        "index": settings["index"],
        "bytes": out.stat().st_size,
        "id_column": None if ids is None else ids.column,
        "ids_file": None if ids is None or ids.in_index else str(ids.file(out)),
    }


def _text(facts: dict[str, Any]) -> str:
    width, k, size = facts["input_width"], facts["k"], f"{facts['bytes'] / 1000:,.0f} kB"
    if facts["to"] != "faiss":
        return f"{facts['path']}: {width} numbers in, prefixes of 1 to {k} out; {size}."
    what = f"{number_of(facts['documents'], 'document')} in '{facts['index']}' on {number_of(k, 'coordinate')}"
    return f"{facts['path']}: {what}; takes raw vectors of {width}; {size}.\n{_about_ids(facts)}"


def _about_ids(facts: dict[str, Any]) -> str:
    if facts["ids_file"] is not None:
        return (
            f"Searches return row numbers i; the {facts['id_column']} of row i is "
            f"json.load(open({facts['ids_file']!r}))[i]."
        )
    if facts["id_column"] is not None:
        return f"Searches return the numbers of column '{facts['id_column']}'."
    return "Searches return row numbers of the documents, from 0."
