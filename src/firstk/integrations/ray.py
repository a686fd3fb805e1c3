"""Ray Data: fit on all rows of a dataset, and a column of codes in place of a column of vectors.

Tasks turn blocks into statistics and merge them, 16 at a time; the driver receives what is left of them. An actor of
`transform` loads the model once. Needs the extra "ray".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from firstk._base.checks import require
from firstk.estimator.encoding import Wish
from firstk.integrations._arrow_batches import SAMPLE_ROWS, Coder, Encoder, Named, coder, fitted_on
from firstk.integrations.parts import measure, merge

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

    from firstk.encoder.fitted import FittedEncoder
    from firstk.estimator.prefix_encoder import PrefixEncoder

__all__ = ["fit", "transform"]

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

    Parameters
    ----------
    encoder, label, weight, nan
        As in :func:`firstk.integrations.spark.fit`.
    ds : Dataset
    vectors : str or two of them
        A column of lists or tensors of floats; two columns for pairs, as in ``fit_pairs``.
    rows : int, optional
        Number of rows, if it is known; otherwise they are counted first, which parquet files tell without being read.
    """
    require("ray.data", "ray", "Fitting on Ray")
    named = Named(vectors, label, weight, nan)
    ds = ds.select_columns(named.among(ds.columns() or ()))
    ray, pa = require("ray", "ray", "Fitting on Ray"), require("pyarrow", "ray", "Ray")

    def gather(count: int | None) -> list[bytes]:
        """Return the statistics of all blocks, merged by tasks in the order of blocks."""

        def measured(table: pyarrow.Table) -> pyarrow.Table:
            part = measure(encoder, named.batches(table.to_batches()), pairs=named.pairs, rows=count)
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
        return [part for table in ray.get(refs) for part in table["part"].to_pylist()]

    return fitted_on(encoder, gather, rows or ds.count())


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
    encoder, vectors, k, precision, bytes_per_vector, side, metric, nan
        As in :func:`firstk.integrations.spark.transform`.
    ds : Dataset
    **options
        Of ``Dataset.map_batches``: `concurrency`, 2 if not given, `batch_size`, `num_cpus`.
    """
    require("ray.data", "ray", "Transforming with Ray")
    wish = Wish(k, side, precision, bytes_per_vector, metric)
    made = coder(encoder, ds.columns() or (), vectors, wish, nan, _first(ds, vectors))
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
