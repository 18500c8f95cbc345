#!/usr/bin/env bash
# pint 0.25.3: a fathom is 6 US survey feet, "1e-3" and "deg" are of one kind, and exact powers can't be printed.
#
# One expects of a library of units that the words in brackets behind a column's name can be given to it as they
# are. But "fathom" is 2 micrometres per metre longer than that of charts (1.8288 m); "a" in "chl (a)" is a year;
# an angle has no dimension, so that a share of 1e-3 can be converted to degrees; text such as "E+" ends in an
# AssertionError; and with non_int_type=Fraction, which keeps a foot at exactly 381/1250 m, a unit such as
# kg/m**3 can be used but not printed by CPython 3.11. So fieldbo lists the spellings of headers itself
# (fieldbo/tables/units.py), defines its own fathom, tells angles apart, prints a unit as the header wrote it, and
# takes any error for "not a unit".
#
# Seen on Linux x86_64, CPython 3.11:
#
#     fathom 7200/3937 m, a year, 1e-3 to degrees True, "E+" AssertionError, printing kg/m**3 TypeError
#
# Fails once one of these has changed.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pint==0.25.3

cat > units.py <<'PYTHON'
from fractions import Fraction

from pint import UnitRegistry


def error(function, *given):
    try:
        function(*given)
    except Exception as raised:
        return type(raised).__name__
    return "nothing"


units = UnitRegistry(non_int_type=Fraction)
seen = {
    "fathom": str(units.convert(Fraction(1), "fathom", "meter")),
    "a": str(units.parse_units("a")),
    "1e-3 to degrees": units.is_compatible_with(units.parse_units("permille"), "degree"),
    "E+": error(units.parse_units, "E+"),
    "printing kg/m**3": error(str, units.parse_units("kg/m**3")),
}
print(seen)
expected = {"fathom": "7200/3937", "a": "year", "1e-3 to degrees": True, "E+": "AssertionError", "printing kg/m**3": "TypeError"}
raise SystemExit(seen != expected)
PYTHON
venv/bin/python units.py
