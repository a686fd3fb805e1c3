"""Vectors moved from one place to another, and re-encoded on the way: stores, files and buckets.

Needs the extra "stores" for stores, and "cloud" for buckets; files alone need neither.

A source (`sources`) has `facts`, yields rows (ids, vectors, payloads) by `read`, in the same order each time, and is
closed. A target (`targets`) is begun, takes rows by `write`, which returns them as they will be read back, is finished,
read and closed; the same rows may be written again after an interruption, and are there once. Between them a `Recode`
tells how vectors become codes. Each side is a file or a store, and knows nothing of the other.
"""

from firstk.search.moving.move import Moved, MovePlan, move, plan
from firstk.search.moving.recoding import Recode

__all__ = ["MovePlan", "Moved", "Recode", "move", "plan"]
