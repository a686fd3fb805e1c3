"""The linear VAE with diagonal covariance (appendix F): its gradients, and in what sense it is non-uniform l2."""

from __future__ import annotations

import numpy as np
import torch

from firstk.losses import FullPrefixReconstruction
from firstk.orderings import Variational
from firstk_papers.frame.hooks import step_view
from firstk_papers.frame.instances import (
    Problem,
    biggest,
    by_instance,
    extremes,
    floats,
    instance_cells,
    line,
    measuring,
    of_check,
    relative,
    values,
)
from firstk_papers.frame.panels import Chart, Findings
from firstk_papers.frame.types import JsonDict, JsonObject, Results

cells = instance_cells


def elbo_gradients(
    V: np.ndarray, W: np.ndarray, D: np.ndarray, St: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gradients of ELBO / n with respect to V (d, p), W (p, d) and D (d,), by the library's own loss.

    The library minimises -2 sigma^2 ELBO / n, up to a constant, in (V, W, log D).
    """
    v, w, log_d = (torch.tensor(part, requires_grad=True) for part in (V, W, np.log(D)))
    scatter = torch.tensor(St)
    view = step_view(v, w, scatter, extras={"log_variance": log_d})
    total = FullPrefixReconstruction({len(V): 1.0}).from_moments(scatter, v, w) + Variational(noise).penalty(view)
    found = torch.autograd.grad(total, (v, w, log_d))
    dv, dw, dlog = (-part.numpy() / (2 * noise) for part in found)
    return dv, dw, dlog / D


def stated_gradients(
    V: np.ndarray, W: np.ndarray, D: np.ndarray, St: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of Bao et al. 2020 F, divided by n, with W D where it prints D W."""
    dD = (1 / D - 1 - np.sum(W**2, axis=0) / noise) / 2
    dV = (W.T - (W.T @ W + noise * np.eye(len(V))) @ V) @ St / noise
    dW = (St @ V.T - W * D - W @ V @ St @ V.T) / noise
    return dV, dW, dD


def _gradients(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check the three gradients at random points, and what becomes of them at D* and balanced weights."""
    d, p = cell["d"], cell["p"]
    noise = float(rng.uniform(0.2, 2))
    V, W, D = rng.standard_normal((d, p)), rng.standard_normal((p, d)), rng.uniform(0.2, 2, (d,))
    stated, found = stated_gradients(V, W, D, data.St, noise), elbo_gradients(V, W, D, data.St, noise)
    M = W.T @ W + noise * np.eye(d)
    best = noise / np.diag(M)
    balanced = np.linalg.solve(M, W.T)
    dV, dW, dD = elbo_gradients(balanced, W, best, data.St, noise)
    plain = (data.St @ balanced.T - W @ balanced @ data.St @ balanced.T) / noise
    other = elbo_gradients(balanced, W, D, data.St, noise)[1]
    return {
        "stated": max(relative(a, b) for a, b in zip(found, stated, strict=True)),
        "best_variance": biggest(dD) / biggest(found[2]),
        "balanced": biggest(dV) / biggest(found[0]),
        "identity": relative(dW, plain - W / np.diag(M)),
        "identity_elsewhere": relative(other, plain - W / np.diag(M)),
        "as_penalty": relative(dW, plain - W * best / noise),
    }


def _square(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Return D W as printed, where its shapes allow it: k = m."""
    p = cell["p"]
    noise = float(rng.uniform(0.2, 2))
    V, W, D = rng.standard_normal((p, p)), rng.standard_normal((p, p)), rng.uniform(0.2, 2, (p,))
    found = elbo_gradients(V, W, D, data.St, noise)[1]
    printed = (data.St @ V.T - np.diag(D) @ W - W @ V @ data.St @ V.T) / noise
    return {
        "printed": relative(found, printed),
        "corrected": relative(found, stated_gradients(V, W, D, data.St, noise)[1]),
    }


def _optimum(cell: JsonObject, data: Problem, rng: np.random.Generator) -> JsonDict:
    """Check the solution of probabilistic PCA: gradients vanish, penalties increase; and collapse below the noise."""
    d = cell["d"]
    s, U = data.spectrum[:d], data.U[:, :d]
    noise = float(0.5 * s[-1])
    W = U * np.sqrt(s - noise)
    V = np.linalg.solve(W.T @ W + noise * np.eye(d), W.T)
    D = noise / (np.sum(W**2, axis=0) + noise)
    gradients = elbo_gradients(V, W, D, data.St, noise)
    turned = W @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    V2 = np.linalg.solve(turned.T @ turned + noise * np.eye(d), turned.T)
    D2 = noise / (np.sum(turned**2, axis=0) + noise)
    return {
        "stationary": max(biggest(part) for part in gradients),
        "penalty_gap": relative(D, noise / s),
        "penalties_increase": bool(np.all(np.diff(D) > 0)),
        "turned": max(biggest(part) for part in elbo_gradients(V2, turned, D2, data.St, noise)),
        "spectrum": floats(s),
        "penalties": floats(D),
    }


measure = measuring(_gradients, _square, _optimum)


def _penalties(shown: JsonObject) -> Chart:
    s, lam = np.array(shown["spectrum"]), shown["penalties"]
    k = range(1, len(s) + 1)
    return Chart(
        "Penalties that the VAE chooses for itself",
        "axis k",
        "lambda_k",
        (
            line("sigma^2 / (|w_k|^2 + sigma^2)", k, lam, kind="points", ours=True),
            line("sigma^2 over eigenvalue k", k, lam[-1] * s[-1] / s),
        ),
    )


def report(settings: JsonObject, results: Results) -> Findings:
    """Report appendix F."""
    drawn, square, best = (of_check(results, name) for name in ("gradients", "square", "optimum"))
    names = {"identity": "at D* and balanced weights", "identity_elsewhere": "at another D"}
    deviations = by_instance("Gradient of the bound against non-uniform l2", "relative deviation", drawn, names)
    exact = ("stated", "best_variance", "balanced", "identity", "as_penalty")
    return Findings(
        {
            **extremes(drawn, largest=exact, smallest=("identity_elsewhere",)),
            **extremes(square, largest=("corrected",), smallest=("printed",)),
            **extremes(best, largest=("stationary", "penalty_gap"), smallest=("turned",)),
            "penalties_increase": all(values(best, "penalties_increase")),
        },
        (_penalties(best[-1][1]), deviations),
    )
