#!/usr/bin/env bash
# MAVProxy 1.8.75 (pymavlink 2.4.50): `fence load` sends the home in row 0 of a fence file as an item of the fence.
#
# Mission Planner saves a fence as QGC WPL 110, with the home as row 0, as in a mission; when it loads one, it
# removes the first row, unless rows are numbered from 1. MAVProxy keeps all rows. One expects that a fence file of
# Mission Planner can be loaded in MAVProxy; but the first item that it would send is a waypoint (16), which
# ArduPilot rejects in a fence. A file whose rows are numbered from 1, without a home, means the same to both: so
# fieldbo writes that.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     with the home as row 0: 5 items, the first is command 16, inclusion of 4 corners
#     numbered from 1, without: 4 items, the first is command 5001, inclusion of 4 corners
#
# Fails if MAVProxy drops the home, or does not find the corners.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check MAVProxy==1.8.75 pymavlink==2.4.50

cat > load.py <<'PYTHON'
import os
import sys
from pathlib import Path

os.environ["MAVLINK20"] = "1"
from MAVProxy.modules.mavproxy_fence import FenceModule

HOME = "0\t1\t0\t16\t0\t0\t0\t0\t47.310\t8.580\t400\t1\n"
CORNERS = "".join(
    f"{k}\t0\t0\t5001\t4\t0\t0\t0\t{latitude}\t{longitude}\t0\t1\n"
    for k, (latitude, longitude) in enumerate([(47.31, 8.58), (47.32, 8.58), (47.32, 8.59), (47.31, 8.59)], 1)
)


def loaded(how, rows):
    Path("fence.txt").write_text("QGC WPL 110\n" + rows)
    loader = FenceModule.loader_class()()
    loader.load("fence.txt")
    module = FenceModule.__new__(FenceModule)
    FenceModule.wploader = property(lambda _: loader)
    (inclusion,) = module.inclusion_polygons()
    first = module.wp_to_mission_item_int(loader.item(0)).command
    print(f"{how}: {loader.count()} items, the first is command {first}, inclusion of {len(inclusion)} corners")
    return loader.count(), first, len(inclusion)


seen = [loaded("with the home as row 0", HOME + CORNERS), loaded("numbered from 1, without", CORNERS)]
sys.exit("it behaves otherwise by now" if seen != [(5, 16, 4), (4, 5001, 4)] else 0)
PYTHON
venv/bin/python load.py
