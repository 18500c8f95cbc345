"""A ground station that is all MAVSDK's: it sends a vehicle somewhere, and waits until it is there.

``python mavsdk_station.py URL LATITUDE LONGITUDE ALTITUDE`` prints the vehicle's flight mode once the vehicle
has arrived, within a metre.
"""

import sys
import time

from mavsdk.component_type import ComponentType
from mavsdk.mavsdk import Configuration, Mavsdk
from mavsdk.plugins.action import Action
from mavsdk.plugins.telemetry import Telemetry

NEAR = 1e-5  # degrees: a metre


def main():
    url, latitude, longitude, altitude = sys.argv[1], *map(float, sys.argv[2:5])
    mavsdk = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
    print(f"connected: {mavsdk.add_any_connection(url).name}", flush=True)
    vehicle = mavsdk.first_autopilot(60.0)
    action, telemetry = Action(vehicle), Telemetry(vehicle)
    print(f"goto: {action.goto_location(latitude, longitude, altitude, 0.0).name}", flush=True)
    while True:
        at = telemetry.position()
        if abs(at.latitude_deg - latitude) < NEAR and abs(at.longitude_deg - longitude) < NEAR:
            break
        time.sleep(0.1)
    print(f"arrived in {telemetry.flight_mode().name}", flush=True)


if __name__ == "__main__":
    main()
