"""Everything that is additive over rows: moments, samples, fingerprints, and streams that accumulate them.

No objective and no encoder: what is learnt from statistics lives in `objectives` and `solvers`.
"""
