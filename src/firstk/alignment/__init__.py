"""Two models, one ordered code: translations between the vectors of an old model and a new one.

`prefix_alignment` has the estimator, `methods/` one file per method, `auto` the choice between them. Moments of two
widths are in `moments`, exports in `integrations`.
"""
