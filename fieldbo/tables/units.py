"""Units as headers write them: found in a column's name, understood, and converted without rounding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array

if TYPE_CHECKING:
    from pint import Unit, UnitRegistry

_DEFINED = """
NTU = [turbidity_white]
FNU = [turbidity_infrared]
FTU = [turbidity]
FBU = [turbidity_backscatter]
RFU = [fluorescence]
QSU = [fluorescence_of_quinine]
PSU = 0.001
gram_per_kilogram = [absolute_salinity]
pH = [acidity]
cell = [cells]
international_fathom = 6 * foot
degree_e7 = 1e-7 * degree
"""
# Practical salinity has no unit, and 1e-3 in CF; absolute salinity in g/kg is another quantity.
# pint's fathom is six survey feet, a few millimetres longer per thousand metres than that of charts.

_SPELLINGS = {
    "meter": "m meter meters metre metres mtr mts",
    "centimeter": "cm centimeter centimeters centimetre centimetres",
    "millimeter": "mm millimeter millimeters millimetre millimetres",
    "decimeter": "dm decimeter decimetre",
    "kilometer": "km kilometer kilometers kilometre kilometres",
    "foot": "ft foot feet fuß fuss pied pieds ' intlft ftintl internationalfoot internationalfeet",
    "survey_foot": "ftus usft ussurveyfoot ussurveyfeet ussft sft surveyfeet surveyfoot us-ft us-survey-ft "
    "ussurveyft ft(us) ftussurvey",
    "international_fathom": "fathom fathoms fm fms fath fth ftm fathms",
    "yard": "yd yard yards",
    "inch": "in inch inches",
    "nautical_mile": "nm nmi nauticalmile nauticalmiles",
    "mile": "mi mile miles",
    "degree": "deg degs degree degrees ° grad_sexagesimal decimaldegrees decimaldegree decdeg dd ddeg arcdeg "
    "degn degreen degreesn °n degnorth degreenorth degreesnorth dege degreee degreese °e degeast degreeeast "
    "degreeseast degsouth degreesouth degreessouth °s degw degreew degreesw °w degwest degreewest "
    "degreeswest degtrue degreestrue degt degm degreet decimaldegreesn decimaldegreese decimaldegreesw "
    "decimaldegreess degss degreess",
    "degree_e7": "dege7 dege-7 degreese7 1e-7deg 1e7deg deg*1e7 deg*1e-7",
    "radian": "rad rads radian radians",
    "gradian": "gon gons grad grads gradian gradians",
    "arcminute": "arcmin arcminute arcminutes",
    "arcsecond": "arcsec arcsecond arcseconds",
    "degree_Celsius": "c °c degc degreec degreesc celsius degcelsius degreecelsius degreescelsius celcius "
    "degcelcius °celsius oc grdc gradc gradcelsius",
    "degree_Fahrenheit": "f °f degf degreef degreesf fahrenheit degfahrenheit degreefahrenheit "
    "degreesfahrenheit °fahrenheit",
    "kelvin": "k degk degreek degreesk kelvin °k",
    "decibar": "dbar db decibar decibars dbars",
    "bar": "bar bars",
    "millibar": "mbar mb millibar millibars",
    "hectopascal": "hpa",
    "kilopascal": "kpa",
    "pascal": "pa",
    "megapascal": "mpa",
    "pound_force_per_square_inch": "psi psia psig psid",
    "inch_Hg": "inhg in.hg inchhg incheshg",
    "millimeter_Hg": "mmhg torr",
    "atmosphere": "atm",
    "water * centimeter": "cmh2o cmwater",
    "water * meter": "mh2o",
    "PSU": "psu pss pss-78 pss78 psal 1e-3_salinity practicalsalinity practicalsalinityunits",
    "permille": "ppt ‰ 1e-3 0.001 permil permille promille o/oo 0/00",
    "gram_per_kilogram": "g/kg gkg-1",
    "ppm": "ppm 1e-6",
    "ppm / 1000": "ppb 1e-9",
    "percent": "% percent pct %sat satpct sat% %saturation %airsat %air percentsat percentsaturation %rh "
    "%local %cb %lel",
    "dimensionless": "1 unitless dimensionless none - ratio",
    "NTU": "ntu ntus",
    "FNU": "fnu fnus",
    "FTU": "ftu",
    "FBU": "fbu",
    "RFU": "rfu rfus rfub",
    "QSU": "qsu qsde",
    "pH": "ph phunits phunit",
    "volt": "v volt volts vdc",
    "millivolt": "mv millivolt millivolts",
    "ampere": "amp amps ampere amperes",
    "milliampere": "ma",
    "watt": "watt watts",
    "knot": "kn kt kts knot knots",
    "meter / second": "m/s ms-1 mps m/sec m.s-1",
    "centimeter / second": "cm/s cms-1",
    "kilometer / hour": "km/h kmh kmph kph",
    "second": "s sec secs second seconds",
    "millisecond": "ms msec millisecond milliseconds",
    "microsecond": "us usec µs µsec microseconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "d day days juliandays",
    "hertz": "hz",
    "milligram / liter": "mg/l mgl mgl-1 mgperl mg/liter mg/litre mgperliter mgperlitre",
    "microgram / liter": "ug/l µg/l ugl µgl ugl-1 µgl-1 ugperl mcg/l",
    "nanogram / liter": "ng/l",
    "gram / liter": "g/l",
    "gram / meter ** 3": "g/m3 gm-3",
    "kilogram / meter ** 3": "kg/m3 kgm-3 kg/m^3",
    "milligram / meter ** 3": "mg/m3 mg/m^3 mgm-3 mg/m**3",
    "microgram / meter ** 3": "ug/m3 µg/m3 ug/m^3",
    "milliliter / liter": "ml/l mll-1",
    "siemens / meter": "s/m sm-1",
    "millisiemens / centimeter": "ms/cm mscm-1 mspercm msc/cm",
    "microgram / kilogram": "ug/kg µg/kg",
    "microsiemens / centimeter": "us/cm µs/cm uscm µscm uspercm uscm-1 µscm-1 umho/cm umhos/cm µmho/cm",
    "micromole / liter": "umol/l µmol/l um umoll-1",
    "millimole / liter": "mmol/l",
    "nanomole / liter": "nmol/l",
    "micromole / kilogram": "umol/kg µmol/kg umolkg-1",
    "mole / meter ** 3": "mol/m3 molm-3",
    "millimole / meter ** 3": "mmol/m3 mmolm-3",
    "1 / meter": "1/m m-1 m^-1 /m",
    "1 / centimeter": "1/cm cm-1",
    "cell / milliliter": "cells/ml cell/ml cellsml-1",
    "cell / liter": "cells/l cell/l",
    "micromole / meter ** 2 / second": "umolm-2s-1 µmolm-2s-1 umol/m2/s µmol/m2/s umol/m^2/s umol/s/m2 "
    "umolphotons/m^2/sec umolphotonsm-2s-1 µe/m2/s ue/m2/s",
    "watt / meter ** 2": "w/m2 wm-2 w/m^2",
    "nanometer": "nanometer nanometers",
    "count": "count counts cnt cts",
}  # fmt: skip
_KNOWN = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}

_CASED = {
    "mS": "millisiemens",
    "S": "siemens",
    "uS": "microsiemens",
    "µS": "microsiemens",
}
"""Units that differ from another only by capitals."""

_TEMPERATURE = re.compile(r"temp|tmp|^t$|air|water|dew|cond", re.IGNORECASE)
_VOLTAGE = re.compile(r"batt|volt|power|pwr|supply|cable|ph|orp", re.IGNORECASE)
_SINGLE = {"m": re.compile(""), "v": _VOLTAGE} | dict.fromkeys("cfk", _TEMPERATURE)
"""Letters that are a unit as the last word of a name, and what that name must hold for it."""

_BRACKETS = re.compile(r"[(\[{<]\s*([^()\[\]{}<>]*(?:\([^()]*\)[^()\[\]{}<>]*)?)\s*[)\]}>]")
_SERIAL = re.compile(r"^\d{4,}$|s/n|\bserial|\bs\.?n\.?\s*[:#]|\blbl\b\s*:", re.IGNORECASE)
_COMPASS = re.compile(
    r"(?:decimal\s*)?(?:deg(?:ree)?s?|°)(?:[\s._]+(?P<apart>[nsew]|north|south|east|west)"
    r"|(?P<joined>[new]|north|south|east|west)|(?<=s)(?P<south>s))",
    re.IGNORECASE,
)
"""Degrees and a side; the s of "degrees" and "degs" is none."""
_DIGITS = 60


class Conversion(NamedTuple):
    """A change of unit: ``factor * number + offset``, both exact but for pi."""

    factor: Fraction
    offset: Fraction = Fraction(0)

    @property
    def is_none(self) -> bool:
        """Whether it changes nothing."""
        return self.factor == 1 and not self.offset

    def of(self, cells: Sequence[str], numbers: Array) -> Array:
        """Return the numbers (n,) converted from their cells, to the nearest number that there is.

        The decimals are multiplied as decimals: 6.56 ft become 1.999488 m, as if the cell had said so.

        Examples
        --------
        >>> Conversion(Fraction(381, 1250)).of(("6.56", ""), np.array([6.56, np.nan])).tolist()
        [1.999488, nan]
        """
        if self.is_none:
            return numbers
        converted = np.full(len(numbers), np.nan)
        with localcontext(prec=_DIGITS):
            above, below = Decimal(self.factor.numerator), Decimal(self.factor.denominator)
            offset = Decimal(self.offset.numerator) / Decimal(self.offset.denominator)
            for row in np.flatnonzero(np.isfinite(numbers)).tolist():
                converted[row] = float(Decimal(cells[row]) * above / below + offset)
        return converted


@cache
def _registry() -> UnitRegistry[Fraction]:
    from pint import UnitRegistry

    registry: UnitRegistry[Fraction] = UnitRegistry(non_int_type=Fraction)
    registry.load_definitions(_DEFINED.strip().splitlines())
    return registry


def parse_unit(text: str) -> Unit | None:
    """Return the unit that a text names, perhaps besides a scale; None if it names none.

    Examples
    --------
    >>> parse_unit("ITS-90, deg C") == parse_unit("°C"), parse_unit("LGR S/N: 2099") is None
    (True, True)
    """
    return next((unit for part in _parts(text) if (unit := _parse_part(part)) is not None), None)


def _parts(text: str) -> list[str]:
    """Return a text, and what stands between its commas, the last first: of "ITS-90, deg C" the unit."""
    parts = [part.strip() for part in re.split(r"[,;]", text)]
    return [text.strip(), *(reversed(parts) if len(parts) > 1 else ())]


def _spell(text: str) -> str | None:
    """Return a unit as pint spells it, if its spelling is listed."""
    text = _fold_signs(text)
    return _CASED.get(text) or _KNOWN.get(_fold(text))


@cache
def _parse_part(text: str) -> Unit | None:
    spelled, text = _spell(text), _fold_signs(text)
    return _parse_compound(text) if spelled is None else _registry().parse_units(spelled)


def _parse_compound(text: str) -> Unit | None:
    """Return the unit in an expression of units, such as mg m-3 or W/m^2; None if it is none."""
    if len(text) < 2 or len(text) > 40 or _SERIAL.search(text) or not re.search(r"[^\W\d_]", text):
        return None
    expression = re.sub(r"\bper\b", "/", text).replace("·", " ").replace("^", "**")
    expression = re.sub(r"(?<=[^\W\d_])([-+]?\d)(?!\d)", r"**\1", expression)
    expression = re.sub(r"(?<=[\w)])\s+(?=[^\W\d_])", "*", expression.strip())
    if not is_cheap(expression):
        return None
    for spelled in (expression, expression.lower()):
        try:
            return _registry().parse_units(spelled)
        except Exception:  # pint raises nearly anything, AssertionError too, on what a header may hold
            continue
    return None


_CHEAP = re.compile(
    r"""(?:[^\W\d][\w°%‰']*+ (?:\s*\*\*\s*\(?[-+]?[0-9]{1,2}(?:\.[0-9]{1,2})?(?![\w.])\)?)?  # m, or m**-2
    | [°%‰'\#][\w°%‰']*+
    | [0-9]{1,6}(?![0-9eE_])
    | (?<!\*)\*(?!\*) | \.(?![eE]) | [/()\s]
    )++""",
    re.VERBOSE,
)
"""Names, each with a small power or none, and short plain numbers, between * and /."""


def is_cheap(expression: str) -> bool:
    """Return whether an expression of units is evaluated at once: pint computes powers of any size.

    Examples
    --------
    >>> is_cheap("mg*m**-3"), is_cheap("m**(-2)/s"), is_cheap("m**9**9"), is_cheap("1e6*m")
    (True, True, False, False)
    """
    return _CHEAP.fullmatch(expression) is not None


def _fold_signs(text: str) -> str:
    """Return a text with one sign for each of what has several in Unicode."""
    for old, new in (("μ", "µ"), ("º", "°"), ("˚", "°"), ("℃", "°C"), ("℉", "°F"), ("−", "-"), ("⁻", "-")):
        text = text.replace(old, new)
    return text.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")).strip()


def _fold(text: str) -> str:
    return re.sub(r"[\s_.]+", "", text.lower())


def is_unit(text: str) -> bool:
    """Return whether a text is a unit that is known by its spelling, such as mg/L, or a compound of such.

    Single letters and words that a unit shares with other things count only if they are usual in headers.

    Examples
    --------
    >>> [is_unit(text) for text in ("Deg C", "% sat", "1e-3", "a", "bow", "Volts")]
    [True, True, True, False, False, True]
    """
    if _spell(text) is not None:
        return True
    folded = _fold_signs(text)
    return bool(re.search(r"[/%°^]|[a-z]-[1-3]\b", folded)) and _parse_part(text) is not None


def clean_unit(text: str) -> str:
    """Return the text of a cell in a row of units without brackets, and without a scale such as ITS-90.

    Examples
    --------
    >>> clean_unit("(deg)"), clean_unit("[ITS-90, deg C]"), clean_unit("mg m-3"), clean_unit("(none)")
    ('deg', 'deg C', 'mg m-3', '')
    """
    found = _BRACKETS.fullmatch(text.strip())
    inner = found[1].strip() if found else text.strip()
    if inner.lower() in ("none", "unitless", "dimensionless", "-", "n/a", "na"):
        return ""
    return next((part for part in _parts(inner) if is_unit(part)), inner)


def is_known(text: str) -> bool:
    """Return whether a text names a unit, however it is spelled, perhaps besides a scale."""
    return any(_spell(part) is not None for part in _parts(text)) or parse_unit(text) is not None


def conversion(unit: str, wanted: str) -> Conversion | None:
    """Return the change from one unit to another; None if one is not known, or they differ in kind.

    Examples
    --------
    >>> conversion("ft", "m"), conversion("degF", "°C").offset, conversion("dbar", "m")
    (Conversion(factor=Fraction(381, 1250), offset=Fraction(0, 1)), Fraction(-160, 9), None)
    """
    if (spelled := _spell(unit)) is not None and spelled == _spell(wanted):
        return Conversion(Fraction(1))
    one, other = parse_unit(unit), parse_unit(wanted)
    if one is None or other is None or _kind(one) != _kind(other):
        return None
    if one == other:
        return Conversion(Fraction(1))
    zero = Fraction(_registry().convert(Fraction(0), one, other))
    return Conversion(Fraction(_registry().convert(Fraction(1), one, other)) - zero, zero)


def _kind(unit: Unit) -> tuple[object, bool]:
    """Return what a unit measures: its dimensions, and whether it is an angle, which has none."""
    angle = "radian" in dict(_registry().get_root_units(unit)[1]._units)
    return unit.dimensionality, angle


def is_plain(unit: str) -> bool:
    """Return whether a unit is 1, that of plain numbers, or none at all."""
    return not unit.strip() or _spell(unit) == "dimensionless"


def is_pressure(unit: str) -> bool:
    """Return whether a unit is one of pressure."""
    return conversion(unit, "dbar") is not None


def compass_of(unit: str) -> str:
    """Return the direction that a unit of degrees states, N, S, E or W; empty if it states none.

    Examples
    --------
    >>> compass_of("deg W"), compass_of("degrees_north"), compass_of("degrees")
    ('W', 'N', '')
    """
    found = _COMPASS.fullmatch(_fold_signs(unit))
    side = None if found is None else found["apart"] or found["joined"] or found["south"]
    return side[0].upper() if side else "S" if _fold_signs(unit) in ("degS", "°S", "°s") else ""


# -- in the name of a column ---------------------------------------------------------------------------------


def unit_of(name: str) -> str | None:
    """Return the unit that a column's name states; None if it states none.

    It is the first bracket that holds a unit, the part after the last comma, or the last words. A bracket
    that holds something else counts as a unit only if there is none of these, and no serial number.

    Examples
    --------
    >>> unit_of("Temp (°C)"), unit_of("DO conc, mg/L (LGR S/N: 2099)"), unit_of("depth_ft"), unit_of("chl")
    ('°C', 'mg/L', 'ft', None)
    """
    return _split(name)[1]


def bare(name: str) -> str:
    """Return the name of a column without its unit, and without what stands in brackets.

    Examples
    --------
    >>> bare("Temp (°C)"), bare("DO conc, mg/L"), bare("Depth m"), bare("depth_ft"), bare("chl")
    ('Temp', 'DO conc', 'Depth', 'depth_ft', 'chl')
    """
    return _split(name)[0]


def short_names(name: str) -> set[str]:
    """Return what a column may be called, in lower case: without its unit, or without what is in brackets.

    Examples
    --------
    >>> sorted(short_names("DO conc, mg/L (LGR S/N: 2099)"))
    ['do conc', 'do conc, mg/l', 'do conc, mg/l (lgr s/n: 2099)']
    """
    return {each.strip().lower() for each in (name, bare(name), _BRACKETS.sub("", name).strip() or name)}


@cache
def _split(name: str) -> tuple[str, str | None]:
    brackets = [found.strip() for found in _BRACKETS.findall(name)]
    stem = _BRACKETS.sub("", name).strip() or name
    for text in brackets:
        for part in _parts(text):
            if is_unit(part) or (part == text and _parse_part(part) is not None):
                return stem, part
    head, comma, tail = stem.rpartition(",")
    if comma and head.strip() and is_unit(tail):
        return head.strip(), tail.strip()
    words, unit = _split_last_words(stem)
    if unit is not None:
        return words, unit
    return stem, next((text for text in brackets if text and not _SERIAL.search(text)), None)


def _split_last_words(name: str) -> tuple[str, str | None]:
    """Return a name without the unit at its end, and that unit; a name joined by underscores stays whole."""
    for pattern in (r"\s+", r"_+"):
        words = re.split(pattern, name.strip())
        for count in (4, 3, 2, 1):
            if len(words) <= count:
                continue
            last, before = words[-count:], " ".join(words[:-count])
            per = ["/".join(last)] if count == 2 and pattern == r"_+" and last[0] != "in" else []  # DO_mg_L
            texts = [*per, ("_" if pattern == r"_+" else " ").join(last)]
            unit = next((text for text in texts if _ends_a_name(text, before)), None)
            if unit is not None:
                return (before if pattern == r"\s+" else name), unit
    return name, None


def _ends_a_name(text: str, before: str) -> bool:
    """Return whether a text is a unit at the end of a name, rather than one of its words."""
    folded = _fold(_fold_signs(text))
    if len(folded) == 1 and folded not in "%°":
        if text == "M" and before.upper() != before:
            return False  # Temp_M: a mean
        return folded in _SINGLE and _SINGLE[folded].search(before) is not None
    if folded in _WORDS or folded.isdigit() or not folded.strip("-'"):
        return False
    return is_unit(text)


_WORDS = {
    *("in", "day", "days", "min", "none", "ratio", "count", "counts", "cell", "hour", "hours", "second"),
    *("seconds", "sec", "secs", "minute", "minutes", "nm", "ma", "um", "us", "mb", "db", "dd", "fm", "mi"),
    *("h", "d", "ph", "1e-3", "degs"),
}
"""Spellings of units that are words of names as well, or too short to be taken for a unit there."""
