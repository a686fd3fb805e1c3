"""Changing the embedding model: staying, translating by each method, and re-embedding, on the same queries."""
