import pytest
import torch
import torch.nn.functional as F

from firstk._base.prefix_weights import for_pairs, resolve_omega
from firstk.exceptions import InvalidInputError
from firstk.losses import FullPrefixMaxSim
from firstk.losses.functional.contrastive import info_nce
from firstk.losses.functional.max_sim import max_sim
from losses.functional.compare import check


def tokens(n=4, t=3, m=4, s=5, d=7):
    return torch.randn(n, t, d).double(), torch.randn(m, s, d).double()


def masks(n=4, t=3, m=4, s=5):
    return torch.arange(t) < 1 + torch.arange(n)[:, None] % t, torch.arange(s) < 1 + torch.arange(m)[:, None] % s


def loop(q, p, of_query=None, of_document=None, temperature=1.0, targets=None):
    """One query, document and token at a time."""
    n, m = len(q), len(p)
    losses = []
    for k in range(1, q.shape[2] + 1):
        rows = []
        for i in range(n):
            scores = []
            for c in range(m):
                total = torch.zeros((), dtype=q.dtype)
                for t in range(q.shape[1]):
                    if of_query is not None and not of_query[i, t]:
                        continue
                    found = [
                        F.cosine_similarity(q[i, t, :k], p[c, s, :k], dim=0)
                        for s in range(p.shape[1])
                        if of_document is None or of_document[c, s]
                    ]
                    total = total + torch.stack(found).max()
                scores.append(total / temperature)
            rows.append(torch.stack(scores))
        losses.append(F.cross_entropy(torch.stack(rows), torch.arange(n) if targets is None else targets))
    return losses


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("omega", ["uniform", {3: 1.0, 7: 2.0}])
def test_agrees_with_the_loop(omega, padded):
    given = masks() if padded else ()
    check(
        lambda q, p: max_sim(q, p, *given, omega=omega, temperature=0.5),
        lambda q, p: loop(q, p, *given, temperature=0.5),
        tokens(),
        resolve_omega(omega, 7).without_first().omega,
    )


def test_module():
    (q, p), given = tokens(), masks()
    wanted = torch.stack(loop(q, p, *given))
    exact = FullPrefixMaxSim(estimator="exact")
    torch.testing.assert_close(exact.per_prefix(q, p, *given), wanted[1:])
    weights = torch.tensor(for_pairs(7).without_first().omega)
    torch.testing.assert_close(exact(q, p, *given), wanted @ weights)
    drawn = FullPrefixMaxSim("uniform", draws=2, generator=torch.Generator().manual_seed(0))
    found = torch.stack([drawn(q, p, *given) for _ in range(200)])
    expected = wanted[1:].mean()
    assert (found.mean() - expected).abs() < 5 * found.std() / 200**0.5
    assert found.std() > 0


def test_targets():
    q, p = tokens(n=2)
    found = max_sim(q, p, omega={5: 1.0}, targets=torch.tensor([3, 1]))
    torch.testing.assert_close(found, loop(q, p, targets=torch.tensor([3, 1]))[4])


@pytest.mark.parametrize(("change", "message"), [
    (lambda q, p: (q[0], p), "token vectors"), (lambda q, p: (q[:2], p), "'targets'"),
    (lambda q, p: (q, p[..., :3]), "token vectors"), (lambda q, p: (q, p, torch.ones(4, 3)), "query_mask"),
    (lambda q, p: (q, p, None, [[True]]), "'document_mask' .* 'list'"), (lambda q, p: (q[:, :0], p), "give masks"),
    (lambda q, p: (q.numpy(), p), "'queries' .* 'ndarray'"), (lambda q, p: (q, p.long()), "'documents' .*int64"),
])  # fmt: skip
def test_bad_input(change, message):
    with pytest.raises(InvalidInputError, match=message):
        max_sim(*change(*tokens()))


@pytest.mark.parametrize(("targets", "message"), [
    ([0, 1, 2, 3], "list"), (torch.arange(4.0), "float32"), (torch.arange(3), "as many rows"),
    (torch.tensor([0, 1, 2, 9]), r"in \[0, 3\]"), (torch.zeros(4, 1, dtype=torch.int64), r"shape \(4, 1\)"),
])  # fmt: skip
def test_bad_targets(targets, message):
    for loss in (max_sim, info_nce):
        given = tokens() if loss is max_sim else (part[:, 0] for part in tokens())
        with pytest.raises(InvalidInputError, match=message):
            loss(*given, targets=targets)
