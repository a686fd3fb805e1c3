"""firstk in the places where embeddings live: one module a neighbor, each behind its own extra."""
