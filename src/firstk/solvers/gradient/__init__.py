"""Training by gradient: from a request to a trained network in canonical form.

Losses of prefixes live in `losses`; what an objective adds to them lives in `losses` beside this file.
"""
