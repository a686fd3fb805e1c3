"""A user's module in a fitted encoder."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def test_threads_do_not_see_each_other_in_training_mode():
    """Dropout and running statistics depend on a mode that the module has once, for all threads."""
    from firstk.encoder.torch_network import TorchNetwork

    module = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 4)).train()
    network = TorchNetwork(module, 16)
    X = np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32)
    expected = network(X)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: network(X), range(60)))
    for codes in found:
        np.testing.assert_allclose(codes, expected, rtol=0, atol=1e-5)
    assert module.training
