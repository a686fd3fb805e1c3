"""``firstk export``: a saved encoder as an ONNX file or inside a faiss index."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk._base.atomic_file import check_new
from firstk._base.checks import check_choice
from firstk.cli._options import ForceOption, JsonOption, NanOption, QuietOption, VectorsOption
from firstk.cli._text import number_of
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.data.files import VectorTable
    from firstk.estimator.prefix_encoder import PrefixEncoder

TARGETS = ("faiss", "onnx")


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved encoder.")],
    to: Annotated[str, typer.Option("--to", help="What to write.", metavar="onnx|faiss")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    k: Annotated[int | None, typer.Option("-k", help="Length of the prefix; all of it if not given.")] = None,
    documents: Annotated[
        str | None, typer.Option(help="faiss: vectors to put into the index; a file, a folder or a pattern.")
    ] = None,
    index: Annotated[str, typer.Option(help="faiss: what is built on the codes, such as HNSW32.")] = "Flat",
    metric: Annotated[str, typer.Option(help="faiss: auto, cosine, inner_product or l2.")] = "auto",
    vectors: VectorsOption = None,
    nan: NanOption = "refuse",
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a saved encoder for other programs.

    onnx: one file that runs in any ONNX runtime, with k as an input. faiss: an index that takes raw vectors, with the
    documents in it.
    """
    check_choice(to, TARGETS, "--to", "firstk export")
    check_new(out, force=force)
    from firstk.estimator.prefix_encoder import PrefixEncoder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes of one's own, which an export does not need
        encoder = PrefixEncoder.load(model)
    if to == "onnx":
        if documents is not None:
            raise InvalidInputError("An ONNX file holds the encoder alone. Leave --documents out, or export to faiss.")
        facts = _to_onnx(encoder, k, out)
    else:
        table = _opened(documents, vectors, nan)
        facts = _to_faiss(encoder, k, out, index=index, metric=metric, documents=table, progress=not quiet)
    facts = {"path": str(out), "to": to, "input_width": encoder.encoder_.p} | facts
    typer.echo(json.dumps(facts) if as_json else _text(facts))


def _opened(documents: str | None, vectors: str | None, nan: str) -> VectorTable:
    if documents is None:
        raise InvalidInputError("A faiss index needs vectors to hold. Pass --documents FILE.")
    from firstk.data.files import open_vectors

    return open_vectors(documents, vectors=vectors, nan=nan)


def _to_onnx(encoder: PrefixEncoder, k: int | None, out: Path) -> dict[str, Any]:
    short = encoder if k is None else encoder[:k]
    short.to_onnx(out)
    return {"k": short.n_components_, "bytes": out.stat().st_size}


def _to_faiss(encoder: PrefixEncoder, k: int | None, out: Path, **settings: Any) -> dict[str, Any]:
    from firstk.integrations import faiss

    whole = encoder.to_faiss(k, **settings)
    faiss.save(whole, out)
    return {"k": whole.index.d, "documents": whole.ntotal, "index": settings["index"], "bytes": out.stat().st_size}


def _text(facts: dict[str, Any]) -> str:
    width, k, size = facts["input_width"], facts["k"], f"{facts['bytes'] / 1000:,.0f} kB"
    if facts["to"] == "onnx":
        return f"{facts['path']}: {width} numbers in, prefixes of 1 to {k} out; {size}."
    what = f"{number_of(facts['documents'], 'document')} in '{facts['index']}' on {number_of(k, 'coordinate')}"
    return f"{facts['path']}: {what}; takes raw vectors of {width}; {size}."
