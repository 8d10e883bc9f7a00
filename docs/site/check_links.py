"""Checks that every link inside a built site leads to a file, and to an anchor that the file has.

usage: check_links.py FOLDER        prints one line per broken link, exits 1 when there is one
"""
import html.parser
import os
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The anchors of an HTML file, and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), set()
        with open(path, encoding="utf-8", errors="replace") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if value and (name == "id" or name == "name" and tag == "a"):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.add(value)


def broken(folder):
    pages = {os.path.join(place, name): None for place, _, names in os.walk(folder) for name in names if name.endswith(".html")}
    for path in pages:
        pages[path] = Page(path)
    for path, page in pages.items():
        for link in page.links:
            split = urllib.parse.urlsplit(link)
            if split.scheme or split.netloc or "$" in link:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(split.path))) if split.path else path
            if not os.path.exists(target):
                yield path, link, "there is no such file"
            elif split.fragment and target in pages and urllib.parse.unquote(split.fragment) not in pages[target].anchors:
                yield path, link, "the page has no such anchor"


def main():
    found = list(broken(sys.argv[1]))
    for path, link, why in found:
        print(f"{os.path.relpath(path, sys.argv[1])}: {link}: {why}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
