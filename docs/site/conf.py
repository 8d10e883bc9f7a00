"""The site of docs/ by Sphinx and MyST, which reads Markdown as GitHub does (scripts/site). The navigation is that of docs/README.md: its
headings are captions, its links are pages."""
import re

project = "zero"
author = "the authors of zero"
copyright = author
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "zero"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
root_doc = "README"
exclude_patterns = ["site"]
myst_heading_anchors = 6  # as GitHub names them: pages link to headings
myst_enable_extensions = []
suppress_warnings = ["myst.header"]  # pages may begin at any level


def toctrees(index):
    """Hidden tables of contents: one for each heading of the index, of the pages that it links to."""
    trees, seen = "", set()
    for section in re.split(r"^## ", index, flags=re.M)[1:]:
        pages = [page for page in re.findall(r"\]\(([^)#:]+)\.md(?:#[^)]*)?\)", section) if not (page in seen or seen.add(page))]
        trees += "\n```{toctree}\n:hidden:\n:caption: " + section.splitlines()[0] + "\n\n" + "\n".join(pages) + "\n```\n"
    return trees


def add_toctrees(app, page, source):
    if page == root_doc:
        headers = '- <a href="api/index.html">Headers of the C++ library</a>, class by class\n'  # no page of Sphinx's
        source[0] = source[0].replace("## Reference\n\n", "## Reference\n\n" + headers) + toctrees(source[0])


def setup(app):
    app.connect("source-read", add_toctrees)
