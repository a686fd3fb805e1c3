"""A saved model that keeps its moments learns on, exactly as if it had never been saved."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import Denoising, Fisher, Gradient, Mixture, PrefixEncoder, Similarity
from firstk._base import arrays
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.storage.folder import read_extra_bytes
from firstk.encoder.storage.info import model_info
from firstk.estimator.prefix_encoder import MOMENTS
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError
from firstk.moments.statistics import Statistics

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 6)) * [6, 5, 4, 3, 2, 1] + 10
Y = np.array(["ant", "bee", "cat"])[np.digitize(X @ RNG.standard_normal(6), [-20, 20])]
TARGETS = X @ RNG.standard_normal((6, 2)) + RNG.standard_normal((300, 2))
CASES = {
    "reconstruction": ("reconstruction", None),
    "fisher": (Fisher(shrinkage=0.1), Y),
    "auto": (Fisher(shrinkage="auto"), Y),
    "regression": ("regression", TARGETS),
    "mixture": (Mixture(lam=0.5), Y),
    "neighbors": ("similarity", None),
    "dot products": (Similarity(keep="dot_products"), None),
    "denoising": (Denoising(), None),
}


def part(y, rows):
    return None if y is None else y[rows]


def assert_same(found, wanted):
    np.testing.assert_allclose(found.components_, wanted.components_, atol=1e-9)
    np.testing.assert_allclose(found.spectrum_, wanted.spectrum_, rtol=1e-9)
    np.testing.assert_allclose(found.mean_, wanted.mean_, atol=1e-9)
    for name in ("rows", "data_fingerprint"):
        assert getattr(found.encoder_.record, name) == getattr(wanted.encoder_.record, name)


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_learns_on_as_if_it_had_seen_all_rows(case, tmp_path):
    objective, y = CASES[case]
    first, rest = slice(0, 180), slice(180, None)
    saved = PrefixEncoder(objective=objective).fit(X[first], part(y, first))
    saved.save(tmp_path / "model", moments=True)
    loaded = PrefixEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.components_, saved.components_)
    assert_same(loaded.partial_fit(X[rest], part(y, rest)), PrefixEncoder(objective=objective).fit(X, y))


def test_new_classes_and_another_save(tmp_path):
    order = np.argsort(Y)
    model = PrefixEncoder(objective="fisher").fit(X[order[:250]], Y[order[:250]])
    for rows in (order[250:270], order[270:]):
        model.save(tmp_path / "model", moments=True)
        model = PrefixEncoder.load(tmp_path / "model").partial_fit(X[rows], Y[rows])
    assert_same(model, PrefixEncoder(objective="fisher").fit(X, Y))


def test_pairs(tmp_path):
    left, right, scores = X[:150], X[150:] + 0.1 * X[:150], RNG.random(150)
    goal = Similarity(shrinkage=0.3, neighbor_weight=0.0)
    PrefixEncoder(objective=goal).fit_pairs(left[:90], right[:90], scores[:90]).save(tmp_path / "m", moments=True)
    found = PrefixEncoder.load(tmp_path / "m").partial_fit_pairs(left[90:], right[90:], scores[90:])
    assert_same(found, PrefixEncoder(objective=goal).fit_pairs(left, right, scores))


def test_fewer_rows_than_columns(tmp_path):
    wide = RNG.standard_normal((40, 60))
    PrefixEncoder(5).fit(wide[:25]).save(tmp_path / "model", moments=True)
    assert_same(PrefixEncoder.load(tmp_path / "model").partial_fit(wide[25:]), PrefixEncoder(5).fit(wide))


def test_the_file_is_one_of_the_model(tmp_path):
    model = PrefixEncoder().fit(X).save(tmp_path / "model", moments=True)
    info = model_info(model)
    assert info.whole
    assert info.integrity[MOMENTS] == "matches"
    assert "moments.within" in arrays.from_bytes(read_extra_bytes(model, MOMENTS))[0]
    PrefixEncoder.load(model).partial_fit(X)
    (model / MOMENTS).write_bytes((model / MOMENTS).read_bytes()[:-1] + b"?")
    assert not model_info(model).whole
    with pytest.raises(CorruptModelError, match="checksum"):
        PrefixEncoder.load(model)
    assert FittedEncoder.load(model).d == 6
    (model / MOMENTS).unlink()
    assert PrefixEncoder.load(model, moments=False).n_components_ == 6


def test_moments_of_other_rows_are_refused(tmp_path):
    other = arrays.to_bytes(PrefixEncoder().fit(X[:100])._statistics.to_arrays())
    encoder = PrefixEncoder().fit(X)
    encoder.encoder_.save(tmp_path / "model", extra={MOMENTS: other})
    with pytest.raises(CorruptModelError, match="100 rows of 6 columns, and the encoder was fitted on 300"):
        PrefixEncoder.load(tmp_path / "model")


def test_without_moments_a_model_does_not_learn_on(tmp_path):
    model = PrefixEncoder().fit(X).save(tmp_path / "model")
    assert MOMENTS not in {file.name for file in model.iterdir()}
    for loaded in (PrefixEncoder.load(model), PrefixEncoder.load(PrefixEncoder().fit(X).save(model), moments=False)):
        with pytest.raises(InvalidInputError, match="save\\(path, moments=True\\)"):
            loaded.partial_fit(X)
        with pytest.raises(InvalidInputError, match="does not hold the moments"):
            loaded.save(tmp_path / "again", moments=True)
    assert not (tmp_path / "again").exists()


def test_what_moments_do_not_suffice_for(tmp_path):
    pytest.importorskip("torch")
    trained = PrefixEncoder(2, objective="classification", solver=Gradient(epochs=1), random_state=0).fit(X, Y)
    with pytest.raises(FirstkError, match="moments=True"):
        trained.save(tmp_path / "model", moments=True)
    with pytest.raises(InvalidInputError, match="write it with moments=True"):
        PrefixEncoder().fit(X).save(tmp_path / "model", extra={MOMENTS: b""})


def test_the_documents_of_a_store_are_kept_once(tmp_path):
    """Judgements that are added later are of the store that is known: its documents do not count twice."""
    documents = RNG.standard_normal((400, 6))
    queries = documents[:60] + 0.1 * RNG.standard_normal((60, 6))
    judged = np.column_stack([np.arange(60), np.arange(60), np.ones(60, int)])
    goal = Similarity(shrinkage=0.5, neighbor_weight=0.0)
    first, second = (
        PrefixEncoder(objective=goal).fit_search(queries, documents, part) for part in (judged[:30], judged[30:])
    )
    first.save(tmp_path / "model", moments=True)
    loaded = PrefixEncoder.load(tmp_path / "model")
    wanted = first.encoder_.sample["X"]
    assert len(wanted) == 400
    np.testing.assert_array_equal(loaded.merge(second).encoder_.sample["X"], wanted)
    np.testing.assert_array_equal(loaded.partial_fit_pairs(queries, documents[:60]).encoder_.sample["X"], wanted)
    plain = PrefixEncoder(objective=goal).fit_pairs(queries, documents[:60])
    np.testing.assert_array_equal(plain.merge(second).encoder_.sample["X"], wanted)
    np.testing.assert_array_equal(second.encoder_.sample["X"], wanted)  # what was merged in stays as it was


def test_a_sample_without_vectors_is_damaged():
    held = PrefixEncoder(2).fit(X)._statistics.to_arrays()
    held["sample.columns.0"] = held.pop("sample.columns.X")
    with pytest.raises(CorruptModelError, match="sample without vectors"):
        Statistics.from_arrays(held)
