"""A mixed store is searched by cosine as calibrated scores say, and calibration makes the two kinds of rows alike."""

import numpy as np
import pytest

from firstk.upgrade.mixing import Rescaling, asked_for, cosines, mixed_queries, mixed_rows, worth
from fixtures.made_upgrade import Rotation, made_upgrade


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_cosines_of_a_mixed_store_are_in_the_order_of_calibrated_scores():
    rng = np.random.default_rng(0)
    translated, new, queries = rng.normal(size=(40, 5)), rng.normal(size=(40, 5)), rng.normal(size=(7, 5))
    anew = rng.random(40) < 0.4
    calibration = Rescaling(offset=-0.2, scale=1.7)
    scores = np.where(anew, unit(queries) @ unit(new).T, -0.2 + 1.7 * unit(queries) @ unit(translated).T)
    rows = mixed_rows(translated, new, anew, calibration)
    assert np.ptp(np.linalg.norm(rows, axis=1)) < 1e-12
    found = unit(mixed_queries(queries)) @ unit(rows).T
    ratio = found / scores  # one factor for all rows and queries: the order is the same
    assert ratio == pytest.approx(np.full(ratio.shape, ratio[0, 0]))


def test_calibration_matches_the_best_scores():
    rng = np.random.default_rng(1)
    new, queries = rng.normal(size=(300, 8)), rng.normal(size=(30, 8))
    translated = new + 2.0 * rng.normal(size=new.shape)
    found = Rescaling.fit(queries, translated, new)

    def best(rows):
        return np.sort(unit(queries) @ unit(rows).T, axis=1)[:, -10:]

    after = found.offset + found.scale * best(translated)
    assert after.mean() == pytest.approx(best(new).mean())
    assert after.std() == pytest.approx(best(new).std())


def test_the_same_rows_need_no_calibration():
    rng = np.random.default_rng(2)
    new, queries = rng.normal(size=(50, 8)), rng.normal(size=(30, 8))
    found = Rescaling.fit(queries, new, new)
    assert (found.offset, found.scale) == pytest.approx((0.0, 1.0))


def test_worth_is_what_is_lost_on_the_way_there_and_back():
    data = made_upgrade(n=200)
    alignment = Rotation().fit(data.old, data.new)
    lost = worth(alignment, data.old)
    there_and_back = alignment.new_to_old(alignment.old_to_new(data.old))
    slow = [1 - x @ y / np.sqrt((x @ x) * (y @ y)) for x, y in zip(data.old, there_and_back, strict=True)]
    assert lost == pytest.approx(np.maximum(slow, 0), abs=1e-12)
    asked = np.arange(200.0) + 1
    assert worth(alignment, data.old, asked) == pytest.approx(lost * asked)


def test_a_row_that_lies_outside_the_shared_code_is_worth_more():
    data = made_upgrade(n=300, widths=(16, 6))  # ten directions of the old model are lost
    alignment = Rotation().fit(data.old, data.new)
    inside = np.linalg.qr(alignment.U)[0]
    direction = np.linalg.qr(np.column_stack([inside, np.eye(16)]))[0][:, 6]  # outside of the shared code
    rows = alignment.means[0] + np.stack([inside[:, 0], inside[:, 0] + 3 * direction])
    low, high = worth(alignment, rows)
    assert high > 5 * low


def test_rows_that_are_asked_for_are_counted():
    documents = np.eye(20)
    queries = np.repeat(np.eye(20)[[3]], 5, axis=0)
    asked = asked_for(documents, queries)
    assert asked[3] == 6.0  # five queries, and once for those to come
    assert asked.min() == 1.0


def test_cosines_of_zero_rows_are_zero():
    assert cosines(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [2.0, 2.0]])) == pytest.approx([0.0, 1.0])
