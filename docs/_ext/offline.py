"""Check the site: every local link and anchor resolves, and no page loads anything from elsewhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """Collect the anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what matters from one tag."""
        values = {name: value for name, value in attrs if value}
        self.anchors.add(values.get("id", ""))
        if tag == "a":
            self.anchors.add(values.get("name", ""))
            self.links.add(values.get("href", ""))
        loaded = LOADED.get(tag) or (
            "href" if tag == "link" and "canonical" not in values.get("rel", "") else ""
        )
        self.loads.add(values.get(loaded, ""))


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the site in a folder, one line per problem."""
    files = (path for path in folder.rglob("*.html") if "_static" not in path.parts)
    pages = {path.resolve(): Page(path.read_text()) for path in files}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        wrong += [f"{name} loads {url}" for url in page.loads if "//" in url]
        for link in (page.links | page.loads) - {""}:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            anchors = pages[target].anchors if target in pages else {url.fragment}
            if not target.exists():
                wrong.append(f"{name} links to {link}, which does not exist")
            elif url.fragment and unquote(url.fragment) not in anchors:
                wrong.append(f"{name} links to {link}, which has no such anchor")
    styles = [path for path in folder.rglob("*.css") if "@import url(http" in path.read_text()]
    return wrong + [f"{path.name} imports a style from elsewhere" for path in styles]


def check(app: Sphinx, exception: Exception | None) -> None:
    """Fail the build if the site is not complete in itself."""
    if exception is None and app.builder.name == "html" and (wrong := problems(Path(app.outdir))):
        raise ExtensionError("\n".join(wrong))


def setup(app: Sphinx) -> dict[str, bool]:
    """Check after the build."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
