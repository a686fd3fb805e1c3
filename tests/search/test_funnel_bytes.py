"""A funnel whose first stage is embedded bytes: recall, both engines, rows that come and go, files, bad requests."""

import numpy as np
import pytest

from firstk import FunnelIndex, PrefixEncoder
from firstk._base.checks import numba_may_compile
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.search import index_file as _file
from firstk.search.codes.scan import nearest

RNG = np.random.default_rng(0)
Z = (RNG.normal(size=(4000, 64)) * (1 + np.arange(64)) ** -0.7 + 0.2).astype(np.float32)
Q = (RNG.normal(size=(150, 64)) * (1 + np.arange(64)) ** -0.7 + 0.2).astype(np.float32)
Z.flags.writeable = Q.flags.writeable = False
ENGINES = ("numpy", "compiled") if numba_may_compile() else ("numpy",)
METRICS = ("l2", "inner_product", "cosine")
STAGES = [(24, 60), (48, 30)]


def recall(index, queries=Q, n=10, **how):
    exact = FunnelIndex.fit(Z, schedule=[(64, 4000)], metric=index.metric, engine="numpy").search(queries, n)
    found = index.search(queries, n, **how)
    return np.mean([len(set(a) & set(b)) / n for a, b in zip(found.ids.tolist(), exact.ids.tolist(), strict=True)])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
def test_the_recall_asked_for_is_reached_on_queries_it_has_not_seen(metric, engine):
    index = FunnelIndex.fit(Z, recall=0.95, metric=metric, first_stage="embedded", bytes=16, engine=engine)
    found = index.search(Q)
    assert index.bytes == 16
    assert recall(index) >= 0.93
    assert found.fraction < 0.5
    assert index.schedule.stages[0].size < 400
    # What is returned is computed from the codes.
    whole = FunnelIndex.fit(Z, schedule=[(64, 4000)], metric=metric, engine=engine).search(Q, 10, exact=True)
    same = found.ids == whole.ids
    assert np.allclose(found.scores[same], whole.scores[same], rtol=1e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_shortlists_come_from_the_bytes(metric):
    index = FunnelIndex.fit(Z, schedule=[(24, 40)], metric=metric, first_stage="embedded", bytes=8, engine="numpy")
    stage = index._state.stored
    codes = index._state.store.rows.astype(np.float64)[:, : stage.width]
    q = index._state.store.rows[:5].astype(np.float64)
    decoded = stage.embedded.restore(stage.embedded.quantise(codes)).astype(np.float64)
    near = q[:, : stage.width] @ decoded.T
    if metric != "inner_product":
        squares = np.zeros(len(Z))
        cells = stage.embedded.named_cells(stage.rows.codes())
        for i, table in enumerate(stage.embedded.variances):
            squares += table[cells[:, i]] if len(table) > 1 else table[0]
        squares += (decoded**2).sum(axis=1)
        near = 2 * near - squares
    rows, spent = stage.shortlist(index._state.store.rows[:5], 40, nearest)
    for i in range(5):
        assert len(set(rows[i]) & set(np.argsort(-near[i])[:40])) >= 39
    assert (spent == 4000 * stage.rows.packing.planes).all()


@pytest.mark.skipif("compiled" not in ENGINES, reason="needs numba, of the extra 'search'")
@pytest.mark.parametrize("metric", METRICS)
def test_both_engines_agree(metric):
    answers = [
        FunnelIndex.fit(Z, schedule=STAGES, metric=metric, first_stage="embedded", bytes=12, engine=engine).search(Q)
        for engine in ("numpy", "compiled")
    ]
    assert np.array_equal(answers[0].ids, answers[1].ids)
    assert np.array_equal(answers[0].multiply_adds, answers[1].multiply_adds)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_come_and_go_and_what_is_read_answers_as_what_was_saved(tmp_path, metric):
    index = FunnelIndex.fit(Z[:3000], schedule=STAGES, metric=metric, first_stage="embedded", bytes=12)
    index.add(Z[3000:])
    index.remove(np.arange(0, 3000, 7))
    bytes_ = index._state.stored.rows.codes()
    kept = np.delete(np.arange(4000), np.arange(0, 3000, 7))
    stored = index._state.stored.embedded.quantise(index._state.store.rows[:, : index._state.stored.width])
    assert np.array_equal(index.ids, kept)
    assert np.array_equal(bytes_, stored)
    again = FunnelIndex.load(index.save(tmp_path / "index"))
    assert (again.first_stage, again.bytes) == ("embedded", 12)
    left, right = index.search(Q), again.search(Q)
    assert np.array_equal(left.ids, right.ids)
    assert np.array_equal(left.scores, right.scores)
    again.add(Z[:5])
    assert len(again) == len(kept) + 5
    assert index.replan(recall=0.9).recall == 0.9
    assert index.nbytes > index._state.store.rows.nbytes


def test_an_encoder_serves_and_bytes_may_be_left_out():
    enc = PrefixEncoder().fit(Z)
    index = FunnelIndex.fit(Z, encoder=enc, first_stage="embedded", schedule=STAGES)
    assert index.bytes == 32
    assert (index.search(Z[:20], 1).ids.ravel() == np.arange(20)).mean() > 0.9
    short = FunnelIndex.fit(Z[:200, :4], first_stage="embedded", schedule=[(4, 50)])
    assert 1 <= short.bytes <= 4


CASES = {
    "bytes alone": (
        {"bytes": 8},
        "takes 'bytes' with first_stage='embedded' only. Got bytes=8 with first_stage='float32",
    ),
    "bytes of int8": ({"bytes": 8, "first_stage": "int8"}, "with first_stage='embedded' only"),
    "no bytes": ({"bytes": 0, "first_stage": "embedded"}, r"an int in \[1, "),
    "too many bytes": ({"bytes": 65, "first_stage": "embedded"}, r"an int in \[1, "),
    "bytes in words": ({"bytes": "few", "first_stage": "embedded"}, r"an int in \[1, "),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_requests_raise(name):
    arguments, message = CASES[name]
    with pytest.raises(InvalidInputError, match=message):
        FunnelIndex.fit(Z, **arguments)


def test_an_exact_search_needs_bounds():
    index = FunnelIndex.fit(Z, schedule=STAGES, first_stage="embedded", bytes=8)
    with pytest.raises(InvalidInputError, match="bounds distances, and signs and bytes do not"):
        index.search(Q, exact=True)


@pytest.mark.parametrize("name", ["rows missing", "another width", "no bytes", "cells of more coordinates", "no cells"])
def test_parts_that_do_not_fit_are_named(tmp_path, name):
    facts, arrays = _file.read_index(
        FunnelIndex.fit(Z, schedule=STAGES, first_stage="embedded", bytes=8).save(tmp_path / "index")
    )
    damage = {
        "rows missing": ({}, {"bytes": arrays["bytes"][:-1]}),
        "another width": ({}, {"bytes": arrays["bytes"][:, :-1]}),
        "no bytes": ({}, {"bytes": arrays["bytes"].astype(np.float32)}),
        "cells of more coordinates": ({"cells": facts["cells"] | {"order": [127] * 64}}, {}),
        "no cells": ({"cells": {"order": []}}, {}),
    }[name]
    path = _file.write_index(tmp_path / "other", facts | damage[0], arrays | damage[1])
    with pytest.raises(CorruptModelError, match="do not fit"):
        FunnelIndex.load(path)
