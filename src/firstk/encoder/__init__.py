"""The fitted encoder, which is what a user keeps after a fit: readouts, networks, curve and storage; numpy suffices.

How it is found lives in `solvers`, how good it is in `metrics`.
"""
