"""Evaluation of codes on held-out data: baselines, operating points, precisions, overlap, diagnosis and the report.

Metrics and curves live in `metrics`; commands that print results live in `cli`.
"""
