"""From a file of any encoding and compression to its text."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from fieldbo.errors import InputError

LARGEST = 100_000_000
"""Bytes of text that are read at most: two weeks of eight columns at 1 Hz."""

_EXPECTED = "a CSV file of readings"
TEXTS = (
    *(".csv", ".txt", ".tsv", ".tab", ".dat", ".asc", ".log", ".cnv", ".ros", ".rdb", ".edf", ".mon"),
    *(".htm", ".html"),
)
"""Suffixes of texts in an archive."""

_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\v\x1a")


def decoded(path: Path) -> tuple[str, list[str]]:
    """Return the text of a file, with a line feed at the end of each line, and notes on what was recognised.

    It may be compressed with gzip, or be the only file in a zip archive; UTF-8, UTF-16 or Latin-1.

    Raises
    ------
    InputError
        The file is missing, too large, damaged or not text.
    """
    content, notes = _read_bytes(path)
    text, encoding = _decode(path, content)
    return text.replace("\r\n", "\n").replace("\r", "\n"), [*notes, *encoding]


def _read_bytes(path: Path) -> tuple[bytes, list[str]]:
    try:
        with path.open("rb") as file:
            content = _read_some(path, file)
        if content.startswith(b"\x1f\x8b"):
            return _read_some(path, cast("BinaryIO", gzip.GzipFile(fileobj=io.BytesIO(content)))), []
        return _unzip(path, content) if content.startswith(b"PK\x03\x04") else (content, [])
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path.name}", expected=_EXPECTED, where=str(path.parent)
        ) from None
    except IsADirectoryError:
        raise InputError(f"{path.name} is a folder", expected=_EXPECTED, where=str(path)) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(
            "the compressed file is damaged or incomplete",
            expected="a whole gzip file",
            where=str(path),
            fix="copy or download it again",
        ) from None
    except OSError as error:
        raise InputError(
            f"the file can't be read: {error.strerror}", expected=_EXPECTED, where=str(path)
        ) from None


def _read_some(path: Path, file: BinaryIO) -> bytes:
    """Return the content of an open file, unless it is more than a table of readings can be."""
    content = file.read(LARGEST + 1)
    if len(content) <= LARGEST:
        return content
    raise InputError(
        f"the file holds more than {LARGEST / 1e6:.0f} MB of text",
        expected="a log of one survey, such as one row per second over some days",
        where=str(path),
        fix="cut it to the survey, or export a mean per second or per ten seconds",
    )


def files_in(names: Sequence[str]) -> list[str]:
    """Return the names of the files in an archive, without folders and what macOS adds."""
    return [name for name in names if not name.endswith("/") and not name.startswith("__MACOSX")]


def _unzip(path: Path, content: bytes) -> tuple[bytes, list[str]]:
    """Return the only file of text in a zip archive; spreadsheets are such archives, but no text."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = files_in(archive.namelist())
            if not all(name.lower().endswith(TEXTS) for name in names):
                raise _not_text(path)
            if len(names) != 1:
                raise InputError(
                    f"the archive holds {len(names)} files: {', '.join(names[:6])}",
                    expected="one table of readings",
                    where=str(path),
                    fix="unzip it, and name one of the files",
                )
            with archive.open(names[0]) as file:
                return _read_some(path, cast("BinaryIO", file)), [f"read {names[0]} in the archive"]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
        raise _not_text(path) from None
    except (ValueError, EOFError, zlib.error, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "the archive is damaged or incomplete",
            expected="a whole ZIP archive",
            where=str(path),
            fix="copy or download it again",
        ) from None


def _decode(path: Path, content: bytes) -> tuple[str, list[str]]:
    wide = _guess_wide_encoding(content)
    if wide:
        content = content[: len(content) // 2 * 2]  # a cut line is found later
    elif b"\0" in content:
        raise _not_text(path)
    try:
        return content.decode(wide or "utf-8-sig"), ["read as UTF-16"] if wide else []
    except UnicodeDecodeError:
        if wide or _CONTROLS & frozenset(content) or _is_not_latin(content):
            raise _not_text(path) from None
    try:
        return content.decode("cp1252"), ["read as Windows-1252 (Latin-1)"]
    except UnicodeDecodeError:
        return content.decode("latin-1"), ["read as Latin-1"]


def _guess_wide_encoding(content: bytes) -> str | None:
    """Return the kind of UTF-16, by its byte order mark or its many zeros; None if it is another encoding."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    half = len(content) // 2
    if half and content[1::2].count(0) > 0.8 * half:
        return "utf-16-le"
    return "utf-16-be" if half and content[::2].count(0) > 0.8 * half else None


def _is_not_latin(content: bytes) -> bool:
    """Return whether too much is beyond ASCII for the log of an instrument."""
    return len(content) - len(content.translate(None, bytes(range(128, 256)))) > 0.2 * len(content)


def _not_text(path: Path) -> InputError:
    return InputError(
        f"{path.name} is not text",
        expected="a CSV file in UTF-8",
        where=str(path),
        fix="export it from the spreadsheet as CSV (UTF-8)",
    )
