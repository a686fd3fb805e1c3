"""Ray Data: fit on all rows of a dataset, and a column of codes in place of a column of vectors.

Tasks turn blocks into statistics and merge them, 16 at a time; the driver receives what is left of them. An actor of
`transform` loads the model once. Needs the extra "ray".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from firstk._base.checks import require
from firstk.estimator.encoding import Wish
from firstk.integrations._arrow_batches import SAMPLE_ROWS, Coder, Named, coder, plain_errors
from firstk.integrations.parts import ShortSampleError, finish, measure, merge

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

    from firstk.encoder.fitted import FittedEncoder
    from firstk.estimator.prefix_encoder import PrefixEncoder

__all__ = ["fit", "transform"]

Encoder = TypeVar("Encoder", bound="PrefixEncoder")

# Parts that one task merges.
_FAN = 16


def fit(
    encoder: Encoder,
    ds: Dataset,
    vectors: str | Sequence[str] = "vector",
    label: str | None = None,
    weight: str | None = None,
    *,
    nan: str = "refuse",
    rows: int | None = None,
) -> Encoder:
    """Fit an encoder on the rows of a dataset; the same as ``fit`` on all of them, up to rounding.

    The rows are read once; again, with larger parts, where so many of them are equal that the parts' samples are short.

    Parameters
    ----------
    encoder : PrefixEncoder
        With an objective that is fitted from moments.
    ds : Dataset
    vectors : str or two of them
        A column of lists or tensors of floats; two columns for pairs, as in ``fit_pairs``.
    label, weight : str, optional
        Columns of labels or targets (of pairs: scores), and of weights.
    nan : {"refuse", "drop"}
        What happens to rows whose vector is missing, or holds NaN or infinity.
    rows : int, optional
        Number of rows, if it is known; otherwise they are counted first, which parquet files tell without being read.

    Returns
    -------
    encoder : PrefixEncoder
    """
    require("ray.data", "ray", "Fitting on Ray")
    named = Named(vectors, label, weight, nan)
    ds = ds.select_columns(named.among(ds.columns() or ()))
    with plain_errors():
        part = _merged(encoder, ds, named, rows or ds.count())
    try:
        return finish(encoder, [part])
    except ShortSampleError:
        return finish(encoder, [_merged(encoder, ds, named, None)])


def _merged(encoder: PrefixEncoder, ds: Dataset, named: Named, rows: int | None) -> bytes:
    """Return the statistics of all blocks, merged by tasks in the order of blocks."""
    ray, pa = require("ray", "ray", "Fitting on Ray"), require("pyarrow", "ray", "Ray")

    def measured(table: pyarrow.Table) -> pyarrow.Table:
        part = measure(encoder, named.batches(table.to_batches()), pairs=named.pairs, rows=rows)
        return pa.table({"part": pa.array([part], pa.binary())})

    @ray.remote
    def joined(*tables: pyarrow.Table) -> pyarrow.Table:
        found = merge(part for table in tables for part in table["part"].to_pylist())
        return pa.table({"part": pa.array([found], pa.binary())})

    parts = ds.map_batches(measured, batch_format="pyarrow", batch_size=None)
    parts.context.execution_options.preserve_order = True
    refs = parts.to_arrow_refs()
    while len(refs) > 1:
        refs = [joined.remote(*refs[i : i + _FAN]) for i in range(0, len(refs), _FAN)]
    return merge(part for table in ray.get(refs) for part in table["part"].to_pylist())


def transform(
    encoder: PrefixEncoder | FittedEncoder,
    ds: Dataset,
    vectors: str = "vector",
    k: int | None = None,
    precision: str | None = None,
    bytes_per_vector: int | None = None,
    *,
    side: str | None = None,
    metric: str | None = None,
    nan: str = "refuse",
    **options: Any,
) -> Dataset:
    """Return the dataset with codes in place of its vectors; it is computed when it is used.

    Parameters
    ----------
    encoder : fitted encoder
    ds : Dataset
    vectors : str
        The column; it keeps its name, and other columns stay as they are. Codes are lists of floats or, for int8, of
        bytes; all others are binary.
    k, precision, bytes_per_vector, side, metric
        As in :func:`firstk.transform_files`.
    nan : {"refuse", "drop"}
    **options
        Of ``Dataset.map_batches``: `concurrency`, 2 if not given, `batch_size`, `num_cpus`.

    Returns
    -------
    codes : Dataset
    """
    require("ray.data", "ray", "Transforming with Ray")
    Named(vectors).among(ds.columns() or ())
    wish = Wish(k, side, precision, bytes_per_vector, metric)
    with plain_errors():
        made = coder(encoder, vectors, wish, nan, _first(ds, vectors))
    settings = {"batch_size": 65_536, "concurrency": 2} | options
    return ds.map_batches(_Actor, fn_constructor_args=(made,), batch_format="pyarrow", **settings)


def _first(ds: Dataset, vectors: str) -> Iterable[Any]:
    """Yield rows to fit scales on; the dataset is read when they are asked for."""
    first: Any = ds.select_columns([vectors]).limit(SAMPLE_ROWS)
    for table in first.iter_batches(batch_format="pyarrow", batch_size=8192):
        yield from table.to_batches()


class _Actor:
    """A worker that keeps the model."""

    def __init__(self, made: Coder):
        self.made = made

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        pa = require("pyarrow", "ray", "Ray")
        return pa.Table.from_batches([self.made(batch) for batch in table.to_batches()])
