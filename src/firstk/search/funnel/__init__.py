"""A funnel over prefixes: a short prefix of every row, a shortlist, then the coordinates of fewer and fewer rows.

`index` is what users call. `schedule` says which prefixes and shortlists, `schedule_choice` chooses them by the ranks
of true neighbors (`neighbor_ranks`). `prefixes` and `byte_prefixes` are what the first stage scans, `arrays` what else
a search needs, and `block_search` the search, by the operations of `_numpy` or of `_compiled`.
Flat search on bytes is in `codes`.
"""
