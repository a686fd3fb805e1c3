"""A fitted encoder on disk: folder, manifest, checked fields, model card, and the Hugging Face Hub.

Arrays and atomic writes live in `_base`, the estimator's parameters in `estimator`.
"""
