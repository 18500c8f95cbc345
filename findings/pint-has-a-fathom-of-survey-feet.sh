#!/usr/bin/env bash
# pint 0.25.3: a fathom is 6 US survey feet, a share converts to degrees, and exact units can't be printed.
#
# One expects that a length of charts is that of charts: since 1959 a fathom is 1.8288 m, and pint's is 2 micrometres
# per metre longer. An angle has no dimension, so that 1e-3 converts to degrees without a word. With
# non_int_type=Fraction, which keeps a foot at exactly 381/1250 m, a unit such as kg/m**3 can be used, but CPython
# 3.11 raises a TypeError when it is printed. So fieldbo defines its own fathom, tells angles apart, and prints a unit
# as the header wrote it.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     fathom 7200/3937 m, 1e-3 to degrees True, printing kg/m**3 TypeError
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
    "1e-3 to degrees": units.is_compatible_with(units.parse_units("permille"), "degree"),
    "printing kg/m**3": error(str, units.parse_units("kg/m**3")),
}
print(seen)
expected = {"fathom": "7200/3937", "1e-3 to degrees": True, "printing kg/m**3": "TypeError"}
raise SystemExit(seen != expected)
PYTHON
venv/bin/python units.py
