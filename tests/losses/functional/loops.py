"""The obvious loop over k for every loss: slow, short, and the reference of all tests."""

import torch
import torch.nn.functional as F


def weighted(losses, omega):
    """Return sum_k omega_k losses_k."""
    return torch.stack(list(losses)) @ torch.tensor(omega, dtype=losses[0].dtype)


def cross_entropy(z, head, labels, bias=None, **options):
    return [F.cross_entropy(F.linear(z[:, :k], head[:, :k], bias), labels, **options) for k in range(1, z.shape[1] + 1)]


def similarities(a, b, k, similarity):
    a, b = a[:, :k], b[:, :k]
    if similarity == "cosine":
        a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
    return a @ b.t()


def info_nce(
    queries,
    positives,
    negatives=None,
    temperature=0.05,
    similarity="cosine",
    symmetric=False,
    targets=None,
    mask=None,
    label_smoothing=0.0,
    reduction="mean",
):
    n, d = queries.shape
    documents = positives if negatives is None else torch.cat([positives, negatives.flatten(0, -2)])
    out = torch.zeros(n, len(documents), dtype=queries.dtype)
    out = out if mask is None else out.masked_fill(mask, -torch.inf)
    targets = torch.arange(n) if targets is None else targets
    losses = []
    for k in range(1, d + 1):
        logits = similarities(queries, documents, k, similarity) / temperature + out
        loss = F.cross_entropy(logits, targets, reduction=reduction, label_smoothing=label_smoothing)
        if symmetric:
            logits = similarities(positives, queries, k, similarity) / temperature + out[:, : len(positives)].t()
            back = F.cross_entropy(logits, targets, reduction=reduction, label_smoothing=label_smoothing)
            loss = (loss + back) / 2
        losses.append(loss)
    return losses


def cosine_similarity(left, right, scores):
    return [
        (F.cosine_similarity(left[:, :k], right[:, :k], eps=1e-30) - scores).square().mean()
        for k in range(1, left.shape[1] + 1)
    ]


def cosent(left, right, scores, scale=20.0):
    losses = []
    for k in range(1, left.shape[1] + 1):
        cosines = F.cosine_similarity(left[:, :k], right[:, :k], eps=1e-30) * scale
        worse = [
            cosines[i] - cosines[j] for i in range(len(scores)) for j in range(len(scores)) if scores[i] < scores[j]
        ]
        losses.append(torch.stack([0 * cosines.sum(), *worse]).logsumexp(0))
    return losses


def reconstruction(x, z, decoder, offset=None):
    losses = []
    for k in range(1, z.shape[1] + 1):
        guess = F.linear(z[:, :k], decoder[:, :k], offset)
        losses.append((x - guess).square().sum(1).mean())
    return losses


def reconstruction_from_moments(St, components, decoder):
    losses = []
    for k in range(1, len(components) + 1):
        left = torch.eye(len(St), dtype=St.dtype) - decoder[:, :k] @ components[:k]
        losses.append((left @ St @ left.t()).trace())
    return losses


def fisher(components, Sw, Sb, shrinkage=0.0, code_eps=0.0):
    p = len(Sw)
    Sw = (1 - shrinkage) * Sw + shrinkage * Sw.trace() / p * torch.eye(p, dtype=Sw.dtype)
    losses = []
    for k in range(1, len(components) + 1):
        B = components[:k]
        A = B @ Sw @ B.t() + code_eps * torch.eye(k, dtype=B.dtype)
        losses.append(-torch.linalg.solve(A, B @ Sb @ B.t()).trace())
    return losses


def scatters(z, labels):
    """Return within- and between-class scatter, class by class (Talukder et al. 2026 (22), (23))."""
    n, d = z.shape
    Sw, Sb = torch.zeros(d, d, dtype=z.dtype), torch.zeros(d, d, dtype=z.dtype)
    for c in labels.unique():
        own = z[labels == c]
        centred = own - own.mean(0)
        Sw = Sw + centred.t() @ centred / n
        gap = own.mean(0) - z.mean(0)
        Sb = Sb + len(own) / n * torch.outer(gap, gap)
    return Sw, Sb


def fisher_from_codes(z, labels, code_eps=0.0):
    return [
        fisher(torch.eye(k, dtype=z.dtype), *scatters(z[:, :k], labels), code_eps=code_eps)[-1]
        for k in range(1, z.shape[1] + 1)
    ]


def regression_free_head(z, targets):
    y = targets[:, None] if targets.ndim == 1 else targets
    y = y - y.mean(0)
    losses = []
    for k in range(1, z.shape[1] + 1):
        zk = z[:, :k] - z[:, :k].mean(0)
        head = torch.linalg.solve(zk.t() @ zk, zk.t() @ y)
        losses.append((y - zk @ head).square().sum(1).mean())
    return losses
