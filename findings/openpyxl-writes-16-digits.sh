#!/usr/bin/env bash
# openpyxl 3.1.5: a number that needs 17 digits is another one after it was saved and read.
#
# Excel writes 17 digits, which hold any number in double precision. One expects the same of openpyxl, or repr's
# shortest text; it writes 16. A workbook that openpyxl wrote may so differ from the CSV of the same readings in
# the last digit. fieldbo reads what stands in the file.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     47.304399999999994 is read as 47.30439999999999
#
# Fails once the number comes back as it was.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check openpyxl==3.1.5

cat > write.py <<'PYTHON'
import sys

import openpyxl

number = 47.304399999999994
book = openpyxl.Workbook()
book.active.append([number])
book.save("log.xlsx")
(read,) = (cell.value for row in openpyxl.load_workbook("log.xlsx").active.iter_rows() for cell in row)
print(f"{number!r} is read as {read!r}")
sys.exit("it behaves otherwise by now" if read == number else 0)
PYTHON
venv/bin/python write.py
