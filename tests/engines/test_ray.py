"""Ray itself, on two cores: the same fits as one process, and codes."""

from __future__ import annotations

import os

import numpy as np
import pytest

from engines.conftest import FITS, block_of_the_docs, same
from firstk import PrefixEncoder, transform_files
from firstk.exceptions import InvalidInputError

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
pytest.importorskip("ray.data", reason="needs the extra 'ray'")
pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_AUTH_MODE", "disabled")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()
    patch.undo()


@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_that_of_all_rows(store, expected, name):
    from firstk.integrations.ray import fit

    make, columns = FITS[name]
    same(fit(make(), ray.data.read_parquet(store), **columns), expected[name])


def test_the_same_blocks_give_the_same_bytes_through_a_tree(store, monkeypatch):
    from firstk.integrations import ray as module

    monkeypatch.setattr(module, "_FAN", 2)
    ds = ray.data.read_parquet(store).repartition(9).materialize()
    first, second = (module.fit(PrefixEncoder(3, objective="fisher"), ds, label="label") for _ in range(2))
    assert first.components_.tobytes() == second.components_.tobytes()


def test_empty_blocks_and_a_worker_that_is_killed(store, expected, tmp_path):
    """The killed block is measured again by Ray, and counted once."""
    from firstk.integrations.ray import fit

    flag = str(tmp_path / "killed")

    def killed_once(table):
        if not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), 9)
        return table

    ds = ray.data.read_parquet(store).map_batches(killed_once, batch_format="pyarrow")
    same(fit(PrefixEncoder(3, objective="fisher"), ds, label="label", rows=1200), expected["fisher"])
    assert os.path.exists(flag)


@pytest.mark.parametrize("options", [{"k": 2}, {"precision": "int8"}, {"bytes_per_vector": 2}], ids=str)
def test_codes_are_those_of_files(store, expected, options, tmp_path):
    from firstk.data.files import open_vectors
    from firstk.integrations.ray import transform

    encoder = expected["fisher"]
    out = transform(encoder, ray.data.read_parquet(store), concurrency=1, **options)
    found = pa.concat_tables(out.iter_batches(batch_format="pyarrow")).sort_by("id")
    transform_files(encoder, store, tmp_path / "codes.parquet", vectors="vector", **options)
    written = open_vectors(tmp_path / "codes.parquet").as_stored().read()
    codes = np.array([list(one) for one in found["vector"].to_pylist()])
    np.testing.assert_allclose(codes, written.vectors, atol=1e-6)
    assert found["label"].to_pylist() == written.columns["label"].tolist()


def test_tensors_and_half_precision(rows):
    """Ray keeps arrays as tensors of its own."""
    from firstk.integrations.ray import fit

    half = rows.X.astype(np.float16)
    ds = ray.data.from_numpy(half).rename_columns(["vector"])
    np.testing.assert_allclose(fit(PrefixEncoder(3), ds).components_, PrefixEncoder(3).fit(half).components_, atol=1e-6)


def test_bad_columns_get_a_sentence_that_names_rows():
    from firstk.integrations.ray import fit

    vectors = pa.array([[1.0, 2.0], None, [float("nan"), 1.0]], pa.list_(pa.float32()))
    ds = ray.data.from_arrow(pa.table({"id": ["a", "b", "c"], "vector": vectors}))
    with pytest.raises(InvalidInputError, match=r"in 2 of 3 vectors. Their id: b, c\."):
        fit(PrefixEncoder(1), ds)


def test_the_lines_of_the_docs_run(store, tmp_path):
    from firstk.data.files import open_vectors

    exec(block_of_the_docs("Ray Data", store, tmp_path), {})
    assert open_vectors(tmp_path / "codes", "vector").width == 2
