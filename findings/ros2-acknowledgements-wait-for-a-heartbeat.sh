#!/usr/bin/env bash
# rclpy 9.1.2 with Fast DDS: `Publisher.wait_for_all_acked` takes seconds for a message that arrived at once.
#
# A reliable publisher and a reliable subscriber in two processes of one machine, default settings. One expects
# the acknowledgement a few milliseconds after the callback of the subscriber. It comes with the publisher's
# next heartbeat, of which Fast DDS sends one every 3 s while something is unacknowledged. So a timeout of a
# second, as before a program ends, tells a message that has arrived from one that is lost only by chance.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     arrived after 0.001 s, acknowledged after 3.013 s
#     arrived after 0.001 s, acknowledged after 2.294 s
#     arrived after 0.001 s, acknowledged after 2.300 s
#
# Fails if the acknowledgement comes within half a second each time, or the message does not arrive before.
set -euo pipefail

place=$(mktemp -d)
trap 'kill "${heard:-}" 2> /dev/null || true; rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'ros-rclpy[fastrtps]==9.1.2' ros-std-msgs==5.5.1
export ROS_DOMAIN_ID=97 ROS_LOCALHOST_ONLY=1

cat > hear.py <<'PYTHON'
import time

import rclpy
from std_msgs.msg import String

rclpy.init()
node = rclpy.create_node("robot")
node.create_subscription(String, "goal", lambda message: print(message.data, time.time(), flush=True), 10)
rclpy.spin(node)
PYTHON

cat > say.py <<'PYTHON'
import sys
import time
from pathlib import Path

import rclpy
from rclpy.duration import Duration
from std_msgs.msg import String

rclpy.init()
publisher = rclpy.create_node("planner").create_publisher(String, "goal", 10)
while not publisher.get_subscription_count():
    time.sleep(0.01)
time.sleep(1.0)
waits = []
for k in range(3):
    said = time.time()
    publisher.publish(String(data=str(k)))
    acknowledged = publisher.wait_for_all_acked(Duration(seconds=10))
    waits.append(time.time() - said)
    heard = dict(line.split() for line in Path("heard").read_text().splitlines())
    arrived = float(heard[str(k)]) - said
    print(f"arrived after {arrived:.3f} s, acknowledged after {waits[-1]:.3f} s")
    if not acknowledged or arrived > 0.5 * waits[-1]:
        sys.exit("the message did not arrive long before its acknowledgement")
    time.sleep(0.7)
if max(waits) < 0.5:
    sys.exit("acknowledgements come at once by now")
PYTHON

venv/bin/python hear.py > heard 2> /dev/null &  # stopped by a signal, it prints a traceback
heard=$!
venv/bin/python say.py
