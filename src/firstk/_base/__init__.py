"""Checks, linear algebra, files and arrays: what every package needs, and what knows nothing of codes.

Private. What knows an encoder, an objective or a table of vectors lives elsewhere.
"""
