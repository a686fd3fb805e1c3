"""Full-prefix losses in torch: functions that return all prefix losses, or their weighted sum, in one pass.

One file per family of losses. The files ending in `_torch` hold the reference path for any device, those
ending in `_cpu` its compiled counterpart; both are checked against a loop over k.
"""
