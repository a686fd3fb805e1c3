"""An index over its life: rows come and go, it is saved and read, and bad requests raise errors."""

import copy
import os
import pickle
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from firstk import CodeIndex, FunnelIndex, PrefixEncoder
from firstk._base import atomic_file as atomic_files
from firstk.exceptions import CorruptModelError, InvalidInputError, MissingExtraError
from firstk.search import FitWarning, Schedule
from firstk.search import index_file as _file

RNG = np.random.default_rng(0)
Z = (RNG.normal(size=(300, 12)) * 0.7 ** np.arange(12)).astype(np.float32)
Q = (RNG.normal(size=(20, 12)) * 0.7 ** np.arange(12)).astype(np.float32)
Z.flags.writeable = Q.flags.writeable = False
STAGES = [(3, 60), (6, 20)]


ENCODER = PrefixEncoder().fit(Z)
METRICS = ("l2", "inner_product", "cosine")


def _funnel(rows, ids=None, metric="l2"):
    return FunnelIndex.fit(rows, schedule=STAGES, ids=ids, metric=metric, engine="numpy")


def _bytes(rows, ids=None, metric="l2"):
    return CodeIndex.fit(rows, encoder=ENCODER, bytes=6, ids=ids, metric=metric)


@pytest.fixture(params=[_funnel, _bytes], ids=["funnel", "bytes"])
def build(request):
    """Return what builds an index of each kind in turn."""
    return request.param


def same_answers(a, b):
    for exact in ({"exact": False}, {"exact": True}) if isinstance(a, FunnelIndex) else ({},):
        left, right = (index.search(Q, 5, **exact) for index in (a, b))
        assert np.array_equal(left.ids, right.ids)
        assert np.array_equal(left.scores, right.scores)
        assert np.array_equal(left.multiply_adds, right.multiply_adds)


@pytest.mark.filterwarnings("ignore::firstk.search.FitWarning")
@pytest.mark.parametrize("make", [_funnel, _bytes])
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 10**6)), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_adding_and_removing_is_building_from_what_is_left(make, steps):
    index = make(Z[:100])
    alive = {int(i): Z[i] for i in range(100)}
    for adding, count, seed in steps:
        rng = np.random.default_rng(seed)
        if adding:
            rows = rng.normal(size=(count, 12)).astype(np.float32)
            alive |= dict(zip(index.add(rows).tolist(), rows, strict=True))
        else:
            gone = rng.choice(list(alive), min(count, len(alive) - 60), replace=False)
            index.remove(gone)
            alive = {i: row for i, row in alive.items() if i not in set(gone.tolist())}
    rebuilt = make(np.array(list(alive.values())), list(alive))
    if isinstance(index, FunnelIndex):  # whose sizes are shares of the rows of the fit
        rebuilt._state = replace(rebuilt._state, schedule=index._state.schedule, centre=index._state.centre)
    assert index.ids.tolist() == list(alive)
    assert len(index) == len(alive)
    assert np.array_equal(index.codes, rebuilt.codes)
    same_answers(index, rebuilt)


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_read_answers_as_what_was_saved(tmp_path, build, metric):
    index = build(Z, np.arange(300) * 7 + 5, metric)
    index.remove([5, 19])
    path = index.save(tmp_path / "deep" / "index.safetensors")
    again = type(index).load(path)
    same_answers(index, again)
    assert repr(again) == repr(index)
    assert again.add(Z[:1]).tolist() == index.add(Z[:1]).tolist() == [299 * 7 + 6]
    assert [file.name for file in path.parent.iterdir()] == ["index.safetensors"]


def test_an_encoder_is_saved_with_the_index(tmp_path):
    X = RNG.normal(size=(200, 9)) @ RNG.normal(size=(9, 9))
    enc = PrefixEncoder(6, objective="similarity").fit(X)
    index = FunnelIndex.fit(X, encoder=enc, metric="cosine")
    again = FunnelIndex.load(index.save(tmp_path / "index"))
    assert np.array_equal(again.search(X[:7]).ids, index.search(X[:7]).ids)
    assert index.search(X[:7]).encoding == 54
    again.add(X[:3] + 0.1)
    assert len(again) == 203


def near(index, asked, own):
    """Return the raw cosines of a search's results, and of those that are not the row that asks."""
    found = index.search(asked)
    rows = np.searchsorted(index.ids, found.ids)
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (asked, Z)]
    raw = np.einsum("mp,mnp->mn", unit[0], unit[1][rows])
    return found.scores, raw, rows != np.arange(len(asked))[:, None] if own else np.full(rows.shape, True)


@pytest.mark.parametrize("with_queries", [False, True])
@pytest.mark.parametrize("kind", [FunnelIndex, CodeIndex])
def test_calibrated_scores_estimate_cosines_of_raw_vectors(tmp_path, kind, with_queries):
    ids = np.arange(300) * 7  # and so no places
    more = {"bytes": 3} if kind is CodeIndex else {"engine": "numpy"}
    index = kind.fit(Z, encoder=ENCODER[:4] if kind is FunnelIndex else ENCODER, ids=ids, metric="cosine", **more)
    with pytest.raises(InvalidInputError, match=r"needs calibrate\(X\) first"):
        index.search(Q, calibrated=True)
    index.calibrate(Z, Q if with_queries else None)

    scores, raw, kept = near(index, Q if with_queries else Z, not with_queries)
    found = index.search(Q if with_queries else Z, calibrated=True)
    assert np.array_equal(index.search(Q).ids, index.search(Q, calibrated=True).ids)
    assert abs(scores[kept].mean() - raw[kept].mean()) > 0.005, "scores are no raw cosines"
    assert found.scores[kept].mean() == pytest.approx(raw[kept].mean(), abs=1e-3)
    order = np.argsort(scores[kept])
    assert (np.diff(found.scores[kept][order]) >= 0).all()

    read = kind.load(index.save(tmp_path / "index.firstk"))
    assert np.array_equal(read.search(Q, calibrated=True).scores, index.search(Q, calibrated=True).scores)


def test_what_cannot_be_calibrated_is_refused(build):
    with pytest.raises(InvalidInputError, match="an encoder and metric 'cosine'"):
        build(Z).calibrate(Z)
    index = _bytes(Z, metric="cosine")
    with pytest.raises(InvalidInputError, match=r"vectors of the 300 rows\. Got 20"):
        index.calibrate(Q)
    index.calibrate(Z)
    with pytest.raises(InvalidInputError, match="'rerank' or 'calibrated'"):
        index.search(Q, calibrated=True, rerank=ENCODER.encode_document(Z))


def test_saving_replaces_and_a_failure_leaves_the_old_file(tmp_path, build, monkeypatch):
    path, kind = tmp_path / "index", type(build(Z))
    build(Z).save(path)
    build(Z[:70]).save(path)
    assert len(kind.load(path)) == 70
    monkeypatch.setattr(atomic_files.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(InvalidInputError, match=r"no space left.*Nothing was left half-written"):
        build(Z).save(path)
    assert len(kind.load(path)) == 70
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


@pytest.mark.filterwarnings("ignore::firstk.search.FitWarning")
def test_an_index_can_be_emptied_and_filled_again(build):
    index = build(Z[:70])
    index.remove(index.ids)
    assert len(index) == 0
    with pytest.raises(InvalidInputError, match=r"this index holds none\. Add some first"):
        index.search(Q)
    if isinstance(index, FunnelIndex):
        with pytest.raises(InvalidInputError, match="this index holds none"):
            index.replan()
    assert index.add(Z).tolist() == list(range(70, 370))
    assert index.search(Z[:4], 1).ids[:, 0].tolist() == [70, 71, 72, 73]


def test_replanning_serves_more_neighbors():
    index = FunnelIndex.fit(Z, n_neighbors=5, recall=0.9)
    with pytest.raises(
        InvalidInputError, match=r"chosen for at most 5 neighbors, and 20 were asked.*replan\(n_neighbors=20\)"
    ):
        index.search(Q, 20)
    assert index.search(Q, 20, exact=True).ids.shape == (20, 20)
    assert index.replan(n_neighbors=20).n_neighbors == 20
    assert index.schedule.recall == 0.9
    assert index.search(Q, 20).ids.shape == (20, 20)


def test_shortlists_keep_their_share_of_a_store_that_grows():
    schedule = Schedule.from_dict(FunnelIndex.fit(Z, schedule=STAGES).schedule.to_dict())
    assert schedule.sizes(300, 10) == [60, 20]
    assert schedule.sizes(3000, 10) == [600, 200]
    assert schedule.sizes(30, 10) == [10, 10]
    assert schedule.sizes(5, 3) == [3, 3]


def spoiled(value):
    bad = Q.copy()
    bad[3, 2] = value
    return bad


def fit(**parameters):
    return lambda: FunnelIndex.fit(Z, **parameters)


INDEX = FunnelIndex.fit(Z, schedule=STAGES)
COSINE = FunnelIndex.fit(Z, schedule=STAGES, metric="cosine")
CASES = {
    "recall of 0": (fit(recall=0), r"'recall' parameter of FunnelIndex.fit must be a number in \(0, 1\]. Got 0"),
    "recall of 99": (fit(recall=99), r"must be a number in \(0, 1\] \(0.99 means 99 %\). Got 99"),
    "recall in words": (fit(recall="high"), r"must be a number in \(0, 1\]"),
    "unknown metric": (fit(metric="euclid"), "'metric' parameter of FunnelIndex.fit must be one of 'cosine', 'inner"),
    "unknown engine": (fit(engine="gpu"), "'engine' parameter"),
    "no encoder": (fit(encoder="model/"), "must be a fitted PrefixEncoder, a FittedEncoder or None"),
    "neighbors past the rows": (fit(n_neighbors=301), r"an int in \[1, 300\] \(the rows\)"),
    "schedule of words": (fit(schedule="fast"), r"'schedule' parameter .* must be pairs \(k, size\)"),
    "schedule that shrinks k": (fit(schedule=[(6, 60), (3, 20)]), "k increasing"),
    "schedule that grows": (fit(schedule=[(3, 20), (6, 60)]), "size never growing"),
    "schedule past the width": (fit(schedule=[(13, 60)]), r"in \[1, 12\] \(the width\)"),
    "schedule too short": (fit(schedule=[(3, 5)]), "at least 10"),
    "NaN rows": (lambda: FunnelIndex.fit(spoiled(np.nan)), r"'Z' has NaN or infinity in 1 of 20 rows \(row 3\)"),
    "huge rows": (lambda: FunnelIndex.fit(spoiled(1e19)), "row 3 of 'Z' has norm 1.0e.19, too large"),
    "rows past float32": (lambda: FunnelIndex.fit(spoiled(0).astype(np.float64) * 1e300), "too large"),
    "no rows": (lambda: FunnelIndex.fit(Z[:0]), "at least one row"),
    "one vector": (lambda: FunnelIndex.fit(Z[0]), "two-dimensional 'Z'"),
    "duplicate ids": (fit(ids=[0] * 300), "takes every id once; id 0 is there several times"),
    "ids of another length": (fit(ids=[1, 2]), "as many ids as rows. Got 2 and 300"),
    "fractional ids": (fit(ids=np.arange(300) + 0.5), "takes ids as a list of ints"),
    "known id added": (lambda: INDEX.add(Z[:2], ids=[900, 7]), "id 7 is in the index already"),
    "another width added": (lambda: INDEX.add(Z[:, :5]), "takes 'Z' with 12 columns. Got 5"),
    "unknown id removed": (lambda: INDEX.remove([3, 4000]), "id 4000 is not in it .* Nothing was removed"),
    "another width": (lambda: INDEX.search(Q[:, :5]), "takes 'Q' with 12 columns. Got 5"),
    "NaN query": (lambda: INDEX.search(spoiled(np.nan)), r"'Q' has NaN or infinity in 1 of 20 rows \(row 3\)"),
    "infinite query": (lambda: INDEX.search(spoiled(np.inf)), "'Q' has NaN or infinity"),
    "more neighbors than rows": (lambda: INDEX.search(Q, 301), r"an int in \[1, 300\] \(the rows of the index\)"),
    "no neighbors": (lambda: INDEX.search(Q, 0), r"an int in \[1, 300\]"),
    "no threads": (lambda: INDEX.search(Q, threads=0), "an int of at least 1, or None"),
    "a direction of nothing": (lambda: COSINE.search(np.zeros((2, 12))), "row 0 of 'Q' is all zeros"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_requests_get_a_sentence(name):
    run, message = CASES[name]
    with pytest.raises(InvalidInputError, match=message):
        run()
    assert len(INDEX) == 300
    assert INDEX.ids.tolist() == list(range(300))


def _flip(path):
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


def _newer(path):
    """Write a file of this kind in a format to come."""
    with safe_open(path, framework="numpy") as file:
        kind = file.metadata()["format"]
    save_file({"codes": Z.copy()}, path, {"format": kind, "format_version": "9"})


DAMAGE = {
    "a flipped bit": (_flip, "does not match its checksum"),
    "half a file": (lambda path: path.write_bytes(path.read_bytes()[:3000]), "not a safetensors file"),
    "an empty file": (lambda path: path.write_bytes(b""), "not a safetensors file"),
    "text": (lambda path: path.write_text("hello " * 100), "not a safetensors file"),
    "another library's file": (lambda path: save_file({"codes": Z.copy()}, path), "does not say format 'firstk-"),
    "a newer format": (_newer, "has format version '9'; this firstk reads version 1"),
    "nothing": (lambda path: path.unlink(), "there is no such file"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_raise(tmp_path, build, name):
    damage, message = DAMAGE[name]
    path = build(Z).save(tmp_path / "index")
    damage(path)
    with pytest.raises(CorruptModelError, match=message) as caught:
        type(build(Z)).load(path)
    assert str(path) in str(caught.value)


def test_an_index_of_another_kind_is_named(tmp_path):
    for one, other in ((_funnel, CodeIndex), (_bytes, FunnelIndex)):
        kind = type(one(Z)).__name__
        with pytest.raises(CorruptModelError, match=rf"is a {kind}, and no {other.__name__}\. Read it with {kind}"):
            other.load(one(Z).save(tmp_path / kind))


def _changed(facts=(), **arrays):
    def write(path):
        old, parts = _file.read_index(path)
        _file.write_index(path, old | dict(facts), {k: v for k, v in (parts | arrays).items() if v is not None})

    return write


UNFIT = {
    "codes of another width": _changed(codes=Z[:, :5]),
    "codes in float64": _changed(codes=Z.astype(np.float64)),
    "codes with NaN": _changed(codes=np.full((300, 12), np.nan, np.float32)),
    "no codes": _changed(codes=None),
    "no centre": _changed(centre=None),
    "a centre of another width": _changed(centre=np.zeros(5, np.float32)),
    "cells past the centroids": _changed(centroids=np.zeros((2, 3), np.float32), cells=np.full(300, 2, np.int32)),
    "too few cells": _changed(centroids=np.zeros((2, 3), np.float32), cells=np.zeros(5, np.int32)),
    "centroids of another width": _changed(centroids=np.zeros((2, 5), np.float32), cells=np.zeros(300, np.int32)),
    "ids twice": _changed(ids=np.zeros(300, np.int64)),
    "too few ids": _changed(ids=np.arange(5)),
    "an unknown metric": _changed({"metric": "taxi"}),
    "no schedule": _changed({"schedule": None}),
    "a schedule past the width": _changed(
        {"schedule": {"stages": [[99, 60]], "rows": 300, "n_neighbors": 10, "exact_k": 3}}
    ),
    "an exact prefix past the width": _changed(
        {"schedule": {"stages": [[3, 60]], "rows": 300, "n_neighbors": 10, "exact_k": 99}}
    ),
    "a next id that is taken": _changed({"next_id": 299}),
    "a next id that is none": _changed({"next_id": 2**64}),
} | {
    f"a schedule with {field} {value!r}": _changed(
        {"schedule": {"stages": [[3, 60]], "rows": 300, "n_neighbors": 10, "exact_k": 3} | {field: value}}
    )
    for field, value in (
        ("rows", 300.5),
        ("rows", 0),
        ("rows", True),
        ("n_neighbors", 10.0),
        ("n_neighbors", 0),
        ("exact_k", 3.0),
        ("exact_k", "3"),
        ("stages", [[3.5, 60]]),
        ("stages", [[3, "60"]]),
        ("stages", [["9" * 5000, 60]]),
        ("stages", []),
        ("stages", 3),
        ("remainder_cosine", "0"),
        ("remainder_cosine", None),
        ("recall", "high"),
        ("recall", 10**400),
        ("measured_recall", [1]),
        ("other", 1),
    )
}


@pytest.mark.parametrize("name", UNFIT)
def test_parts_that_do_not_fit_raise(tmp_path, name):
    path = INDEX.save(tmp_path / "index")
    UNFIT[name](path)
    with pytest.raises(CorruptModelError, match="damaged firstk index"):
        FunnelIndex.load(path)


def test_a_pipe_is_no_index(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match="it is a pipe, and a regular file is needed"):
        FunnelIndex.load(tmp_path / "pipe")


def test_without_faiss(monkeypatch):
    """ "auto" searches in numpy; where faiss was asked for, the error names the extra."""
    found = FunnelIndex.fit(Z, schedule=STAGES, engine="numpy").search(Z[:5])
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("firstk.search.funnel.index._LARGE", 10)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert (FunnelIndex.fit(Z, schedule=STAGES).search(Z[:5]).ids == found.ids).all()
    with pytest.raises(MissingExtraError, match=r"firstk\[search\]"):
        FunnelIndex.fit(Z, schedule=STAGES, engine="faiss").search(Z[:5])


def test_ids_run_out(tmp_path):
    index = FunnelIndex.fit(Z[:20], ids=np.arange(20) + (2**63 - 20))
    again = FunnelIndex.load(index.save(tmp_path / "index"))
    with pytest.raises(InvalidInputError, match=r"takes ids below 2\^63"):
        again.add(Z[20:21])


def test_a_folder_is_not_written_over(tmp_path):
    with pytest.raises(InvalidInputError, match=r"An index is a file, and .* is a folder"):
        INDEX.save(tmp_path)


def _funnel_of(X, encoder):
    return FunnelIndex.fit(X, schedule=[(8, 60)], ids=np.arange(len(X)), engine="numpy")


def _bytes_of(X, encoder):
    return CodeIndex.fit(X, encoder=encoder, bytes=16, metric="l2", engine="numpy")


@pytest.mark.parametrize("build", [_funnel_of, _bytes_of])
def test_a_search_beside_additions_and_removals_returns_the_ids_of_its_rows(build):
    """A row that stays is its own nearest neighbor, whoever writes meanwhile."""
    X = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
    index = build(X[:300], PrefixEncoder().fit(X))
    alone = index.search(X[:300], 1, threads=1).ids[:, 0]
    own = np.flatnonzero(alone == np.arange(300))  # bytes may confuse a few
    own = own[own >= 100]
    assert len(own) > 150
    # What comes and goes is far from the rows that are looked for.
    away = X[300:] + 50
    stop, wrong, failed = threading.Event(), [], []

    def write():
        try:
            while not stop.is_set():
                index.remove(np.arange(100))
                names = index.add(away)
                index.remove(names)
                index.add(away[:100], np.arange(100))
        except Exception as error:
            failed.append(error)

    def read():
        try:
            for _ in range(40):
                found = index.search(X[own[:60]], 1, threads=1).ids[:, 0]
                wrong.extend(found[found != own[:60]])
        except Exception as error:
            failed.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        readers, writer = [threading.Thread(target=read) for _ in range(2)], threading.Thread(target=write)
        for thread in (*readers, writer):
            thread.start()
        for thread in readers:
            thread.join()
        stop.set()
        writer.join()
    assert not failed
    assert not wrong


@pytest.mark.parametrize("build", [_funnel_of, _bytes_of])
def test_rows_that_several_threads_add_all_come_in(build):
    X = np.random.default_rng(0).normal(size=(400, 16)).astype(np.float32)
    index = build(X[:200], PrefixEncoder().fit(X))
    with ThreadPoolExecutor(4) as pool:
        named = list(pool.map(lambda i: index.add(X[200 + 10 * i : 210 + 10 * i]), range(20)))
    assert np.array_equal(np.sort(np.concatenate(named)), np.arange(200, 400))
    assert np.array_equal(np.sort(index.ids), np.arange(400))
    copied = pickle.loads(pickle.dumps(index))  # the lock stays behind
    copied.add(X[:1])
    assert (len(index), len(copied)) == (400, 401)
    # A shallow copy shares memory, and what is added to one is no row of the other.
    shallow = copy.copy(index)
    index.add(X[:3])
    before = index.codes.copy()
    shallow.add(X[3:5])
    assert np.array_equal(index.codes, before)
    assert (len(index), len(shallow)) == (403, 402)
