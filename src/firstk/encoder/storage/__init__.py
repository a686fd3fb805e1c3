"""A fitted encoder on disk: folder, manifest, checked fields and model card.

Arrays and atomic writes live in `_base`, the estimator's parameters in `estimator`.
"""
