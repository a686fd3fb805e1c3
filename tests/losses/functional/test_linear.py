"""Reconstruction, regression and Fisher: the losses whose prefixes share second moments."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk._base.prefix_weights import resolve_omega
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.losses.functional import reconstruction as reconstruction_kernels
from firstk.losses.functional import regression as regression_kernels
from firstk.losses.functional.fisher import fisher, fisher_from_codes, fisher_per_prefix
from firstk.losses.functional.reconstruction import (
    reconstruction,
    reconstruction_from_moments,
    reconstruction_from_moments_per_prefix,
    reconstruction_per_prefix,
)
from firstk.losses.functional.regression import (
    regression,
    regression_free_head,
    regression_free_head_per_prefix,
    regression_per_prefix,
)
from losses.functional import loops
from losses.functional.compare import check

DTYPES = [torch.float32, torch.float64]
D = torch.float64
ROW, EYE = torch.ones(1, 2), torch.eye(2)


def autoencoder(n, p, d):
    shapes = (n, p), (n, d), (p, d), (p,)
    return [torch.randn(*shape, dtype=D) for shape in shapes]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("omega", ["uniform", "harmonic", {1: 1.0}, {2: 1.0, 3: 3.0}])
@pytest.mark.parametrize(("n", "p", "d"), [(7, 5, 3), (1, 6, 4), (9, 1, 4), (40, 20, 12)])
def test_reconstruction_agrees_with_the_loop(n, p, d, omega, dtype):
    check(
        lambda *t: reconstruction(*t, omega=omega),
        loops.reconstruction,
        autoencoder(n, p, d),
        resolve_omega(omega, d).omega,
        dtype,
    )


@pytest.mark.parametrize("path", ["_around_zero", "_around_residual"])
def test_both_expansions_agree_with_the_loop(path, monkeypatch):
    used = []
    kept = getattr(reconstruction_kernels, path)
    monkeypatch.setattr(reconstruction_kernels, path, lambda *a: used.append(path) or kept(*a))
    if path == "_around_residual":
        monkeypatch.setattr(reconstruction_kernels, "_CANCELS", torch.inf)
    omega = resolve_omega("harmonic", 6).omega
    check(lambda *t: reconstruction(*t, omega="harmonic"), loops.reconstruction, autoencoder(8, 9, 6), omega)
    assert used


def test_a_nearly_perfect_code_keeps_its_digits():
    """At a millionth of the data left, expanding around zero would have no digit right in float32."""
    decoder = torch.linalg.qr(torch.randn(50, 8, dtype=D))[0]
    z = torch.randn(200, 8, dtype=D) * 0.5 ** torch.arange(8)
    x = z @ decoder.t() + 1e-3 * torch.randn(200, 50, dtype=D) * 0.1
    omega = {8: 1.0}
    check(
        lambda z, a: reconstruction(x.float(), z, a, omega=omega),
        lambda z, a: loops.reconstruction(x.float().double(), z, a),
        (z, decoder),
        resolve_omega(omega, 8).omega,
        torch.float32,
        tolerance=(1e-3, 1e-2),
    )


def test_worked_example_of_000():
    """The expansions (8) and (13) of Talukder et al. 2026, p = 5, d = 3, one sample."""
    x, B, A = torch.randn(5, dtype=D), torch.randn(3, 5, dtype=D), torch.randn(5, 3, dtype=D)
    y1, y2, y3 = (A[:, k] * (B[k] @ x) for k in range(3))
    full = (
        x @ x
        - 2 * x @ (y1 + y2 + y3)
        + y1 @ y1 + y2 @ y2 + y3 @ y3
        + 2 * y1 @ y2 + 2 * y1 @ y3 + 2 * y2 @ y3
    )  # fmt: skip
    ordered = (
        3 * x @ x
        - 2 * (3 * x @ y1 + 2 * x @ y2 + x @ y3)
        + 3 * y1 @ y1 + 2 * y2 @ y2 + y3 @ y3
        + 4 * y1 @ y2 + 2 * y1 @ y3 + 2 * y2 @ y3
    )  # fmt: skip
    z = (B @ x)[None]
    torch.testing.assert_close(reconstruction(x[None], z, A, omega={3: 1}), full)
    torch.testing.assert_close(3 * reconstruction(x[None], z, A, omega="uniform"), ordered)
    St = torch.outer(x, x)
    torch.testing.assert_close(3 * reconstruction_from_moments(St, B, A, omega="uniform"), ordered)


def test_half_of_it_is_deterministic_nested_dropout_of_001():
    """Bao et al. 2020 (6), (18): 1/2n sum_k p(k) |X - W2 mask_k W1 X|^2: full prefix with omega = p is twice that."""
    X = torch.randn(12, 5, dtype=D)
    W1, W2 = torch.randn(3, 5, dtype=D), torch.randn(5, 3, dtype=D)
    p = torch.tensor([0.5, 0.3, 0.2], dtype=D)
    theirs = 0.0
    for k in range(1, 4):
        mask = torch.diag((torch.arange(3) < k).to(D))
        theirs += p[k - 1] * (X.t() - W2 @ mask @ W1 @ X.t()).square().sum() / (2 * 12)
    torch.testing.assert_close(reconstruction(X, X @ W1.t(), W2, omega=p), 2 * theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("omega", ["uniform", "harmonic", {2: 1.0}])
def test_moments_agree_with_the_loop_and_with_batches(omega, dtype):
    x, _, decoder, _ = autoencoder(30, 9, 5)
    components = torch.randn(5, 9, dtype=D)
    St = x.t() @ x / 30
    check(
        lambda b, a: reconstruction_from_moments(St.to(dtype), b, a, omega=omega),
        lambda b, a: loops.reconstruction_from_moments(St.to(dtype).double(), b, a),
        (components, decoder),
        resolve_omega(omega, 5).omega,
        dtype,
    )
    torch.testing.assert_close(
        reconstruction_from_moments(St, components, decoder, omega=omega),
        reconstruction(x, x @ components.t(), decoder, omega=omega),
    )


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 12), p=st.integers(1, 12), d=st.integers(1, 12), seed=st.integers(0, 99))
def test_separate_losses_for_random_shapes(n, p, d, seed):
    torch.manual_seed(seed)
    x, z, decoder, offset = autoencoder(n, p, d)
    wanted = torch.stack(loops.reconstruction(x, z, decoder, offset))
    torch.testing.assert_close(reconstruction_per_prefix(x, z, decoder, offset), wanted)
    components = torch.randn(d, p, dtype=D)
    wanted = torch.stack(loops.reconstruction_from_moments(x.t() @ x, components, decoder))
    torch.testing.assert_close(reconstruction_from_moments_per_prefix(x.t() @ x, components, decoder), wanted)


def test_zero_data_and_codes():
    zeros = [torch.zeros(3, 4), torch.zeros(3, 2, requires_grad=True), torch.zeros(4, 2, requires_grad=True)]
    loss = reconstruction(*zeros)
    loss.backward()
    assert loss == 0
    assert (zeros[1].grad == 0).all()


@pytest.mark.parametrize("loss", [
    lambda x, z, a, c: reconstruction(x, z, a, c, omega="harmonic"),
    lambda x, z, a, c: reconstruction_from_moments(x.t() @ x, z.t() @ x, a) + c.sum(),
    lambda x, z, a, c: regression_free_head(z, x) + a.sum() + c.sum(),
])  # fmt: skip
def test_gradcheck(loss):
    assert torch.autograd.gradcheck(loss, [t.requires_grad_() for t in autoencoder(9, 4, 3)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("targets", [(30,), (30, 1), (30, 4)])
def test_shared_head_regression(targets, dtype):
    z, y = torch.randn(30, 7, dtype=D), torch.randn(*targets, dtype=D)
    columns = y.reshape(30, -1)
    head, bias = torch.randn(columns.shape[1], 7, dtype=D), torch.randn(columns.shape[1], dtype=D)
    check(
        lambda z, w, b: regression(z, w, y.to(dtype), b),
        lambda z, w, b: loops.reconstruction(columns.to(dtype).double(), z, w, b),
        (z, head, bias),
        resolve_omega("harmonic", 7).omega,
        dtype,
    )
    wanted = torch.stack(loops.reconstruction(columns, z, head, bias))
    torch.testing.assert_close(regression_per_prefix(z, head, y, bias), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("targets", [(30,), (30, 4)])
def test_free_head_regression(targets, dtype):
    z, y = torch.randn(30, 7, dtype=D), torch.randn(*targets, dtype=D)
    check(
        lambda z, y: regression_free_head(z, y),
        loops.regression_free_head,
        (z, y),
        resolve_omega("harmonic", 7).omega,
        dtype,
        tolerance=TOLERANCE_GUARDED[dtype],
    )
    wanted = torch.stack(loops.regression_free_head(z, y))
    torch.testing.assert_close(regression_free_head_per_prefix(z, y), wanted, rtol=1e-9, atol=1e-9)


# The rank guard moves the loss by its own relative size.
TOLERANCE_GUARDED = {torch.float32: (1e-5, 1e-3), torch.float64: (1e-9, 1e-8)}


def test_free_head_with_dependent_coordinates():
    """A coordinate that repeats earlier ones gains nothing, and its gradient is finite."""
    z, y = torch.randn(20, 5, dtype=D), torch.randn(20, 3, dtype=D)
    z[:, 2], z[:, 3] = z[:, 0] - 2 * z[:, 1], 0
    z.requires_grad_()
    losses = regression_free_head_per_prefix(z, y)
    torch.testing.assert_close(losses[2:4], losses[[1, 1]])
    assert losses[4] < losses[3] - 1e-6
    regression_free_head(z, y).backward()
    assert z.grad.isfinite().all()
    wide = torch.randn(4, 9, dtype=D, requires_grad=True)
    losses = regression_free_head_per_prefix(wide, torch.randn(4, 2, dtype=D))
    assert losses[2:].abs().max() < 1e-6
    assert (losses > -1e-12).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_guard_of_a_free_head_is_a_fixed_share_of_the_codes(scale):
    z = scale * torch.randn(20, 5, dtype=D)
    Q, R = regression_kernels._orthogonalised(z)
    torch.testing.assert_close(Q @ R, z)
    guard = (R.t() @ R - z.t() @ z) / (z.square().sum() / 5)
    torch.testing.assert_close(guard, 1e-12 * torch.eye(5, dtype=D), rtol=0, atol=1e-14)


def scatter_problem(n=60, p=9, d=5, C=4):
    x, labels = torch.randn(n, p, dtype=D), torch.randint(0, C, (n,))
    x = x + torch.randn(C, p, dtype=D)[labels]
    return (torch.randn(d, p, dtype=D), *loops.scatters(x, labels)), (x[:, :d].clone(), labels)


@pytest.mark.parametrize("omega", ["uniform", "harmonic", {2: 1.0, 5: 1.0}])
@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.3}, {"code_eps": 0.1}, {"shrinkage": 1.0}])
@pytest.mark.parametrize("dtype", DTYPES)
def test_fisher(omega, options, dtype):
    (components, Sw, Sb), (z, labels) = scatter_problem()
    check(
        lambda b: fisher(b, Sw.to(dtype), Sb.to(dtype), omega=omega, **options),
        lambda b: loops.fisher(b, Sw.to(dtype).double(), Sb.to(dtype).double(), **options),
        (components,),
        resolve_omega(omega, 5).omega,
        dtype,
    )
    wanted = torch.stack(loops.fisher(components, Sw, Sb, **options))
    torch.testing.assert_close(fisher_per_prefix(components, Sw, Sb, **options), wanted)
    if "shrinkage" not in options:
        check(
            lambda z: fisher_from_codes(z, labels, omega=omega, **options),
            lambda z: loops.fisher_from_codes(z, labels, **options),
            (z,),
            resolve_omega(omega, 5).omega,
            dtype,
        )


@pytest.mark.parametrize("omega", ["uniform", "harmonic"])
def test_fisher_against_the_total_scatter(omega):
    _, (z, labels) = scatter_problem()

    def loop(z):
        prefixes = (loops.scatters(z[:, :k], labels) for k in range(1, z.shape[1] + 1))
        return [-torch.trace(torch.linalg.solve(Sw + Sb, Sb)) for Sw, Sb in prefixes]

    found = lambda z: fisher_from_codes(z, labels, omega=omega, against="total")  # noqa: E731
    check(found, loop, (z,), resolve_omega(omega, z.shape[1]).omega, torch.float64)
    with pytest.raises(ValueError, match=r"'against'.*within"):
        fisher_from_codes(z, labels, against="between")


def test_fisher_gradcheck():
    (components, Sw, Sb), (z, labels) = scatter_problem(d=3)
    assert torch.autograd.gradcheck(lambda b: fisher(b, Sw, Sb, shrinkage=0.1), (components.requires_grad_(),))
    assert torch.autograd.gradcheck(lambda z: fisher_from_codes(z, labels), (z.requires_grad_(),))


def test_fisher_of_one_class_and_one_coordinate():
    (components, Sw, Sb), (z, labels) = scatter_problem(d=1)
    torch.testing.assert_close(fisher(components, Sw, Sb), loops.fisher(components, Sw, Sb)[0])
    z.requires_grad_()
    loss = fisher_from_codes(z, torch.zeros_like(labels))
    loss.backward()
    assert loss.abs() < 1e-12
    assert z.grad.isfinite().all()


def test_singular_within_scatter_is_named():
    (components, Sw, Sb), _ = scatter_problem()
    components[3] = 0
    with pytest.raises(InvalidInputError, match=r"singular at coordinate 4 of 5.*shrinkage"):
        fisher(components, Sw, Sb)
    with pytest.raises(InvalidInputError, match="requires grad"):
        fisher(components, Sw.requires_grad_(), Sb)


@pytest.mark.parametrize(("call", "reason"), [
    (lambda s: fisher(ROW, EYE, EYE, estimator=s), "not a sum over rows"),
    (lambda s: fisher_from_codes(ROW.t(), torch.arange(2), estimator=s), "not a sum over rows"),
    (lambda s: reconstruction_from_moments(EYE, ROW, ROW.t(), estimator=s), "no rows"),
    (lambda s: regression_free_head(ROW.t(), torch.ones(2), estimator=s), "depends on all rows"),
])  # fmt: skip
def test_sampled_is_refused_with_the_reason(call, reason):
    with pytest.raises(IllegalCombinationError, match=f"{reason}.*estimator='exact'"):
        call("sampled")


@pytest.mark.parametrize(("call", "says"), [
    (lambda: reconstruction(torch.ones(2, 3), torch.ones(2, 2), torch.ones(4, 2)), "3 columns of 'x'. Got 4"),
    (lambda: reconstruction(torch.ones(2, 3), torch.ones(3, 2), torch.ones(3, 2)), "Got 2 and 3"),
    (lambda: reconstruction(torch.ones(0, 3), torch.ones(0, 2), torch.ones(3, 2)), "at least one row"),
    (lambda: reconstruction(torch.ones(2, 3), torch.ones(2), torch.ones(3, 2)), r"takes 'z' of shape .*\(2,\)"),
    (lambda: reconstruction_from_moments(EYE[:1], ROW, ROW.t()), r"'St' of shape \(2, 2\)"),
    (lambda: fisher(ROW, torch.ones(3, 2), EYE), r"'Sw' of shape \(2, 2\)"),
    (lambda: fisher_from_codes(torch.ones(2, 1), torch.ones(2)), "one class index per row"),
])  # fmt: skip
def test_bad_shapes_are_named(call, says):
    with pytest.raises(InvalidInputError, match=says):
        call()


def test_bfloat16_and_autocast():
    x, z, decoder, _ = (t.bfloat16() for t in autoencoder(6, 5, 3))
    z.requires_grad_()
    loss = reconstruction(x, z, decoder)
    loss.backward()
    assert (loss.dtype, z.grad.dtype) == (torch.float32, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(reconstruction(x.float(), z.float(), decoder.float()), loss)
