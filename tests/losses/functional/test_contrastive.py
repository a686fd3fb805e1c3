import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk._base.checks import numba_may_compile
from firstk._base.prefix_weights import resolve_omega
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.losses.functional.contrastive import false_negatives, gathered, info_nce, info_nce_per_prefix
from losses.functional import loops
from losses.functional.compare import check

DTYPES = [torch.float32, torch.float64]


def pairs(n, d, negatives=0):
    shapes = [(n, d), (n, d)] + ([(negatives, d)] if negatives else [])
    return [torch.randn(*shape, dtype=torch.float64) for shape in shapes]


def weights(omega, d, similarity):
    found = resolve_omega(omega, d)
    return (found.without_first() if similarity == "cosine" else found).omega


def compare(tensors, backend, dtype, omega="harmonic", **options):
    d = tensors[0].shape[1]
    check(
        lambda *t: info_nce(*t, omega=omega, backend=backend, **options),
        lambda *t: loops.info_nce(*t, **options),
        tensors,
        weights(omega, d, options.get("similarity", "cosine")),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize(("n", "d"), [(5, 7), (1, 9), (6, 2), (17, 33), (4, 16), (30, 50)])
def test_agrees_with_the_loop(n, d, similarity, dtype, backend):
    compare(pairs(n, d), backend, dtype, similarity=similarity)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [
    {"temperature": 1.0},
    {"temperature": 0.001},
    {"symmetric": True},
    {"symmetric": True, "similarity": "dot", "temperature": 3.0},
    {"label_smoothing": 0.2, "temperature": 0.3},
    {"label_smoothing": 0.2, "symmetric": True, "similarity": "dot"},
])  # fmt: skip
@pytest.mark.parametrize("negatives", [0, 9])
@pytest.mark.parametrize("omega", ["uniform", {9: 1.0, 15: 2.0}])
def test_agrees_with_every_option(options, negatives, omega, dtype, backend):
    compare(pairs(11, 35, negatives), backend, dtype, omega=omega, **options)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 12),
    d=st.integers(2, 40),
    negatives=st.integers(0, 20),
    compiled=st.booleans(),
    similarity=st.sampled_from(["cosine", "dot"]),
    seed=st.integers(0, 99),
)
def test_agrees_for_random_shapes(n, d, negatives, compiled, similarity, seed):
    torch.manual_seed(seed)
    backend = "compiled" if compiled and numba_may_compile() else "torch"
    compare(pairs(n, d, negatives), backend, torch.float64, similarity=similarity, temperature=0.3)


def test_one_coordinate(backend):
    """A cosine of one coordinate is +1 or -1: a finite value, no gradient."""
    q, p = (t.requires_grad_() for t in pairs(5, 1))
    loss = info_nce(q, p, backend=backend)
    loss.backward()
    torch.testing.assert_close(loss, loops.info_nce(q, p)[0])
    assert q.grad.abs().max() < 1e-12
    compare(pairs(5, 1), backend, torch.float64, similarity="dot")


def test_hard_negatives_in_groups_are_flattened(backend):
    q, p = pairs(4, 6)
    negatives = torch.randn(4, 3, 6, dtype=torch.float64)
    torch.testing.assert_close(
        info_nce(q, p, negatives, backend=backend), info_nce(q, p, negatives.flatten(0, 1), backend=backend)
    )


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_temperature_is_differentiated(similarity, backend):
    q, p = pairs(7, 20)
    check(
        lambda t: info_nce(q, p, temperature=t, similarity=similarity, backend=backend),
        lambda t: loops.info_nce(q, p, temperature=t, similarity=similarity),
        [torch.tensor(0.4)],
        weights("harmonic", 20, similarity),
    )


def test_targets_pick_the_positives(backend):
    """Chunks of queries against all documents average to the whole batch, value and gradient."""
    q, p = pairs(10, 20)
    whole, chunked = p.clone().requires_grad_(), p.clone().requires_grad_()
    loss = info_nce(q, whole, backend=backend)
    loss.backward()
    parts = []
    for rows in torch.arange(10).split(4):
        part = info_nce(q[rows], chunked, targets=rows, backend=backend) * len(rows) / 10
        part.backward()
        parts.append(part.detach())
    torch.testing.assert_close(sum(parts), loss.detach())
    torch.testing.assert_close(chunked.grad, whole.grad)


def test_gradcache_style_chunking(backend):
    """Encode without graph, differentiate in the codes, send those gradients through chunk by chunk."""
    encoder = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 18)).double()
    x, y = torch.randn(2, 9, 5, dtype=torch.float64)
    info_nce(encoder(x), encoder(y), backend=backend).backward()
    wanted = [p.grad.clone() for p in encoder.parameters()]
    encoder.zero_grad()
    with torch.no_grad():
        codes = [encoder(x), encoder(y)]
    codes = [c.requires_grad_() for c in codes]
    info_nce(*codes, backend=backend).backward()
    for batch, code in zip((x, y), codes, strict=True):
        for rows in torch.arange(9).split(4):
            (encoder(batch[rows]) * code.grad[rows]).sum().backward()
    torch.testing.assert_close([p.grad for p in encoder.parameters()], wanted)


def test_zero_vectors_give_finite_values_and_gradients(backend):
    q, p = pairs(6, 20)
    q[0], p[1], q[2, :5], p[3, :7] = 0, 0, 0, 0
    q, p = q.requires_grad_(), p.requires_grad_()
    loss = info_nce(q, p, backend=backend)
    loss.backward()
    assert loss.isfinite()
    assert q.grad.isfinite().all()
    assert p.grad.isfinite().all()
    assert (q.grad[0] == 0).all()
    assert q.grad[2, 6:].abs().min() > 0
    # torch normalizes a zero vector to zero as well, so the values are those of the loop.
    wanted = loops.weighted(loops.info_nce(q, p), weights("harmonic", 20, "cosine"))
    torch.testing.assert_close(loss, wanted)


@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1e10, 1e30])
def test_scale_of_a_row_does_not_matter_in_float32(scale, backend):
    q, p = (t.float() for t in pairs(6, 20))
    far = (q * scale).requires_grad_()
    near = q.clone().requires_grad_()
    a, b = info_nce(far, p, backend=backend), info_nce(near, p, backend=backend)
    torch.testing.assert_close(a, b, rtol=1e-5, atol=0)
    a.backward()
    b.backward()
    torch.testing.assert_close(far.grad.double() * scale, near.grad.double(), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_gradcheck(similarity, backend):
    tensors = [t.requires_grad_() for t in pairs(4, 18, 3)]
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda q, p, n, t: info_nce(q, p, n, temperature=t, similarity=similarity, symmetric=True, backend=backend),
        (*tensors, temperature),
    )


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_per_prefix(similarity, symmetric, backend):
    q, p, negatives = pairs(7, 37, 5)
    options = {"similarity": similarity, "symmetric": symmetric, "temperature": 0.2}
    found = info_nce_per_prefix(q, p, negatives, backend=backend, **options)
    torch.testing.assert_close(found, torch.stack(loops.info_nce(q, p, negatives, **options)))


def test_bfloat16_and_autocast(backend):
    q, p = (t.bfloat16() for t in pairs(6, 20))
    q.requires_grad_()
    loss = info_nce(q, p, backend=backend)
    loss.backward()
    assert (loss.dtype, q.grad.dtype) == (torch.float32, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(info_nce(q.float(), p.float(), backend=backend), loss)


@pytest.mark.skipif(not numba_may_compile(), reason="numba")
def test_threads_do_not_change_the_result():
    q, p = pairs(300, 40)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            leaf = q.clone().requires_grad_()
            loss = info_nce(leaf, p, backend="compiled")
            loss.backward()
            results.append((loss.detach(), leaf.grad))
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("change", "says"), [
    ({"positives": torch.zeros(3, 4)}, "as many rows in 'queries' as in 'positives'. Got 2 and 3"),
    ({"positives": torch.zeros(2, 5)}, "'positives' with 4 coordinates"),
    ({"negatives": torch.zeros(2, 5)}, "'negatives' with 4 coordinates"),
    ({"temperature": 0.0}, "'temperature' parameter of info_nce must be a positive number"),
    ({"similarity": "l2"}, "one of 'cosine', 'dot'"),
    ({"targets": torch.tensor([0, 2])}, r"in \[0, 1\]"),
    ({"omega": {1: 1.0}}, "gives prefix 1 no weight"),
    ({"queries": torch.zeros(0, 4), "positives": torch.zeros(0, 4)}, "at least one query"),
])  # fmt: skip
def test_bad_arguments_are_named(change, says):
    arguments = {"queries": torch.ones(2, 4), "positives": torch.ones(2, 4)}
    with pytest.raises(InvalidInputError, match=says):
        info_nce(**{**arguments, **change})


def test_symmetric_refuses_targets():
    with pytest.raises(IllegalCombinationError, match="all_queries"):
        info_nce(torch.ones(2, 4), torch.ones(2, 4), symmetric=True, targets=torch.arange(2))


def masked(n, m):
    """A mask that leaves the positives in."""
    return (torch.rand(n, m) < 0.3) & ~torch.eye(n, m, dtype=torch.bool)


@pytest.mark.parametrize("omega", ["uniform", {9: 1.0, 15: 2.0}])
@pytest.mark.parametrize("options", [{}, {"symmetric": True}, {"reduction": "sum", "symmetric": True}])
def test_masked_documents_are_no_negatives(options, omega):
    q, p, negatives = pairs(11, 35, 9)
    mask = masked(11, 20)
    check(
        lambda *at: info_nce(*at, mask=mask, omega=omega, temperature=0.2, **options),
        lambda *at: loops.info_nce(*at, mask=mask, temperature=0.2, **options),
        [q, p, negatives],
        weights(omega, 35, "cosine"),
    )
    wanted = torch.stack(loops.info_nce(q, p, negatives, mask=mask, **options))
    torch.testing.assert_close(info_nce_per_prefix(q, p, negatives, mask=mask, **options), wanted)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_the_sum_over_queries(similarity, backend):
    q, p = pairs(7, 20)
    options = {"similarity": similarity, "backend": backend}
    torch.testing.assert_close(info_nce(q, p, reduction="sum", **options), 7 * info_nce(q, p, **options))


def test_a_mask_holds_for_sampled_prefixes():
    q, p = pairs(9, 12)
    mask = masked(9, 9)
    found = info_nce(q, p, mask=mask, omega={5: 1.0}, estimator="sampled")
    torch.testing.assert_close(found, loops.info_nce(q, p, mask=mask)[4])


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_smoothing_of_separate_losses_and_of_sampled_prefixes(similarity):
    q, p = pairs(9, 12)
    options = {"similarity": similarity, "label_smoothing": 0.3, "temperature": 0.5}
    wanted = torch.stack(loops.info_nce(q, p, **options))
    torch.testing.assert_close(info_nce_per_prefix(q, p, **options), wanted)
    torch.testing.assert_close(info_nce(q, p, omega={5: 1.0}, estimator="sampled", **options), wanted[4])
    with pytest.raises(IllegalCombinationError, match="a mask leaves some out"):
        info_nce(q, p, mask=masked(9, 9), label_smoothing=0.1)


def test_the_positive_is_never_left_out():
    q, p = pairs(6, 8)
    everything = torch.ones(6, 6, dtype=torch.bool)
    torch.testing.assert_close(info_nce(q, p, mask=everything), torch.zeros((), dtype=torch.float64))


@pytest.mark.parametrize("given", [
    {"mask": torch.zeros(6, 5, dtype=torch.bool)}, {"mask": torch.zeros(6, 6)},
    {"mask": torch.zeros(6, 6, dtype=torch.bool), "similarity": "dot"},
])  # fmt: skip
def test_a_wrong_mask_raises(given):
    with pytest.raises(InvalidInputError, match="'mask'"):
        info_nce(*pairs(6, 8), **given)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_chunks_of_both_directions_average_to_the_whole_batch(similarity, backend):
    q, p = pairs(10, 20)
    options = {"symmetric": True, "similarity": similarity, "backend": backend}
    sides = [part.clone().requires_grad_() for part in (q, p)]
    whole = info_nce(*sides, **options)
    expected = torch.autograd.grad(whole, sides)
    parts = [
        info_nce(sides[0][rows], sides[1], targets=rows, all_queries=sides[0], **options) * len(rows) / 10
        for rows in torch.arange(10).split(4)
    ]
    torch.testing.assert_close(sum(parts), whole)
    for found, wanted in zip(torch.autograd.grad(sum(parts), sides), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_false_negatives_by_id_and_by_margin():
    q, p, extra = pairs(8, 6, 3)
    documents = torch.cat([p, extra])
    ids = torch.arange(8) % 3, torch.arange(11) % 3
    found = false_negatives(q, documents, ids=ids, margin=0.1)
    cosines = F.normalize(q, dim=1) @ F.normalize(documents, dim=1).t()
    for i in range(8):
        for j in range(11):
            wanted = i != j and (i % 3 == j % 3 or cosines[i, j] > cosines[i, i] + 0.1)
            assert bool(found[i, j]) == bool(wanted)


def _rank(rank, folder, q, p, negatives):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    own = slice(3 * rank, 3 * rank + 3)
    sides = [part[own].clone().requires_grad_() for part in (q, p)]
    loss = info_nce(**gathered(*sides, negatives[own]), symmetric=True, backend="torch")
    loss.backward()
    torch.save([loss.detach(), *(part.grad for part in sides)], f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_gathered_batches_are_one_batch(tmp_path):
    q, p, negatives = pairs(6, 8, 6)
    torch.multiprocessing.start_processes(_rank, (str(tmp_path), q, p, negatives), nprocs=2, start_method="fork")
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    sides = [part.clone().requires_grad_() for part in (q, p)]
    loss = info_nce(*sides, negatives, symmetric=True)
    loss.backward()
    torch.testing.assert_close((found[0][0] + found[1][0]) / 2, loss.detach())
    for i, side in enumerate(sides):  # as DistributedDataParallel does, gradients are averaged over processes
        torch.testing.assert_close(torch.cat([found[0][1 + i], found[1][1 + i]]) / 2, side.grad)
