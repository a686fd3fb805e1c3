"""Files of vectors: readers and writers of several formats behind one contract.

`contract` is the package on one page; a format is one file and one line in `opening`. Saved models live in `encoder`.
"""

from firstk.data.files.beside import load_columns
from firstk.data.files.choosing import ID_NAMES
from firstk.data.files.code_file import CodeFile, open_codes
from firstk.data.files.contract import Batch, Layout
from firstk.data.files.opening import VectorTable, open_vectors
from firstk.data.files.writing import creating, write_vectors

__all__ = [
    "ID_NAMES",
    "Batch",
    "CodeFile",
    "Layout",
    "VectorTable",
    "creating",
    "load_columns",
    "open_codes",
    "open_vectors",
    "write_vectors",
]
