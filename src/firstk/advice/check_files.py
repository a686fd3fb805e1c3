"""Files of new rows, checked against the fit of a saved encoder in one stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from firstk._base.rows import half_as_single
from firstk.advice.inputs import open_labeled
from firstk.data.remote import shown_place
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.check import TOLERANCE, CheckReport, NewRows, check_rows
from firstk.exceptions import InvalidInputError
from firstk.quality.paired import CONFIDENCE

# Rows of a batch: they are copied to float64 on the way into the moments.
BATCH_ROWS = 16384


def check_files(
    encoder: FittedEncoder,
    source: str | Path,
    *,
    against: str | Path | None = None,
    vectors: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    k: int | None = None,
    tolerance: float = TOLERANCE,
    confidence: float = CONFIDENCE,
    nan: str = "refuse",
    progress: Callable[[int], object] = lambda rows: None,
) -> CheckReport:
    """Do what ``PrefixEncoder.check`` does with files, in bounded memory.

    Parameters
    ----------
    encoder : FittedEncoder
    source : path
        New rows: a file, a folder of shards or a pattern of names.
    against : path, optional
        Rows from when the model was fitted; the profile that was saved with the model if not given.
    vectors, label, labels : str, optional
        Columns, as `firstk.advice.inputs.VectorSource` takes them; `label` is looked for in `against` too.
    k, tolerance, confidence
        As in ``PrefixEncoder.check``.
    nan : {"refuse", "drop"}
    progress : callable (rows) -> None
        Told how many rows have just been read.
    """

    def read(path: str | Path, labels: str | None) -> NewRows:
        found, rows = open_labeled(path, vectors=vectors, label=label, labels=labels, nan=nan), NewRows(encoder)
        if found.table.width != encoder.p:
            raise InvalidInputError(
                f"The vectors of '{shown_place(path)}' have {found.table.width} numbers, and the encoder takes "
                f"{encoder.p}. Give vectors of the same model as at the fit, or name their column with vectors=."
            )
        for X, y in found.batches(BATCH_ROWS):
            if len(X):
                rows.update(half_as_single(X), y)
            progress(len(X))
        return rows

    then = None if against is None else read(against, None).profile()
    return check_rows(read(source, labels), then, k=k, tolerance=tolerance, confidence=confidence)
