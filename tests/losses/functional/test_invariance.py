"""The residual symmetries of docs/theory.md, section 2: what leaves every prefix loss unchanged, and what does not."""

import pytest
import torch

from firstk.losses.functional.contrastive import info_nce_per_prefix
from firstk.losses.functional.cosine import cosine_similarity_per_prefix
from firstk.losses.functional.cross_entropy import cross_entropy, cross_entropy_per_prefix
from firstk.losses.functional.fisher import fisher_from_codes, fisher_per_prefix
from firstk.losses.functional.reconstruction import reconstruction, reconstruction_per_prefix
from firstk.losses.functional.regression import regression_free_head_per_prefix, regression_per_prefix
from losses.functional import loops

D = torch.float64
n, d, p, C = 40, 6, 9, 4


@pytest.fixture
def data():
    z, other = torch.randn(2, n, d, dtype=D)
    return {
        "z": z,
        "other": other,
        "x": torch.randn(n, p, dtype=D),
        "decoder": torch.randn(p, d, dtype=D),
        "head": torch.randn(C, d, dtype=D),
        "bias": torch.randn(C, dtype=D),
        "labels": torch.randint(0, C, (n,)),
        "targets": torch.randn(n, C, dtype=D),
        "scores": torch.rand(n, dtype=D),
        "scales": torch.rand(d, dtype=D) + 0.5,
        "signs": torch.tensor([1, -1, 1, -1, -1, 1], dtype=D),
    }


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def differs(a, b):
    assert (a - b).abs().max() > 1e-3


def rotation(i, j, angle=0.7):
    """Return the rotation of axes i and j, counted from 0."""
    R, angle = torch.eye(d, dtype=D), torch.tensor(angle, dtype=D)
    R[i, i] = R[j, j] = angle.cos()
    R[i, j], R[j, i] = -angle.sin(), angle.sin()
    return R


def lower():
    """Return an invertible lower-triangular matrix."""
    return torch.randn(d, d, dtype=D).tril(-1) + torch.diag(torch.rand(d, dtype=D) + 0.5)


def test_reconstruction_leaves_reciprocal_scales(data):
    x, z, a, s = data["x"], data["z"], data["decoder"], data["scales"]
    losses = reconstruction_per_prefix(x, z, a)
    same(reconstruction_per_prefix(x, z * s, a / s), losses)
    R = rotation(1, 3)
    turned = reconstruction_per_prefix(x, z @ R, a @ R)
    differs(turned, losses)
    same(turned[[0, 3, 4, 5]], losses[[0, 3, 4, 5]])  # prefixes that hold both axes or neither


def test_cross_entropy_leaves_scales_class_constants_and_the_first_offset(data):
    z, w, b, y, s = (data[key] for key in ("z", "head", "bias", "labels", "scales"))
    losses = cross_entropy_per_prefix(z, w, y, b)
    same(cross_entropy_per_prefix(z * s, w / s, y, b), losses)
    same(cross_entropy_per_prefix(z, w + torch.randn(1, d, dtype=D), y, b + 3), losses)
    first, second = torch.zeros(d, dtype=D), torch.zeros(d, dtype=D)
    first[0], second[1] = 2.0, 2.0
    same(cross_entropy_per_prefix(z + first, w, y, b - w @ first), losses)
    differs(cross_entropy_per_prefix(z + second, w, y, b - w @ second), losses)
    differs(cross_entropy_per_prefix(z * s, w, y, b), losses)
    differs(cross_entropy_per_prefix(z @ rotation(0, 1), w @ rotation(0, 1), y, b), losses)


def test_shared_head_regression_leaves_reciprocal_scales(data):
    z, w, y, s = (data[key] for key in ("z", "head", "targets", "scales"))
    losses = regression_per_prefix(z, w, y)
    same(regression_per_prefix(z * s, w / s, y), losses)
    differs(regression_per_prefix(z @ rotation(0, 1), w @ rotation(0, 1), y), losses)


def test_dot_product_leaves_signs_with_one_encoder_and_reciprocal_scales_with_two(data):
    q, k, s, signs = data["z"], data["other"], data["scales"], data["signs"]

    def losses(a, b):
        return info_nce_per_prefix(a, b, similarity="dot", temperature=1.0)

    same(losses(q * signs, k * signs), losses(q, k))
    same(losses(q * s, k / s), losses(q, k))
    differs(losses(q * s, k * s), losses(q, k))
    differs(losses(q * signs, k), losses(q, k))


@pytest.mark.parametrize("name", ["info_nce", "scores"])
def test_cosine_leaves_signs_one_scale_and_a_turn_of_the_first_two_axes(name, data):
    q, k, s, signs = data["z"], data["other"], data["scales"], data["signs"]

    def losses(a, b):
        if name == "scores":
            return cosine_similarity_per_prefix(a, b, data["scores"])
        return info_nce_per_prefix(a, b, temperature=0.5)

    wanted = losses(q, k)
    same(losses(q * signs, k * signs), wanted)
    same(losses(q * 3, k * 7), wanted)
    same(losses(q @ rotation(0, 1), k @ rotation(0, 1))[1:], wanted[1:])  # from k = 2 on
    differs(losses(q @ rotation(1, 2), k @ rotation(1, 2))[1:], wanted[1:])
    differs(losses(q * s, k * s)[1:], wanted[1:])


def test_fisher_leaves_the_flag_only(data):
    Sw, Sb = loops.scatters(data["x"], data["labels"])
    B, T = torch.randn(d, p, dtype=D), lower()
    for shrinkage in (None, 0.3):
        losses = fisher_per_prefix(B, Sw, Sb, shrinkage=shrinkage)
        same(fisher_per_prefix(T @ B, Sw, Sb, shrinkage=shrinkage), losses)
        upper = fisher_per_prefix(T.t() @ B, Sw, Sb, shrinkage=shrinkage)
        differs(upper, losses)
        same(upper[-1], losses[-1])
    with_eps = fisher_per_prefix(B, Sw, Sb, code_eps=1.0)
    differs(
        fisher_per_prefix(10 * B, Sw, Sb, code_eps=1.0), with_eps
    )  # Talukder et al. 2026 (29) breaks the invariance
    for k in (1, 3, len(T)):
        codes = fisher_from_codes(data["z"], data["labels"], omega={k: 1.0})
        same(fisher_from_codes(data["z"] @ T.t(), data["labels"], omega={k: 1.0}), codes)


def test_free_head_leaves_the_flag_only(data):
    z, y, T = data["z"], data["targets"], lower()
    losses = regression_free_head_per_prefix(z, y)
    same(regression_free_head_per_prefix(z @ T.t() + 5, y), losses)
    differs(regression_free_head_per_prefix(z @ T, y), losses)


def test_a_sparse_list_leaves_invertible_blocks(data):
    z, w, y, x, a = (data[key] for key in ("z", "head", "labels", "x", "decoder"))
    T = torch.block_diag(torch.randn(2, 2, dtype=D), torch.randn(3, 3, dtype=D), torch.randn(1, 1, dtype=D))
    back = torch.linalg.inv(T).t()
    for omega, unchanged in (({2: 1, 5: 2}, True), ({6: 1}, True), ("uniform", False), ({2: 1, 3: 1}, False)):
        compare = same if unchanged else differs
        compare(cross_entropy(z @ T, w @ back, y, omega=omega), cross_entropy(z, w, y, omega=omega))
        compare(reconstruction(x, z @ T, a @ back, omega=omega), reconstruction(x, z, a, omega=omega))


def test_coordinates_past_the_last_listed_prefix_are_free(data):
    z, w, y = data["z"].requires_grad_(), data["head"], data["labels"]
    cross_entropy(z, w, y, omega={2: 1, 4: 1}).backward()
    assert (z.grad[:, 4:] == 0).all()
    assert (z.grad[:, :4].norm(dim=0) > 0).all()
