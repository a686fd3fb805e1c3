"""firstk learns codes you can cut anywhere."""

__version__ = "0.1.0"
