"""``python -m firstk`` is the command line."""

from firstk.cli import main

if __name__ == "__main__":
    main()
