"""Images of a page: a few held-out ones, and below each what the first k coordinates rebuild of it.

The page opens with pictures drawn here. When the slider moves, the script draws them anew from codes and decoder.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from firstk.advice.records import ImageSamples
from firstk.words.text import share_text


def image_data(images: ImageSamples) -> dict[str, object]:
    """Return what the script rebuilds images from."""
    packed = {"codes": images.codes, "decoder": images.decoder, "mean": images.mean}
    return {"shape": images.shape, "low": images.low, "high": images.high} | {
        name: {"shape": one.shape, "scales": one.scales, "data": one.data} for name, one in packed.items()
    }


def kept_shares(images: ImageSamples, k: int) -> list[str]:
    """Return the share of each image's squared distance from the mean image that `k` coordinates rebuild, as text."""
    whole = np.sum((images.originals.array() - images.mean.array()) ** 2, axis=1)
    left = np.sum((images.rebuilt(k) - images.originals.array()) ** 2, axis=1)
    return [share_text(1 - error / size) if size > 0 else "–" for error, size in zip(left, whole, strict=True)]


def png_url(images: ImageSamples, values: np.ndarray) -> str:
    """Return an image as a data address."""
    levels = np.clip((values - images.low) / (images.high - images.low), 0, 1)
    pixels = np.rint(255 * levels).astype(np.uint8).reshape(*images.shape[:2], -1)
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def png(pixels: np.ndarray) -> bytes:
    """Write pixels of shape (height, width, 1 or 3) as a PNG file (ISO/IEC 15948): no filter, one chunk of data."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
