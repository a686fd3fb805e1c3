"""Gradient training: from a request to a trained network in canonical form.

The training losses of the objectives are in `losses` of this package; the prefix losses are in `firstk.losses`.
"""
