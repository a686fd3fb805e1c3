"""Flat search on embedded bytes: a query becomes tables, and the score of a row is a sum of look-ups.

`index` is what users call. `packing` moves coordinates so that a byte holds whole ones, `scan` and `_compiled` search,
`rerank` scores shortlists again, `cell_fit` tells whether added rows fit, `to_faiss` exports.
Funnels over prefixes are in `funnel`, embedded bytes themselves in `firstk.bits`.
"""
