"""Benchmarks: declarations of what is compared with what; one harness measures time, memory and ratio."""
