"""Classification: the own head at every prefix, the start, and where it beats what it started from."""

import numpy as np
import pytest

from firstk import Classification, Fisher, Gradient, PrefixEncoder, SparsePrefix
from firstk._base.prefix_weights import resolve_omega
from firstk.data import load_digits
from firstk.encoder.storage.folder import read_model, write_model
from firstk.exceptions import CorruptModelError, IllegalCombinationError, InvalidInputError

torch = pytest.importorskip("torch")

from firstk.solvers.gradient.losses import TRAINING_LOSSES  # noqa: E402
from firstk.solvers.gradient.losses.base import PrefixSum  # noqa: E402
from firstk.solvers.gradient.networks import Model  # noqa: E402


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def fitted(digits):
    return PrefixEncoder(9, objective="classification", random_state=0).fit(digits.X_train, digits.y_train)


def test_it_is_trained_and_has_a_number_for_every_prefix(fitted, digits):
    curve = fitted.curve(digits.X_test, digits.y_test)
    assert fitted.solver_ == "gradient"
    assert fitted.optimality_gap_ is None
    assert curve.metric == "head_accuracy"
    assert curve.at(9) > 0.85
    for k in (2, 9):
        assert np.mean(fitted.predict(digits.X_test, k) == digits.y_test) == pytest.approx(curve.at(k))


def test_training_lowers_the_loss_of_the_start_and_separates_what_fisher_does_not(fitted, digits):
    """On the rows it was trained on; on held-out digits Fisher's rule, with a bias of its own a prefix, is as good."""
    start = PrefixEncoder(9, objective=Fisher(fitted.objective_.shrinkage)).fit(digits.X_train, digits.y_train)
    theirs = start.curve(digits.X_train, digits.y_train, metric="head_accuracy")
    ours = fitted.curve(digits.X_train, digits.y_train)
    assert all(ours.at(k) > theirs.at(k) for k in (4, 6, 9))
    assert fitted.trace_[-1]["loss"] < 0.7 * fitted.trace_[0]["loss"]


def test_the_log_loss_of_probabilities_is_what_training_lowered(fitted, digits):
    """At every length: the entropy of the classes, less what the coordinates up to there take off."""
    rows, shares = np.arange(len(digits.y_train)), np.bincount(digits.y_train) / len(digits.y_train)
    entropy = -np.sum(shares * np.log(shares))
    for k in (1, 4, 9):
        found = fitted.predict_proba(digits.X_train, k=k)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_array_equal(fitted.classes_[found.argmax(axis=1)], fitted.predict(digits.X_train, k=k))
        loss = -np.log(found[rows, np.searchsorted(fitted.classes_, digits.y_train)]).mean()
        assert loss == pytest.approx(entropy - fitted.spectrum_[:k].sum(), abs=1e-4)


def test_the_canonical_form_has_mean_code_norm_one_and_a_centred_head(fitted, digits):
    Z = fitted.transform(digits.X_train)
    assert np.mean(np.square(Z).sum(axis=1)) == pytest.approx(1.0, rel=1e-3)
    head = fitted.encoder_.head
    for part in (head.weight, head.own_weight.swapaxes(0, 1), head.offset, head.own_offset.T):
        np.testing.assert_allclose(part.sum(axis=0), 0.0, atol=1e-9)
    assert (fitted.components_[np.arange(9), np.abs(fitted.components_).argmax(axis=1)] > 0).all()


def test_the_spectrum_is_what_each_coordinate_takes_off_the_loss(fitted, digits):
    Z, head = fitted.transform(digits.X_train).astype(float), fitted.encoder_.head
    label = np.searchsorted(head.classes, digits.y_train)
    losses = []
    for k in range(10):
        weight, offset = head.at(k) if k else (head.weight[:, :0], np.log(np.bincount(label) / len(label)))
        logits = Z[:, :k] @ weight.T + offset
        logits -= logits.max(axis=1, keepdims=True)
        losses.append(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(label)), label]))
    np.testing.assert_allclose(fitted.spectrum_, -np.diff(losses), atol=1e-4)


def test_it_survives_saving_and_fewer_rows_than_columns(fitted, digits, tmp_path):
    fitted.save(tmp_path / "model")
    again = PrefixEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(digits.X_test, k=3), fitted.predict(digits.X_test, k=3))
    X, y = digits.X_train[:50], digits.y_train[:50]
    few = PrefixEncoder(5, objective=Classification(0.5), random_state=0).fit(X, y)
    assert few.components_.shape == (5, 64)
    assert few.score(X, y) > 0.9


def test_there_is_no_closed_form_to_ask_for(digits):
    with pytest.raises(IllegalCombinationError, match=r"no closed form.*solver='gradient'"):
        PrefixEncoder(4, objective="classification", solver="closed_form").fit(digits.X_train, digits.y_train)


def test_init_and_device(digits):
    X, y = digits.X_train, digits.y_train
    solver = Gradient(epochs=2)
    start = np.random.default_rng(0).normal(size=(4, 64))
    given = PrefixEncoder(4, objective=Classification(0.5), solver=solver, init=start, device="cpu", random_state=0)
    assert given.fit(X, y).components_.shape == (4, 64)
    for init, match in (("warm", "'init'"), (start[:2], r"must have shape \(4, 64\)")):
        with pytest.raises(ValueError, match=match):
            PrefixEncoder(4, objective=Classification(0.5), init=init).fit(X, y)
    with pytest.raises(ValueError, match="a device of torch"):
        PrefixEncoder(4, objective=Classification(0.5), device="abacus").fit(X, y)


# -- heads of their own --------------------------------------------------------------------------------------------


def trained(digits, own_heads, ordering="full_prefix", d=9, epochs=5):
    objective, solver = Classification(0.5, own_heads=own_heads), Gradient(epochs=epochs)
    enc = PrefixEncoder(d, objective=objective, ordering=ordering, solver=solver, random_state=0)
    return enc.fit(digits.X_train, digits.y_train)


@pytest.mark.parametrize(("own_heads", "found"), [("auto", 8), (0, 0), (4, 4), (40, 8)])
def test_how_many_heads_there_are(digits, own_heads, found):
    assert trained(digits, own_heads).encoder_.head.own == found


def test_many_classes_get_fewer_heads():
    assert [Classification().own_heads_of(128, classes) for classes in (2, 1024, 4096, 20000)] == [16, 16, 4, 0]


@pytest.mark.parametrize("own_heads", [-1, 2.5, "all", None])
def test_numbers_of_heads_that_mean_nothing(digits, own_heads):
    with pytest.raises(ValueError, match=r"'own_heads' parameter of Classification.*not negative"):
        trained(digits, own_heads)


def test_every_head_is_the_one_that_its_prefix_reads_with(digits):
    enc = trained(digits, 4)
    Z, head = enc.transform(digits.X_test).astype(float), enc.encoder_.head
    curve = enc.curve(digits.X_test, digits.y_test)
    for k in range(1, 10):
        weight, offset = (head.own_weight[k - 1], head.own_offset[k - 1]) if k <= 4 else (head.weight, head.offset)
        scores = Z[:, :k] @ weight[:, :k].T + offset
        np.testing.assert_allclose(enc.encoder_.read_out(digits.X_test, k), scores, atol=1e-4)
        np.testing.assert_allclose(enc[:k].encoder_.read_out(digits.X_test), scores, atol=1e-4)
        assert curve.at(k) == np.mean(head.classes[scores.argmax(axis=1)] == digits.y_test)
    assert not np.triu(head.own_weight, 1).any(where=np.tri(4, dtype=bool)[:, None] == 0)


def test_short_codes_do_not_pay_for_long_ones(digits):
    own, shared = (trained(digits, n, epochs=25).curve(digits.X_test, digits.y_test) for n in ("auto", 0))
    assert own.at(2) > shared.at(2) + 0.05
    assert own.at(9) > shared.at(9) - 0.02


@pytest.mark.parametrize(("K", "same"), [(3, True), (2, False)])
def test_drawn_prefixes_are_those_that_share_a_head(K, same):
    """Short prefixes are summed exactly: where one prefix is left to draw, both estimators agree on every batch."""
    rng = np.random.default_rng(0)

    def tensor(*shape):
        return torch.tensor(rng.normal(size=shape))

    own = tensor(K, 5, K), tensor(K, 5)
    model = Model(torch.nn.Identity(), tensor(5, 4), tensor(5), {}, own)
    code, batch = tensor(6, 4), {"label": torch.tensor([0, 1, 2, 3, 4, 0])}
    weights, half = resolve_omega("harmonic", 4), TRAINING_LOSSES["cross_entropy"]({"label_smoothing": 0.1})
    drawn, exact = (
        half.loss(model, code, batch, PrefixSum(weights, name, torch.Generator().manual_seed(0))).item()
        for name in ("sampled", "exact")
    )
    assert (drawn == pytest.approx(exact)) is same
    logits = [code[:, :k] @ own[0][k - 1, :, :k].T + own[1][k - 1] for k in range(1, K + 1)]
    logits += [code[:, :k] @ model.decoder[:, :k].T + model.bias for k in range(K + 1, 5)]
    loop = [torch.nn.functional.cross_entropy(each, batch["label"], label_smoothing=0.1).item() for each in logits]
    assert exact == pytest.approx(weights.omega @ loop)


@pytest.mark.parametrize("lengths", [[2, 4], [4, 9]])
def test_lengths_beside_a_list_read_with_the_next_longer_head(digits, lengths):
    enc = trained(digits, 6, SparsePrefix(lengths))
    weights, offsets = zip(*(enc.encoder_.head.at(k) for k in range(1, 10)), strict=True)
    for k in range(1, 10):
        n = min((n for n in lengths if n >= k), default=lengths[-1])
        np.testing.assert_array_equal(weights[k - 1][:, :n], weights[n - 1][:, :k])
        np.testing.assert_array_equal(offsets[k - 1], offsets[n - 1])


def test_an_ordering_without_short_prefixes_has_one_head(digits):
    assert trained(digits, "auto", "unordered").encoder_.head.own == 0


def test_saved_heads_come_back_and_damaged_ones_are_refused(digits, tmp_path):
    enc = trained(digits, 4)
    enc.save(tmp_path / "model")
    again = PrefixEncoder.load(tmp_path / "model").encoder_.head
    np.testing.assert_array_equal(again.own_weight, enc.encoder_.head.own_weight)
    np.testing.assert_array_equal(again.own_offset, enc.encoder_.head.own_offset)
    config, arrays = read_model(tmp_path / "model")
    for name, damage in (
        ("weight", lambda a: a[:, :, :3]),
        ("offset", lambda a: a[:3]),
        ("weight", lambda a: a * np.nan),
    ):
        broken = arrays | {f"head.own_{name}": np.ascontiguousarray(damage(arrays[f"head.own_{name}"]))}
        write_model(tmp_path / "broken", dict(config), broken)
        with pytest.raises(CorruptModelError):
            PrefixEncoder.load(tmp_path / "broken")
    write_model(tmp_path / "broken", dict(config), {k: v for k, v in arrays.items() if k != "head.own_offset"})
    with pytest.raises(CorruptModelError):
        PrefixEncoder.load(tmp_path / "broken")


def test_with_a_share_for_the_vectors_the_loss_is_that_of_its_formula():
    """Against a loop over prefixes: (1 - r) CE_k + r H (1 - v_k), v_k by an inverse of each leading block."""
    rng = np.random.default_rng(0)
    A, S = (W @ W.T for W in rng.standard_normal((2, 5, 5)))
    z, labels, r, entropy = rng.standard_normal((8, 3)), np.arange(8) % 4, 0.3, 1.2
    encoder, head = torch.nn.Module(), rng.standard_normal((4, 3))
    encoder.C = torch.nn.Parameter(torch.tensor(rng.standard_normal((3, 5))))
    model = Model(encoder, torch.tensor(head), torch.zeros(4, dtype=torch.float64), {})
    settings = {"label_smoothing": 0.0, "reconstruction": r, "N": torch.tensor(A), "St": torch.tensor(S)}
    loss = TRAINING_LOSSES["cross_entropy"](settings | {"entropy": entropy})
    omega = resolve_omega([3, 2, 1], 3)
    found = loss.loss(model, torch.tensor(z), {"label": torch.tensor(labels)}, PrefixSum(omega))
    wanted, B = 0.0, encoder.C.detach().numpy()
    for k in (1, 2, 3):
        ce = torch.nn.functional.cross_entropy(torch.tensor(z[:, :k] @ head[:, :k].T), torch.tensor(labels)).item()
        explained = np.trace(np.linalg.inv(B[:k] @ A @ B[:k].T) @ B[:k] @ S @ B[:k].T)
        wanted += omega.omega[k - 1] * ((1 - r) * ce + r * entropy * (1 - explained))
    assert found.item() == pytest.approx(wanted, rel=1e-12)


def test_the_share_for_the_vectors_is_between_labels_and_principal_components(digits):
    def explained(enc):
        codes = np.column_stack([np.ones(len(digits.X_train)), enc.transform(digits.X_train, 9)])
        rest = digits.X_train - codes @ np.linalg.lstsq(codes, digits.X_train, rcond=None)[0]
        return 1 - rest.var(axis=0).sum() / digits.X_train.var(axis=0).sum()

    shares = [
        explained(PrefixEncoder(9, objective=Classification(reconstruction=r), random_state=0).fit(
            digits.X_train, digits.y_train)) for r in (0.0, 0.3, 1.0)
    ]  # fmt: skip
    assert shares[0] + 0.02 < shares[1] < shares[2]
    assert shares[2] == pytest.approx(explained(PrefixEncoder(9).fit(digits.X_train)), abs=0.01)


def test_the_share_for_the_vectors_takes_a_number_and_a_linear_encoder(digits):
    with pytest.raises(InvalidInputError, match=r"reconstruction.*Got -0.1"):
        PrefixEncoder(objective=Classification(reconstruction=-0.1)).fit(digits.X_train, digits.y_train)
    with pytest.raises(IllegalCombinationError, match=r"reconstruction=0.2 and a nonlinear network"):
        PrefixEncoder(4, objective=Classification(reconstruction=0.2), network="mlp").fit(
            digits.X_train, digits.y_train
        )
