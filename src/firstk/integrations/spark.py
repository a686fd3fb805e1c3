"""Spark data frames: fit on all their rows, and a column of codes in place of a column of vectors.

Workers send statistics, which are merged on workers, 16 at a time; the driver receives a few dozen. Every function is
one of data frames, so that Spark Connect works too. Needs the extra "spark".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from firstk._base.checks import require
from firstk.estimator.encoding import Wish
from firstk.integrations._arrow_batches import SAMPLE_ROWS, Encoder, Named, coder, fitted_on
from firstk.integrations.parts import measure, merge

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from firstk.encoder.fitted import FittedEncoder
    from firstk.estimator.prefix_encoder import PrefixEncoder

__all__ = ["fit", "transform"]

# Parts that one task merges, and parts that the driver may receive.
_FAN, _FEW = 16, 32
_PARTS = "number long, part binary"


def fit(
    encoder: Encoder,
    df: DataFrame,
    vectors: str | Sequence[str] = "vector",
    label: str | None = None,
    weight: str | None = None,
    *,
    nan: str = "refuse",
) -> Encoder:
    """Fit an encoder on the rows of a data frame; the same as ``fit`` on all of them, up to rounding.

    The rows are counted, then read once; again, with larger parts, where so many of them are equal that the parts'
    samples are short.

    Parameters
    ----------
    encoder : PrefixEncoder
        With an objective that is fitted from moments.
    df : DataFrame
    vectors : str or two of them
        A column of lists of floats; two columns for pairs, as in ``fit_pairs``.
    label, weight : str, optional
        Columns of labels or targets (of pairs: scores), and of weights.
    nan : {"refuse", "drop"}
        What happens to rows whose vector is missing, or holds NaN or infinity.

    Returns
    -------
    encoder : PrefixEncoder
    """
    functions = require("pyspark.sql.functions", "spark", "Fitting on Spark")
    named = Named(vectors, label, weight, nan)
    df = df.select(*named.among(df.columns))
    places = df.select(functions.spark_partition_id().alias("number"))
    total, last = places.agg(functions.count("number"), functions.max("number")).collect()[0]

    def gather(count: int | None) -> list[bytes]:
        """Return the merged parts in the order of partitions."""
        left = last or 0

        def measured(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            part = measure(encoder, named.batches(batches), pairs=named.pairs, rows=count)
            yield _table([context.partitionId()], [part]).to_batches()[0]

        def joined(table: pyarrow.Table) -> pyarrow.Table:
            table = table.sort_by("number")
            number = table["number"][0].as_py() // _FAN
            return _table([number], [merge(part.as_py() for part in table["part"])])

        found = df.mapInArrow(measured, _PARTS)
        while left >= _FEW:
            found = found.groupBy((found["number"] / _FAN).cast("long").alias("group")).applyInArrow(joined, _PARTS)
            left //= _FAN
        return [bytes(row.part) for row in sorted(found.toLocalIterator(), key=lambda row: row.number)]

    return fitted_on(encoder, gather, total)


def _table(numbers: list[int], parts: list[bytes]) -> pyarrow.Table:
    pa = require("pyarrow", "spark", "Spark")
    return pa.table({"number": pa.array(numbers, pa.int64()), "part": pa.array(parts, pa.binary())})


def transform(
    encoder: PrefixEncoder | FittedEncoder,
    df: DataFrame,
    vectors: str = "vector",
    k: int | None = None,
    precision: str | None = None,
    bytes_per_vector: int | None = None,
    *,
    side: str | None = None,
    metric: str | None = None,
    nan: str = "refuse",
) -> DataFrame:
    """Return the data frame with codes in place of its vectors; it is computed when it is used.

    Parameters
    ----------
    encoder : fitted encoder
    df : DataFrame
    vectors : str
        The column; it keeps its name, and other columns stay as they are. Codes are lists of floats or, for int8, of
        bytes; all others are binary.
    k, precision, bytes_per_vector, side, metric
        As in :func:`firstk.transform_files`; float16 is no type of Spark.
    nan : {"refuse", "drop"}

    Returns
    -------
    codes : DataFrame
        The metadata of the column say how the codes were made.
    """
    types = require("pyspark.sql.types", "spark", "Transforming with Spark")
    wish = Wish(k, side, precision, bytes_per_vector, metric)
    made = coder(encoder, df.columns, vectors, wish, nan, _first(df, vectors))

    def encoded(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return map(made, batches)

    kind = made.empty.dtype.name
    inner = {"float32": types.FloatType(), "int8": types.ByteType(), "uint8": None}[kind]
    codes = types.BinaryType() if inner is None else types.ArrayType(inner)
    schema = types.StructType(
        [types.StructField(vectors, codes, True, made.metadata) if f.name == vectors else f for f in df.schema]
    )
    return df.mapInArrow(encoded, schema)


def _first(df: DataFrame, vectors: str) -> Iterable[Any]:
    """Yield rows to fit scales on; the data frame is read when they are asked for."""
    yield from df.select(vectors).limit(SAMPLE_ROWS).toArrow().to_batches()
