"""What an objective leaves undetermined (docs/theory.md, section 2): one test a row of the table.

For each row: the transformations that it allows leave every prefix loss as it is, one that it does not allow does not,
and the canonical form undoes the allowed ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from firstk._base.prefix_weights import resolve_omega
from firstk.solvers.gradient.canonical import Code, flag_form, head_form, shared_form, sorted_form, with_signs

torch = pytest.importorskip("torch")

from firstk.losses.functional import cosine, cross_entropy, fisher, reconstruction, regression  # noqa: E402

P, D, N_ROWS, C = 7, 4, 60, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N_ROWS, P)) @ RNG.normal(size=(P, P))
X -= X.mean(axis=0)
ST = X.T @ X / N_ROWS
Y = np.arange(N_ROWS) % C
MEANS = np.stack([X[c == Y].mean(axis=0) for c in range(C)])
SB = sum((c == Y).mean() * np.outer(MEANS[c], MEANS[c]) for c in range(C))
SW = ST - SB
B, A, W = RNG.normal(size=(D, P)), RNG.normal(size=(P, D)), RNG.normal(size=(C, D))
SCALE = np.array([0.5, 2.0, 3.0, 0.7])
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
LOWER = np.tril(RNG.normal(size=(D, D))) + 3 * np.eye(D)
ROTATION = np.linalg.qr(RNG.normal(size=(D, D)))[0]
BLOCKS = np.zeros((D, D))
BLOCKS[:2, :2], BLOCKS[2:, 2:] = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2))


def t(array):
    return torch.tensor(np.asarray(array))


def rebuilt(B, A):
    return reconstruction.reconstruction_from_moments_per_prefix(t(ST), t(B), t(A)).numpy()


def ratio(B):
    return fisher.fisher_per_prefix(t(B), t(SW), t(SB)).numpy()


def entropy(B, W, b=np.zeros(C)):  # noqa: B008
    return cross_entropy.cross_entropy_per_prefix(t(X @ B.T), t(W), t(Y), t(b)).numpy()


def cosines(B):
    return cosine.prefix_cosines(t(X[:30] @ B.T), t(X[30:] @ B.T)).numpy()


def same(a, b):
    return np.allclose(a, b, rtol=1e-8)


def scaled(B, A, s=SCALE):
    return B * s[:, None], A / s


def test_reconstruction_reciprocal_scale():
    code, other = Code(B, A, ST), Code(*scaled(B, A), ST)
    assert same(rebuilt(B, A), rebuilt(other.components, other.shared))
    assert not same(rebuilt(B, A), rebuilt(ROTATION @ B, A @ ROTATION.T))
    forms = [with_signs(shared_form(each, "axes", (1, 2, 3, 4), "orthonormal")) for each in (code, other)]
    np.testing.assert_allclose(forms[0].components, forms[1].components)
    np.testing.assert_allclose(np.linalg.norm(forms[0].shared, axis=0), 1.0)
    assert same(rebuilt(B, A), rebuilt(forms[0].components, forms[0].shared))


def test_regression_rows_of_unit_norm_in_the_metric():
    form = shared_form(Code(B, W, ST), "axes", (1, 2, 3, 4), "metric")
    np.testing.assert_allclose(np.diag(form.components @ ST @ form.components.T), 1.0)
    target = np.eye(C)[Y]
    before = regression.regression_per_prefix(t(X @ B.T), t(W), t(target))
    after = regression.regression_per_prefix(t(X @ form.components.T), t(form.shared), t(target))
    assert same(before, after)


def test_cross_entropy_scale_head_modulo_ones_and_offset():
    assert same(entropy(B, W), entropy(*scaled(B, W)))
    assert same(entropy(B, W), entropy(B, W + np.outer(np.ones(C), [1.0, 2.0, 3.0, 4.0])))
    # The offset of z_1 trades with the bias.
    shifted = cross_entropy.cross_entropy_per_prefix(t(X @ B.T + [2.0, 0, 0, 0]), t(W), t(Y), t(-2.0 * W[:, 0])).numpy()
    assert same(entropy(B, W), shifted)
    assert not same(entropy(B, W), entropy(ROTATION @ B, W @ ROTATION.T))


@pytest.mark.parametrize(
    ("scale", "equal"),
    [
        ("learned", lambda form: np.linalg.norm(form.components, axis=1) / np.linalg.norm(B, axis=1)),
        ("noise", lambda form: np.diag(form.components @ SW @ form.components.T)),
        ("head", lambda form: np.linalg.norm(form.shared - form.shared.mean(axis=0), axis=0)),
    ],
)
def test_cross_entropy_scales_of_the_axes(scale, equal):
    form = head_form(Code(B, W, SW), scale, ST)
    assert np.mean(np.square(X @ form.components.T).sum(axis=1)) == pytest.approx(1.0)
    np.testing.assert_allclose(equal(form), equal(form)[0])
    assert same(entropy(B, W), entropy(form.components, form.shared))
    if scale != "learned":  # a convention, so it does not depend on where training ended along the symmetry
        np.testing.assert_allclose(head_form(Code(*scaled(B, W), SW), scale, ST).components, form.components)


def own_entropies(each, heads):
    """Cross-entropies of the first prefixes, each under its own head, one by one."""
    logits = (t(X @ each[: k + 1].T) @ t(head[:, : k + 1]).T for k, head in enumerate(heads))
    return np.array([torch.nn.functional.cross_entropy(each, t(Y)).item() for each in logits])


def test_own_heads_leave_the_flag_of_the_first_axes():
    """Prefixes 1 to 3 have heads of their own, prefix 4 the shared one: T may mix the first three downwards."""
    own = np.tril(RNG.normal(size=(C, 3, 3))).swapaxes(0, 1)
    T = np.eye(D)
    T[:3, :3] = LOWER[:3, :3]
    codes = Code(B, W, SW, own=own), Code(B, W, SW, own=own).mixed(T)
    assert same(own_entropies(B, own), own_entropies(codes[1].components, codes[1].own))
    assert same(entropy(B, W)[[3]], entropy(codes[1].components, codes[1].shared)[[3]])
    forms = [with_signs(head_form(each, "noise", ST)) for each in codes]
    np.testing.assert_allclose(forms[0].components, forms[1].components, atol=1e-8)
    gram = forms[0].components @ SW @ forms[0].components.T
    np.testing.assert_allclose(gram[:3, :3], gram[0, 0] * np.eye(3), atol=1e-10)
    assert gram[3, 3] == pytest.approx(gram[0, 0])
    for form in forms:
        assert same(own_entropies(B, own), own_entropies(form.components, form.own))
        assert same(entropy(B, W)[[3]], entropy(form.components, form.shared)[[3]])


def test_dot_product_signs_with_one_encoder_scale_with_two():
    def dots(left, right):
        return np.cumsum((X[:30] @ left.T) * (X[30:] @ right.T), axis=1)

    assert same(dots(B, B), dots(B * SIGNS[:, None], B * SIGNS[:, None]))
    assert not same(dots(B, B), dots(*(B * SCALE[:, None],) * 2))
    assert same(dots(B, A.T), dots(B * SCALE[:, None], A.T / SCALE[:, None]))


def test_cosine_signs_one_scale_and_a_rotation_of_the_first_two():
    assert same(cosines(B), cosines(-3.0 * B))
    assert same(cosines(B), cosines(B * SIGNS[:, None]))
    assert not same(cosines(B), cosines(B * SCALE[:, None]))
    turn = np.eye(D)
    turn[:2, :2] = [[0.6, -0.8], [0.8, 0.6]]
    assert same(cosines(B)[:, 1:], cosines(turn @ B)[:, 1:])
    assert not same(cosines(B)[:, 0], cosines(turn @ B)[:, 0])


def test_fisher_the_flag_only():
    assert same(ratio(B), ratio(LOWER @ B))
    assert not same(ratio(B), ratio(ROTATION @ B))
    forms = [with_signs(flag_form(Code(each, None, SW, SB), "axes", (1, 2, 3, 4))) for each in (B, LOWER @ B)]
    np.testing.assert_allclose(forms[0].components, forms[1].components, atol=1e-8)
    np.testing.assert_allclose(forms[0].components @ SW @ forms[0].components.T, np.eye(D), atol=1e-8)


def test_free_heads_the_flag_only():
    def probe(each):
        return regression.regression_free_head_per_prefix(t(X @ each.T), t(np.eye(C)[Y])).numpy()

    assert same(probe(B), probe(LOWER @ B))
    assert not same(probe(B), probe(ROTATION @ B))


def test_sparse_prefix_shared_decoder_invertible_blocks():
    at = [1, 3]  # prefixes 2 and 4
    mixed = BLOCKS @ B, np.linalg.solve(BLOCKS.T, A.T).T
    assert same(rebuilt(B, A)[at], rebuilt(*mixed)[at])
    assert not same(rebuilt(B, A)[[0]], rebuilt(*mixed)[[0]])
    forms = [with_signs(shared_form(Code(*each, ST), "blocks", (2, 4), "orthonormal")) for each in ((B, A), mixed)]
    np.testing.assert_allclose(forms[0].components, forms[1].components, atol=1e-8)
    assert same(rebuilt(B, A)[at], rebuilt(forms[0].components, forms[0].shared)[at])


def test_sparse_prefix_fisher_block_lower_triangular():
    T = BLOCKS.copy()
    T[2:, :2] = RNG.normal(size=(2, 2))
    assert same(ratio(B)[[1, 3]], ratio(T @ B)[[1, 3]])
    forms = [with_signs(flag_form(Code(each, None, SW, SB), "blocks", (2, 4))) for each in (B, T @ B)]
    np.testing.assert_allclose(forms[0].components, forms[1].components, atol=1e-7)


def test_unordered_any_invertible_matrix():
    T = RNG.normal(size=(D, D))
    assert same(rebuilt(B, A)[-1], rebuilt(T @ B, np.linalg.solve(T.T, A.T).T)[-1])
    kept = shared_form(Code(B, A, ST), "none", (4,), "orthonormal")
    np.testing.assert_array_equal(kept.components, B)  # there is no canonical form


def test_l2_uniform_is_blind_to_rotation_and_non_uniform_is_not():
    lam = np.array([0.1, 0.2, 0.3, 0.4])

    def penalised(B, A, lam):
        return rebuilt(B, A)[-1] + lam @ (np.square(B).sum(axis=1) + np.square(A).sum(axis=0))

    turned = ROTATION @ B, A @ ROTATION.T
    assert same(penalised(B, A, np.full(D, 0.2)), penalised(*turned, np.full(D, 0.2)))
    assert not same(penalised(B, A, lam), penalised(*turned, lam))
    assert same(penalised(B, A, lam), penalised(*scaled(B, A, SIGNS), lam))
    assert not same(penalised(B, A, lam), penalised(*scaled(B, A), lam))


def test_linear_vae_permutation_and_signs_and_sorting():
    order = [2, 0, 3, 1]
    code = Code(B, A, ST)
    forms = [with_signs(sorted_form(each)) for each in (code, Code(B[order], A[:, order], ST))]
    np.testing.assert_allclose(forms[0].components, forms[1].components)
    carried = np.diag(forms[0].gram) * np.square(forms[0].shared).sum(axis=0)
    assert (np.diff(carried) <= 0).all()


def test_signs_reach_decoder_and_head():
    flipped = Code(B * SIGNS[:, None], A * SIGNS, ST)
    one, two = with_signs(Code(B, A, ST)), with_signs(flipped)
    np.testing.assert_array_equal(one.components, two.components)
    np.testing.assert_array_equal(one.shared, two.shared)
    assert (one.components[np.arange(D), np.abs(one.components).argmax(axis=1)] > 0).all()
    assert replace(one, shared=None).shared is None


def test_the_expansions_of_000_on_random_values():
    """Equations (8), (13), (17), (19) with p = 5, d = 3, against the losses that training uses."""
    rng = np.random.default_rng(1)
    x, B3, A3, lam, alpha = rng.normal(size=5), rng.normal(size=(3, 5)), rng.normal(size=(5, 3)), [0.1, 0.2, 0.3], 0.01
    y = [A3[:, k] * (B3[k] @ x) for k in range(3)]
    xx, xy = x @ x, [x @ part for part in y]
    squares, cross = [part @ part for part in y], {(i, j): y[i] @ y[j] for i in range(3) for j in range(i)}
    whole = xx - 2 * sum(xy) + sum(squares) + 2 * sum(cross.values())  # (8)
    full = 3 * xx - 2 * (3 * xy[0] + 2 * xy[1] + xy[2]) + 3 * squares[0] + 2 * squares[1] + squares[2]
    full += 4 * cross[1, 0] + 2 * cross[2, 0] + 2 * cross[2, 1]  # (13)
    codes, rows = t([B3 @ x]), t([x])
    per_prefix = reconstruction.reconstruction_per_prefix(rows, codes, t(A3)).numpy()
    assert per_prefix[-1] == pytest.approx(whole)
    uniform = resolve_omega("uniform", 3)
    assert 3 * float(reconstruction.reconstruction(rows, codes, t(A3), omega=uniform)) == pytest.approx(full)

    from types import SimpleNamespace

    from firstk import MonotoneL1, NonuniformL2
    from firstk.contracts import View

    model = SimpleNamespace(encoder=SimpleNamespace(weight=t(B3)), decoder=t(A3))
    view = View(model, codes, t(np.eye(5)), None)
    ridge = sum(lam[k] * (B3[k] @ B3[k] + A3[:, k] @ A3[:, k]) for k in range(3))  # (17)
    assert float(NonuniformL2(lam).penalty(view)) == pytest.approx(ridge)
    decay = alpha * sum((k + 1) * abs(B3[k] @ x) for k in range(3))  # (19)
    assert float(MonotoneL1(alpha).penalty(view)) == pytest.approx(decay)
