"""Sentences of NMEA 0183: checked by their sums, and what those of receivers and instruments say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import xor
from typing import NamedTuple

_SENTENCE = re.compile(r"[$!]([A-Z0-9]{4,10}),([^*$!\r\n]*)(?:\*([0-9A-Fa-f]{2}))?")
_FEET = Decimal("0.3048")
_NO_FIX = frozenset("NEMS")  # modes: none, estimated, by hand, simulated
_NOT_FIXED = frozenset(["", "0", "6", "7", "8"])  # qualities of GGA: none, estimated, by hand, simulated


class Sentence(NamedTuple):
    """A sentence that is whole."""

    line: int
    stamp: str
    talker: str
    kind: str
    fields: list[str]

    def at(self, number: int) -> str:
        """Return a field; empty beyond the last."""
        return self.fields[number].strip() if number < len(self.fields) else ""


@dataclass
class Log:
    """The sentences of a file.

    Attributes
    ----------
    sentences : list of Sentence
    bad : dict of str to list of int
        Lines of the sentences left out, by the reason.
    unsigned : bool
        Whether no sentence has a checksum; then they are believed.
    """

    sentences: list[Sentence] = field(default_factory=list)
    bad: dict[str, list[int]] = field(default_factory=dict)
    unsigned: bool = False


def parse_sentences(text: str) -> Log:
    r"""Return the sentences of a log, those with wrong checksums apart.

    Examples
    --------
    >>> log = parse_sentences("$SDDPT,2.5,0.4*54\n$SDDPT,2.9,0.4*54\n")
    >>> log.sentences[0].kind, log.sentences[0].fields, log.bad
    ('DPT', ['2.5', '0.4'], {'with a wrong checksum': [2]})
    """
    log = Log()
    unsigned: list[Sentence] = []
    for number, line in enumerate(text.split("\n"), 1):
        found = list(_SENTENCE.finditer(line))
        if not found:
            if line.strip():
                log.bad.setdefault("that are none", []).append(number)
            continue
        stamp = line[: found[0].start()].strip(" \t,;[]|\x00\r")
        for each in found:
            address, body, checksum = each.groups()
            if address.startswith("P"):
                talker, kind = "P", address[1:]
            else:
                talker, kind = address[:-3], address[-3:]
            sentence = Sentence(number, stamp, talker, kind, body.strip().split(","))
            if checksum is None:
                unsigned.append(sentence)
            elif int(checksum, 16) == sum_of(f"{address},{body}"):
                log.sentences.append(sentence)
            else:
                log.bad.setdefault("with a wrong checksum", []).append(number)
    if unsigned and not log.sentences and "with a wrong checksum" not in log.bad:
        log.sentences, log.unsigned = unsigned, True
    elif unsigned:
        log.bad["without a checksum"] = [sentence.line for sentence in unsigned]
    return log


def sum_of(body: str) -> int:
    """Return the checksum of what stands between ``$`` and ``*``.

    Examples
    --------
    >>> f"{sum_of('GPGLL,4916.45,N,12311.12,W,225444,A'):02X}"
    '31'
    """
    return reduce(xor, body.encode("latin-1"), 0)


TIMED = {"GGA": 0, "RMC": 0, "GLL": 4, "ZDA": 0}
"""Sentences with a time of day, and the number of the field that holds it."""


def place_of(sentence: Sentence) -> tuple[float, float] | None:
    """Return latitude and longitude of a sentence with a fix; None if it has none."""
    if sentence.kind == "GGA":
        first, valid = 1, sentence.at(5) not in _NOT_FIXED
    elif sentence.kind == "RMC":
        first, valid = 2, sentence.at(1) == "A" and sentence.at(11) not in _NO_FIX
    else:
        first, valid = 0, sentence.at(5) in ("A", "") and sentence.at(6) not in _NO_FIX
    if not valid:
        return None
    lat = _degrees(sentence.at(first), sentence.at(first + 1), "NS")
    lon = _degrees(sentence.at(first + 2), sentence.at(first + 3), "EW")
    return None if lat is None or lon is None else (lat, lon)


def _degrees(text: str, letter: str, letters: str) -> float | None:
    """Return degrees from ddmm.mmmm and a letter; None if they are not valid."""
    whole = text.partition(".")[0]
    if letter not in letters or not letter or len(whole) < 3:
        return None
    try:
        degrees, minutes = int(whole[:-2]), float(text[len(whole) - 2 :])
    except ValueError:
        return None
    if minutes >= 60.0 or degrees > (90 if letters == "NS" else 180):
        return None
    value = degrees + minutes / 60.0
    return -value if letter == letters[1] else value


def clock_of(text: str) -> float | None:
    """Return the seconds of a day from hhmmss.ss; None if there are none."""
    if not re.fullmatch(r"\d{6}(\.\d*)?", text):
        return None
    return int(text[:2]) * 3600 + int(text[2:4]) * 60 + float(text[4:])


def date_of(sentence: Sentence) -> date | None:
    """Return the date in an RMC or ZDA sentence; None if it has none that is valid."""
    if sentence.kind == "RMC":
        found = re.fullmatch(r"(\d\d)(\d\d)(\d\d)", sentence.at(8))
        parts = found and (
            int(found[1]),
            int(found[2]),
            int(found[3]) + (1900 if int(found[3]) > 79 else 2000),
        )
    else:
        texts = [sentence.at(number) for number in (1, 2, 3)]
        parts = (int(texts[0]), int(texts[1]), int(texts[2])) if all(map(str.isdigit, texts)) else None
    try:
        return date(parts[2], parts[1], parts[0]) if parts else None
    except ValueError:
        return None


def _metres(sentence: Sentence) -> str:
    """Return the depth of DBT, DBS or DBK in metres, exactly; empty if there is none."""
    if sentence.at(2) and sentence.at(3) == "M":
        return sentence.at(2)
    try:
        return str(Decimal(sentence.at(0)) * _FEET) if sentence.at(1) == "f" else ""
    except InvalidOperation:
        return ""


def _read_depth(sentence: Sentence) -> dict[str, str]:
    """Return the depths in a DPT sentence: below the transducer, and below the surface or the keel."""
    depth, offset = sentence.at(0), sentence.at(1)
    if not depth:
        return {}
    cells = {"depth_below_transducer": depth}
    try:
        below = Decimal(depth) + Decimal(offset or "0")
    except InvalidOperation:
        return cells
    if offset and Decimal(offset) > 0:
        cells["depth_below_surface"] = str(below)
    elif offset and Decimal(offset) < 0:
        cells["depth_below_keel"] = str(below)
    return cells


def _read_speed(sentence: Sentence) -> dict[str, str]:
    names = {0: ("T", "course_over_ground"), 4: ("N", "speed_over_ground")}
    return {
        name: sentence.at(number)
        for number, (letter, name) in names.items()
        if sentence.at(number) and sentence.at(number + 1) == letter
    }


def _read_temperature(sentence: Sentence) -> dict[str, str]:
    """Return the temperature in an MTW sentence; that of a unit other than the standard's says its unit."""
    unit = sentence.at(1)
    name = "water_temperature" if unit in ("C", "") else f"water_temperature (deg{unit})"
    return {name: sentence.at(0)} if sentence.at(0) else {}


def _read_transducers(sentence: Sentence) -> dict[str, str]:
    """Return the quantities in an XDR sentence: groups of type, value, unit and name."""
    cells = {}
    for first in range(0, len(sentence.fields) - 2, 4):
        kind, value, unit, name = (sentence.at(first + k) for k in range(4))
        if value:
            cells[f"{name or kind} ({unit})" if unit else name or kind] = value
    return cells


def _one(name: str, cell: Callable[[Sentence], str]) -> Callable[[Sentence], dict[str, str]]:
    return lambda sentence: {name: text} if (text := cell(sentence)) else {}


READERS: Mapping[str, Callable[[Sentence], dict[str, str]]] = {
    "DPT": _read_depth,
    "DBT": _one("depth_below_transducer.DBT", _metres),
    "DBS": _one("depth_below_surface.DBS", _metres),
    "DBK": _one("depth_below_keel.DBK", _metres),
    "MTW": _read_temperature,
    "VTG": _read_speed,
    "XDR": _read_transducers,
}
