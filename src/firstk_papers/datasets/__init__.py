"""Data sets of the papers by name, as the studies take them.

Readers of the files live in `firstk.data`.
"""
