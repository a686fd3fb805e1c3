"""The same inputs give the same decisions on every kind of processor, and numbers as close as the gaps allow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from processors.compare import differences

HERE = Path(__file__).parent
# What libraries read when they are imported. On x86-64 each of these is a subset of what the machine has.
KERNELS = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "NUMBA_CPU_NAME": "generic"},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "two threads": {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
}


def outcomes(folder, name, *arguments, **environment):
    """Run `outcomes.py` in a process of its own and return what it found."""
    file = folder / f"{name}.npz"
    command = [sys.executable, "-W", "ignore", str(HERE / "outcomes.py"), str(file), *arguments]
    subprocess.run(command, env=os.environ | environment, check=True, timeout=600)
    with np.load(file) as found:
        return dict(found)


@pytest.mark.full
def test_another_processor_decides_the_same(tmp_path):
    """Two synthetic sets on one other kind; the long form has all kinds, digits and sentence embeddings."""
    native, other = (outcomes(tmp_path, name, **KERNELS.get(name, {})) for name in ("native", "Nehalem"))
    assert len(native) > 50
    assert list(differences(native, other)) == []


def test_differences_are_noticed(tmp_path):
    native = {"a|float64|b|spectrum": np.array([2.0, 1.0]), "a|float64|b|components": np.eye(2)}
    native["a|float64|b|decision:k"] = np.array([1])
    assert list(differences(native, native)) == []
    assert len(list(differences(native, native | {"a|float64|b|components": np.diag([1.0, -1.0])}))) == 1
    assert len(list(differences(native, native | {"a|float64|b|decision:k": np.array([2])}))) == 1


@pytest.fixture(scope="module")
def everything(tmp_path_factory, data_folder):
    return outcomes(tmp_path_factory.mktemp("native"), "native", str(data_folder))


@pytest.mark.full
@pytest.mark.parametrize("kind", KERNELS)
def test_every_processor_decides_the_same_on_real_data(kind, everything, tmp_path, data_folder):
    assert list(differences(everything, outcomes(tmp_path, kind, str(data_folder), **KERNELS[kind]))) == []
