"""Fits on dask collections: the components of a fit in memory, whatever the scheduler, the partition, or the losses."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.solvers import Gradient

da = pytest.importorskip("dask.array", reason="needs the extra 'dask'")
dask = pytest.importorskip("dask", reason="needs the extra 'dask'")

RNG = np.random.default_rng(0)
N, P, C = 240, 6, 4
SCALES = np.array([5.0, 3.0, 2.0, 1.2, 0.7, 0.3])  # clear eigengaps
Y = RNG.integers(0, C, N)
X = RNG.normal(size=(N, P)) * SCALES + RNG.normal(size=(C, P))[Y] * 2 + 100
T = X[:, :2] @ RNG.normal(size=(2, 2)) + RNG.normal(size=(N, 2))
W = RNG.uniform(0.1, 2, N)
CUTS = {"one": (240,), "even": (60,) * 4, "ragged": (1, 100, 3, 136), "many": (5,) * 48}
CASES = {
    "reconstruction": (None, None),
    "fisher": (Y, None),
    "regression": (T, None),
    "mixture": (Y, None),
    "denoising": (None, None),
    "weighted": (Y, W),
}


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def objective_of(case):
    return "fisher" if case == "weighted" else case


def lazily(part, cuts):
    return None if part is None else da.from_array(part, chunks=(cuts, *part.shape[1:]))


def assert_same(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(found.components_, expected.components_, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=0, atol=tolerance)
    assert found.encoder_.record.rows == expected.encoder_.record.rows
    assert found.encoder_.record.data_fingerprint == expected.encoder_.record.data_fingerprint


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_any_partition_gives_the_fit_in_memory(case, cuts):
    y, weight = CASES[case]
    expected = PrefixEncoder(objective=objective_of(case)).fit(X, y, weight)
    found = PrefixEncoder(objective=objective_of(case)).fit(lazily(X, cuts), lazily(y, cuts), lazily(weight, cuts))
    assert_same(found, expected)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_any_scheduler_gives_the_same_bytes(scheduler):
    with dask.config.set(scheduler=scheduler):
        found = PrefixEncoder(objective="fisher").fit(lazily(X, CUTS["many"]), lazily(Y, CUTS["many"]))
    with dask.config.set(scheduler="synchronous"):
        again = PrefixEncoder(objective="fisher").fit(lazily(X, CUTS["many"]), lazily(Y, CUTS["many"]))
    assert found.components_.tobytes() == again.components_.tobytes()


def test_columns_in_pieces_and_labels_cut_otherwise_are_put_together():
    expected = PrefixEncoder(objective="fisher").fit(X, Y)
    found = PrefixEncoder(objective="fisher").fit(da.from_array(X, chunks=(70, 4)), da.from_array(Y, chunks=100))
    assert_same(found, expected)
    assert_same(PrefixEncoder(objective="fisher").fit(da.from_array(X, chunks=(70, 4)), Y), expected)


def test_partitions_of_unknown_size_and_empty_ones():
    keep = X[:, 0] > X[:60, 0].min() + 1
    keep[:60] = False  # the first partition becomes empty
    lazy, labels = lazily(X, CUTS["even"]), lazily(Y, CUTS["even"])
    mask = lazily(keep, CUTS["even"])
    found = PrefixEncoder(objective="fisher").fit(lazy[mask], labels[mask])
    assert_same(found, PrefixEncoder(objective="fisher").fit(X[keep], Y[keep]))
    codes = found.transform(lazy[mask])
    np.testing.assert_allclose(codes.compute(), found.transform(X[keep]), atol=1e-10)


def test_transform_is_lazy_and_maps_over_partitions():
    calls = []

    def load(block):
        calls.append(len(block))
        return block

    lazy = lazily(X.astype(np.float32), CUTS["ragged"]).map_blocks(load, dtype=np.float32, meta=np.empty((0, 0), "f4"))
    encoder = PrefixEncoder(3).fit(X)
    codes = encoder.transform(lazy, k=2)
    assert calls == []
    assert codes.chunks == (CUTS["ragged"], (2,))
    assert codes.dtype == np.float32
    np.testing.assert_allclose(codes.compute(), encoder.transform(X.astype(np.float32), k=2), atol=1e-5)
    assert sorted(calls) == sorted(CUTS["ragged"])


def test_data_frames_and_series():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    dd = pytest.importorskip("dask.dataframe", reason="needs dask's data frames")
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(P)]).assign(label=Y)
    lazy = dd.from_pandas(frame, npartitions=5)
    names = list(frame.columns[:P])
    found = PrefixEncoder(objective="fisher").fit(lazy[names], lazy["label"])
    expected = PrefixEncoder(objective="fisher").fit(frame[names], frame["label"])
    assert_same(found, expected)
    assert list(found.feature_names_in_) == names
    np.testing.assert_allclose(found.transform(lazy[names]).compute(), expected.transform(frame[names]), atol=1e-10)
    with pytest.raises(ValueError, match="feature names should match"):
        found.transform(lazy[names[::-1]])


def test_bags_of_batches():
    bag_of = pytest.importorskip("dask.bag", reason="needs dask's bags").from_sequence
    batches = [(X[i : i + 30], Y[i : i + 30]) for i in range(0, N, 30)]
    expected = PrefixEncoder(objective="fisher").fit(X, Y)
    assert_same(PrefixEncoder(objective="fisher").fit(bag_of(batches, npartitions=3)), expected)
    mappings = [{"X": rows, "y": labels} for rows, labels in batches]
    assert_same(PrefixEncoder(objective="fisher").fit(bag_of(mappings, npartitions=2)), expected)
    with pytest.raises(InvalidInputError, match="A bag holds whole batches"):
        PrefixEncoder(objective="fisher").fit(bag_of(batches), Y)


def test_pairs_with_scores_and_choices_made_from_the_sample():
    left, right = X - 100, (X - 100)[:, ::-1] * 0.1 + RNG.normal(size=(N, P)) * SCALES
    scores = (left * right)[:, :4] @ [1.0, 2.0, 3.0, 4.0] + RNG.normal(size=N)
    expected = PrefixEncoder(3, objective="similarity").fit_pairs(left, right, scores)
    parts = [lazily(part, CUTS["ragged"]) for part in (left, right, scores)]
    found = PrefixEncoder(3, objective="similarity").fit_pairs(*parts)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)
    assert found.objective_ == expected.objective_


def test_partial_fit_and_merge_go_on_from_dask():
    cuts = (40, 80)
    encoder = PrefixEncoder(objective="fisher").fit(lazily(X[:120], cuts), lazily(Y[:120], cuts))
    encoder.partial_fit(lazily(X[120:], cuts), lazily(Y[120:], cuts))
    assert_same(encoder, PrefixEncoder(objective="fisher").fit(X, Y))


def test_nan_names_its_partition():
    bad = X.copy()
    bad[130, 2] = np.nan
    with pytest.raises(InvalidInputError, match=r"In partition 2: .*row 10"):
        PrefixEncoder().fit(lazily(bad, CUTS["even"]))
    codes = PrefixEncoder(2).fit(X).transform(lazily(bad, CUTS["even"]))
    with pytest.raises(InvalidInputError, match="In partition 2: "):
        codes.compute()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrefixEncoder().fit(da.zeros((4, 2, 2))), "two-dimensional"),
        (lambda: PrefixEncoder(objective="fisher").fit(lazily(X, (240,)), lazily(Y[:100], (100,))), "Got 240 and 100"),
        (lambda: PrefixEncoder(objective="fisher").fit(lazily(X, (120, 120))), "y to be passed"),
        (lambda: PrefixEncoder().fit(dask.delayed(X)), "Got a Delayed"),
        (lambda: PrefixEncoder(99).fit(lazily(X, (240,))), "n_components"),
        (lambda: PrefixEncoder().fit(lazily(X, (240,))[:0]), "no row to fit on"),
        (lambda: PrefixEncoder(2).fit(X).transform(lazily(X[:, :4], (240,))), "4 features"),
        (lambda: PrefixEncoder(2).fit(X).curve(lazily(X, (240,))), "data in memory"),
    ],
)
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_training_that_needs_rows_raises_before_anything_is_read():
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    read = []
    lazy = lazily(X, CUTS["even"]).map_blocks(lambda block: read.append(1) or block, meta=np.empty((0, 0)))
    with pytest.raises(
        IllegalCombinationError, match=r"dask data with objective 'classification'.*integrations\.distributed"
    ):
        PrefixEncoder(objective="classification").fit(lazy, lazily(Y, CUTS["even"]))
    assert read == []


def test_training_on_moments_takes_dask_data():
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    solver = Gradient(epochs=30)
    found = PrefixEncoder(2, solver=solver, random_state=0).fit(lazily(X, CUTS["even"]))
    expected = PrefixEncoder(2, solver=solver, random_state=0).fit(X)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)


def test_the_command_line_fits_on_a_cluster(tmp_path):
    """The workers are threads of this process: they see its files, and nothing else of it is needed."""
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    from typer.testing import CliRunner

    from firstk.cli import app

    (tmp_path / "store").mkdir()
    for i in range(10):
        rows = slice(24 * i, 24 * i + 24)
        np.savez(tmp_path / "store" / f"part-{i}.npz", vectors=X[rows], label=Y[rows])
    command = ["fit", str(tmp_path / "store"), "--objective", "fisher", "--label", "label", "-o"]
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        done = CliRunner().invoke(app, [*command, str(tmp_path / "dask"), "--dask", cluster.scheduler_address])
        assert done.exit_code == 0, repr(done.exception)
        wrong = CliRunner().invoke(
            app, [*command, str(tmp_path / "x"), "--dask", cluster.scheduler_address, "--label", "y.npy"]
        )
        assert wrong.exit_code == 1
    assert CliRunner().invoke(app, [*command, str(tmp_path / "here")]).exit_code == 0
    found, expected = (PrefixEncoder.load(tmp_path / name) for name in ("dask", "here"))
    assert_same(found, expected)


# -- a cluster of two worker processes -----------------------------------------------------------------------------


def slow_block(rows, folder, block_info=None):
    """Make rows on a worker, leave a trace of it, and take some time."""
    place = block_info[None]["chunk-location"][0]
    with open(os.path.join(folder, f"{place}-{os.getpid()}-{time.monotonic_ns()}"), "w"):
        time.sleep(0.05)
    return rows


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    settings = {"distributed.worker.daemon": True, "distributed.scheduler.allowed-failures": 10}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.wings
def test_a_cluster_gives_the_same_and_survives_a_killed_worker(client, tmp_path):
    cuts = CUTS["many"]
    expected = PrefixEncoder(objective="fisher").fit(lazily(X, cuts), lazily(Y, cuts))
    lazy = lazily(X, cuts).map_blocks(slow_block, folder=str(tmp_path), dtype=X.dtype, meta=np.empty((0, 0)))
    killed = []

    def kill_one_when_some_are_done():
        while len(os.listdir(tmp_path)) < 12:
            time.sleep(0.01)
        killed.append(int(sorted(os.listdir(tmp_path))[0].split("-")[1]))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one_when_some_are_done, daemon=True)
    killer.start()
    with client.as_current(), dask.config.set(scheduler=client.get):
        found = PrefixEncoder(objective="fisher").fit(lazy, lazily(Y, cuts))
    killer.join()
    traces = [name.split("-") for name in os.listdir(tmp_path)]
    places = [int(place) for place, *_ in traces]
    assert killed
    assert len(places) > len(set(places)) == len(cuts), "what the killed worker held was made again"
    assert os.getpid() not in {int(pid) for _, pid, _ in traces}, "no row was made in the client"
    assert found.components_.tobytes() == expected.components_.tobytes()
    assert_same(found, PrefixEncoder(objective="fisher").fit(X, Y))
