"""XML for GPX and KML."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def added(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    """Add an element, and return it; characters that XML does not allow become question marks."""
    plain = {name: _NOT_XML.sub("?", value) for name, value in attributes.items()}
    element = ET.SubElement(parent, tag, plain)
    element.text = None if text is None else _NOT_XML.sub("?", text)
    return element


def encoded(root: ET.Element) -> bytes:
    """Return the content of a file."""
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="UTF-8", xml_declaration=True)) + b"\n"


def utc(time: datetime) -> str:
    """Return a time as in ``2026-05-04T09:30:00.000Z``."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
