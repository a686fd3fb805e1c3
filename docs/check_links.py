"""Check the links of the built site: ``python docs/check_links.py docs/_build/html``.

Every relative link, picture, script and style of every page must lead to a file of the site and, where it names an
anchor, to an element with that id. Other sites are not asked.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The ids of a page, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect ids and links."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.ids.add(value)
            elif value and name in ("href", "src"):
                self.links.add(value)


def broken_links(root: Path) -> list[str]:
    """Return a line for each link that leads nowhere."""
    pages = {path: Page(path.read_text("utf-8")) for path in root.rglob("*.html") if "_static" not in path.parts}
    found = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if target.is_dir():
                target /= "index.html"
            known = pages.get(target)
            if not target.exists():
                found.append(f"{path.relative_to(root)}: {link} is not there")
            elif url.fragment and known is not None and unquote(url.fragment) not in known.ids:
                found.append(f"{path.relative_to(root)}: {link} names no element")
    return found


if __name__ == "__main__":
    lines = broken_links(Path(sys.argv[1]).resolve())
    print("\n".join(lines) or "every internal link leads somewhere")
    sys.exit(bool(lines))
