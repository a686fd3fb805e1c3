"""The first b bits of a code: vectors as strings of bytes that can be cut anywhere.

`embedded` is the quantizer of an encoder, `cells` finds the cell of each coordinate, `weights` what an error costs.
"""

from firstk.encoder.quantizer.embedded import METRICS, EmbeddedQuantizer

__all__ = ["METRICS", "EmbeddedQuantizer"]
