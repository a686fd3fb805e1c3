"""Spark itself, in two worker threads: the same fits as one process, and what travels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from engines.conftest import FITS, block_of_the_docs, same
from firstk import PrefixEncoder, transform_files
from firstk.data.files import open_vectors
from firstk.exceptions import InvalidInputError

pytest.importorskip("pyspark", reason="needs the extra 'spark'")
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17 or later on the PATH")
pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    found = (
        SparkSession.builder.master("local[2,4]")  # a task is tried four times
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.files.maxPartitionBytes", "20000")  # so that every file is a partition
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()
    patch.undo()


@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_that_of_all_rows(spark, store, expected, name):
    from firstk.integrations.spark import fit

    make, columns = FITS[name]
    df = spark.read.parquet(store)
    assert df.rdd.getNumPartitions() > 2
    same(fit(make(), df, **columns), expected[name])


def test_the_same_partitions_give_the_same_bytes_through_a_tree(spark, store, monkeypatch):
    from firstk.integrations import spark as module

    monkeypatch.setattr(module, "_FAN", 2)
    monkeypatch.setattr(module, "_FEW", 2)
    df = spark.read.parquet(store).repartition(9, "id")
    first, second = (module.fit(PrefixEncoder(3, objective="fisher"), df, label="label") for _ in range(2))
    assert first.components_.tobytes() == second.components_.tobytes()


def test_empty_partitions_and_a_worker_that_is_killed(spark, store, expected, tmp_path):
    """The killed partition is measured again by Spark, and counted once."""
    from firstk.integrations.spark import fit

    flag = tmp_path / "killed"

    def killed_once(batches):
        for batch in batches:
            if not flag.exists():
                flag.touch()
                os.kill(os.getpid(), 9)
            yield batch

    df = spark.read.parquet(store)
    df = df.mapInArrow(killed_once, df.schema).union(df.limit(0))
    same(fit(PrefixEncoder(3, objective="fisher"), df, label="label"), expected["fisher"])
    assert flag.exists()


@pytest.mark.parametrize(
    "options", [{"k": 2}, {"precision": "int8"}, {"precision": "binary"}, {"bytes_per_vector": 2}], ids=str
)
def test_codes_are_those_of_files(spark, store, expected, options, tmp_path):
    from firstk.integrations.spark import transform

    encoder = expected["fisher"]
    out = transform(encoder, spark.read.parquet(store), **options)
    assert out.columns == ["id", "label", "weight", "vector", "other"]
    assert "firstk" in out.schema["vector"].metadata
    found = out.orderBy("id").toArrow()
    transform_files(encoder, store, tmp_path / "codes.parquet", vectors="vector", **options)
    written = open_vectors(tmp_path / "codes.parquet").as_stored().read()
    values = found["vector"].to_pylist()
    codes = np.array([list(one) for one in values])
    assert isinstance(values[0], bytes) == (options not in ({"k": 2}, {"precision": "int8"}))
    np.testing.assert_allclose(codes, written.vectors, atol=1e-6)
    assert found["label"].to_pylist() == written.columns["label"].tolist()


def test_bad_columns_get_a_sentence_that_names_rows(spark):
    from firstk.integrations.spark import fit

    def frame(*vectors):
        return spark.createDataFrame(list(enumerate(vectors, 7)), "id long, vector array<float>").coalesce(1)

    with pytest.raises(
        InvalidInputError, match=r"'vector' has NaN, infinity or nothing in 2 of 3 vectors. Their id: 8, 9\."
    ):
        fit(PrefixEncoder(1), frame([1.0, 2.0], None, [float("nan"), 1.0]))
    with pytest.raises(InvalidInputError, match=r"'vector': its vectors are ragged.*Their id: 8\."):
        fit(PrefixEncoder(1), frame([1.0, 2.0], [1.0], [3.0, 4.0]))
    with pytest.raises(InvalidInputError, match=r"There is no column 'embedding'\. The columns are id, vector"):
        fit(PrefixEncoder(1), frame([1.0, 2.0]), "embedding")
    good = [[float(i), float(i % 7)] for i in range(20)]
    dropped = fit(PrefixEncoder(1), frame(*good, None), nan="drop")
    np.testing.assert_allclose(
        dropped.components_, PrefixEncoder(1).fit(np.array(good, np.float32)).components_, atol=1e-6
    )


def test_the_lines_of_the_docs_run(spark, store, tmp_path):

    exec(block_of_the_docs("Spark", store, tmp_path), {"spark": spark})
    assert open_vectors(tmp_path / "codes", "vector").width == 2


def test_files_that_the_workers_can_read(spark, store, tmp_path, expected):
    lines = block_of_the_docs("Files that the workers can read", store, tmp_path)
    found = {"spark": spark}
    exec(lines.replace("PrefixEncoder(2", "PrefixEncoder(3").replace("*.parquet", "[0-5].parquet"), found)
    same(found["encoder"], expected["fisher"])


def test_spark_connect_needs_no_more(store, expected, tmp_path):
    """In a process of its own, because one has sessions of Connect or of Spark itself."""
    pytest.importorskip("grpc_status", reason="Spark Connect needs pyspark[connect]")
    lines = block_of_the_docs("Spark", store, tmp_path).replace("PrefixEncoder(2", "PrefixEncoder(3")
    program = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert "connect" in type(spark).__module__
{lines}
encoder.save({str(tmp_path / "model")!r})
spark.stop()
"""
    quiet = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same(PrefixEncoder.load(tmp_path / "model"), expected["fisher"])
    transform_files(expected["fisher"], store, tmp_path / "files", vectors="vector", k=2, precision="int8")
    codes, files = (open_vectors(tmp_path / name, "vector").as_stored().read(["id"]) for name in ("codes", "files"))
    order, place = (np.argsort(part.columns["id"]) for part in (codes, files))
    np.testing.assert_allclose(codes.vectors[order], files.vectors[place], atol=1)
