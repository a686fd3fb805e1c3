"""Talukder et al. 2026, full-prefix Matryoshka learning: experiments, claims and studies.

A study has `cells`, `measure`, and one function for each figure that reads its cells.
"""
