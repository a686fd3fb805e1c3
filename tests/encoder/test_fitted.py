"""The fitted encoder: cutting, decoding, predicting, saving, loading, and its scikit-learn manners."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from firstk import (
    Denoising,
    Fisher,
    FittedEncoder,
    FullPrefix,
    GaussianNoise,
    Masking,
    Mixture,
    PrefixEncoder,
    Regression,
    Similarity,
)
from firstk._base import atomic_file as atomic_files
from firstk.exceptions import InvalidInputError
from slow_reference import correlated, frozen, residual

N, P = 80, 6


def draw(dtype=np.float64):
    rng = np.random.default_rng(3)
    X = correlated(rng, N, P) + 1.0
    y = np.array(["cat", "dog", "eel", "fox"])[np.arange(N) % 4]
    X = X + rng.standard_normal((4, P))[np.arange(N) % 4]
    Y = X @ rng.standard_normal((P, 2)) + rng.standard_normal((N, 2))
    right = 0.7 * X + 0.5 * correlated(rng, N, P) - 0.5
    return frozen(X.astype(dtype), y, Y, right.astype(dtype), rng.uniform(0, 1, N))


ENCODERS = {
    "reconstruction": lambda X, y, Y, R, s: PrefixEncoder().fit(X),
    "fisher": lambda X, y, Y, R, s: PrefixEncoder(5, objective=Fisher(None)).fit(X, y),
    "fisher, auto": lambda X, y, Y, R, s: PrefixEncoder(objective=Fisher("auto")).fit(X, y),
    "regression": lambda X, y, Y, R, s: PrefixEncoder(4, objective="regression").fit(X, Y),
    "regression, one target": lambda X, y, Y, R, s: PrefixEncoder(objective=Regression(0.1)).fit(X, Y[:, 0]),
    "mixture, targets": lambda X, y, Y, R, s: PrefixEncoder(objective=Mixture(2.0)).fit(X, Y),
    "mixture, labels": lambda X, y, Y, R, s: PrefixEncoder(objective="mixture").fit(X, y),
    "gaussian": lambda X, y, Y, R, s: PrefixEncoder(objective=Denoising(GaussianNoise(0.3))).fit(X),
    "masking": lambda X, y, Y, R, s: PrefixEncoder(objective=Denoising(Masking(0.4, (0, 0, 1, 1, 2, 2)))).fit(X),
    "neighbors": lambda X, y, Y, R, s: PrefixEncoder(objective="similarity").fit(X),
    "dot products": lambda X, y, Y, R, s: PrefixEncoder(objective=Similarity(keep="dot_products")).fit(X),
    "scored pairs": lambda X, y, Y, R, s: PrefixEncoder(objective="similarity").fit_pairs(X, R, s),
    "positive pairs": lambda X, y, Y, R, s: PrefixEncoder(objective=Similarity("neighbors", 0.5, 0.1)).fit_pairs(X, R),
    "omega": lambda X, y, Y, R, s: PrefixEncoder(3, ordering=FullPrefix(omega=[3.0, 2.0, 1.0])).fit(X),
    "streamed": lambda X, y, Y, R, s: PrefixEncoder().partial_fit(X[:40]).partial_fit(X[40:]),
}
WITH_DECODER = ("reconstruction", "mixture, targets", "mixture, labels", "gaussian", "masking", "dot products")
WITH_HEAD = ("fisher", "fisher, auto", "regression", "regression, one target", "mixture, targets", "mixture, labels")


@pytest.fixture(scope="module")
def fitted():
    data = draw()
    return {name: make(*data) for name, make in ENCODERS.items()}


# -- cutting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODERS)
def test_a_cut_encoder_shares_memory_and_is_the_prefix(fitted, name):
    enc, X = fitted[name], draw()[0]
    k = 1 if enc.n_components_ == 1 else 2
    short = enc[:k]
    assert (short.n_components_, short.n_components) == (k, k)
    assert np.shares_memory(short.components_, enc.components_)
    assert np.shares_memory(short.spectrum_, enc.spectrum_)
    if enc.decoder_ is not None:
        assert np.shares_memory(short.decoder_, enc.decoder_)
    np.testing.assert_array_equal(short.transform(X), enc.transform(X, k))
    np.testing.assert_array_equal(enc[:k][:1].transform(X), enc.transform(X, 1))
    assert enc[:].n_components_ == enc.n_components_


@pytest.mark.parametrize("name", ENCODERS)
def test_prefixes_are_first_coordinates(fitted, name):
    """Before normalization the first k coordinates are the code of length k; after it they differ by the norm only."""
    enc, X = fitted[name], draw()[0]
    whole = enc.encoder_.coordinates(X)
    for k in range(1, enc.n_components_ + 1):
        expected = whole[:, :k].copy()
        if enc.encoder_.normalized:
            expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(enc.transform(X, k), expected, atol=1e-13)


def test_a_row_at_the_mean_has_the_zero_code(fitted):
    enc = fitted["neighbors"]
    assert not enc.transform(enc.mean_[None]).any()  # normalized, and still no NaN


@pytest.mark.parametrize("index", [0, slice(1, 3), slice(None, None, 2), [0, 1], "2"])
def test_only_prefixes_can_be_cut(fitted, index):
    with pytest.raises(InvalidInputError, match="is cut as encoder\\[:k\\]: only prefixes have a meaning"):
        fitted["reconstruction"][index]


def test_blocks_do_not_change_the_code(fitted, monkeypatch):
    X = draw()[0]
    before = fitted["reconstruction"].transform(X)
    monkeypatch.setattr("firstk.encoder.fitted._BLOCK_ENTRIES", 7 * P)
    np.testing.assert_allclose(fitted["reconstruction"].transform(X), before, rtol=0, atol=1e-13)
    np.testing.assert_allclose(fitted["reconstruction"].transform(sparse.csr_matrix(X)), before, rtol=0, atol=1e-13)


# -- decoding and predicting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODERS)
def test_decoders_exist_where_they_have_a_meaning(fitted, name):
    assert hasattr(fitted[name], "inverse_transform") == (name in (*WITH_DECODER, "omega", "streamed"))
    assert hasattr(fitted[name], "predict") == (name in WITH_HEAD)
    assert hasattr(fitted[name], "predict_proba") == (name in ("fisher", "fisher, auto"))
    assert hasattr(fitted[name], "classes_") == (name in ("fisher", "fisher, auto", "mixture, labels"))


@pytest.mark.parametrize("objective", ["fisher", Fisher(0.5), "classification", "mixture", "regression", "no such"])
def test_before_a_fit_probabilities_are_there_where_they_will_be(objective):
    enc = PrefixEncoder(objective=objective)
    assert hasattr(enc, "predict_proba") == (objective not in ("mixture", "regression", "no such"))
    assert not hasattr(enc, "classes_")


@pytest.mark.parametrize("name", ["reconstruction", "mixture, targets", "mixture, labels", "dot products"])
def test_every_prefix_is_decoded_as_well_as_any_linear_decoder_could(fitted, name):
    enc, X = fitted[name], draw()[0]
    origin = enc.mean_
    for k in range(1, enc.n_components_ + 1):
        Z = enc.transform(X, k)
        own = np.sum((X - enc.inverse_transform(Z)) ** 2) / N
        if name == "dot products":  # decoded about the origin: its codes are not centred
            best = np.sum((X - Z @ np.linalg.lstsq(Z, X, rcond=None)[0]) ** 2) / N
        else:
            best = residual(X - origin, Z)
        assert own == pytest.approx(best, abs=1e-9)


def test_the_decoder_of_noisy_codes_is_best_for_noisy_codes(fitted):
    enc, X = fitted["gaussian"], draw()[0]
    Xc = X - X.mean(axis=0)
    B = enc.components_[:3]
    G = Xc.T @ Xc / N + 0.09 * np.eye(P)
    expected = (Xc.T @ Xc / N) @ B.T @ np.linalg.inv(B @ G @ B.T)
    np.testing.assert_allclose(enc.decoder_[:, :3], expected, atol=1e-10)


@pytest.mark.parametrize("name", WITH_HEAD)
def test_predictions_at_every_prefix(fitted, name):
    enc, (X, y, _, _, _) = fitted[name], draw()
    for k in range(1, enc.n_components_ + 1):
        predicted = enc.predict(X, k=k)
        np.testing.assert_array_equal(enc[:k].predict(X), predicted)
        if name in ("fisher", "fisher, auto", "mixture, labels"):
            assert predicted.shape == (N,)
            assert set(predicted) <= set(y)
        else:
            assert predicted.shape == ((N,) if "one" in name else (N, 2))
    np.testing.assert_array_equal(enc.predict(X), enc.predict(X, k=enc.n_components_))
    if name == "fisher":
        assert np.mean(enc.predict(X) == y) > np.mean(enc.predict(X, k=1) == y)


def test_methods_without_meaning_say_so(fitted):
    with pytest.raises(AttributeError, match="inverse_transform"):
        fitted["fisher"].inverse_transform(np.zeros((1, 2)))
    with pytest.raises(AttributeError, match="predict"):
        fitted["reconstruction"].predict(draw()[0])
    with pytest.raises(InvalidInputError, match="has no meaning for objective 'fisher': it has no decoder"):
        fitted["fisher"].encoder_.decode(np.zeros((1, 2)))
    with pytest.raises(InvalidInputError, match="has no meaning for objective 'reconstruction': it has no head"):
        fitted["reconstruction"].encoder_.read_out(draw()[0])


# -- precision and input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODERS)
def test_float32_in_float32_out(name):
    narrow, wide = draw(np.float32), draw()
    a, b = ENCODERS[name](*narrow), ENCODERS[name](*wide)
    Z = a.transform(narrow[0])
    assert Z.dtype == np.float32
    assert a.components_.dtype == np.float64
    assert b.transform(wide[0]).dtype == np.float64
    if a.objective_ == b.objective_:  # "auto" may choose otherwise: rounded rows are other rows
        np.testing.assert_allclose(Z, b.transform(wide[0]), atol=2e-3)
    else:
        assert name in ("fisher, auto", "scored pairs")
    if hasattr(a, "inverse_transform"):
        assert a.inverse_transform(Z).dtype == np.float32
    if a.encoder_.head is not None and a.encoder_.head.classes is None:
        assert a.predict(narrow[0]).dtype == np.float64  # targets have their own scale, which float32 may not hold


@pytest.mark.parametrize(
    "name", ["reconstruction", "fisher", "regression", "mixture, targets", "gaussian", "neighbors"]
)
def test_sparse_rows_in(name):
    X, y, Y, R, s = draw()
    thin = X * (np.random.default_rng(0).random(X.shape) < 0.6)
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array):
        a, b = ENCODERS[name](kind(thin), y, Y, R, s), ENCODERS[name](thin, y, Y, R, s)
        np.testing.assert_allclose(a.components_, b.components_, atol=1e-9)
        np.testing.assert_allclose(a.transform(kind(thin)), b.transform(thin), atol=1e-9)
        assert isinstance(a.transform(kind(thin)), np.ndarray)


def test_whole_numbers_and_lists_in(fitted):
    rows = [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]
    enc = fitted["reconstruction"]
    np.testing.assert_array_equal(enc.transform(rows), enc.transform(np.array(rows, dtype=float)))


@pytest.mark.parametrize("name", ENCODERS)
def test_inputs_are_never_written_into(name):
    data = draw()  # read-only
    copies = [part.copy() for part in data]
    enc = ENCODERS[name](*data)
    X, _, _, R, s = data
    Z = frozen(enc.transform(X))
    enc.encode_query(X), enc.encode_document(X), enc[:1].transform(X)
    if hasattr(enc, "inverse_transform"):
        enc.inverse_transform(Z)
    if hasattr(enc, "predict"):
        enc.predict(X)
    enc.curve(X, metric="recall@10")
    if name.endswith("pairs"):
        enc.curve_pairs(X, R, s)
    for part, copy in zip(data, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_changing_the_data_afterwards_does_not_change_the_encoder():
    X = draw()[0].copy()
    enc = PrefixEncoder(objective="similarity").partial_fit(X)
    expected = PrefixEncoder(objective="similarity").fit(X).components_
    X[:] = 0.0
    np.testing.assert_allclose(enc.components_, expected, atol=1e-12)


# -- storage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODERS)
def test_a_saved_encoder_comes_back_to_the_byte(fitted, name, tmp_path):
    enc, (X, _, _, R, _) = fitted[name], draw()
    assert enc.save(tmp_path / "model") == tmp_path / "model"
    back = PrefixEncoder.load(tmp_path / "model")
    for attribute in ("components_", "spectrum_", "mean_"):
        assert getattr(back, attribute).tobytes() == getattr(enc, attribute).tobytes()
    for narrow in (X, X.astype(np.float32)):
        assert back.transform(narrow).tobytes() == enc.transform(narrow).tobytes()
        assert back.encode_query(R, 1).tobytes() == enc.encode_query(R, 1).tobytes()
    if hasattr(enc, "inverse_transform"):
        Z = enc.transform(X)
        assert back.inverse_transform(Z).tobytes() == enc.inverse_transform(Z).tobytes()
    if hasattr(enc, "predict"):
        assert back.predict(X).dtype == enc.predict(X).dtype
        assert back.predict(X).tobytes() == enc.predict(X).tobytes()
    assert back.objective_ == enc.objective_
    assert (back.solver_, back.n_features_in_) == (enc.solver_, enc.n_features_in_)
    assert back.encoder_.pinned == enc.encoder_.pinned


@pytest.mark.parametrize("name", ENCODERS)
def test_saving_twice_writes_the_same_bytes(fitted, name, tmp_path):
    enc = fitted[name]
    enc.save(tmp_path / "a")
    PrefixEncoder.load(tmp_path / "a").save(tmp_path / "b")
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize(
    "labels",
    [np.array([3, 1, 2]), np.array([True, False]), np.array([0.5, 1.5]), np.array(["ä", "日本"], dtype=object)],
)
def test_labels_of_any_plain_kind_come_back(tmp_path, labels):
    X, y = draw()[0], labels[np.arange(N) % len(labels)]
    if labels.dtype.kind == "f":
        y = y * 2  # whole numbers stored as floats are labels
    enc = PrefixEncoder(objective="fisher").fit(X, y)
    enc.save(tmp_path / "model")
    back = PrefixEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(back.predict(X), enc.predict(X))
    assert set(back.predict(X).tolist()) <= set(y.tolist())


def test_a_saved_model_is_json_safetensors_and_a_card_and_nothing_else(fitted, tmp_path):
    fitted["fisher"].save(tmp_path / "model")
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["format"], config["objective"], config["d"], config["p"]) == ("firstk-encoder", "fisher", 5, P)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # no temporary file is left


def test_saving_replaces_an_older_model(fitted, tmp_path):
    fitted["fisher"].save(tmp_path / "model")
    fitted["reconstruction"].save(tmp_path / "model")
    assert PrefixEncoder.load(tmp_path / "model").encoder_.record.objective == "reconstruction"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("moment", ["write", "exchange", "second rename"])
def test_a_failure_while_saving_leaves_the_old_model(fitted, tmp_path, monkeypatch, moment):
    target, failed = tmp_path / "model", []
    fitted["fisher"].save(target)
    rename = os.rename

    def full_disk(*_):
        failed.append(moment)
        raise OSError(28, "No space left on device")

    def renamed(old, new):
        if new == target and not target.exists() and not failed:
            full_disk()  # only the step that puts the new one in place fails
        return rename(old, new)

    with monkeypatch.context() as patch:
        if moment == "write":
            patch.setattr(os, "fsync", full_disk)
        else:
            patch.setattr(atomic_files, "_exchange", full_disk if moment == "exchange" else lambda *_: False)
            patch.setattr(os, "rename", renamed)
        with pytest.raises(InvalidInputError, match=r"No space left on device. Nothing was changed"):
            fitted["reconstruction"].save(target)
    assert failed
    assert PrefixEncoder.load(target).encoder_.record.objective == "fisher"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_frozen_encoder_saves_and_loads_alone(fitted, tmp_path):
    encoder, X = fitted["scored pairs"].encoder_, draw()[0]
    encoder.save(tmp_path / "model")
    back = FittedEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(back.encode(X, side="query"), encoder.encode(X, side="query"))
    with pytest.raises(AttributeError):
        back.components = None


def test_a_loaded_encoder_can_be_fitted_again(tmp_path):
    X = draw()[0]
    enc = PrefixEncoder(3, ordering=FullPrefix(omega={1: 2.0, 3: 1.0})).fit(X)
    enc.save(tmp_path / "model")
    back = PrefixEncoder.load(tmp_path / "model")
    assert back.ordering == enc.ordering
    assert back.fit(X).components_.tobytes() == enc.components_.tobytes()


def test_a_cut_encoder_saves_and_loads(fitted, tmp_path):
    X = draw()[0]
    fitted["fisher"][:2].save(tmp_path / "model")
    back = PrefixEncoder.load(tmp_path / "model")
    assert back.n_components_ == 2
    np.testing.assert_array_equal(back.predict(X), fitted["fisher"].predict(X, k=2))


# -- scikit-learn ------------------------------------------------------------------------------------------------


def test_clone_and_parameters():
    enc = PrefixEncoder(3, objective=Fisher(0.2), ordering=FullPrefix("harmonic"), random_state=4)
    copy = clone(enc)
    assert copy.get_params() == enc.get_params()
    assert copy is not enc
    assert set(enc.get_params(deep=False)) == {
        "n_components", "objective", "ordering", "solver", "network", "init", "device", "random_state", "verbose",
    }  # fmt: skip
    assert enc.set_params(n_components=2).n_components == 2
    X, y = draw()[:2]
    np.testing.assert_array_equal(clone(enc).fit(X, y).components_, enc.fit(X, y).components_)
    with pytest.raises(NotFittedError):
        clone(enc).transform(X)


@pytest.mark.parametrize("name", ENCODERS)
def test_pickle(fitted, name):
    X = draw()[0]
    back = pickle.loads(pickle.dumps(fitted[name]))
    assert back.transform(X).tobytes() == fitted[name].transform(X).tobytes()
    assert back.objective_ == fitted[name].objective_


def test_names_of_coordinates_and_columns(tmp_path):
    X = pd.DataFrame(draw()[0], columns=list("abcdef"))
    enc = PrefixEncoder(3).fit(X)
    assert enc.get_feature_names_out().tolist() == ["prefixencoder0", "prefixencoder1", "prefixencoder2"]
    assert enc[:2].get_feature_names_out().tolist() == ["prefixencoder0", "prefixencoder1"]
    assert enc.feature_names_in_.tolist() == list("abcdef")
    enc.save(tmp_path / "model")
    assert PrefixEncoder.load(tmp_path / "model").feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        enc.transform(X[list("fedcba")])


def test_set_output_pandas():
    X = pd.DataFrame(draw()[0], columns=list("abcdef"), index=np.arange(N) + 100)
    enc = PrefixEncoder(3).set_output(transform="pandas").fit(X)
    Z = enc.transform(X)
    assert isinstance(Z, pd.DataFrame)
    assert list(Z.columns) == ["prefixencoder0", "prefixencoder1", "prefixencoder2"]
    assert Z.index.equals(X.index)
    np.testing.assert_array_equal(Z.to_numpy(), PrefixEncoder(3).fit(X).transform(X))


def test_set_output_pandas_with_a_prefix():
    X = pd.DataFrame(draw()[0], columns=list("abcdef"))
    enc = PrefixEncoder(4).set_output(transform="pandas").fit(X)
    assert list(enc[:2].transform(X).columns) == ["prefixencoder0", "prefixencoder1"]
    with pytest.raises(InvalidInputError, match=r"cut first: encoder\[:k\].transform\(X\)"):
        enc.transform(X, k=2)


def test_in_a_pipeline():
    X, y = draw()[:2]
    pipe = make_pipeline(StandardScaler(), PrefixEncoder(2, objective="fisher")).fit(X, y)
    assert pipe.transform(X).shape == (N, 2)
    assert pipe.predict(X).shape == (N,)
    assert 0.5 < pipe.score(X, y) <= 1.0


def test_fit_transform_is_fit_then_transform():
    X, y = draw()[:2]
    np.testing.assert_array_equal(
        PrefixEncoder(objective="fisher").fit_transform(X, y), PrefixEncoder(objective="fisher").fit(X, y).transform(X)
    )


def test_same_data_same_bytes():
    data = draw()
    for name, make in ENCODERS.items():
        assert make(*data).components_.tobytes() == make(*data).components_.tobytes(), name
