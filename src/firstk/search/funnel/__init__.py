"""A funnel over prefixes: shortlists by a short prefix, then longer prefixes of fewer and fewer rows.

`index` is what users call. `schedule` says which prefixes and shortlists, `schedule_choice` chooses them by the ranks
of true neighbors. `prefixes` has the nearness of rows by a prefix, `cells` the rows laid out by faiss, and
`block_search` the search. Flat search on bytes is in `codes`.
"""
