#!/usr/bin/env bash
# GDAL 3.12.4 (pyogrio 0.13.0): in MapInfo's MIF a missing number becomes 0, and a time loses its offset.
#
# The format has no null. One expects that a writer refuses missing numbers, or warns; GDAL writes 0 and says
# nothing, so that a gap in a log is a reading of 0 for whoever opens the file. fieldbo refuses .mif and .tab
# and asks for a GeoPackage, which keeps both.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     GeoPackage: nan, 2024-05-01T12:00:00+02:00
#     MIF: 0.0, 2024-05-01T12:00:00
#
# Fails once a missing number is not 0, or the offset is kept.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyogrio==0.13.0 shapely==2.2.0

cat > write.py <<'PYTHON'
import sys

import numpy as np
import pyogrio
import shapely

seen = []
for kind, name in (("GeoPackage", "log.gpkg"), ("MIF", "log.mif")):
    pyogrio.raw.write(
        name, shapely.to_wkb(shapely.points([[8.5, 47.3], [8.6, 47.4]])),
        [np.array([np.nan, 2.0]), np.array(["2024-05-01T12:00:00"] * 2, dtype="datetime64[ms]")], ["chl", "time"],
        geometry_type="Point", crs="EPSG:4326", gdal_tz_offsets={"time": np.full(2, 108)},
        driver="GPKG" if kind == "GeoPackage" else "MapInfo File",
    )
    chl, time = pyogrio.raw.read(name, datetime_as_string=True)[3]
    print(f"{kind}: {chl[0]}, {time[0]}")
    seen.append((str(chl[0]), time[0]))
wanted = [("nan", "2024-05-01T12:00:00+02:00"), ("0.0", "2024-05-01T12:00:00")]
sys.exit("it behaves otherwise by now" if seen != wanted else 0)
PYTHON
venv/bin/python write.py
