"""Theorem 2 for a linear decoder: what an encoder of any capacity gains over a linear one.

The paper's proof lets the code be any matrix and solves for it. Here that optimum is compared with the linear one for
every lambda, and a network is trained against principal components.
"""

from __future__ import annotations

import numpy as np

from firstk import Gradient, PrefixEncoder
from firstk_papers.balestriero2024.joint_problem import Joint, problem, solved
from firstk_papers.frame.panels import rounded
from firstk_papers.frame.types import JsonDict, JsonObject


def free_code_loss(joint: Joint, K: int, lam: float) -> float:
    """Return the least loss of (3) when the code of every row may be anything: section 5.6, linear decoder.

    It is |Y|^2 + lambda |X|^2 less the K largest eigenvalues of Y Y' + lambda X X' over rows, which are the squared
    singular values of (Y, sqrt(lambda) X).
    """
    both = np.hstack([joint.Y, np.sqrt(lam) * joint.X])
    return joint.total(lam) - float(np.sum(np.linalg.svd(both, compute_uv=False)[:K] ** 2))


def gaps(cell: JsonObject) -> JsonDict:
    """Return what a free code gains over a linear encoder, as a share of the loss of an empty code, by lambda."""
    joint, K = problem(cell), cell["K"]
    found = []
    for lam in map(float, cell["lambdas"]):
        linear = solved(joint, K, lam).loss(joint, lam)
        found.append((linear - free_code_loss(joint, K, lam)) / joint.total(lam))
    return {"gap": rounded(found), "wide": joint.X.shape[1] >= len(joint.X)}


def network_against_principal(cell: JsonObject) -> JsonDict:
    """Train a network with a linear decoder to reconstruct, and return its excess over principal components."""
    joint, K = problem(cell), cell["K"]
    solver = Gradient(
        optimizer="adam", learning_rate=cell["learning_rate"], epochs=cell["steps"], batch_size=256,
        schedule="cosine", dtype="float64", patience=None, trace_every=max(1, cell["steps"] // 50),
    )  # fmt: skip
    encoder = PrefixEncoder(
        K, objective="reconstruction", ordering="unordered", solver=solver, network="mlp", random_state=cell["seed"]
    ).fit(joint.X)
    values = np.linalg.svd(joint.X, compute_uv=False) ** 2
    error = float(np.sum((encoder.inverse_transform(encoder.transform(joint.X)) - joint.X) ** 2))
    return {"excess": (error - float(values[K:].sum())) / float(values.sum())}
