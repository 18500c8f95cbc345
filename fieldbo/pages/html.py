"""HTML from a template, in which nothing that a mission, a record or a robot says is ever executed.

Jinja escapes all text. Data for scripts is JSON that can't end its element. A content security policy allows
the scripts and styles of this package by their hashes, and nothing else: no other script, and no request.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

_STYLES = ("vendor/leaflet/leaflet.css", "static/page.css")
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def page(template: str, scripts: tuple[str, ...], content: Mapping[str, Any]) -> bytes:
    """Return a page that needs no other file.

    Parameters
    ----------
    template : str
        Name of a file in ``templates``.
    scripts : tuple of str
        Scripts of this package, in the order in which they run.
    content : mapping
        What the template shows. ``data`` is for scripts.
    """
    style, code = "\n".join(_asset(name) for name in _STYLES), [_asset(name) for name in scripts]
    text = (
        _environment()
        .get_template(template)
        .render(**content, style=style, scripts=code, policy=_policy([style], code))
    )
    return text.encode("utf-8", errors="replace")


def embedded(data: Any) -> str:
    r"""Return plain data as JSON for a ``<script type="application/json">`` element.

    Examples
    --------
    >>> print(embedded({"name": "</script><b>&"}))
    {"name":"\u003c/script\u003e\u003cb\u003e\u0026"}
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def _policy(styles: list[str], scripts: list[str]) -> str:
    """Return a content security policy that allows these and images within the page."""
    allowed = {name: " ".join(map(_hash, texts)) for name, texts in (("style", styles), ("script", scripts))}
    return (
        f"default-src 'none'; script-src {allowed['script']}; style-src {allowed['style']}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=16)
def _asset(name: str) -> str:
    return files("fieldbo.pages").joinpath(*name.split("/")).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("fieldbo.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["embedded"] = embedded
    return made
