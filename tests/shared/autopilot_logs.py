"""Logs of autopilots, written by the public specifications of their formats."""

from __future__ import annotations

import struct
from pathlib import Path

from pymavlink.dialects.v20 import ardupilotmega

# -- ArduPilot: messages behind 0xA3 0x95 and their type, which FMT describes --------------------------------

_CODES = {letter: letter for letter in "QBHIfbd"}
_CODES |= {"L": "i", "C": "H", "e": "i", "c": "h", "N": "16s", "Z": "64s", "n": "4s"}
FORMATS = {
    "FMT": (128, "BBnNZ", "Type,Length,Name,Format,Columns"),
    "UNIT": (129, "QbZ", "TimeUS,Id,Label"),
    "FMTU": (130, "QBNN", "TimeUS,FmtType,UnitIds,MultIds"),
    "GPS": (131, "QBBIHBcLLeffffB", "TimeUS,I,Status,GMS,GWk,NSats,HDop,Lat,Lng,Alt,Spd,GCrs,VZ,Yaw,U"),
    "RFND": (132, "QBCBBb", "TimeUS,Instance,Dist,Stat,Orient,Quality"),
    "DPTH": (133, "QBLLff", "TimeUS,Inst,Lat,Lng,Depth,Temp"),
    "BARO": (134, "QBffff", "TimeUS,I,Alt,Press,Temp,CRt"),
}
_GPS_EPOCH, _LEAP_S, _WEEK_S = 315_964_800, 18, 604_800


def _pack(kind, *values):
    number, form, _ = FORMATS[kind]
    return struct.pack("<BBB" + "".join(_CODES[c] for c in form), 0xA3, 0x95, number, *values)


def gps_time(second):
    """Return milliseconds in the week and the week of a GPS at a time in UTC."""
    week, rest = divmod(second - _GPS_EPOCH + _LEAP_S, _WEEK_S)
    return round(rest * 1000), int(week)


def dataflash(messages, name="log.bin", units=True):
    """Write messages: (kind, values ...)."""
    content = b""
    for number, form, columns in FORMATS.values():
        length = 3 + struct.calcsize("<" + "".join(_CODES[c] for c in form))
        kind = next(key for key, value in FORMATS.items() if value[0] == number)
        content += _pack("FMT", number, length, kind.encode(), form.encode(), columns.encode())
    if units:
        for letter, label in (("s", b"s"), ("m", b"m"), ("#", b"instance"), ("D", b"deglatitude"),
                              ("U", b"deglongitude"), ("O", b"degC")):  # fmt: skip
            content += _pack("UNIT", 0, ord(letter), label)
        for kind, ids in (("RFND", b"s#m---"), ("DPTH", b"s#DUmO")):
            content += _pack("FMTU", 0, FORMATS[kind][0], ids, b"F" + b"-" * (len(ids) - 1))
    content += b"".join(_pack(*message) for message in messages)
    Path(name).write_bytes(content)
    return Path(name)


# -- MAVLink: the arrival of each packet in microseconds since 1970, big-endian, and the packet -------------


def tlog(messages, name="log.tlog", version=2):
    """Write messages: (seconds since 1970, system, message)."""
    packets = []
    for second, system, message in messages:
        sender = ardupilotmega.MAVLink(None, srcSystem=system, srcComponent=1)
        packets += [struct.pack(">Q", round(second * 1e6)), message.pack(sender, force_mavlink1=version == 1)]
    Path(name).write_bytes(b"".join(packets))
    return Path(name)


# -- PX4: docs.px4.io, ULog file format: a header, definitions, messages of size, type and content ----------

_ULOG = {"uint64_t": "Q", "int32_t": "i", "uint8_t": "B", "int8_t": "b", "float": "f", "double": "d",
         "char[10]": "10s"}  # fmt: skip


def _message(kind, content):
    return struct.pack("<HB", len(content), ord(kind)) + content


def ulog(formats, messages, name="log.ulg"):
    """Write messages: (kind, values ...) of `formats`, which maps kinds to "type name" texts."""
    content = b"\x55\x4c\x6f\x67\x01\x12\x35\x01" + struct.pack("<Q", 1000)
    content += _message("B", bytes(40))
    for kind, fields in formats.items():
        content += _message("F", f"{kind}:{';'.join(fields)};".encode())
    numbers = {kind: i for i, kind in enumerate(formats)}
    for kind, number in numbers.items():
        content += _message("A", struct.pack("<BH", 0, number) + kind.encode())
    for kind, *values in messages:
        form = "<H" + "".join(_ULOG[field.partition(" ")[0]] for field in formats[kind])
        content += _message("D", struct.pack(form, numbers[kind], *values))
    Path(name).write_bytes(content)
    return Path(name)
