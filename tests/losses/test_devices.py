"""Losses on tensors without numbers, which a read on the host would fail on, and inside torch.compile."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from firstk._base.prefix_weights import resolve_omega
from firstk.losses import (
    FullPrefixCoSENT,
    FullPrefixCosineSimilarity,
    FullPrefixCrossEntropy,
    FullPrefixFisher,
    FullPrefixFreeHeadRegression,
    FullPrefixInfoNCE,
    FullPrefixReconstruction,
)
from firstk.losses.functional import sweep_torch
from firstk.losses.functional.cross_entropy import cross_entropy

N, D, C = 40, 40, 5
# name: the loss, and the shapes or tensors of what it takes
LOSSES = {
    "info_nce": (FullPrefixInfoNCE(), [(N, D), (N, D)]),
    "info_nce, symmetric": (FullPrefixInfoNCE(symmetric=True), [(N, D), (N, D)]),
    "info_nce, negatives and targets": (FullPrefixInfoNCE(), [(N, D), (N, D), (3, D), torch.arange(N)]),
    "info_nce, dot": (FullPrefixInfoNCE(similarity="dot"), [(N, D), (N, D)]),
    "info_nce, few": (FullPrefixInfoNCE({8: 1, D: 1}), [(N, D), (N, D)]),
    "cross_entropy": (FullPrefixCrossEntropy(), [(N, D), (C, D), torch.arange(N) % C, (C,)]),
    "cross_entropy, few": (FullPrefixCrossEntropy({8: 1, D: 1}), [(N, D), (C, D), torch.arange(N) % C]),
    "cross_entropy, smoothed": (
        FullPrefixCrossEntropy(label_smoothing=0.1, class_weight=torch.rand(C)),
        [(N, D), (C, D), torch.arange(N) % C, (C,)],
    ),
    "cross_entropy, own heads": (FullPrefixCrossEntropy(n_classes=C), [(N, D), (C, D), torch.arange(N) % C]),
    "cosine": (FullPrefixCosineSimilarity(), [(N, D), (N, D), torch.rand(N)]),
    "cosent": (FullPrefixCoSENT(), [(N, D), (N, D), torch.rand(N)]),
    "reconstruction": (FullPrefixReconstruction(), [(N, 7), (N, D), (7, D)]),
    "fisher": (FullPrefixFisher(), [(3, 7), torch.eye(7), torch.eye(7)]),
    "free head": (FullPrefixFreeHeadRegression(), [(N, 3), (N, 2)]),
}


def _inputs(shapes, device="cpu"):
    source = torch.Generator().manual_seed(0)
    parts = [part if isinstance(part, torch.Tensor) else torch.randn(part, generator=source) for part in shapes]
    moved = [part.to(device) for part in parts]
    return [
        part.requires_grad_() if not isinstance(given, torch.Tensor) else part
        for part, given in zip(moved, shapes, strict=True)
    ]


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_reads_nothing_on_the_host(name):
    loss, shapes = LOSSES[name]
    inputs = _inputs(shapes, "meta")
    copy = type(loss).__new__(type(loss))
    copy.__dict__ = dict(loss.__dict__)
    copy._parameters = {k: v if v is None else torch.nn.Parameter(v.to("meta")) for k, v in loss._parameters.items()}
    copy._buffers = {k: v if v is None else v.to("meta") for k, v in loss._buffers.items()}
    value = copy(*inputs)
    assert value.shape == ()
    value.backward()
    assert all(part.grad.shape == part.shape for part in inputs if part.requires_grad)


@pytest.mark.parametrize("name", LOSSES)
def test_fake_tensors_leave_nothing_behind(name):
    loss, shapes = LOSSES[name]
    before = loss(*_inputs(shapes))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(part.detach()).requires_grad_(part.requires_grad) for part in _inputs(shapes)]
        value = loss(*fakes)
        value.backward()
        assert value.shape == ()
    torch.testing.assert_close(loss(*_inputs(shapes)), before)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own
def test_compiled_without_a_graph_break(name):
    torch._dynamo.reset()
    loss, shapes = LOSSES[name]
    eager, compiled = _inputs(shapes), _inputs(shapes)
    expected = 2 * loss(*[part * 1 if part.is_floating_point() else part for part in eager])
    expected.backward()

    def step(*parts):
        return 2 * loss(*[part * 1 if part.is_floating_point() else part for part in parts])

    found = torch.compile(step, fullgraph=True, backend="aot_eager")(*compiled)
    found.backward()
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    for a, b in zip(compiled, eager, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=0)


def test_ignored_rows_without_a_host_read_are_the_rows_left_out(monkeypatch):
    z, weight, labels, bias = (
        part.detach().double() if part.is_floating_point() else part for part in _inputs(LOSSES["cross_entropy"][1])
    )
    labels = labels.clone()
    labels[::3], z[0] = -100, torch.nan
    options = {"omega": resolve_omega("harmonic", D), "label_smoothing": 0.1, "backend": "torch"}
    found = []
    for reads in (True, False):
        monkeypatch.setattr("firstk.losses.functional.cross_entropy.host_reads", lambda _, reads=reads: reads)
        at = [part.clone().requires_grad_() for part in (z, weight, bias)]
        value = cross_entropy(at[0], at[1], labels, at[2], **options)
        found.append([value, *torch.autograd.grad(value, at)])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


def test_lengths_are_those_of_omega():
    z, weight, labels, _ = _inputs(LOSSES["cross_entropy"][1])
    omega = torch.zeros(D)
    omega[[7, D - 1]] = 0.5
    inputs = (z.detach(), weight.detach(), None, labels, torch.full((N,), 1 / N), omega, True)
    few, full = sweep_torch.sparse_sweep([8, D], *inputs), sweep_torch.sweep(*inputs)
    torch.testing.assert_close(few[0][omega > 0], full[0][omega > 0])
    for a, b in zip(few[1:], full[1:], strict=True):
        torch.testing.assert_close(a, b)
