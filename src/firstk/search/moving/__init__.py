"""Vectors moved from one place to another, and re-encoded on the way: stores, files and buckets.

Needs the extra "stores" for stores, and "cloud" for buckets; files alone need neither. `contract` is the package on one
page.
"""

from firstk.search.moving.contract import Moved, MovePlan, Recode
from firstk.search.moving.move import move, plan

__all__ = ["MovePlan", "Moved", "Recode", "move", "plan"]
