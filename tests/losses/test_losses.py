"""The modules: each is its function with stored options, and behaves as an nn.Module should."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import firstk.losses
from firstk._base.checks import numba_may_compile
from firstk._base.prefix_weights import for_pairs
from firstk.exceptions import IllegalCombinationError, InvalidInputError, MissingExtraError
from firstk.losses import (
    FullPrefixCoSENT,
    FullPrefixCosineSimilarity,
    FullPrefixCrossEntropy,
    FullPrefixFisher,
    FullPrefixFreeHeadCrossEntropy,
    FullPrefixFreeHeadRegression,
    FullPrefixInfoNCE,
    FullPrefixReconstruction,
    FullPrefixRegression,
)
from firstk.losses.functional.contrastive import info_nce, info_nce_per_prefix
from firstk.losses.functional.cosent import cosent
from firstk.losses.functional.cosine import cosine_similarity
from firstk.losses.functional.cross_entropy import cross_entropy, cross_entropy_per_prefix
from firstk.losses.functional.fisher import fisher, fisher_from_codes
from firstk.losses.functional.reconstruction import reconstruction, reconstruction_from_moments
from firstk.losses.functional.regression import regression, regression_free_head

torch.manual_seed(0)
Z, Q, X = torch.randn(12, 5), torch.randn(12, 5), torch.randn(12, 7)
HEAD, BIAS, LABELS = torch.randn(3, 5), torch.randn(3), torch.arange(12) % 3
DECODER, B = torch.randn(7, 5), torch.randn(5, 7)
ST, SW, SB, SCORES = X.t() @ X / 12, torch.eye(7), X[:2].t() @ X[:2], torch.rand(12)

# name: (module, arguments, its function, the default omega of docs/theory.md, section 7)
CASES = {
    "cross_entropy": (FullPrefixCrossEntropy(), (Z, HEAD, LABELS, BIAS), cross_entropy, "harmonic"),
    "info_nce": (FullPrefixInfoNCE(), (Q, Z, X[:, :5]), info_nce, for_pairs(5)),
    "cosine": (FullPrefixCosineSimilarity(), (Q, Z, SCORES), cosine_similarity, for_pairs(5)),
    "cosent": (FullPrefixCoSENT(), (Q, Z, SCORES), cosent, for_pairs(5)),
    "reconstruction": (FullPrefixReconstruction(), (X, Z, DECODER), reconstruction, "uniform"),
    "regression": (FullPrefixRegression(), (Z, HEAD, Q[:, :3], BIAS), regression, "harmonic"),
    "free_head": (FullPrefixFreeHeadRegression(), (Z, Q[:, :3]), regression_free_head, "harmonic"),
    "fisher": (FullPrefixFisher(), (B, SW, SB), fisher, "uniform"),
}


@pytest.mark.parametrize("name", CASES)
def test_module_is_its_function(name):
    module, arguments, function, omega = CASES[name]
    assert torch.equal(module(*arguments), function(*arguments, omega=omega))


@pytest.mark.parametrize("name", CASES)
def test_weighted_sum_of_per_prefix_is_the_loss(name):
    module, arguments, function, omega = CASES[name]
    losses = module.per_prefix(*arguments)
    weights = module.weights(5)
    weights = weights.without_first() if name in ("info_nce", "cosine", "cosent") else weights
    assert losses.shape == (5,)
    assert not losses.requires_grad
    wanted = function(*arguments, omega=omega)
    torch.testing.assert_close(losses @ torch.tensor(weights.omega).float(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_repr_and_pickle(name):
    module, arguments, *_ = CASES[name]
    assert "omega=" in repr(module)
    assert torch.equal(pickle.loads(pickle.dumps(module))(*arguments), module(*arguments))


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own
@pytest.mark.parametrize("name", CASES)
def test_under_torch_compile(name):
    """The network is compiled and the loss runs eagerly as one node of the graph: same value, same gradient."""
    module, arguments, *_ = CASES[name]
    layer = torch.nn.Linear(arguments[0].shape[1], arguments[0].shape[1])

    def step(x, *rest):
        return module(layer(x), *rest)

    torch._dynamo.reset()
    results = []
    for call in (step, torch.compile(step, backend="aot_eager")):
        layer.zero_grad()
        loss = call(*arguments)
        loss.backward()
        results.append((loss.detach(), layer.weight.grad.clone()))
    torch.testing.assert_close(*results)


def test_options_reach_the_function():
    weight = torch.tensor([0.2, 1.0, 3.0])
    module = FullPrefixCrossEntropy(
        {2: 1.0}, class_weight=weight, label_smoothing=0.2, ignore_index=1, reduction="sum", backend="torch"
    )
    options = {"class_weight": weight, "label_smoothing": 0.2, "ignore_index": 1, "reduction": "sum"}
    assert torch.equal(
        module(Z, HEAD, LABELS), cross_entropy(Z, HEAD, LABELS, omega={2: 1.0}, backend="torch", **options)
    )
    wanted = cross_entropy_per_prefix(Z, HEAD, LABELS, backend="torch", **options)
    assert torch.equal(module.per_prefix(Z, HEAD, LABELS), wanted)
    module = FullPrefixInfoNCE("uniform", temperature=0.7, similarity="dot", symmetric=True)
    options = {"temperature": 0.7, "similarity": "dot", "symmetric": True}
    assert torch.equal(module(Q, Z), info_nce(Q, Z, omega="uniform", **options))
    assert torch.equal(module.per_prefix(Q, Z), info_nce_per_prefix(Q, Z, **options))
    module = FullPrefixFisher(shrinkage=0.4)
    assert torch.equal(module(B, SW, SB), fisher(B, SW, SB, shrinkage=0.4))
    module = FullPrefixFisher(code_eps=0.4)
    assert torch.equal(module.from_codes(Z, LABELS), fisher_from_codes(Z, LABELS, code_eps=0.4))
    with pytest.raises(InvalidInputError, match="no input space"):
        FullPrefixFisher(shrinkage=0.4).from_codes(Z, LABELS)


def test_weights_start_where_so_many_classes_can_be_separated():
    module = FullPrefixCrossEntropy()
    assert [int(module.weights(16, classes).support[0]) for classes in (2, 10, 77, 1000)] == [1, 2, 4, 5]
    assert int(FullPrefixCrossEntropy(start=3).weights(16, 77).support[0]) == 3
    assert int(FullPrefixCrossEntropy("uniform").weights(16, 77).support[0]) == 1  # named: as it is
    assert FullPrefixInfoNCE(start=5).weights(8).support.tolist() == [5, 6, 7, 8]
    assert FullPrefixInfoNCE({2: 1}, start=5).weights(8).support.tolist() == [2]  # names its own prefixes
    assert FullPrefixCoSENT(start=9).weights(4).support.tolist() == [4]  # the longest there is


def test_auto_gives_a_quarter_of_the_weight_of_prefixes_that_are_too_short_to_the_first_that_is_not():
    weights = FullPrefixCrossEntropy().weights(6, 77).omega  # from 4 on
    wanted = np.array([0, 0, 0, 1 / 4 + (1 + 1 / 2 + 1 / 3) / 4, 1 / 5, 1 / 6])
    np.testing.assert_allclose(weights, wanted / wanted.sum(), rtol=1e-12)
    assert FullPrefixCrossEntropy().weights(3, 77).omega.tolist() == [0, 0, 1]
    named = FullPrefixCrossEntropy("harmonic", start=4).weights(6, 77).omega  # a name with a start: only cut
    np.testing.assert_allclose(named, np.array([0, 0, 0, 15, 12, 10]) / 37, rtol=1e-12)


def test_parts_of_their_own_start_at_the_shared_head_in_the_size_of_their_length_and_are_trained():
    module = FullPrefixCrossEntropy(n_classes=3)
    for k in range(1, 6):
        size = (5 / k) ** 0.5
        torch.testing.assert_close(module.logits(Z, HEAD, k, BIAS), Z[:, :k] @ (size * HEAD[:, :k]).T + BIAS)
    module(Z, HEAD, LABELS, BIAS).backward()
    assert module.own_weight.grad.abs().sum() > 0
    assert not module.own_weight.grad[4:].any()  # the longest prefix uses the shared head
    with torch.no_grad():
        module.own_weight.normal_()
        module.own_offset.normal_()
    losses = module.per_prefix(Z, HEAD, LABELS, BIAS)
    for k in range(1, 6):
        wanted = torch.nn.functional.cross_entropy(module.logits(Z, HEAD, k, BIAS), LABELS)
        torch.testing.assert_close(losses[k - 1], wanted.detach())
    omega = torch.tensor(module.weights(5, 3).omega).float()
    torch.testing.assert_close(module(Z, HEAD, LABELS, BIAS), losses @ omega)
    torch.testing.assert_close(module.logits(Z, HEAD, 5), Z @ HEAD.T)
    assert FullPrefixCrossEntropy(n_classes=4096).own_weight.shape == (4, 4096, 4)
    assert not list(FullPrefixCrossEntropy(n_classes=3, own_heads=0).parameters())


def test_losses_of_prefixes_with_parts_of_their_own_come_in_any_width_and_precision():
    loss = FullPrefixCrossEntropy(n_classes=3)
    one = loss.per_prefix(Z[:, :1], HEAD[:, :1], LABELS)  # the longest prefix, which has no part of its own
    torch.testing.assert_close(one, FullPrefixCrossEntropy().per_prefix(Z[:, :1], HEAD[:, :1], LABELS))
    wanted = loss.per_prefix(Z.float(), HEAD.float(), LABELS)
    for z, head in ((Z.double(), HEAD.float()), (Z.float(), HEAD.double()), (Z.double(), HEAD.double())):
        torch.testing.assert_close(loss.per_prefix(z, head, LABELS).float(), wanted)


def test_class_weight_moves_with_the_module():
    module = FullPrefixCrossEntropy(class_weight=torch.ones(3))
    assert module.double().class_weight.dtype == torch.float64
    assert "class_weight" in module.state_dict()


def test_moments():
    module = FullPrefixReconstruction()
    assert torch.equal(module.from_moments(ST, B, DECODER), reconstruction_from_moments(ST, B, DECODER))
    torch.testing.assert_close(
        module.per_prefix_from_moments(ST, B, DECODER),
        module.per_prefix(X, X @ B.t(), DECODER),
        rtol=1e-4,
        atol=1e-3,
    )
    with pytest.raises(IllegalCombinationError, match="no rows"):
        FullPrefixReconstruction(estimator="sampled").from_moments(ST, B, DECODER)


def test_temperature_can_be_a_parameter():
    module = FullPrefixInfoNCE(temperature=torch.nn.Parameter(torch.tensor(0.1)))
    module(Q, Z).backward()
    assert len(list(module.parameters())) == 1
    assert module.temperature.grad != 0


def test_free_heads_are_mrl():
    module = FullPrefixFreeHeadCrossEntropy([4, 2], 3, omega={2: 1.0, 4: 3.0, 5: 9.0})
    losses = [
        torch.nn.functional.cross_entropy(head(Z[:, :k]), LABELS) for k, head in zip((2, 4), module.heads, strict=True)
    ]
    torch.testing.assert_close(module(Z, LABELS), 0.25 * losses[0] + 0.75 * losses[1])
    torch.testing.assert_close(module.per_prefix(Z, LABELS), torch.stack(losses).detach())
    module(Z, LABELS).backward()
    assert all(head.weight.grad.abs().sum() > 0 for head in module.heads)


@pytest.mark.parametrize(("build", "error", "says"), [
    (lambda: FullPrefixFisher(estimator="sampled"), IllegalCombinationError, "not a sum over rows"),
    (lambda: FullPrefixFreeHeadRegression(estimator="sampled"), IllegalCombinationError, "all rows at once"),
    (lambda: FullPrefixFreeHeadCrossEntropy([2], 3, estimator="sampled"), IllegalCombinationError, "share"),
    (lambda: FullPrefixFreeHeadCrossEntropy([], 3), InvalidInputError, "at least one prefix length"),
    (lambda: FullPrefixFreeHeadCrossEntropy([0, 2], 3), InvalidInputError, "Got 0"),
    (lambda: FullPrefixFreeHeadCrossEntropy([9], 3)(Z, LABELS), InvalidInputError, r"prefix in \[1, 5\]"),
    (lambda: FullPrefixCrossEntropy(estimator="some"), InvalidInputError, "of FullPrefixCrossEntropy must"),
    (lambda: FullPrefixCrossEntropy(start=0), InvalidInputError, "start.*at least 1"),
    (lambda: FullPrefixCrossEntropy(own_heads=4), InvalidInputError, "pass n_classes=head.out_features"),
    (lambda: FullPrefixCrossEntropy(n_classes=3, own_heads=-1), InvalidInputError, "own_heads.*not negative"),
    (lambda: FullPrefixCrossEntropy(n_classes=0), InvalidInputError, "n_classes.*at least 1"),
    (lambda: FullPrefixCrossEntropy(n_classes=4)(Z, HEAD, LABELS), InvalidInputError, "a head of 3 classes"),
    (lambda: FullPrefixCrossEntropy(n_classes=3)(Z, HEAD, LABELS + 1), InvalidInputError, r"labels.*in \[0, 2\]"),
    (lambda: FullPrefixCrossEntropy(n_classes=3).logits(Z, HEAD, 6), InvalidInputError, r"k.*in \[1, 5\]"),
    (lambda: FullPrefixInfoNCE(similarity="l1"), InvalidInputError, "'similarity' parameter of FullPrefixInfoNCE"),
    (lambda: FullPrefixCrossEntropy([1.0, 2.0])(Z, HEAD, LABELS), InvalidInputError, "each of the 5 prefixes"),
    (lambda: FullPrefixCrossEntropy([2, 4])(Z, HEAD, LABELS), InvalidInputError, r"prefix lengths: \{2: 1, 4: 1\}"),
    (lambda: FullPrefixCrossEntropy()(Z @ HEAD.T, LABELS), InvalidInputError,
     r"misses 'labels': call it as loss\(z, head.weight, labels, head.bias\)"),
    (lambda: FullPrefixCrossEntropy()(Z, torch.nn.Linear(5, 3), LABELS), InvalidInputError, "pass head.weight"),
    (lambda: FullPrefixRegression()(Z @ HEAD.T, Z @ HEAD.T), InvalidInputError, "misses 'targets': call it as loss"),
    (lambda: FullPrefixReconstruction()(Z, Z), InvalidInputError, r"misses 'decoder': call it as loss\(x, z, dec"),
])  # fmt: skip
def test_errors(build, error, says):
    with pytest.raises(error, match=says):
        build()


def test_sampled_modules_draw_from_their_generator():
    losses = []
    for _ in range(2):
        module = FullPrefixCrossEntropy(estimator="sampled", generator=torch.Generator().manual_seed(5))
        losses.append([module(Z, HEAD, LABELS).item() for _ in range(3)])
    assert losses[0] == losses[1]
    assert len(set(losses[0])) > 1


def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    wanted = cross_entropy(Z, HEAD, LABELS, backend="torch")
    assert torch.equal(cross_entropy(Z, HEAD, LABELS), wanted)
    with pytest.raises(MissingExtraError, match=r"'numba'.*firstk\[torch\]"):
        cross_entropy(Z, HEAD, LABELS, backend="compiled")


def test_without_compilation(monkeypatch):
    """NUMBA_DISABLE_JIT=1: the kernels run compiled or not at all."""
    numba = pytest.importorskip("numba", reason="the compiled path needs numba")
    wanted = cross_entropy(Z, HEAD, LABELS, backend="torch")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert torch.equal(cross_entropy(Z, HEAD, LABELS), wanted)
    with pytest.raises(InvalidInputError, match=r"NUMBA_DISABLE_JIT=1 .* use backend='torch'"):
        cross_entropy(Z, HEAD, LABELS, backend="compiled")


def test_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import firstk\n"
        "try: import firstk.losses\n"
        "except ImportError as error: sys.exit('firstk[torch]' not in str(error))\n"
        "sys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_documented():
    for name in firstk.losses.__all__:
        assert getattr(firstk.losses, name).__doc__


@pytest.mark.parametrize("backend", ["compiled", "torch"] if numba_may_compile() else ["torch"])
def test_a_second_backward_through_a_kept_graph_finds_the_same_gradients(backend):
    torch.manual_seed(0)
    z, w = torch.randn(12, 5, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    q, p = torch.randn(6, 5, requires_grad=True), torch.randn(6, 5, requires_grad=True)
    labels = torch.randint(0, 4, (12,))
    for loss, leaves in (
        (FullPrefixCrossEntropy(backend=backend)(z, w, labels), (z, w)),
        (FullPrefixInfoNCE(backend=backend)(q, p), (q, p)),
    ):
        first = torch.autograd.grad(loss, leaves, retain_graph=True)
        kept = [gradient.clone() for gradient in first]
        again = torch.autograd.grad(loss, leaves, torch.tensor(2.0))
        for a, b, c in zip(first, kept, again, strict=True):
            assert torch.equal(a, b)  # what was handed over is not touched again
            torch.testing.assert_close(2 * a, c)


@pytest.mark.parametrize("loss", [FullPrefixCrossEntropy(), FullPrefixCrossEntropy(n_classes=3)])
def test_codes_of_tokens_are_rows(loss):
    z, labels = Z.view(3, 4, 5), LABELS.view(3, 4)
    assert torch.equal(loss(z, HEAD, labels), loss(Z, HEAD, LABELS))
    assert torch.equal(loss.per_prefix(z, HEAD, labels), loss.per_prefix(Z, HEAD, LABELS))
    soft = torch.nn.functional.one_hot(LABELS, 3).float()
    torch.testing.assert_close(loss(z, HEAD, soft.view(3, 4, 3)), loss(Z, HEAD, LABELS))


def test_own_heads_without_weight_have_a_gradient():
    """DistributedDataParallel waits for the gradient of every parameter."""
    loss = FullPrefixCrossEntropy({5: 1.0}, n_classes=3)
    loss(Z, HEAD, LABELS).backward()
    assert [float(part.grad.abs().max()) for part in loss.parameters()] == [0.0, 0.0]
