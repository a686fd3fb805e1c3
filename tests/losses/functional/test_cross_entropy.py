import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk._base.checks import numba_may_compile
from firstk._base.prefix_weights import resolve_omega
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.losses import FullPrefixCrossEntropy
from firstk.losses.functional.cross_entropy import cross_entropy, cross_entropy_per_prefix
from losses.functional import loops
from losses.functional.compare import check

DTYPES = [torch.float32, torch.float64]


def problem(n, d, C, scale=1.0):
    z = torch.randn(n, d, dtype=torch.float64) * scale
    weight, bias = torch.randn(C, d, dtype=torch.float64), torch.randn(C, dtype=torch.float64)
    return (z, weight, bias), torch.randint(0, C, (n,))


def compare(tensors, labels, backend, dtype, omega="harmonic", class_weight=None, **options):
    """Check value and gradients against the loop, with options spelled as torch spells them there."""
    d = tensors[0].shape[1]
    theirs = dict(options) if class_weight is None else {**options, "weight": class_weight}
    mine = dict(options) if class_weight is None else {**options, "class_weight": class_weight}
    check(
        lambda z, w, b: cross_entropy(z, w, labels, b, omega=omega, backend=backend, **mine),
        lambda z, w, b: loops.cross_entropy(z, w, labels, b, **theirs),
        tensors,
        resolve_omega(omega, d).omega,
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "d", "C"),
    [
        (5, 7, 3),
        (1, 9, 4),
        (6, 1, 5),
        (7, 5, 1),
        (1, 1, 1),
        (9, 33, 17),
        (4, 16, 16),
        (3, 40, 2100),
        (50, 70, 21),
    ],
)
def test_agrees_with_the_loop(n, d, C, dtype, backend):
    compare(*problem(n, d, C), backend, dtype)


@pytest.mark.parametrize("omega", ["uniform", "harmonic", "reverse_harmonic", {1: 1}, {3: 1, 20: 2, 37: 1}, "steep"])
def test_agrees_for_every_omega(omega, backend):
    if omega == "steep":
        omega = 0.7 ** torch.arange(40.0).numpy()
    compare(*problem(11, 40, 6), backend, torch.float32, omega=omega)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [
    {"label_smoothing": 0.1},
    {"reduction": "sum"},
    {"ignore_index": 2},
    {"class_weight": True},
    {"class_weight": True, "label_smoothing": 0.3, "ignore_index": 1, "reduction": "mean"},
    {"class_weight": True, "label_smoothing": 1.0, "reduction": "sum"},
])  # fmt: skip
@pytest.mark.parametrize("omega", ["uniform", {5: 1.0}])
def test_agrees_with_every_option(options, omega, dtype, backend):
    options = dict(options)
    if options.pop("class_weight", False):
        options["class_weight"] = torch.rand(5, dtype=torch.float64) + 0.1
    compare(*problem(13, 19, 5), backend, dtype, omega=omega, **options)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 40),
    C=st.integers(1, 40),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
    compiled=st.booleans(),
    seed=st.integers(0, 99),
)
def test_agrees_for_random_shapes(n, d, C, scale, compiled, seed):
    torch.manual_seed(seed)
    backend = "compiled" if compiled and numba_may_compile() else "torch"
    compare(*problem(n, d, C, scale), backend, torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_huge_logits(dtype, backend):
    """Logits of 1e4, by steps that leave every block's starting point far behind."""
    (z, weight, bias), labels = problem(20, 48, 9)
    logits = z @ weight.t()
    z = z * (1e4 / logits.abs().max())
    compare((z, weight, bias), labels, backend, dtype)
    z[:, 20] *= 1e3  # a jump inside a block, in both directions
    z[:, 22] *= -1e3
    check(
        lambda z, w: cross_entropy(z, w, labels, backend=backend),
        lambda z, w: loops.cross_entropy(z, w, labels),
        (z, weight),
        resolve_omega("harmonic", 48).omega,
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_many_small_steps(scale, dtype, backend):
    """Steps below one binary order, for which powers are carried through a block; with classes far below the others."""
    (z, weight, bias), labels = problem(10, 96, 20)
    weight = weight * (scale / 6)
    compare((z.clamp(-3, 3), weight, bias), labels, backend, dtype, omega="uniform")
    bias[4:] -= 120 * torch.rand(16, dtype=torch.float64)  # powers at and below the smallest that is carried
    compare((z.clamp(-3, 3), weight, bias), labels, backend, dtype, omega="uniform")


def test_weight_on_the_last_prefixes_only(backend):
    """Blocks of prefixes without weight have no loss of their own, but their coordinates have gradients."""
    omega = torch.zeros(70).index_fill(0, torch.arange(40, 70), 1.0).numpy()
    compare(*problem(9, 70, 21), backend, torch.float64, omega=omega)


def test_zero_codes_and_zero_head(backend):
    z, weight = torch.zeros(4, 6, requires_grad=True), torch.zeros(3, 6, requires_grad=True)
    loss = cross_entropy(z, weight, torch.tensor([0, 1, 2, 0]), backend=backend)
    loss.backward()
    torch.testing.assert_close(loss, torch.tensor(3.0).log())
    assert (z.grad == 0).all()
    assert (weight.grad == 0).all()


def test_bias_of_minus_infinity_masks_a_class(backend):
    (z, weight, bias), labels = problem(8, 20, 5)
    labels = labels.clamp_max(3)
    bias[4] = -torch.inf
    omega = resolve_omega("uniform", 20).omega
    check(
        lambda z, w: cross_entropy(z, w, labels, bias, omega="uniform", backend=backend),
        lambda z, w: loops.cross_entropy(z, w, labels, bias),
        (z, weight),
        omega,
    )


def test_classes_far_below_zero_are_compared_with_each_other(backend):
    (z, weight, bias), labels = problem(8, 20, 5)
    loss = cross_entropy(z, weight, labels, torch.full_like(bias, -2e35), backend=backend)
    torch.testing.assert_close(loss, torch.tensor(5.0, dtype=loss.dtype).log())


def test_nan_is_not_swallowed(backend):
    (z, weight, bias), labels = problem(6, 20, 5)
    weight[3, 7] = torch.nan
    assert cross_entropy(z, weight, labels, bias, backend=backend).isnan()
    assert cross_entropy_per_prefix(z, weight, labels, bias, backend=backend)[7:].isnan().all()


def test_ignored_rows_may_hold_nan(backend):
    (z, weight, bias), labels = problem(6, 5, 4)
    z[2], labels[2] = torch.nan, -100
    z.requires_grad_()
    loss = cross_entropy(z, weight, labels, bias, backend=backend)
    loss.backward()
    keep = labels != -100
    torch.testing.assert_close(loss, cross_entropy(z[keep], weight, labels[keep], bias, backend=backend))
    assert (z.grad[2] == 0).all()
    assert z.grad.isfinite().all()


def test_no_counted_row_is_nan_as_in_torch(backend):
    (z, weight, _), labels = problem(3, 5, 4)
    z.requires_grad_()
    loss = cross_entropy(z, weight, torch.full_like(labels, -100), backend=backend)
    loss.backward()
    assert loss.isnan()
    assert (z.grad == 0).all()
    assert cross_entropy(z, weight, torch.full_like(labels, -100), reduction="sum", backend=backend) == 0


def test_gradcheck(backend):
    (z, weight, bias), labels = problem(4, 18, 3)
    inputs = [t.requires_grad_() for t in (z, weight, bias)]
    assert torch.autograd.gradcheck(
        lambda z, w, b: cross_entropy(z, w, labels, b, label_smoothing=0.1, backend=backend), inputs
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_per_prefix(smoothing, backend):
    (z, weight, bias), labels = problem(7, 37, 5)
    found = cross_entropy_per_prefix(z, weight, labels, bias, label_smoothing=smoothing, backend=backend)
    wanted = torch.stack(loops.cross_entropy(z, weight, labels, bias, label_smoothing=smoothing))
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_only_asked_gradients(backend):
    (z, weight, bias), labels = problem(4, 6, 3)
    z.requires_grad_()
    cross_entropy(z, weight, labels, bias, backend=backend).backward()
    assert weight.grad is None
    with torch.no_grad():
        assert not cross_entropy(z, weight, labels, bias, backend=backend).requires_grad


def test_inputs_are_not_mutated_and_may_be_strided(backend):
    (z, weight, bias), labels = problem(5, 20, 4)
    strided = z.t().contiguous().t(), weight.t().contiguous().t()
    copies = [t.clone() for t in (*strided, bias)]
    a = cross_entropy(z, weight, labels, bias, backend=backend)
    b = cross_entropy(*strided, labels, bias, backend=backend)
    torch.testing.assert_close(a, b)
    for t, copy in zip((*strided, bias), copies, strict=True):
        assert torch.equal(t, copy)


@pytest.mark.skipif(not numba_may_compile(), reason="numba")
def test_threads_do_not_change_the_result():
    (z, weight, bias), labels = problem(600, 64, 100)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            leaf = z.clone().requires_grad_()
            head = weight.clone().requires_grad_()
            loss = cross_entropy(leaf, head, labels, bias, backend="compiled")
            loss.backward()
            results.append((loss.detach(), leaf.grad, head.grad))
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_inputs_are_computed_in_float32(dtype, backend):
    (z, weight, bias), labels = problem(9, 21, 5)
    half = [t.to(dtype).requires_grad_() for t in (z, weight, bias)]
    full = [t.detach().float().requires_grad_() for t in half]
    a = cross_entropy(half[0], half[1], labels, half[2], backend=backend)
    b = cross_entropy(full[0], full[1], labels, full[2], backend=backend)
    assert a.dtype == torch.float32
    torch.testing.assert_close(a, b)
    a.backward()
    b.backward()
    for x, y in zip(half, full, strict=True):
        assert x.grad.dtype == dtype
        torch.testing.assert_close(x.grad, y.grad.to(dtype))


def test_autocast_changes_nothing(backend):
    (z, weight, bias), labels = problem(9, 21, 5)
    args = (z.float(), weight.float(), labels, bias.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = cross_entropy(*args, backend=backend)
        sampled = cross_entropy(*args, omega={21: 1}, estimator="sampled")
    assert torch.equal(inside, cross_entropy(*args, backend=backend))
    torch.testing.assert_close(sampled, cross_entropy(*args, omega={21: 1}))


def test_gradient_accumulation(backend):
    """Chunks with reduction="sum" add up to the whole batch."""
    (z, weight, bias), labels = problem(23, 20, 5)
    whole, chunked = weight.clone().requires_grad_(), weight.clone().requires_grad_()
    cross_entropy(z, whole, labels, bias, backend=backend).backward()
    for rows in torch.arange(23).split(6):
        (cross_entropy(z[rows], chunked, labels[rows], bias, reduction="sum", backend=backend) / 23).backward()
    torch.testing.assert_close(chunked.grad, whole.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("change", "says"), [
    ({"labels": torch.tensor([0, 3])}, r"in \[0, 2\].*Got 'labels from 0 to 3'"),
    ({"labels": torch.tensor([0.0, 1.0])}, "one class index per row, or one probability"),
    ({"labels": torch.tensor([0, 1, 2])}, "as many rows in 'z' as in 'labels'. Got 2 and 3"),
    ({"z": torch.zeros(2, 5, 4)}, r"shape \(rows, coordinates\).*flatten"),
    ({"z": torch.zeros(2, 4, dtype=torch.int64)}, "floating-point tensor"),
    ({"weight": torch.zeros(3, 5)}, "'weight' with 4 coordinates.*Got 5"),
    ({"bias": torch.zeros(4)}, "one 'bias' for each of the 3 classes"),
    ({"omega": "linear"}, "'omega' parameter of cross_entropy"),
    ({"estimator": "both"}, "one of 'exact', 'sampled'"),
    ({"backend": "cuda"}, "one of 'auto', 'compiled', 'torch', 'triton'"),
    ({"label_smoothing": 1.5}, r"a number in \[0, 1\]"),
    ({"reduction": "median"}, "one of 'mean', 'none', 'sum'"),
])  # fmt: skip
def test_bad_arguments_are_named(change, says):
    arguments = {"z": torch.zeros(2, 4), "weight": torch.zeros(3, 4), "labels": torch.tensor([0, 1])}
    with pytest.raises(InvalidInputError, match=says):
        cross_entropy(**{**arguments, **change})


@pytest.mark.skipif(not numba_may_compile(), reason="numba")
def test_compiled_path_refuses_other_devices():
    meta = torch.zeros(2, 4, device="meta")
    with pytest.raises(IllegalCombinationError, match=r"tensors are on meta.*backend='torch'"):
        cross_entropy(meta, meta[:1], torch.zeros(2, dtype=torch.int64, device="meta"), backend="compiled")


@pytest.mark.parametrize("options", [
    {}, {"label_smoothing": 0.2}, {"class_weight": torch.tensor([0.2, 1.0, 3.0, 0.5])}, {"reduction": "sum"},
    {"label_smoothing": 0.3, "class_weight": torch.tensor([0.2, 1.0, 3.0, 0.5])},
])  # fmt: skip
@pytest.mark.parametrize("omega", ["harmonic", {4: 1.0, 20: 2.0}])
def test_probabilities_in_the_place_of_labels(options, omega, backend):
    z, head, bias = torch.randn(9, 20), torch.randn(4, 20), torch.randn(4)
    soft = torch.rand(9, 4).double().softmax(1)
    theirs = {"weight" if name == "class_weight" else name: value for name, value in options.items()}
    theirs = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in theirs.items()}
    check(
        lambda z, w, b: cross_entropy(z, w, soft, b, omega=omega, backend=backend, **options),
        lambda z, w, b: loops.cross_entropy(z, w, soft, b, **theirs),
        [z, head, bias],
        resolve_omega(omega, 20).omega,
    )
    wanted = torch.stack(loops.cross_entropy(z.double(), head.double(), soft, bias.double(), **theirs))
    found = cross_entropy_per_prefix(z.double(), head.double(), soft, bias.double(), backend=backend, **options)
    torch.testing.assert_close(found, wanted)


def test_probabilities_that_are_one_are_labels(backend):
    z, head, labels = torch.randn(9, 20).double(), torch.randn(4, 20).double(), torch.arange(9) % 4
    soft = torch.nn.functional.one_hot(labels, 4).double()
    for estimator in ("exact", "sampled"):
        found = [
            cross_entropy(z, head, y, estimator=estimator, generator=torch.Generator().manual_seed(0), backend=backend)
            for y in (labels, soft)
        ]
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("options", [
    {}, {"label_smoothing": 0.2}, {"class_weight": torch.tensor([0.2, 1.0, 3.0, 0.5]).double()},
])  # fmt: skip
@pytest.mark.parametrize(("omega", "soft"), [("harmonic", False), ({4: 1.0, 20: 2.0}, False), ("uniform", True)])
def test_without_reduction_each_row_has_a_loss_and_upstream_weighs_it(options, omega, soft, backend):
    tensors = [torch.randn(*size).double().requires_grad_() for size in ((9, 20), (4, 20), (4,))]
    labels = torch.rand(9, 4).double().softmax(1) if soft else torch.arange(9) % 4
    theirs = {"weight" if name == "class_weight" else name: value for name, value in options.items()}
    z, head, bias = tensors
    found = cross_entropy(z, head, labels, bias, omega=omega, reduction="none", backend=backend, **options)
    every = torch.stack(loops.cross_entropy(z, head, labels, bias, reduction="none", **theirs))  # (d, n)
    wanted = torch.tensor(resolve_omega(omega, 20).omega) @ every
    torch.testing.assert_close(found, wanted)
    upstream = torch.rand(9).double()
    for mine, loop in zip(*(torch.autograd.grad(each, tensors, upstream) for each in (found, wanted)), strict=True):
        torch.testing.assert_close(mine, loop)


def test_without_reduction_ignored_rows_may_hold_nan(backend):
    z, head = torch.randn(5, 20), torch.randn(3, 20)
    z[2] = torch.nan
    z.requires_grad_()
    loss = cross_entropy(z, head, torch.tensor([0, 1, -100, 2, 0]), reduction="none", backend=backend)
    loss.sum().backward()
    assert loss[2] == 0
    assert z.grad[2].eq(0).all()
    assert z.grad.isfinite().all()


def test_without_reduction_tokens_keep_their_shape():
    z, head, labels = torch.randn(2, 3, 20), torch.randn(30, 20), torch.randint(0, 30, (2, 3))
    for own in ({}, {"n_classes": 30}):
        module = FullPrefixCrossEntropy(reduction="none", estimator="exact", **own)
        losses = module(z, head, labels)
        assert losses.shape == (2, 3)
        mean = FullPrefixCrossEntropy(**own, estimator="exact")(z, head, labels)
        torch.testing.assert_close(losses.mean(), mean)
        torch.testing.assert_close(
            module.per_prefix(z, head, labels) @ torch.tensor(module.weights(20, 30).omega).float(), mean
        )
        sampled = FullPrefixCrossEntropy({20: 1.0}, "sampled", reduction="none", **own)(z, head, labels)
        torch.testing.assert_close(
            sampled, F.cross_entropy(z.flatten(0, 1) @ head.T, labels.flatten(), reduction="none").view(2, 3)
        )
