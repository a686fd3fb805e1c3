"""What a user keeps after a fit: the fitted encoder, its readouts and networks, its curve; numpy suffices.

How it is found lives in `solvers`, how good it is in `metrics`.
"""
