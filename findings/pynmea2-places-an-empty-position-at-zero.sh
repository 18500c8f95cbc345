#!/usr/bin/env bash
# pynmea2 1.19.0: a GGA sentence without a position has latitude 0.0 and longitude 0.0.
#
# A receiver without a fix leaves the fields empty. One expects None, NaN or an error; the attributes are 0.0, a place
# in the Gulf of Guinea. fieldbo reads sentences itself, and an empty field is no position.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     without a position: 0.0, 0.0
#
# Fails once pynmea2 says that there is no position.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pynmea2==1.19.0

cat > read.py <<'PYTHON'
import sys

import pynmea2

empty = pynmea2.parse("$GPGGA,120000.00,,,,,0,00,,,M,,M,,")
print(f"without a position: {empty.latitude}, {empty.longitude}")
sys.exit("it behaves otherwise by now" if (empty.latitude, empty.longitude) != (0.0, 0.0) else 0)
PYTHON
venv/bin/python read.py
