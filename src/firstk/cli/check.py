"""``firstk check``: whether a saved encoder still fits new rows, with an exit code for cron."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firstk.cli import _options as given
from firstk.cli._progress import row_progress

# Exit codes, as those of diff: 0 still fits (or cannot be told yet), 1 refit, 2 no answer: wrong usage or input.
REFIT, NO_ANSWER = 1, 2


def check(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved encoder.")],
    source: given.VectorsArgument,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Coordinates that are in use; the recommended number if not given.")
    ] = None,
    label: given.LabelOption = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Rows from when the model was fitted; needed if it has no saved profile.",
            metavar="FILE",
        ),
    ] = None,
    nan: given.NanOption = "refuse",
    json: given.JsonOption = False,
    quiet: given.QuietOption = False,
) -> None:
    """Tell whether the first k coordinates keep as much of new rows as they kept of rows at the time of the fit.

    It compares recall@10 of the short codes against the full vectors, then and now (and the objective's own score, with
    labels or targets), each with an interval, and reports drift of mean and variance beside it. The verdict goes by the
    quality that is lost, not by the drift.

    Exit codes: 0 still fits, or too few rows to tell; 1 refit; 2 no answer (wrong usage, unreadable file). For cron:
    firstk check model/ new.parquet --quiet || mail ...
    """
    import json as plain

    from firstk.advice.check_files import check_files
    from firstk.data.files import open_vectors
    from firstk.encoder.fitted import FittedEncoder

    encoder = FittedEncoder.load(model)
    source, vectors = given.file_and_column(source)
    files = [source] if against is None else [against, source]
    with row_progress(
        lambda: sum(open_vectors(file, vectors).rows for file in files), quiet=quiet or json, what="reading"
    ) as progress:
        report = check_files(
            encoder,
            source,
            against=against,
            vectors=vectors,
            label=None if given.is_label_file(label) else label,
            labels=label if given.is_label_file(label) else None,
            k=k,
            nan=nan,
            progress=progress,
        )
    typer.echo(plain.dumps({"model": str(model), **report.to_dict()}) if json else given.in_options(str(report)))
    if report.refit:
        raise typer.Exit(REFIT)
