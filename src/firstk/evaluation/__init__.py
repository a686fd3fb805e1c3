"""What a curve means on held-out data: baselines, precisions, operating points, diagnosis and the report.

The metrics themselves live in `metrics`; commands that print results live in `cli`.
"""
