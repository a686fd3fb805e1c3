"""Files of vectors: readers and writers of several formats behind one contract.

`contract` is the package on one page; a format is one file and one line in `vector_table`. Saved models are in
`encoder`.
"""

from firstk.data.files.code_file import CodeFile, open_codes
from firstk.data.files.contract import Batch, Layout
from firstk.data.files.vector_table import VectorTable, open_vectors
from firstk.data.files.write import creating, write_vectors

__all__ = [
    "Batch",
    "CodeFile",
    "Layout",
    "VectorTable",
    "creating",
    "open_codes",
    "open_vectors",
    "write_vectors",
]
