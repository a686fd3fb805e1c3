"""Checks, linear algebra, arrays and files that know nothing of codes; private.

What knows a table of vectors lives in `data`, what knows an encoder in `encoder`.
"""
