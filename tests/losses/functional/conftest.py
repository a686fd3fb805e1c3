import pytest
import torch

from firstk._base.checks import numba_may_compile


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(
    params=["torch", pytest.param("compiled", marks=pytest.mark.skipif(not numba_may_compile(), reason="numba"))]
)
def backend(request):
    return request.param
