#!/usr/bin/env bash
# compliance-checker 6.1.0 (pyproj 3.7.2): a file in a Mercator projection lacks the attributes `_`, `c`, `d`, `e` ...
#
# pyproj describes a projection by the attributes that CF's appendix F names. One expects that the checker of IOOS,
# which has the appendix as a table, accepts them, or asks for one of them that is missing. For Mercator, it asks for
# each letter of `longitude_of_projection_origin`, an attribute that the file has; for the oblique Mercator of
# Switzerland and Borneo, for `azimuth`, where the appendix says `azimuth_of_central_line`. Such files can't pass
# unless they state attributes that CF does not know. So a fault that the checker finds in the projection of a world
# need not be one.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     EPSG:3395, mercator: asks for _ c d e f g i j l n o p r t u
#     EPSG:2056, oblique_mercator: asks for azimuth
#     EPSG:32632, transverse_mercator: asks for nothing
#
# Fails if it asks for anything else.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
    compliance-checker==6.1.0 pyproj==3.7.2 netCDF4==1.7.5.1.post1

cat > ask.py <<'PYTHON'
import re
import subprocess
import sys

import netCDF4
from pyproj import CRS


def asked_for(code):
    described = CRS(code).to_cf()
    with netCDF4.Dataset("map.nc", "w") as data:
        data.setncatts({"Conventions": "CF-1.11", "title": "heights", "history": "made by hand"})
        for name in "xy":
            data.createDimension(name, 2)
            axis = data.createVariable(name, "f8", (name,))
            axis.setncatts({"units": "m", "standard_name": f"projection_{name}_coordinate", "axis": name.upper()})
            axis[:] = [0.0, 1.0]
        heights = data.createVariable("height", "f8", ("y", "x"))
        heights.setncatts({"units": "m", "long_name": "height", "grid_mapping": "crs"})
        heights[:] = 0.0
        data.createVariable("crs", "i4").setncatts(described)
    command = ["venv/bin/compliance-checker", "-t", "cf:1.11", "map.nc"]
    report = subprocess.run(command, capture_output=True, text=True).stdout
    assert "IOOS Compliance Checker Report" in report, report
    names = sorted(set(re.findall(r"^\* (\w+) is a required attribute for grid mapping", report, re.MULTILINE)))
    print(f"EPSG:{code}, {described['grid_mapping_name']}: asks for {' '.join(names) or 'nothing'}")
    assert not set(names) & set(described)
    return names


seen = [asked_for(code) for code in (3395, 2056, 32632)]
letters = sorted(set("longitude_of_projection_origin"))
sys.exit("it behaves otherwise by now" if seen != [letters, ["azimuth"], []] else 0)
PYTHON
venv/bin/python -W ignore ask.py
