"""Sentences: the only place where decisions become English.

Decisions are records with reason codes; terminal, page and card show the lines that are made of them here. Nothing here
computes, and every module reads records of `quality` and `advice` only.
"""
