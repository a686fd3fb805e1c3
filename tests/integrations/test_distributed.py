"""Two ranks under torchrun give the losses and gradients of one process with all the rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
dist = pytest.importorskip("torch.distributed", reason="needs torch.distributed")

import distributed_cases as cases  # noqa: E402
from firstk import PrefixEncoder  # noqa: E402
from firstk.exceptions import InvalidInputError  # noqa: E402
from firstk.integrations import distributed  # noqa: E402

pytestmark = [
    pytest.mark.wings,  # several processes of torch
    pytest.mark.skipif(not dist.is_available(), reason="this torch was built without torch.distributed"),
]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What both ranks found, and the folder they wrote to."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = Path(cases.__file__)
    done = subprocess.run(
        [*command, str(script), str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [dict(np.load(folder / f"rank-{rank}.npz")) for rank in (0, 1)], folder


@pytest.mark.parametrize("name", cases.CASES)
def test_losses_and_gradients_are_those_of_one_process(two, name):
    (first, second), _ = two
    _, alone = cases.run(name, slice(None))
    for key, part in alone.items():
        scale = max(1.0, np.abs(part).max())
        for found in (first, second):
            np.testing.assert_allclose(found[f"{name}/{key}"] / scale, part / scale, rtol=0, atol=1e-6, err_msg=key)
    assert np.abs(alone["gradient"]).max() > 0


def test_closed_forms_merge_moments(two):
    expected = PrefixEncoder(objective="fisher").fit(cases.X, cases.Y).components_
    for found in two[0]:
        np.testing.assert_allclose(found["closed"], expected, rtol=0, atol=1e-9)


def test_the_first_rank_writes(two):
    loaded = PrefixEncoder.load(two[1] / "model")
    last = list(cases.CASES)[-1]
    np.testing.assert_allclose(np.abs(loaded.transform(cases.X[:9])), two[0][0][f"{last}/code"], atol=1e-9)


@pytest.fixture
def one_rank(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_checkpoint_of_two_ranks_goes_on_with_one(two, one_rank):
    (first, _), folder = two
    assert "stopped" in first
    extra = cases.LONG | {"checkpoint": str(folder / "checkpoint"), "resume": True}
    encoder, found = cases.run("cross-entropy", slice(None), distributed, **extra)
    assert len(found["gradient"]) == 3 * (cases.N // 32), "three of six epochs were left"
    np.testing.assert_allclose(found["code"], first["whole"], rtol=0, atol=1e-9)
    assert encoder.encoder_.record.epochs == 6


def test_without_torchrun_there_is_a_sentence():
    with pytest.raises(InvalidInputError, match="torchrun"):
        distributed.fit(PrefixEncoder(), cases.X)
    with pytest.raises(InvalidInputError, match="torchrun"), distributed.group():
        pass
