"""The first b bits of a code: vectors as strings of bytes that can be cut anywhere."""

from firstk.encoder.quantizer.embedded import METRICS, EmbeddedQuantizer

__all__ = ["METRICS", "EmbeddedQuantizer"]
