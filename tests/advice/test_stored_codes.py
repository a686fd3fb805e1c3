"""Roundings that prefix lengths share: one sweep gives what each length alone gives."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder, Rows, evaluate
from firstk.advice.stored_codes import shared_roundings
from firstk.data.precision import PRECISIONS

KS = [2, 3, 5, 8]


def rows(seed, n=300, p=8):
    rng = np.random.default_rng(seed)
    # The fourth column is the largest: a longer code has another scale.
    return (rng.standard_normal((n, p)) * [1, 0.9, 0.8, 3.0, 0.5, 0.4, 0.3, 0.2] + 0.3).astype(np.float32)


@pytest.mark.parametrize("name", ["float16", "int8", "int4", "binary"])
def test_codes_of_a_run_are_cuts_of_its_longest(name):
    Z = rows(0)
    runs = list(shared_roundings(PRECISIONS[name], Z, KS))
    assert [k for ks, _ in runs for k in ks] == KS
    for ks, fitted in runs:
        longest = Z[:, : ks[-1]]
        back = fitted.restore(fitted.quantise(longest))
        for k in ks:
            own = PRECISIONS[name].fit(Z[:, :k])
            assert np.array_equal(back[:, :k], own.restore(own.quantise(Z[:, :k])))


def test_runs_end_where_the_scale_changes():
    found = {
        name: [ks for ks, _ in shared_roundings(PRECISIONS[name], rows(0), KS)]
        for name in PRECISIONS
        if name != "embedded"
    }
    assert found["int4"] == found["float16"] == [KS]  # each coordinate apart
    assert len(found["int8"]) == 2
    assert found["int8"][-1][0] == 5  # from the fourth column on, its scale
    assert found["binary"] == [[k] for k in KS]  # one deviation over all coordinates
    assert list(shared_roundings(PRECISIONS["int8"], rows(0), [])) == []


@pytest.mark.parametrize(
    ("objective", "metric"),
    [("reconstruction", "readback_variance"), ("reconstruction", "recall@10"), ("similarity", "recall@10")],
)
def test_a_table_of_many_lengths_is_that_of_each_alone(objective, metric):
    X = rows(1) - 0.3 * (objective == "reconstruction")
    encoder = PrefixEncoder(objective=objective).fit(X).encoder_
    data = Rows(rows(2, 80), reference=Rows(X))
    whole = evaluate(encoder, data, metric=metric, ks=KS, sizes=(), baselines=False)
    for k in KS:
        alone = evaluate(encoder, data, metric=metric, ks=[k], sizes=(), baselines=False)
        for point in alone.prefixes:
            other = next(o for o in whole.prefixes if (o.k, o.stored_as) == (k, point.stored_as))
            assert other.score == pytest.approx(point.score, abs=1e-6)


def test_lengths_that_take_as_many_bytes_as_the_next_are_left_out():
    encoder = PrefixEncoder(8).fit(rows(1)).encoder_
    table = evaluate(encoder, Rows(rows(2, 80), reference=Rows(rows(1))), metric="recall@10", sizes=(), baselines=False)
    lengths = {name: [o.k for o in table.prefixes if o.stored_as == name] for name in ("int8", "int4", "binary")}
    assert lengths == {"int8": [1, 2, 3, 4, 6, 8], "int4": [2, 4, 6, 8], "binary": [8]}
