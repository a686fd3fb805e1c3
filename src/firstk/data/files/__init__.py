"""Files of vectors: readers and writers of several formats behind one contract.

`contract` is the package on one page; a format is one file and one line in `vector_table`. Saved models are in
`encoder`.
"""

from firstk.data.files.code_file import CodeFile, open_codes
from firstk.data.files.column_files import load_columns
from firstk.data.files.contract import (
    Batch,
    Carried,
    CodeRecord,
    Layout,
    code_layout,
    exactly,
    is_bit_string,
    must_be_restored,
)
from firstk.data.files.shards import RECORD, ShardLog
from firstk.data.files.vector_columns import ID_NAMES, missing_column
from firstk.data.files.vector_table import FORMATS, VectorTable, format_of, open_vectors
from firstk.data.files.write import check_columns, creating, fitting_columns, write_vectors

__all__ = [
    "FORMATS",
    "ID_NAMES",
    "RECORD",
    "Batch",
    "Carried",
    "CodeFile",
    "CodeRecord",
    "Layout",
    "ShardLog",
    "VectorTable",
    "check_columns",
    "code_layout",
    "creating",
    "exactly",
    "fitting_columns",
    "format_of",
    "is_bit_string",
    "load_columns",
    "missing_column",
    "must_be_restored",
    "open_codes",
    "open_vectors",
    "write_vectors",
]
