"""The scikit-learn estimator, and where objective, ordering and solver meet: PrefixEncoder, fit_files, transform_files.

Members of the three axes live in `objectives`, `orderings` and `solvers`, optional packages in `integrations`.
"""
