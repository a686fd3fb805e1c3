"""Training by gradient: from a request to a trained network in canonical form.

What an objective minimizes lives in `losses` of this package; losses of prefixes live in `firstk.losses`.
"""
