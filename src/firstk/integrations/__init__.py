"""firstk in the places where embeddings live: one module a neighbour, each behind its own extra."""
