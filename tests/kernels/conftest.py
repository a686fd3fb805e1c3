import pytest
import torch

from firstk.kernels._inputs import HAS_NUMBA


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(params=["torch", pytest.param("compiled", marks=pytest.mark.skipif(not HAS_NUMBA, reason="numba"))])
def backend(request):
    return request.param
