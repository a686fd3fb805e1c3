"""The section of images: a few held-out ones, and below each what the first k coordinates rebuild of it.

The page opens with pictures drawn here. When the slider moves, the script draws them anew from codes and decoder.
"""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape

import numpy as np

from firstk.advice.records import ImageSamples, Packed
from firstk.advice.report.page import Page
from firstk.advice.report.reading import share_text


def images_html(page: Page, number: int) -> str:
    """Return the pictures of the section: originals above, rebuilt below."""
    images: ImageSamples = page.sections[number].images
    rebuilt, shares = images.rebuilt(page.start), kept_shares(images, (page.start,))[0]
    items = []
    for i, (name, original) in enumerate(zip(images.names, images.originals.array(), strict=True)):
        label = escape(name, quote=True)
        items.append(
            f'<figure><img class="original" alt="{label}" src="{png_url(images, original)}">'
            f'<img class="rebuilt" data-sample="{i}" alt="{label}, rebuilt from the first coordinates" '
            f'src="{png_url(images, rebuilt[i])}">'
            f'<figcaption>{escape(name)}<span class="share">{shares[i]}</span></figcaption></figure>'
        )
    return (
        f'<div class="images" data-section="{number}" role="group" aria-label="Held-out images, and what k = '
        f'{page.start} coordinates rebuild of them">{"".join(items)}</div>'
    )


def images_data(page: Page, number: int) -> dict[str, object]:
    """Return what the script rebuilds images from, and the share kept of each at each stop."""
    images: ImageSamples = page.sections[number].images
    return {
        "shape": images.shape,
        "low": images.low,
        "high": images.high,
        "codes": _matrix(images.codes),
        "decoder": _matrix(images.decoder),
        "mean": _matrix(images.mean),
        "shares": kept_shares(images, page.stops),
    }


def _matrix(packed: Packed) -> dict[str, object]:
    return {"shape": packed.shape, "scales": packed.scales, "data": packed.data}


def kept_shares(images: ImageSamples, ks: tuple[int, ...]) -> list[list[str]]:
    """Share of each image's squared distance from the mean image that is rebuilt at each k, as text."""
    away = images.originals.array() - images.mean.array()
    whole = np.sum(away**2, axis=1)
    found = []
    for k in ks:
        left = np.sum((images.rebuilt(k) - images.originals.array()) ** 2, axis=1)
        found.append(
            [share_text(float(1 - error / size) if size > 0 else None) for error, size in zip(left, whole, strict=True)]
        )
    return found


def png_url(images: ImageSamples, values: np.ndarray) -> str:
    """Return an image as a data address."""
    height, width = images.shape[:2]
    channels = images.shape[2] if len(images.shape) == 3 else 1
    levels = np.clip((values - images.low) / (images.high - images.low), 0, 1)
    pixels = np.rint(255 * levels).astype(np.uint8).reshape(height, width, channels)
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
