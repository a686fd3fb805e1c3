"""Where the three axes meet, and the face of scikit-learn: PrefixEncoder, fit_files, transform_files.

Evaluation beyond a curve lives in `evaluation`, optional packages in `integrations`.
"""
