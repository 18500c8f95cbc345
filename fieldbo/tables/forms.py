"""Known forms of text, as small descriptions: what loggers, sondes, programs and archives write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fieldbo.tables import form_steps as steps
from fieldbo.tables.cells import is_number
from fieldbo.tables.sheet import Sheet

_NO_UNIT = ("none", "unitless", "-", "n/a")
HEAD = 8_000
"""Characters at the beginning of a text by which it is recognised."""


@dataclass(frozen=True)
class Constant:
    """A column that is not in the table but stated above it, once for all rows.

    Attributes
    ----------
    name : str
    stated : str
        Regular expression for it in the lines above the table, with a group ``value``.
    role : str
    """

    name: str
    stated: str
    role: str


@dataclass(frozen=True)
class Form:
    r"""A form of text. Patterns are regular expressions, searched in single lines.

    Attributes
    ----------
    name : str
        What the form is called in messages.
    begins : str
        What is found in one of the first lines of such a file, and in no other.
    names : str
        What the line of names begins with, if it is not to be found out.
    header : tuple of str
        What the first lines hold, if each file has exactly these: about, names, units, processing.
    below : tuple of str
        What the lines below the names hold: units, widths, processing. Empty if that is to be found out.
    named : str
        What names a column in lines of its own above the table, with groups ``name``, ``unit`` and ``at``,
        its number.
    leading : tuple of str
        The columns at the left that are not named so.
    ends : str
        The line above the first one of the table.
    comment : str
        What comments above the table begin with.
    delimiter : str
        What separates cells, if it is not to be found out; ``"blanks"`` for any number of blanks.
    column_width : int
        Characters of a column in which numbers may touch each other; 0 where they don't.
    unit : str
        The unit in a column's name, as a group ``unit``, where it is not written as usual.
    units_stated : str
        Where the lines above the table state the unit of a column, with groups ``name`` and ``unit``.
    no_units : tuple of str
        What stands in the line of units but is none.
    roles : dict of str to str
        What columns hold, by a pattern for their name.
    constants : tuple of Constant
        Columns that are stated above the table, unless the table has a column of that role.
    missing : tuple of float
        Numbers that stand for no value.
    missing_stated : str
        Where the lines above the table state one, with a group ``value``.
    offset : str
        Where they state the offset of the times from UTC, with a group ``offset``.
    notes : tuple of str
        What is said about each such file.
    steps : tuple of functions
        What else is done with the sheet.
    """

    name: str
    begins: str
    names: str = ""
    header: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    named: str = ""
    leading: tuple[str, ...] = ()
    ends: str = ""
    comment: str = ""
    delimiter: str = ""
    column_width: int = 0
    unit: str = ""
    units_stated: str = ""
    no_units: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    constants: tuple[Constant, ...] = ()
    missing: tuple[float, ...] = ()
    missing_stated: str = ""
    offset: str = ""
    notes: tuple[str, ...] = ()
    steps: tuple[Callable[[Sheet], None], ...] = ()

    def where(self, head: str) -> int | None:
        """Return where a text that begins with `head` shows this form; None if it does not."""
        found = re.search(self.begins, head, re.MULTILINE)
        return None if found is None else found.start()


_LATITUDE, _LONGITUDE = r"(?i)^(gps )?lat(itude)?\b", r"(?i)^(gps )?lon(g|gitude)?\b"
_PLACE = {_LATITUDE: "latitude", _LONGITUDE: "longitude"}
_YSI_UNITS = (
    r"(?P<unit>RFU|[µμu]g/L|[µμum]S/cm|m|ft|QSU|% sat|% local|% CB|mg/L|mV|psi a|psi|psu|PSU|FNU|NTU|°[CF]?"
    r"|V|volt|mmHg|MHz|cells/mL|ppb|ppt|g/L|%)"
)

FORMS = (
    Form(
        "YSI KorEXO",
        begins=r"^\W*KorEXO MEASUREMENT DATA FILE EXPORT"
        r"|^\W*Date \((MM/DD|DD/MM)/YYYY\)\W+Time \(HH:mm:ss\)",
        roles={
            **_PLACE,
            r"^Depth ": "depth",
            r"^Time \(Fract": "constant",
        },
        steps=(steps.add_fractions_of_seconds,),
    ),
    Form(
        "YSI ProDSS",
        begins=r"(?i)^\W*date\W+time\W+site\W+((data|unit|user) id\W+)+.*(°[CF]|mmHg|DO %)-?",
        unit=rf"(?:^|[\s-]){_YSI_UNITS}(?:-\w+)?$",
        roles={**_PLACE, r"^DEP\b": "depth", r"(?i)^(data|unit|user) id$": "text"},
    ),
    Form(
        "In-Situ VuSitu",
        begins=r"^\W*(Location Properties|Report Properties|Instrument Properties)\W*$",
        roles={**_PLACE, r"^Depth ": "depth", r"^Marked$": "text"},
        offset=r"^\W*Time Offset *[=,:]? *(?P<offset>[-+]?\d{1,2}:\d{2})",
        constants=(
            Constant("Latitude", r"^\W*Latitude\W*?[=,:]\s*(?P<value>-?\d+\.\d+)", "latitude"),
            Constant("Longitude", r"^\W*Longitude\W*?[=,:]\s*(?P<value>-?\d+\.\d+)", "longitude"),
        ),
    ),
    Form(
        "Onset HOBO",
        begins=r"^\W*Plot Title:|^.?(#|Record)?\W*Date[ -]Time( \(|, )(GMT|UTC|[A-Z]{2,4}\b)"
        r"|LGR S/N:|^Serial Number:\d+ --",
        unit=r"\(\*(?P<unit>[CF])\)",
        roles={
            r"^(#|Record)$": "count",
            r"^(Host Connect|Stopped|End Of File|EOF|Coupler|Button|Started|Bad Battery|Good Battery"
            r"|Water Detect|File End|New Interval|Logged)": "text",
        },
        steps=(steps.read_zone_in_name,),
    ),
    Form(
        "Campbell TOA5",
        begins=r'\A\W*TOA5\W',
        header=("about", "names", "units", "processing"),
        no_units=("TS", "RN"),
        roles={r"^TIMESTAMP$": "time", r"^RECORD$": "count", r"_(TMn|TMx)$": "text"},
        missing=(-7999.0,),
    ),
    Form(
        "Campbell TOACI1",
        begins=r'\A\W*TOACI1\W',
        header=("about", "names"),
        roles={r"^TIMESTAMP$|^TMSTAMP$": "time", r"^RECORD$|^RECNBR$": "count"},
        missing=(-7999.0,),
    ),
    Form(
        "Sea-Bird .cnv",
        begins=r"\A\*+ ?.*Data File:|^# name 0 = ",
        named=r"^# name (?P<at>\d+) = (?P<name>[^:]+):[^\[\n]*(\[(?:[^\],]*,\s*)?(?P<unit>[^\]]*)\])?.*$",
        ends=r"^\*END\*",
        delimiter="blanks",
        column_width=11,
        roles={
            r"^(lat|latitude)$": "latitude",
            r"^(lon|longitude)$": "longitude",
            r"^dep[SF]": "depth",
            r"^(scan|nbin|pumps|nbf)$": "count",
            r"^flag$": "flag",
        },
        missing_stated=r"^# bad_flag = (?P<value>\S+)",
        constants=(
            Constant("latitude", r"(?i)^\*+ ?(NMEA )?Latitude ?[=:](?P<value>.*[NS])\s*$", "latitude"),
            Constant("longitude", r"(?i)^\*+ ?(NMEA )?Longitude ?[=:](?P<value>.*[EW])\s*$", "longitude"),
        ),
        steps=(steps.read_seabird_scans, steps.read_seabird_times),
    ),
    Form(
        "Sippican MK21",
        begins=r"\A// MK21 EXPORT DATA FILE",
        named=r"^Field(?P<at>\d+) *: *(?P<name>.*?)(?: \((?P<unit>[^)]*)\))?$",
        ends=r"^// Data$",
        delimiter="\t",
        roles={r"^Depth": "depth"},
        constants=(
            Constant("Latitude", r"^Latitude *: *(?P<value>\d.*[NS])$", "latitude"),
            Constant("Longitude", r"^Longitude *: *(?P<value>\d.*[EW])$", "longitude"),
        ),
    ),
    Form(
        "Star-Oddi SeaStar",
        begins=r"\A#B\tCreated:",
        named=r"^#+\d*\tAxis\t(?P<at>\d+)\t(?P<name>[^(\t\n]+)\((?P<unit>[^)\n]*)\)",
        leading=("record", "time"),
        comment="#",
        delimiter="\t",
        roles={r"^record$": "count", r"^time$": "time", r"^Depth": "depth"},
    ),
    Form(
        "Van Essen Diver",
        begins=r"^=+ +BEGINNING OF DATA +=+$",
        named=r"^\[Channel (?P<at>\d+)( from data header\]|\](?![\s\S]* from data header\]))"
        r"\n *Identification +=(\d+: )?(?P<name>.+)"
        r"\n *Reference level +=\S+ +(?P<unit>.+)$",
        leading=("date", "time"),
        ends=r"^\[Data\]",
        delimiter="blanks",
        offset=r"^ *Instrument number +=.*\bUTC *(?P<offset>[-+]\d{1,2}(:\d{2})?)",
        steps=(steps.join_date_and_time,),
    ),
    Form(
        "ElectricBlue EnvLogger",
        begins=r"^EnvLogger version,",
        offset=r"^time zone, *UTC(?P<offset>[-+]\d{4})",
        constants=(
            Constant("latitude", r"^lat, *(?P<value>-?\d+\.\d+)$", "latitude"),
            Constant("longitude", r"^long, *(?P<value>-?\d+\.\d+)$", "longitude"),
        ),
    ),
    Form(
        "Solinst Levelogger",
        begins=r"^[A-Z]+,*\nUNIT: ",
        units_stated=r"^(?P<name>[A-Z]+),*\nUNIT: *(?P<unit>[^,\n]*)",
        roles={r"^ms$": "text"},
    ),
    Form(
        "OTT Hydrolab",
        begins=r'^"?Hydrolab .*\n"?Log File Name'
        r'|\A\W*Log File Name *:.*\n\W*Setup Date \((MMDDYY|DDMMYY|YYMMDD)\)',
        steps=(steps.read_packed_times,),
    ),
    Form(
        "LI-COR",
        begins=r"^DATAH\t",
        names="DATAH\t",
        below=("units",),
        delimiter="\t",
        no_units=("date", "time", "index", "code"),
        roles={r"^(DATAH|REMARK|DATE|TIME|NANOSECONDS)$": "text", r"^SECONDS$": "time", r"^NDX$": "count"},
    ),
    Form(
        "WHP-Exchange",
        begins=r"\A(CTD|BOTTLE),\d{8}",
        roles={r"_FLAG_W$": "flag", r"^LATITUDE$": "latitude", r"^LONGITUDE$": "longitude"},
        missing=(-999.0,),
        constants=(
            Constant("LATITUDE", r"^LATITUDE *= *(?P<value>[-+\d.]+)", "latitude"),
            Constant("LONGITUDE", r"^LONGITUDE *= *(?P<value>[-+\d.]+)", "longitude"),
        ),
        steps=(steps.apply_flags,),
    ),
    Form(
        "SonTek CastAway",
        begins=r"\A%\s*Device,CC|^% Cast time \(UTC\),",
        comment="%",
        roles={r"^Depth ": "depth"},
        constants=(
            Constant("Latitude", r"^% Start latitude,(?P<value>.+)$", "latitude"),
            Constant("Longitude", r"^% Start longitude,(?P<value>.+)$", "longitude"),
        ),
        steps=(steps.read_castaway_time,),
    ),
    Form(
        "USGS .rdb",
        begins=r"^(agency_cd|site_no)\t",
        below=("widths",),
        comment="#",
        delimiter="\t",
        roles={
            r"^dec_lat_va$": "latitude",
            r"^dec_long_va$": "longitude",
            r"^(site_no|agency_cd|station_nm)$": "text",
            r"_(cd|rmk|remark)$": "flag",
        },
        steps=(steps.read_rdb_datum, steps.read_rdb_zones),
    ),
    Form(
        "ERDDAP .csv",
        begins=r"\A(?=.*\b(time|latitude)\b)[^#\n]*\n([^\n]*[,\t\"])?(UTC|degrees_north)[,\t\"\n]",
        below=("units",),
        roles={r"^latitude$": "latitude", r"^longitude$": "longitude", r"^time$": "time"},
    ),
    Form(
        "ERDDAP .csvp",
        begins=r"\A[^#\n]*\b(time \(UTC\)|latitude \(degrees_north\))",
        roles={r"^latitude \(": "latitude", r"^longitude \(": "longitude", r"^time \(": "time"},
    ),
    Form(
        "Ocean Data View spreadsheet",
        begins=r"^//.*<(Encoding|Version>ODV|DataField|DataType|Creator)|^Cruise\tStation\tType\t",
        comment="//",
        roles={
            r"^Longitude\b": "longitude",
            r"^Latitude\b": "latitude",
            r"^Depth\b": "depth",
            r"^Bot\. Depth": "text",
            r"^(QF|QV:.*|.*_SEADATANET_QC|STANDARD_DEV)$": "flag",
            r"^(Cruise|Station|Type)$": "text",
        },
        missing_stated=r"<MissingValueIndicators>(?P<value>[^<]+)<",
        steps=(steps.fill_stations, steps.read_odv_dates, steps.apply_flags),
    ),
    Form(
        "Water Quality Portal",
        begins=r"\A.*\b(CharacteristicName|Result_Characteristic)\b",
        roles={
            r"LatitudeMeasure$|^Location_Latitude$": "latitude",
            r"LongitudeMeasure$|^Location_Longitude$": "longitude",
            r"Identifier$|Name$|Code$|Text$": "text",
        },
        steps=(steps.read_portal_times, steps.read_portal_limits),
    ),
)  # fmt: skip


PLAIN = Form(
    "",
    begins=r"\Z\A.",
    constants=(
        Constant(
            "latitude", r"(?i)^\W*lat(itude)? *[=:,;\t] *(?P<value>[-+]?\d[-\d.°'’\" ]*[NS]?)\W*$", "latitude"
        ),
        Constant(
            "longitude",
            r"(?i)^\W*long?(itude)? *[=:,;\t] *(?P<value>[-+]?\d[-\d.°'’\" ]*[EW]?)\W*$",
            "longitude",
        ),
    ),
)
"""What is understood above any table."""

VUSITU = next(form for form in FORMS if form.name == "In-Situ VuSitu")


def form_of(text: str) -> Form | None:
    """Return the known form of a text; None for a plain table.

    Examples
    --------
    >>> form_of('"TOA5","boat","CR1000X"').name, form_of("time,lat,lon,chl")
    ('Campbell TOA5', None)
    """
    head = text[: 20 * HEAD if text.startswith("*") else HEAD]  # a .cnv file begins with calibrations
    found = [(at, i) for i, form in enumerate(FORMS) if (at := form.where(head)) is not None]
    return FORMS[min(found)[1]] if found else None


def other_form_in(text: str, form: Form | None) -> Form | None:
    """Return a form that lines among the readings of `form` begin; None if they begin no other one."""
    return next((each for each in FORMS if each is not form and each.where(text) is not None), None)


def apply_form(form: Form, sheet: Sheet) -> None:
    """Add to a sheet what its form says: units, roles, constant columns, offsets and missing values."""
    if form.named:
        units = [found["unit"] or "" for found in re.finditer(form.named, sheet.above, re.MULTILINE)]
        sheet.units = [*[""] * len(form.leading), *units][: len(sheet.names)]
    stated = dict(re.findall(form.units_stated, sheet.above, re.MULTILINE)) if form.units_stated else {}
    for i, name in enumerate(sheet.names):
        sheet.units[i] = stated.get(name, sheet.units[i]).strip()
        found = re.search(form.unit, name) if form.unit else None
        if sheet.units[i] in form.no_units or sheet.units[i].lower() in _NO_UNIT:
            sheet.units[i] = ""
        if found and not sheet.units[i]:
            sheet.units[i] = found["unit"]
        role = next((role for pattern, role in form.roles.items() if re.search(pattern, name)), "")
        sheet.roles[i] = role
    sheet.missing |= {*form.missing, *_numbers_stated(form.missing_stated, sheet.above)}
    found_in = {float(cell) for _, cells in sheet.rows for cell in cells if is_number(cell)}
    if marks := [number for number in form.missing if number in found_in]:
        sheet.notes.append(f"{', '.join(f'{number:g}' for number in marks)} stands for no value")
    for constant in form.constants:
        _add_constant(constant, sheet)
    sheet.notes += form.notes
    for step in form.steps:
        step(sheet)
    found = re.search(form.offset, sheet.above, re.MULTILINE) if form.offset else None
    if found:
        steps.read_offset(sheet, found["offset"])


def _numbers_stated(pattern: str, above: str) -> set[float]:
    found = re.search(pattern, above, re.MULTILINE) if pattern else None
    words = found["value"].split() if found else []
    return {float(word) for word in words if is_number(word)}


def _add_constant(constant: Constant, sheet: Sheet) -> None:
    """Add a column of one value, stated once above the table, unless the table has such a column."""
    values = {
        found["value"].strip(" ,;\t") for found in re.finditer(constant.stated, sheet.above, re.MULTILINE)
    }
    value = values.pop() if len(values) == 1 else ""
    in_table = (
        constant.role in sheet.roles or steps.find(sheet, rf"(?i)(?<![a-z]){constant.role[:3]}") is not None
    )
    if value and not in_table:
        sheet.add(constant.name, [value] * len(sheet.rows), role=constant.role)
        sheet.notes.append(f"{constant.name} is {value} in all rows, as the header says")
