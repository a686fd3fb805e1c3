"""Bao et al. 2020, regularized linear autoencoders and rotation: experiments, claims and studies.

A study has `cells`, `measure`, and one function for each figure that reads its cells.
"""
