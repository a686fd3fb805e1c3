"""Statistics that are additive over rows: moments, samples, fingerprints, and the streams that accumulate them.

Nothing here knows an objective: what is learned from statistics lives in `objectives` and `solvers`.
"""
