"""One file a kind of measurement. A study has `cells`, `measure`, and a function a figure that reads its cells."""
