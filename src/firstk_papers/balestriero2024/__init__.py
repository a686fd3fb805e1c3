"""Balestriero and LeCun 2024, learning by reconstruction and perception: experiments, claims and studies.

A study has `cells`, `measure`, and one function for each figure that reads its cells.
"""
