"""The next command: what to type to store vectors as a point says."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from firstk.data.remote import is_remote, shown_place
from firstk.data.stores import find_store
from firstk.words.text import PRODUCT_QUANTIZER, RAW

if TYPE_CHECKING:
    from firstk.advice.inputs import VectorSource
    from firstk.quality.choice import Choice, Point

# The argument that names the file of vectors; options that name queries and judgements; what of all this is files.
VECTORS = "VECTORS"
JUDGED_BY = ("--queries", "--pairs", "--relevance", "--id", "--filter")
# The column of vectors in it, and in the file of queries.
COLUMN = "VECTORS:COLUMN"
FILES = (VECTORS, "--queries", "--pairs", "--relevance")
# Options that fit a baseline, and the folder that each is fitted into.
FITTED_BASELINES = {
    "PCA": ("--objective", "reconstruction"),
    "uncentred SVD": ("--objective", "similarity", "--set", "objective.keep=dot_products"),
}
FITTED_AS = {"PCA": "pca", "uncentred SVD": "svd"}
# Endings of formats that have no place for a scale; the last is the one to take instead.
_WITHOUT_SCALE, _WITH_SCALE = (".npy", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".gz", ""), ".npz"


def options_of(place: VectorSource) -> dict[str, str]:
    """Return the options by which vectors, queries and judgements are found; the file of vectors is among them."""
    queries = None if place.queries is None else str(place.queries)
    if queries is not None and place.query_weight is not None:
        queries = f"{queries}:{place.query_weight}"
    given = {
        VECTORS: str(place.source),
        COLUMN: place.vectors,
        "--nan": None if place.nan == "refuse" else place.nan,
        "--queries": queries,
        "--pairs": place.pairs,
        "--relevance": place.relevance,
        "--id": ":row" if place.by_row else place.ids,
        "--filter": place.filter,
    }
    return {name: value for name, value in given.items() if value is not None}


def recorded_options(place: VectorSource, *, shared: bool) -> dict[str, str]:
    """Return the options for a record, without credentials.

    In a `shared` record, as that of a model is, paths are as they were given if they are relative: commands on a page
    then work where the fit did. Absolute ones and addresses lose their folders, which are those of one machine.
    """
    found = {}
    for name, value in options_of(place).items():
        if name in FILES:
            if not shared or not (is_remote(value) or PurePath(value).is_absolute()):
                value = shown_place(value)
            elif any(sign in value for sign in "*["):  # without its folder, a pattern would match other files
                continue
            else:
                value = PurePath(value.partition("?")[0]).name
        if value:
            found[name] = value
    return found


def file_in(options: Mapping[str, str], file: str | None = None) -> str:
    """Return the file of vectors, or another like it, with the column in it where that has to be named."""
    return (file or options[VECTORS]) + (f":{options[COLUMN]}" if COLUMN in options else "")


def next_commands(choice: Choice | None, model: str | Path, options: Mapping[str, str]) -> list[str]:
    """Return the commands that store what is advised and, where that is not sure, what is safe.

    Parameters
    ----------
    choice : Choice or None
    model : path
        The model that was evaluated.
    options : mapping
        As `options_of` gives them; no command without a file of vectors.
    """
    if choice is None or choice.advised is None or VECTORS not in options:
        return []
    if choice.store:
        return list(store_commands(choice.advised.point, choice.store, model, options))
    lines = list(commands_for(choice.advised.point, model, options, choice.limits.bytes_per_vector))
    safe = choice.get("safe")
    if choice.unsure and safe is not None:
        lines += [f"{line}  # to be safe" for line in commands_for(safe.point, model, options)]
    return lines


def commands_for(
    point: Point, model: str | Path, options: Mapping[str, str], most_bytes: float | None = None
) -> Iterator[str]:
    """Yield the commands that store vectors as a point says; `point.code` is "" for the model's own.

    A baseline is fitted first, for as many bytes as were asked for (`most_bytes`). The queries come last: they are
    encoded as they were when the point was evaluated.
    """
    if point.precision == PRODUCT_QUANTIZER:
        # L2norm, because cosines are what was evaluated.
        yield f'In Python: faiss.index_factory({point.k}, "L2norm,PQ{point.bytes}", faiss.METRIC_INNER_PRODUCT)'
        return
    store = options[VECTORS]
    vectors, nan = file_in(options), ["--nan", options["--nan"]] if "--nan" in options else []
    by = str(model)
    if point.code in (RAW, "plain truncation"):
        by = "raw"
    elif point.code in FITTED_BASELINES:
        by = FITTED_AS[point.code]
        evaluated = _evaluated(options)
        limit = [] if most_bytes is None else ["--bytes-per-vector", f"{most_bytes:g}"]
        yield shlex.join(["firstk", "fit", vectors, *nan, *FITTED_BASELINES[point.code], *evaluated, *limit, "-o", by])
    elif point.code:
        yield f"No command makes {point.code}: choose a code that is made for these vectors instead."
        return
    length = [] if point.code == RAW else ["-k", str(point.k)]
    how = [*length, "--precision", point.precision] if point.is_prefix else ["--bytes-per-vector", str(point.bytes)]
    # The ending of the vectors, where such a file can hold the precision.
    ending, plain = Path(store).suffix, point.precision in ("float32", "float16")
    out = f"short{ending if ending and (plain or ending not in _WITHOUT_SCALE) else _WITH_SCALE}"
    yield shlex.join(["firstk", "transform", by, vectors, *nan, *how, "-o", out])
    queries, rounded = _queries(options), not point.is_prefix or point.queries == "binary"
    if queries is None or (point.code == RAW and not rounded):  # raw queries stay as they are
        return
    alike = ["--like", out] if rounded else ["-k", str(point.k)]
    target = "short_queries.npz" if not queries.endswith("short_queries.npz") else "shorter_queries.npz"
    asked = file_in(options, queries)
    yield shlex.join(["firstk", "transform", by, asked, *nan, "--side", "query", *alike, "-o", target])


def _queries(options: Mapping[str, str]) -> str | None:
    """Return the file of queries, without the column of their weights."""
    queries = options.get("--queries")
    if queries is None or Path(queries).exists() or ":" not in queries:
        return queries
    return queries.rpartition(":")[0]


def _evaluated(options: Mapping[str, str]) -> list[str]:
    """Return the options by which a baseline is evaluated: it learns from no pairs, and only a curve filters."""
    if "--relevance" not in options:
        return []
    return [word for name in JUDGED_BY if name in options and name != "--filter" for word in (name, options[name])]


def store_commands(point: Point, store: str, model: str | Path, options: Mapping[str, str]) -> Iterator[str]:
    """Yield the command that fills a vector store; where there is none, what creates a table, and codes for it."""
    held, by = find_store(store), "raw" if point.code else str(model)
    form = held.form(point.form)
    vectors, nan = file_in(options), ["--nan", options["--nan"]] if "--nan" in options else []
    if point.code in FITTED_BASELINES:
        by = FITTED_AS[point.code]
        fit = ["firstk", "fit", vectors, *nan, *FITTED_BASELINES[point.code]]
        yield shlex.join([*fit, *_evaluated(options), "--store", store, "-o", by])
    recode = form.recode(point.k)
    if recode is not None:
        how = [word for name, value in recode.items() for word in (f"-{name}" if name == "k" else f"--{name}", value)]
        encoded = [] if by == "raw" else ["--model", by]
        yield shlex.join(["firstk", "move", vectors, held.address, *nan, *encoded, *how])
        judged = [word for name in ("--relevance", "--id") if name in options for word in (name, options[name])]
        asked = ["firstk", "search", held.address, _queries(options) or "QUERIES", *encoded, *judged]
        yield shlex.join([*asked, "--against", vectors])
        return
    yield from form.configuration(point.k, point.oversampling).splitlines()
    precision = "float32" if form.rescored or form.precision == "scalar" else form.precision
    length = ["-k", str(point.k), "--precision", precision]
    yield shlex.join(["firstk", "transform", by, vectors, *nan, *length, "-o", "short.parquet"])


def curve_command(model: str | Path, place: VectorSource) -> str:
    """Return the command that evaluates on data of one's own, with the options by which the fit found its columns."""
    column = f":{place.vectors}" if place.vectors else ""
    words = ["firstk", "curve", str(model), f"TEST{column}"]
    # A file of labels goes with the rows of VECTORS, so TEST needs another one.
    words += ["--label", place.label] if place.label else ["--label", "TEST_LABELS"] if place.labels else []
    words += ["--pairs", "TEST_PAIRS"] if place.pairs else []
    if place.relevance:  # other queries of the same store
        words[3] = f"{place.source}{column}"
        words += ["--relevance", "TEST_RELEVANCE"]
    words += ["--queries", "TEST_QUERIES"] if place.queries else []
    words += ["--id", ":row" if place.by_row else str(place.ids)] if place.by_row or place.ids else []
    return shlex.join(map(str, words))
