"""Networks: MLP and custom modules are trained, cut, saved and loaded; an MLP runs on numpy alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from firstk import MLP, Gradient, PrefixEncoder
from firstk.data import load_digits
from firstk.exceptions import CorruptModelError, IllegalCombinationError, InvalidInputError
from sealing import seal

torch = pytest.importorskip("torch")
SHORT = Gradient(epochs=40)


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def mlp(digits):
    enc = PrefixEncoder(8, objective="classification", network=MLP(hidden=(64, 64)), solver=SHORT, random_state=0)
    return enc.fit(digits.X_train, digits.y_train)


class Twisted(torch.nn.Module):
    """A network that is no stack of layers."""

    def __init__(self, p, d):
        super().__init__()
        self.first, self.second = torch.nn.Linear(p, d), torch.nn.Linear(p, d)

    def forward(self, x):
        return self.first(x) * torch.tanh(self.second(x))


def test_the_numpy_layers_are_the_trained_network(mlp, digits):
    """Batch normalization folded in: unit codes at full width, and what a fresh torch network would give."""
    Z = mlp.transform(digits.X_test)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(mlp.transform(digits.X_test, k=3), Z[:, :3], rtol=1e-6)
    assert mlp.score(digits.X_test, digits.y_test) > 0.85
    assert (mlp.predict(digits.X_test, k=8) == digits.y_test).mean() > 0.85


def test_folding_batch_normalization_is_exact():
    from firstk.solvers.gradient.networks import build_mlp, exported

    torch.manual_seed(0)
    net = build_mlp(MLP(hidden=(7, 5)), 6, 3).double()
    X = torch.randn(50, 6, dtype=torch.float64)
    net(X)  # running statistics away from their start
    net.eval()
    np.testing.assert_allclose(exported(net, 6)(X.numpy()), net(X).detach().numpy(), atol=1e-12)


def test_a_saved_mlp_runs_without_torch(mlp, digits, tmp_path):
    mlp.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", digits.X_test)
    script = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'numba'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "import numpy as np\nfrom firstk import PrefixEncoder\n"
        f"enc = PrefixEncoder.load(r'{tmp_path / 'model'}')\n"
        f"X = np.load(r'{tmp_path / 'X.npy'}')\n"
        f"np.save(r'{tmp_path / 'Z.npy'}', enc[:4].transform(X)); print(enc.predict(X, k=4)[:3])"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    np.testing.assert_array_equal(np.load(tmp_path / "Z.npy"), mlp.transform(digits.X_test, k=4))


def test_damaged_layers_are_refused(mlp, tmp_path):
    import json

    mlp.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    seal(tmp_path / "model", config | {"layers": 2})
    with pytest.raises(CorruptModelError, match="do not fit"):
        PrefixEncoder.load(tmp_path / "model")


def test_a_network_of_the_users_own(digits, tmp_path):
    torch.manual_seed(0)
    net = Twisted(64, 6)
    before = net.first.weight.clone()
    enc = PrefixEncoder(6, objective="classification", network=net, solver=SHORT, random_state=0)
    enc.fit(digits.X_train, digits.y_train)
    assert torch.equal(net.first.weight, before)  # trained in a copy
    assert enc.score(digits.X_test, digits.y_test) > 0.5
    enc.save(tmp_path / "model")
    with pytest.raises(InvalidInputError, match=r"load\(path, module=network\)"):
        PrefixEncoder.load(tmp_path / "model")
    again = PrefixEncoder.load(tmp_path / "model", module=net)
    assert torch.equal(net.first.weight, before)  # loaded into a copy
    np.testing.assert_array_equal(again.transform(digits.X_test), enc.transform(digits.X_test))
    with pytest.raises(CorruptModelError, match="does not fit the module"):
        PrefixEncoder.load(tmp_path / "model", module=Twisted(64, 5))


def test_a_network_of_the_wrong_width_is_refused(digits):
    with pytest.raises(InvalidInputError, match=r"n_components=6.*Got \(2, 5\)"):
        PrefixEncoder(6, objective="classification", network=Twisted(64, 5)).fit(digits.X_train, digits.y_train)


def test_a_network_that_takes_other_rows_is_refused(digits):
    with pytest.raises(InvalidInputError, match=r"must take rows of 64 columns.*\(2x64 and 32x4\).*width of its first"):
        PrefixEncoder(4, network=torch.nn.Linear(32, 4), solver=SHORT).fit(digits.X_train)


@pytest.mark.parametrize("hidden", [32, "32", (32, 0), (2.5,)])
def test_widths_that_mean_nothing_are_refused(digits, hidden):
    with pytest.raises(InvalidInputError, match="'hidden' parameter of MLP must be a sequence of positive ints"):
        PrefixEncoder(4, network=MLP(hidden=hidden)).fit(digits.X_train)


@pytest.mark.parametrize("init", [np.eye(4, 64), "small", "bogus"])
def test_a_start_that_a_network_cannot_take_is_refused(digits, init):
    with pytest.raises(IllegalCombinationError, match="with a nonlinear network is not possible: a network starts"):
        PrefixEncoder(4, network="mlp", init=init).fit(digits.X_train)


def test_a_module_is_taken_only_by_models_that_have_one(mlp, digits, tmp_path):
    linear = PrefixEncoder(3).fit(digits.X_train)
    for enc, kind in ((linear, "a linear encoder"), (mlp, "an MLP of firstk")):
        path = enc.save(tmp_path / kind.replace(" ", "-"))
        with pytest.raises(InvalidInputError, match=f"{kind}, which needs no module"):
            PrefixEncoder.load(path, module=torch.nn.Linear(64, 3))
        PrefixEncoder.load(path)


def test_an_autoencoder_decodes_every_prefix(digits):
    network = MLP(hidden=(64,), dropout=0.0, normalize=False)
    solver = Gradient(epochs=100, learning_rate=0.01)
    enc = PrefixEncoder(6, network=network, solver=solver, random_state=0).fit(digits.X_train)
    curve = enc.curve(digits.X_test)
    pca = PrefixEncoder(6).fit(digits.X_train).curve(digits.X_test)
    assert (np.array(curve.score) > 0.8 * np.array(pca.score)).all()
    assert enc.inverse_transform(enc.transform(digits.X_test, k=2)).shape == digits.X_test.shape
    with pytest.raises(AttributeError, match="linear encoder"):
        enc.components_  # noqa: B018


def test_fisher_of_a_network(digits):
    from firstk import Fisher

    network = MLP(hidden=(32,), normalize=False)
    objective = Fisher(code_eps=1e-3)
    enc = PrefixEncoder(5, objective=objective, network=network, solver=SHORT, random_state=0)
    enc.fit(digits.X_train, digits.y_train)
    assert enc.score(digits.X_test, digits.y_test) > 0.8
    assert (np.diff(enc.spectrum_) < 0.5).all()


def test_fisher_of_a_network_with_nothing_set_is_better_than_linear(digits):
    """Against Sw alone the ratio has no bound on batches, and training diverged."""
    network, linear = (
        PrefixEncoder(4, objective="fisher", network=kind, random_state=0).fit(digits.X_train, digits.y_train)
        for kind in ("mlp", "linear")
    )
    scores = [
        np.array(enc.curve(digits.X_test, digits.y_test, metric="head_accuracy").score) for enc in (network, linear)
    ]
    assert (scores[0] > scores[1] + 0.02).all(), scores
    assert network.trace_[-1]["loss"] >= -4


def test_an_offset_is_a_centre_elsewhere():
    """B x + l b written as B (x - c), in whitened coordinates too, and no centre where there is no offset."""
    from firstk.solvers.gradient.networks import LinearEncoder

    torch.manual_seed(0)
    C, R, X = (torch.randn(*shape, dtype=torch.float64) for shape in ((3, 5), (6, 5), (10, 6)))
    encoder = LinearEncoder(C, R, constant=2.5)
    torch.nn.init.normal_(encoder.b)
    expected = encoder(X @ R).detach().numpy()
    np.testing.assert_allclose((X.numpy() - encoder.centre()) @ encoder.weight.detach().numpy().T, expected, atol=1e-12)
    assert not LinearEncoder(C, R).centre().any()
