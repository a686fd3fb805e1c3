"""Quality against bytes per vector, for codes of firstk and of other libraries: ``python -m benchmarks.bytes``."""
