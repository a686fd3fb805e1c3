"""The data sets of the papers, by name, as the studies take them; readers live in `firstk.data`."""
