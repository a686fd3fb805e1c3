"""Tables of docs/alignment.md and docs/upgrading.md, from the record: ``python -m benchmarks.upgrade.page``.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``; a test compares the pages with the record.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.upgrade.tables import Record, checks, methods_table, read, verdicts_table
from firstk._base.atomic_file import atomic_file

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (DOCS / "alignment.md", DOCS / "upgrading.md")
BLOCK = re.compile(r"(<!-- table: ([^\n]+?) -->\n)(?:(?!<!-- table: ).)*?(<!-- end -->)", re.DOTALL)


def held(record: Record) -> str:
    """Return what is required as a list: what holds, and what does not."""
    return "\n".join(f"- {'held' if holds else '**missed**'}: {text}" for text, holds in checks(record).items())


TABLES = {"methods": methods_table, "verdicts": verdicts_table, "required": held}


def rewritten(text: str, record: Record) -> str:
    """Return a page with its tables made anew."""
    return BLOCK.sub(lambda match: f"{match[1]}\n{TABLES[match[2]](record)}\n\n{match[3]}", text)


def main() -> None:
    """Rewrite the pages."""
    record = read()
    for page in PAGES:
        with atomic_file(page, "Pages", kinds=(".md",)) as temporary:
            temporary.write_text(rewritten(page.read_text(), record))


if __name__ == "__main__":
    main()
